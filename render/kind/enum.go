// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"strconv"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// FindStructFieldType is that of CEL, but for enums and for 32-bit floating
// point. A field of an enum is a text, the name of its value, as it is in a
// message that is rendered as a whole; a value without a name is its number as
// text. A float is the number that it is written as.
func (r registry) FindStructFieldType(message, field string) (*types.FieldType, bool) {
	found, ok := r.Registry.FindStructFieldType(message, field)
	if !ok {
		return nil, false
	}
	switch found.Type.Kind() {
	case types.IntKind, types.DoubleKind, types.ListKind, types.MapKind:
	default:
		return found, true
	}
	of, item := r.fieldOf(message, field)
	switch {
	case of == nil:
		return found, true
	case item.Kind() == protoreflect.EnumKind:
		return withValues(found, of, types.StringType, enumNames), true
	case isFloat(item):
		return withValues(found, of, nil, floats), true
	}
	return found, true
}

// withValues is a field whose values are made by another function; single is
// the type of one of them, nil for CEL's own.
func withValues(field *types.FieldType, of protoreflect.FieldDescriptor, single *types.Type, values func(protoreflect.Message, protoreflect.FieldDescriptor) any) *types.FieldType {
	other := *field
	switch {
	case single == nil:
	case of.IsMap():
		other.Type = types.NewMapType(field.Type.Parameters()[0], single)
	case of.IsList():
		other.Type = types.NewListType(single)
	default:
		other.Type = single
	}
	other.GetFrom = func(target any) (any, error) {
		value, err := field.GetFrom(target)
		m, ok := target.(proto.Message)
		if !ok || err != nil || value == nil {
			return value, err
		}
		// By name: it may be of another copy of the descriptor.
		if known := m.ProtoReflect().Descriptor().Fields().ByName(of.Name()); known != nil {
			return values(m.ProtoReflect(), known), nil
		}
		return value, nil
	}
	return &other
}

// fieldOf is a field and that of its items or values, or itself. It looks at a
// new message of the type, since CEL does not tell.
func (r registry) fieldOf(message, name string) (field, item protoreflect.FieldDescriptor) {
	m, ok := r.NewValue(message, nil).Value().(proto.Message)
	if !ok {
		return nil, nil
	}
	field = m.ProtoReflect().Descriptor().Fields().ByName(protoreflect.Name(name))
	if field != nil && field.IsMap() {
		return field, field.MapValue()
	}
	return field, field
}

func enumNames(m protoreflect.Message, field protoreflect.FieldDescriptor) any {
	value := m.Get(field)
	switch {
	case field.IsList():
		names := make([]string, value.List().Len())
		for i := range names {
			names[i] = enumName(field, value.List().Get(i))
		}
		return names
	case field.IsMap():
		names := make(map[ref.Val]ref.Val, value.Map().Len())
		value.Map().Range(func(key protoreflect.MapKey, v protoreflect.Value) bool {
			names[types.DefaultTypeAdapter.NativeToValue(key.Interface())] = types.String(enumName(field.MapValue(), v))
			return true
		})
		return types.NewRefValMap(types.DefaultTypeAdapter, names)
	}
	return enumName(field, value)
}

func enumName(field protoreflect.FieldDescriptor, value protoreflect.Value) string {
	if known := field.Enum().Values().ByNumber(value.Enum()); known != nil {
		return string(known.Name())
	}
	return strconv.Itoa(int(value.Enum()))
}

// EnumValue hides the constants that CEL has for enums, which are integers:
// compare with the name as a text.
func (r registry) EnumValue(name string) ref.Val {
	return types.NewErr("no such constant: %s", name)
}

// FindIdent is that of CEL without constants of enums.
func (r registry) FindIdent(name string) (ref.Val, bool) {
	found, ok := r.Registry.FindIdent(name)
	if _, isNumber := found.(types.Int); isNumber {
		return nil, false
	}
	return found, ok
}
