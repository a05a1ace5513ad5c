// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package easy

import (
	_ "embed"

	"google.golang.org/protobuf/reflect/protoreflect"
)

//go:embed crd.proto
var crdProto string

//go:embed options.proto
var optionsProto string

// The paths under which protoc-gen-crd's options are published, and at home.
const (
	crdHome   = "library/go/k8s/protoc_gen_crd/proto/crd.proto"
	crdImport = "github.com/yandex/protoc-gen-crd/" + crdHome
)

// ProtoFile is a .proto file that swell brings and easy kinds may import by
// this name; ok is false when there is none.
func ProtoFile(name string) (content []byte, ok bool) {
	switch name {
	case crdImport:
		return []byte(crdProto), true
	case crdHome: // the same file, so that a file may see both
		return []byte("syntax = \"proto3\";\nimport public \"" + crdImport + "\";\n"), true
	case "swell/options.proto":
		return []byte(optionsProto), true
	}
	return nil, false
}

// Numbers of extensions: of crd.proto and of options.proto. Options are known
// by these, whichever file declared them.
const (
	optionCRD    protoreflect.FieldNumber = 73394821
	optionPatch  protoreflect.FieldNumber = 73394822
	optionSchema protoreflect.FieldNumber = 73394823

	optionKeys      protoreflect.FieldNumber = 57301
	optionImmutable protoreflect.FieldNumber = 57302
	optionSecret    protoreflect.FieldNumber = 57303
	optionExample   protoreflect.FieldNumber = 57304

	optionForbidOverride protoreflect.FieldNumber = 57311
	optionForbidFromFile protoreflect.FieldNumber = 57312
)

// names is what a k8s_crd option says of the kind as a whole.
type names struct {
	group, kind, singular, plural string
	short, categories             []string
	cluster                       bool // cluster-scoped
	columns                       []column
	patches                       []fieldPatch
}

// column is what kubectl get shows of an object.
type column struct {
	name, typ, format, description, path string
	priority                             int64
}

// fieldPatch gives a merge strategy to the lists of one type of items, or to
// the field on a path from the root.
type fieldPatch struct {
	typ, path string
	patch     patch
}

// patch is how lists are merged. The zero value says nothing.
type patch struct{ key, strategy string }

// fieldOptions are the options of one field. The zero value is that of a field
// without any.
type fieldOptions struct {
	clientOnly, immutable, secret bool
	keys, examples                []string
	patch                         patch
	rules                         protoreflect.Message // (buf.validate.field), or nil
}

// prohibited is what specs of a kind may not do.
type prohibited struct{ override, fromFile bool }

// eachOption calls f with the options that are set on a descriptor.
func eachOption(d protoreflect.Descriptor, f func(number protoreflect.FieldNumber, field protoreflect.FieldDescriptor, value protoreflect.Value)) {
	d.Options().ProtoReflect().Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		f(field.Number(), field, value)
		return true
	})
}

// namesOf reads a message's k8s_crd option; nil when it has none. An option of
// that number with fields of other types is another one.
func namesOf(message protoreflect.MessageDescriptor) *names {
	var found *names
	eachOption(message, func(number protoreflect.FieldNumber, field protoreflect.FieldDescriptor, value protoreflect.Value) {
		if number != optionCRD || !isMessage(field) {
			return
		}
		m := value.Message()
		found = &names{
			group: textField(m, "api_group"), kind: textField(m, "kind"),
			singular: textField(m, "singular"), plural: textField(m, "plural"),
			short: textsField(m, "short_names"), categories: textsField(m, "categories"),
			cluster: numberField(m, "scope") == 1,
		}
		for _, c := range messagesField(m, "additional_columns") {
			found.columns = append(found.columns, column{
				name: textField(c, "name"), description: textField(c, "description"), path: textField(c, "json_path"),
				typ: columnTypes[numberField(c, "type")], format: columnFormats[numberField(c, "format")],
				priority: numberField(c, "priority"),
			})
		}
		for _, p := range messagesField(m, "field_patch_strategies") {
			patched := fieldPatch{typ: textField(p, "protobuf_type"), path: textField(p, "field_path")}
			if field := p.Descriptor().Fields().ByName("k8s_patch"); field != nil && isMessage(field) {
				patched.patch = patchOf(p.Get(field).Message())
			}
			found.patches = append(found.patches, patched)
		}
	})
	return found
}

// Values of ColumnType and ColumnFormat as Kubernetes writes them.
var (
	columnTypes   = map[int64]string{0: "string", 1: "integer", 2: "number", 3: "string", 4: "boolean", 5: "date"}
	columnFormats = map[int64]string{1: "int32", 2: "int64", 3: "float", 4: "double", 5: "byte", 6: "date", 7: "date-time", 8: "password"}
)

func patchOf(m protoreflect.Message) patch {
	return patch{key: textField(m, "merge_key"), strategy: textField(m, "merge_strategy")}
}

func forbiddenOf(message protoreflect.MessageDescriptor) prohibited {
	var f prohibited
	eachOption(message, func(number protoreflect.FieldNumber, field protoreflect.FieldDescriptor, value protoreflect.Value) {
		switch number {
		case optionForbidOverride:
			f.override = isTrue(field, value)
		case optionForbidFromFile:
			f.fromFile = isTrue(field, value)
		}
	})
	return f
}

func fieldOptionsOf(f protoreflect.FieldDescriptor) fieldOptions {
	var o fieldOptions
	eachOption(f, func(number protoreflect.FieldNumber, field protoreflect.FieldDescriptor, value protoreflect.Value) {
		switch number {
		case optionPatch:
			if isMessage(field) {
				o.patch = patchOf(value.Message())
			}
		case optionSchema:
			o.clientOnly = field.Kind() == protoreflect.EnumKind && !field.IsList() && value.Enum() == 1
		case optionKeys:
			o.keys = texts(field, value)
		case optionExample:
			o.examples = texts(field, value)
		case optionImmutable:
			o.immutable = isTrue(field, value)
		case optionSecret:
			o.secret = isTrue(field, value)
		case optionValidate:
			if isMessage(field) {
				o.rules = value.Message()
			}
		}
	})
	return o
}

func isMessage(field protoreflect.FieldDescriptor) bool {
	return field.Message() != nil && !field.IsList() && !field.IsMap()
}

func isTrue(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
	return field.Kind() == protoreflect.BoolKind && !field.IsList() && value.Bool()
}

func texts(field protoreflect.FieldDescriptor, value protoreflect.Value) []string {
	if field.Kind() != protoreflect.StringKind || !field.IsList() {
		return nil
	}
	list := value.List()
	all := make([]string, list.Len())
	for i := range all {
		all[i] = list.Get(i).String()
	}
	return all
}

// textField is a field of a message that may be another one than it seems;
// empty where it has no such text. The functions below are alike.
func textField(m protoreflect.Message, name protoreflect.Name) string {
	field := m.Descriptor().Fields().ByName(name)
	if field == nil || field.Kind() != protoreflect.StringKind || field.IsList() {
		return ""
	}
	return m.Get(field).String()
}

func textsField(m protoreflect.Message, name protoreflect.Name) []string {
	field := m.Descriptor().Fields().ByName(name)
	if field == nil {
		return nil
	}
	return texts(field, m.Get(field))
}

// numberField is a 32-bit integer or the number of an enum's value.
func numberField(m protoreflect.Message, name protoreflect.Name) int64 {
	field := m.Descriptor().Fields().ByName(name)
	if field == nil || field.IsList() {
		return 0
	}
	switch field.Kind() {
	case protoreflect.EnumKind:
		return int64(m.Get(field).Enum())
	case protoreflect.Int32Kind:
		return m.Get(field).Int()
	}
	return 0
}

func messagesField(m protoreflect.Message, name protoreflect.Name) []protoreflect.Message {
	field := m.Descriptor().Fields().ByName(name)
	if field == nil || field.Message() == nil || !field.IsList() {
		return nil
	}
	list := m.Get(field).List()
	all := make([]protoreflect.Message, list.Len())
	for i := range all {
		all[i] = list.Get(i).Message()
	}
	return all
}
