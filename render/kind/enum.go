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

// FindStructFieldType is that of CEL, but for enums. A field of an enum is a
// text, the name of its value, as it is in a message that is rendered as a
// whole; a value without a name is its number as text.
func (r registry) FindStructFieldType(message, field string) (*types.FieldType, bool) {
	found, ok := r.Registry.FindStructFieldType(message, field)
	if !ok {
		return nil, false
	}
	named := *found
	switch {
	case found.Type.Kind() == types.IntKind:
		named.Type = types.StringType
	case found.Type.Kind() == types.ListKind && found.Type.Parameters()[0].Kind() == types.IntKind:
		named.Type = types.NewListType(types.StringType)
	case found.Type.Kind() == types.MapKind && found.Type.Parameters()[1].Kind() == types.IntKind:
		named.Type = types.NewMapType(found.Type.Parameters()[0], types.StringType)
	default:
		return found, true
	}
	if !r.isEnum(message, field) {
		return found, true
	}
	named.GetFrom = func(target any) (any, error) {
		value, err := found.GetFrom(target)
		if m, ok := target.(proto.Message); ok && err == nil {
			return enumNames(m.ProtoReflect(), protoreflect.Name(field)), nil
		}
		return value, err
	}
	return &named, true
}

// isEnum looks at a new message of the type, since CEL does not tell.
func (r registry) isEnum(message, field string) bool {
	m, ok := r.NewValue(message, nil).Value().(proto.Message)
	if !ok {
		return false
	}
	f := m.ProtoReflect().Descriptor().Fields().ByName(protoreflect.Name(field))
	if f != nil && f.IsMap() {
		f = f.MapValue()
	}
	return f != nil && f.Kind() == protoreflect.EnumKind
}

func enumNames(m protoreflect.Message, name protoreflect.Name) any {
	field := m.Descriptor().Fields().ByName(name)
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
