// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/swell-sh/swell/render/schema/validation"
)

// OfMessage is the type of easy documents of a message with the fields
// apiVersion, kind, metadata and spec: what the strict decoder takes, as far as
// a form can say it. spec.override is free form unless the message has it.
// Which fields of a oneof are set together is left to the decoder. The type
// refers to itself where the message does.
func OfMessage(m protoreflect.MessageDescriptor) *Type {
	known := map[protoreflect.FullName]*Type{}
	document := messageType(m, known)
	if spec := m.Fields().ByName("spec"); spec != nil && spec.Message() != nil && document.Fields["spec"].Form == Object {
		withOverride := *document.Fields["spec"]
		withOverride.Fields = make(map[string]*Type, len(withOverride.Fields)+1)
		withOverride.Fields["override"] = &Type{}
		for name, field := range document.Fields["spec"].Fields {
			withOverride.Fields[name] = field
		}
		whole := *document
		whole.Fields = make(map[string]*Type, len(document.Fields))
		for name, field := range document.Fields {
			whole.Fields[name] = field
		}
		whole.Fields["spec"] = &withOverride
		return &whole
	}
	return document
}

// wellKnownForms are the messages that are written in a form of their own; the
// wrappers are written as the value that they hold.
var wellKnownForms = map[protoreflect.FullName]*Type{
	"google.protobuf.Duration":  {Form: String},
	"google.protobuf.Timestamp": {Form: String},
	"google.protobuf.Value":     {},
	"google.protobuf.Struct":    {Form: Map, Elem: &Type{}},
	"google.protobuf.ListValue": {Form: List, Elem: &Type{}},
	"google.protobuf.FieldMask": {Form: String},
	"google.protobuf.Any":       {Form: Map, Elem: &Type{}}, // the decoder refuses it
}

var wrappers = map[protoreflect.FullName]bool{
	"google.protobuf.DoubleValue": true, "google.protobuf.FloatValue": true, "google.protobuf.BoolValue": true,
	"google.protobuf.Int64Value": true, "google.protobuf.UInt64Value": true, "google.protobuf.Int32Value": true,
	"google.protobuf.UInt32Value": true, "google.protobuf.StringValue": true, "google.protobuf.BytesValue": true,
}

func messageType(m protoreflect.MessageDescriptor, known map[protoreflect.FullName]*Type) *Type {
	if form := wellKnownForms[m.FullName()]; form != nil {
		return form
	}
	if wrappers[m.FullName()] {
		return valueType(m.Fields().ByName("value"), known)
	}
	if t := known[m.FullName()]; t != nil {
		return t
	}
	t := &Type{Form: Object, Fields: make(map[string]*Type, m.Fields().Len())}
	known[m.FullName()] = t // before its fields: a message may hold itself
	for i := range m.Fields().Len() {
		field := m.Fields().Get(i)
		switch {
		case field.IsMap():
			t.Fields[string(field.Name())] = &Type{Form: Map, Elem: valueType(field.MapValue(), known)}
		case field.IsList():
			t.Fields[string(field.Name())] = &Type{Form: List, Elem: valueType(field, known)}
		default:
			t.Fields[string(field.Name())] = valueType(field, known)
		}
	}
	return t
}

// fromFile is what may stand in place of a string or of bytes.
var fromFile = map[string]*Type{"fromFile": {Form: String}}

func valueType(field protoreflect.FieldDescriptor, known map[protoreflect.FullName]*Type) *Type {
	switch field.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return messageType(field.Message(), known)
	case protoreflect.StringKind:
		return &Type{Form: String, Fields: fromFile}
	case protoreflect.BytesKind:
		return &Type{Form: Base64, Fields: fromFile}
	case protoreflect.BoolKind:
		return &Type{Form: Boolean}
	case protoreflect.EnumKind:
		return &Type{Form: IntOrString, Rules: &Rules{check: enumRule(field.Enum().Values())}}
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind, protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return &Type{Form: IntOrString} // a string where JSON cannot hold it
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return &Type{Form: Number}
	}
	return &Type{Form: Integer}
}

// enumRule finds values that are neither a name nor a number of an enum.
func enumRule(values protoreflect.EnumValueDescriptors) validation.Rule {
	return func(value any) validation.Flaws {
		switch v := value.(type) {
		case string:
			if values.ByName(protoreflect.Name(v)) != nil {
				return nil
			}
		case int64:
			if v == int64(int32(v)) && values.ByNumber(protoreflect.EnumNumber(v)) != nil {
				return nil
			}
		}
		const most = 12
		if values.Len() > most {
			return validation.Flaws{{Want: fmt.Sprintf("one of the %d names of the enum", values.Len()), Got: true}}
		}
		names := make([]string, values.Len())
		for i := range names {
			names[i] = strconv.Quote(string(values.Get(i).Name()))
		}
		return validation.Flaws{{Want: "one of " + strings.Join(names, ", "), Got: true}}
	}
}
