// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/swell-sh/swell/config/document"
)

const floatValue protoreflect.FullName = "google.protobuf.FloatValue"

// isFloat says whether a value of the field is a number of 32 bits, which CEL
// makes one of 64 bits with digits that nobody wrote.
func isFloat(field protoreflect.FieldDescriptor) bool {
	return field.Kind() == protoreflect.FloatKind || field.Message() != nil && field.Message().FullName() == floatValue
}

// floats is the value of a field of floats, a list of them or a map to them.
func floats(m protoreflect.Message, field protoreflect.FieldDescriptor) any {
	value := m.Get(field)
	switch {
	case field.IsList():
		all := make([]float64, value.List().Len())
		for i := range all {
			all[i] = float(value.List().Get(i))
		}
		return all
	case field.IsMap():
		all := make(map[ref.Val]ref.Val, value.Map().Len())
		value.Map().Range(func(key protoreflect.MapKey, v protoreflect.Value) bool {
			all[types.DefaultTypeAdapter.NativeToValue(key.Interface())] = types.Double(float(v))
			return true
		})
		return types.NewRefValMap(types.DefaultTypeAdapter, all)
	}
	return float(value)
}

// float is a float, or that in a FloatValue, as it is written.
func float(value protoreflect.Value) float64 {
	if m, ok := value.Interface().(protoreflect.Message); ok {
		value = m.Get(m.Descriptor().Fields().ByName("value"))
	}
	return document.Shortest(float32(value.Float()))
}
