// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// Decoding says how a document becomes a message.
type Decoding struct {
	// File reads the file named by a `fromFile` that stands in place of a
	// text or of bytes. Where it is nil, fromFile is an ordinary field.
	File func(path string) ([]byte, error)
	// Lift names fields of spec that belong to swell and are not in the
	// message ("override"); they are passed over. A field of that name in the
	// message wins.
	Lift []string
	// Empty says of a field that is written without a value whether that is wrong, and
	// what to write instead. When it is nil, all fields may be empty.
	Empty func(n *yaml.Node, field protoreflect.FieldDescriptor) (instead string, wrong bool)
}

// Decode reads the document as a message: every field must be in the message
// and of its type. Field names are the names written in the .proto. All
// problems are returned, each at its line; the message is nil when there is
// one.
func (d *Document) Decode(message protoreflect.MessageDescriptor, how Decoding) (*dynamicpb.Message, Problems) {
	decoded, problems := d.decode(message, how, nil)
	if len(problems) > 0 {
		return nil, problems
	}
	return decoded, nil
}

// DecodePart is [Document.Decode] with all of the message that has no mistake. An item
// of a list that has one is empty or incomplete. The keys and values with a mistake
// are wrong.
func (d *Document) DecodePart(message protoreflect.MessageDescriptor, how Decoding) (decoded *dynamicpb.Message, wrong map[*yaml.Node]bool, problems Problems) {
	wrong = map[*yaml.Node]bool{}
	decoded, problems = d.decode(message, how, wrong)
	return decoded, wrong, problems
}

func (d *Document) decode(message protoreflect.MessageDescriptor, how Decoding, wrong map[*yaml.Node]bool) (*dynamicpb.Message, Problems) {
	dec := decoder{doc: d, how: how, root: message, wrong: wrong}
	decoded := dynamicpb.NewMessage(message)
	dec.message(d.Node, d.Node, decoded)
	if spec := message.Fields().ByName("spec"); spec != nil && spec.Message() != nil && Lookup(d.Node, "spec") == nil {
		dec.push(step{key: "spec"}) // none is an empty one
		dec.required(d.Node, dynamicpb.NewMessage(spec.Message()))
		dec.pop()
	}
	return decoded, dec.problems
}

func (how Decoding) saysNothing(n *yaml.Node, field protoreflect.FieldDescriptor) (instead string, wrong bool) {
	if how.Empty == nil {
		return "", false
	}
	return how.Empty(n, field)
}

type decoder struct {
	doc      *Document
	how      Decoding
	path     []step
	key      *yaml.Node // of the value being read; in a list the list's
	root     protoreflect.MessageDescriptor
	problems Problems
	wrong    map[*yaml.Node]bool // where it is not nil, keys and values with a mistake are noted
}

// step is one step of a path into a document: a key, or an index where item is
// set.
type step struct {
	key   string
	index int
	item  bool
}

func (d *decoder) problem(n *yaml.Node, code Code, format string, args ...any) {
	if d.wrong != nil {
		d.wrong[n] = true
	}
	if len(d.problems) <= MaxProblems {
		d.problems.Add(d.doc.Problem(n, code, "%s: %s", pathText(d.path), fmt.Sprintf(format, args...)))
	}
}

// describe says what a node is, without its value where that is secret.
func (d *decoder) describe(n *yaml.Node) string {
	if redactedPath(d.root, d.path) && n.Kind == yaml.ScalarNode && !IsNull(n) {
		return "something else"
	}
	return describe(n)
}

func pathText(path []step) string {
	var b strings.Builder
	for i, s := range path {
		switch {
		case s.item:
			fmt.Fprintf(&b, "[%d]", s.index)
		case !isPlainKey(s.key):
			fmt.Fprintf(&b, "[%q]", Shorten(s.key))
		case i > 0:
			b.WriteString("." + Shorten(s.key))
		default:
			b.WriteString(Shorten(s.key))
		}
	}
	return b.String()
}

func isPlainKey(key string) bool {
	return key != "" && !strings.ContainsFunc(key, func(r rune) bool {
		return strings.ContainsRune(`./[]"' \`, r) || !unicode.IsPrint(r)
	})
}

func (d *decoder) push(s step) { d.path = append(d.path, s) }
func (d *decoder) pop()        { d.path = d.path[:len(d.path)-1] }

// message reads a mapping; key is where a problem of the whole is shown.
func (d *decoder) message(key, n *yaml.Node, into protoreflect.Message) {
	if n.Kind != yaml.MappingNode {
		got := d.describe(n)
		if n.Kind == yaml.ScalarNode && !IsNull(n) && HasSecrets(into.Descriptor()) {
			got = "something else" // that may belong into one of its fields
		}
		d.problem(n, CodeType, "want a map, got %s", got)
		return
	}
	fields := into.Descriptor().Fields()
	before := len(d.problems)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		d.push(step{key: key.Value})
		field := fields.ByName(protoreflect.Name(key.Value))
		switch {
		case field != nil:
			d.field(key, value, field, into)
		case !d.lifted(key.Value):
			d.path[len(d.path)-1].key = shownKey(key.Value, value)
			hint := ""
			if len(d.problems) < MaxProblems { // else it is not told
				hint = DidYouMean(key.Value, d.fieldNames(fields))
			}
			d.problem(key, CodeUnknown, "unknown field%s", hint)
		}
		d.pop()
	}
	if len(d.problems) == before {
		d.required(key, into)
	}
}

// required finds what proto2, or an edition's legacy feature, requires and is
// not there.
func (d *decoder) required(at *yaml.Node, m protoreflect.Message) {
	if m.Descriptor().ParentFile().Syntax() == protoreflect.Proto3 {
		return
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		if field := fields.Get(i); field.Cardinality() == protoreflect.Required && !m.Has(field) {
			d.push(step{key: string(field.Name())})
			d.problem(at, CodeRule, "value is required")
			d.pop()
		}
	}
}

// lifted says whether the key at the current path is one of swell's own.
func (d *decoder) lifted(key string) bool {
	if len(d.path) != 2 || d.path[0].key != "spec" {
		return false
	}
	for _, name := range d.how.Lift {
		if name == key {
			return true
		}
	}
	return false
}

func (d *decoder) fieldNames(fields protoreflect.FieldDescriptors) []string {
	names := make([]string, fields.Len())
	for i := range names {
		names[i] = string(fields.Get(i).Name())
	}
	if len(d.path) == 2 && d.path[0].key == "spec" {
		names = append(names, d.how.Lift...)
	}
	return names
}

func (d *decoder) field(key, n *yaml.Node, field protoreflect.FieldDescriptor, into protoreflect.Message) {
	if instead, wrong := d.how.saysNothing(n, field); wrong {
		d.problem(key, CodeType, "empty: %s", instead)
		return
	}
	if IsNull(n) && !isValue(field) {
		return // as in JSON: not set
	}
	if oneof := field.ContainingOneof(); oneof != nil && !oneof.IsSynthetic() {
		if other := into.WhichOneof(oneof); other != nil {
			d.problem(n, CodeType, "only one of %s may be set, %s is set too", oneof.Name(), other.Name())
			return
		}
	}
	outer := d.key
	d.key = key
	switch {
	case field.Message() != nil && field.Kind() == protoreflect.GroupKind && field.ParentFile().Syntax() == protoreflect.Proto2:
		d.problem(key, CodeType, "a group of proto2 is not understood: declare a message in the kind's .proto instead")
	case field.IsMap():
		d.mapping(n, field, into.Mutable(field).Map())
	case field.IsList():
		d.list(n, field, into.Mutable(field).List())
	default:
		if v, ok := d.value(n, field, into.NewField); ok || isMessage(field) {
			into.Set(field, v)
		}
	}
	d.key = outer
}

// isMessage says whether a field is of a message that is written as one.
func isMessage(field protoreflect.FieldDescriptor) bool {
	return field.Message() != nil && wellKnownTypes[field.Message().FullName()] == nil
}

func isValue(field protoreflect.FieldDescriptor) bool {
	return field.Message() != nil && field.Message().FullName() == "google.protobuf.Value" && !field.IsList() && !field.IsMap()
}

func (d *decoder) list(n *yaml.Node, field protoreflect.FieldDescriptor, into protoreflect.List) {
	if n.Kind != yaml.SequenceNode {
		d.problem(n, CodeType, "want a list, got %s", d.describe(n))
		return
	}
	for i, item := range n.Content {
		d.push(step{index: i, item: true})
		element := func(protoreflect.FieldDescriptor) protoreflect.Value { return into.NewElement() }
		switch v, ok := d.value(item, field, element); {
		case ok || isMessage(field):
			into.Append(v)
		case field.Message() == nil:
			into.Append(into.NewElement())
		}
		d.pop()
	}
}

func (d *decoder) mapping(n *yaml.Node, field protoreflect.FieldDescriptor, into protoreflect.Map) {
	if n.Kind != yaml.MappingNode {
		d.problem(n, CodeType, "want a map, got %s", d.describe(n))
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		d.push(step{key: key.Value})
		d.key = key
		d.checkLabel(key, value, field)
		k, ok := d.mapKey(key, field.MapKey())
		switch {
		case !ok:
		case field.MapKey().Kind() != protoreflect.StringKind && into.Has(k): // texts were compared before
			d.problem(key, CodeType, "set twice: the same key is written in another way above")
		default:
			element := func(protoreflect.FieldDescriptor) protoreflect.Value { return into.NewValue() }
			if v, ok := d.value(value, field.MapValue(), element); ok {
				into.Set(k, v)
			}
		}
		d.pop()
	}
}

func (d *decoder) mapKey(n *yaml.Node, field protoreflect.FieldDescriptor) (protoreflect.MapKey, bool) {
	if field.Kind() == protoreflect.StringKind {
		return protoreflect.ValueOfString(n.Value).MapKey(), true
	}
	unquoted := *n // numbers and booleans are keys in quotes too, as in JSON
	unquoted.Style, unquoted.Tag = 0, ""
	unquoted.Tag = unquoted.ShortTag()
	v, ok := d.scalar(&unquoted, field)
	if !ok {
		return protoreflect.MapKey{}, false
	}
	return v.MapKey(), true
}

// value reads one value: of a singular field, a list's item or a map's value.
// empty makes a new message for it.
func (d *decoder) value(n *yaml.Node, field protoreflect.FieldDescriptor, empty func(protoreflect.FieldDescriptor) protoreflect.Value) (protoreflect.Value, bool) {
	if field.Message() == nil {
		return d.scalar(n, field)
	}
	before := len(d.problems)
	v := empty(field)
	if wellKnown, ok := wellKnownTypes[field.Message().FullName()]; ok {
		wellKnown(d, n, v.Message())
	} else if top := d.path[len(d.path)-1]; top.item {
		d.message(n, n, v.Message())
	} else {
		d.message(d.key, n, v.Message())
	}
	return v, len(d.problems) == before
}

func (d *decoder) scalar(n *yaml.Node, field protoreflect.FieldDescriptor) (protoreflect.Value, bool) {
	kind := field.Kind()
	if kind == protoreflect.StringKind || kind == protoreflect.BytesKind {
		if path := d.fromFile(n); path != nil {
			return d.readFile(path, kind)
		}
	}
	if n.Kind != yaml.ScalarNode {
		hint := ""
		if kind == protoreflect.StringKind || kind == protoreflect.BytesKind {
			hint = d.nearlyFromFile(n)
		}
		d.problem(n, CodeType, "want %s, got %s%s", kindNames[kind], d.describe(n), hint)
		return protoreflect.Value{}, false
	}
	v, ok := parseScalar(n, field)
	if !ok {
		hint := ""
		if !redactedPath(d.root, d.path) {
			hint = scalarHint(n, field)
		}
		d.problem(n, CodeType, "want %s, got %s%s", kindNames[kind], d.describe(n), hint)
	}
	return v, ok
}

func scalarHint(n *yaml.Node, field protoreflect.FieldDescriptor) string {
	switch field.Kind() {
	case protoreflect.StringKind:
		return fmt.Sprintf(": write %q", n.Value)
	case protoreflect.EnumKind:
		values := field.Enum().Values()
		names := make([]string, values.Len())
		for i := range names {
			names[i] = string(values.Get(i).Name())
		}
		return DidYouMean(n.Value, names)
	case protoreflect.FloatKind:
		return numberHint(n, 32)
	case protoreflect.DoubleKind:
		return numberHint(n, 64)
	}
	return ""
}

var kindNames = map[protoreflect.Kind]string{
	protoreflect.StringKind: "a string", protoreflect.BytesKind: "bytes in base64", protoreflect.BoolKind: "true or false",
	protoreflect.Int32Kind: "a 32-bit integer", protoreflect.Sint32Kind: "a 32-bit integer", protoreflect.Sfixed32Kind: "a 32-bit integer",
	protoreflect.Int64Kind: "a 64-bit integer", protoreflect.Sint64Kind: "a 64-bit integer", protoreflect.Sfixed64Kind: "a 64-bit integer",
	protoreflect.Uint32Kind: "a 32-bit integer from 0", protoreflect.Fixed32Kind: "a 32-bit integer from 0",
	protoreflect.Uint64Kind: "a 64-bit integer from 0", protoreflect.Fixed64Kind: "a 64-bit integer from 0",
	protoreflect.FloatKind: "a number", protoreflect.DoubleKind: "a number", protoreflect.EnumKind: "one of the enum's names",
}

func parseScalar(n *yaml.Node, field protoreflect.FieldDescriptor) (protoreflect.Value, bool) {
	switch field.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(n.Value), n.Tag == "!!str"
	case protoreflect.BytesKind:
		b, err := base64.StdEncoding.DecodeString(n.Value)
		return protoreflect.ValueOfBytes(b), err == nil && n.Tag == "!!str"
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(n.Value == "true"), n.Tag == "!!bool" && (n.Value == "true" || n.Value == "false")
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		i, err := strconv.ParseInt(n.Value, 0, 32)
		return protoreflect.ValueOfInt32(int32(i)), err == nil && n.Tag == "!!int"
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		i, err := strconv.ParseInt(n.Value, integerBase(n), 64)
		return protoreflect.ValueOfInt64(i), err == nil
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		i, err := strconv.ParseUint(n.Value, 0, 32)
		return protoreflect.ValueOfUint32(uint32(i)), err == nil && n.Tag == "!!int"
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		i, err := strconv.ParseUint(n.Value, integerBase(n), 64)
		return protoreflect.ValueOfUint64(i), err == nil
	case protoreflect.FloatKind:
		f, ok := parseNumber(n, 32)
		return protoreflect.ValueOfFloat32(float32(f)), ok
	case protoreflect.DoubleKind:
		f, ok := parseNumber(n, 64)
		return protoreflect.ValueOfFloat64(f), ok
	case protoreflect.EnumKind:
		return parseEnum(n, field.Enum().Values())
	}
	return protoreflect.Value{}, false
}

var decimal = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

// integerBase is that of a 64-bit integer, 1 (an error) when it is none. As in
// JSON it may be a text too, because JSON's numbers end at 2^53; then only in
// digits.
func integerBase(n *yaml.Node) int {
	switch {
	case n.Tag == "!!int":
		return 0
	case n.Tag == "!!str" && decimal.MatchString(n.Value):
		return 10
	}
	return 1
}

func parseEnum(n *yaml.Node, values protoreflect.EnumValueDescriptors) (protoreflect.Value, bool) {
	if n.Tag == "!!int" {
		i, err := strconv.ParseInt(n.Value, 0, 32)
		number := protoreflect.EnumNumber(i)
		return protoreflect.ValueOfEnum(number), err == nil && values.ByNumber(number) != nil
	}
	value := values.ByName(protoreflect.Name(n.Value))
	if value == nil {
		return protoreflect.Value{}, false
	}
	return protoreflect.ValueOfEnum(value.Number()), true
}

// fromFile is the path's node when n is `{fromFile: path}`, else nil.
func (d *decoder) fromFile(n *yaml.Node) *yaml.Node {
	if d.how.File == nil {
		return nil
	}
	return fileNamed(n)
}

// fileNamed is the path's node of `{fromFile: path}`; nil for any other value.
func fileNamed(n *yaml.Node) *yaml.Node {
	if n.Kind != yaml.MappingNode || len(n.Content) != 2 || n.Content[0].Value != "fromFile" {
		return nil
	}
	return n.Content[1]
}

// FilesNamed are the paths that stand in a value as `{fromFile: path}`.
func FilesNamed(n *yaml.Node) (names []string) {
	if path := fileNamed(n); path != nil && path.Kind == yaml.ScalarNode {
		return []string{path.Value}
	}
	for _, below := range n.Content {
		names = append(names, FilesNamed(below)...)
	}
	return names
}

// nearlyFromFile is the end of a message about a mapping whose one key is a
// slip for fromFile; empty for any other.
func (d *decoder) nearlyFromFile(n *yaml.Node) string {
	const want = "fromFile"
	if d.how.File == nil || n.Kind != yaml.MappingNode || len(n.Content) != 2 {
		return ""
	}
	if got := n.Content[0].Value; EditDistance(strings.ToLower(got), strings.ToLower(want)) <= 2 {
		return DidYouMean(got, []string{want})
	}
	return ""
}

func (d *decoder) readFile(path *yaml.Node, kind protoreflect.Kind) (protoreflect.Value, bool) {
	d.push(step{key: "fromFile"})
	defer d.pop()
	if path.Kind != yaml.ScalarNode || path.Tag != "!!str" {
		d.problem(path, CodeType, "want the path of a file beside the spec, got %s", d.describe(path))
		return protoreflect.Value{}, false
	}
	content, err := d.how.File(path.Value)
	if err != nil {
		d.problem(path, CodeReference, "%s", err)
		d.problems[len(d.problems)-1].Retry = MayPass(err)
		return protoreflect.Value{}, false
	}
	if kind == protoreflect.BytesKind {
		return protoreflect.ValueOfBytes(content), true
	}
	if problem := checkText(path.Value, content); problem != nil {
		d.problem(path, CodeType, "%s", problem)
		return protoreflect.Value{}, false
	}
	return protoreflect.ValueOfString(string(content)), true
}
