// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// wellKnownTypes are the messages with a YAML form of their own, the one of
// the JSON mapping of protobuf; a duration may also be written as Go and
// Kubernetes write it ("1h30m").
var wellKnownTypes map[protoreflect.FullName]func(*decoder, *yaml.Node, protoreflect.Message)

func init() { // not an initialiser: the functions refer to the table through the decoder
	wellKnownTypes = map[protoreflect.FullName]func(*decoder, *yaml.Node, protoreflect.Message){
		"google.protobuf.Duration":  (*decoder).duration,
		"google.protobuf.Timestamp": (*decoder).timestamp,
		"google.protobuf.Value":     (*decoder).anyValue,
		"google.protobuf.Struct":    (*decoder).structValue,
		"google.protobuf.ListValue": (*decoder).listValue,
		"google.protobuf.FieldMask": (*decoder).fieldMask,
		"google.protobuf.Any":       (*decoder).any,
	}
	for _, name := range []protoreflect.FullName{"Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes"} {
		wellKnownTypes["google.protobuf."+name+"Value"] = (*decoder).wrapper
	}
}

func (d *decoder) wrapper(n *yaml.Node, into protoreflect.Message) {
	field := into.Descriptor().Fields().ByName("value")
	if v, ok := d.scalar(n, field); ok {
		into.Set(field, v)
	}
}

func (d *decoder) duration(n *yaml.Node, into protoreflect.Message) {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!str" {
		d.problem(n, CodeType, "want a duration like 30s or 1h30m, got %s", d.describe(n))
		return
	}
	v, err := time.ParseDuration(n.Value)
	if err != nil {
		d.problem(n, CodeType, "want a duration like 30s or 1h30m, got %s", d.quote(n))
		return
	}
	if !isWhole(v, n.Value) {
		d.problem(n, CodeType, "want a duration of whole nanoseconds, got %s", d.quote(n))
		return
	}
	setSeconds(into, int64(v/time.Second), int32(v%time.Second))
}

// firstSecond is that of the year 1, the first one that a Timestamp can hold.
var firstSecond = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).Unix()

func (d *decoder) timestamp(n *yaml.Node, into protoreflect.Message) {
	v, err := time.Parse(time.RFC3339Nano, n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || v.Unix() < firstSecond {
		d.problem(n, CodeType, "want a time like 2006-01-02T15:04:05Z, got %s", d.describe(n))
		return
	}
	if pastNanoseconds.MatchString(n.Value) {
		d.problem(n, CodeType, "want a time with at most nine digits after the seconds, got %s", d.quote(n))
		return
	}
	setSeconds(into, v.Unix(), int32(v.Nanosecond()))
}

func (d *decoder) quote(n *yaml.Node) string {
	if redactedPath(d.root, d.path) {
		return "something else"
	}
	return strconv.Quote(Shorten(n.Value))
}

var maskPath = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$`)

// fieldMask reads paths of fields, as they are written in the .proto, with
// commas between them.
func (d *decoder) fieldMask(n *yaml.Node, into protoreflect.Message) {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!str" {
		d.problem(n, CodeType, "want paths of fields like \"a,b.c\", got %s", d.describe(n))
		return
	}
	field := into.Descriptor().Fields().ByName("paths")
	if n.Value == "" {
		return
	}
	for path := range strings.SplitSeq(n.Value, ",") {
		if !maskPath.MatchString(path) {
			d.problem(n, CodeType, "want paths of fields like \"a,b.c\", got %s", d.quote(n))
			return
		}
		into.Mutable(field).List().Append(protoreflect.ValueOfString(path))
	}
}

// any refuses google.protobuf.Any: which messages it may hold is not written
// in the kind, so nothing could be checked.
func (d *decoder) any(n *yaml.Node, _ protoreflect.Message) {
	d.problem(n, CodeType, "google.protobuf.Any is not understood: declare the message, a oneof of messages or a google.protobuf.Value in the kind's .proto")
}

func setSeconds(into protoreflect.Message, seconds int64, nanos int32) {
	fields := into.Descriptor().Fields()
	into.Set(fields.ByName("seconds"), protoreflect.ValueOfInt64(seconds))
	into.Set(fields.ByName("nanos"), protoreflect.ValueOfInt32(nanos))
}

func (d *decoder) structValue(n *yaml.Node, into protoreflect.Message) {
	field := into.Descriptor().Fields().ByName("fields")
	d.mapping(n, field, into.Mutable(field).Map())
}

func (d *decoder) listValue(n *yaml.Node, into protoreflect.Message) {
	field := into.Descriptor().Fields().ByName("values")
	d.list(n, field, into.Mutable(field).List())
}

func (d *decoder) anyValue(n *yaml.Node, into protoreflect.Message) {
	fields := into.Descriptor().Fields()
	switch n.Kind {
	case yaml.MappingNode:
		d.structValue(n, into.Mutable(fields.ByName("struct_value")).Message())
		return
	case yaml.SequenceNode:
		d.listValue(n, into.Mutable(fields.ByName("list_value")).Message())
		return
	}
	v, err := Scalar(n)
	if err != nil {
		d.problem(n, CodeType, "%s", err)
		return
	}
	switch v := v.(type) {
	case nil:
		into.Set(fields.ByName("null_value"), protoreflect.ValueOfEnum(0))
	case bool:
		into.Set(fields.ByName("bool_value"), protoreflect.ValueOfBool(v))
	case string:
		into.Set(fields.ByName("string_value"), protoreflect.ValueOfString(v))
	case int64:
		if v > 1<<53 || v < -1<<53 {
			d.problem(n, CodeType, "a number that does not fit a JSON number exactly: write it in quotes")
			return
		}
		into.Set(fields.ByName("number_value"), protoreflect.ValueOfFloat64(float64(v)))
	case float64:
		into.Set(fields.ByName("number_value"), protoreflect.ValueOfFloat64(v))
	}
}

// Scalar is the Go value of a scalar: nil, bool, int64, float64 or string.
// A number that JSON cannot hold is an error, without its value: it may be of a
// Secret.
func Scalar(n *yaml.Node) (any, error) {
	switch n.Tag {
	case "!!null":
		return nil, nil
	case "!!bool":
		return n.Value == "true" || n.Value == "True" || n.Value == "TRUE", nil
	case "!!int":
		v, err := strconv.ParseInt(n.Value, 0, 64)
		if err != nil {
			return nil, errTooLong
		}
		return v, nil
	case "!!float":
		return float(n.Value)
	}
	return n.Value, nil
}

// Plain is the node as plain Go values: map[string]any, []any and what
// [Scalar] returns. Problems are collected; the value is nil when there is one.
func (d *Document) Plain(n *yaml.Node) (any, Problems) {
	var problems Problems
	v := d.plain(n, &problems)
	return v, problems
}

func (d *Document) plain(n *yaml.Node, problems *Problems) any {
	switch n.Kind {
	case yaml.MappingNode:
		m := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			m[n.Content[i].Value] = d.plain(n.Content[i+1], problems)
		}
		return m
	case yaml.SequenceNode:
		l := make([]any, len(n.Content))
		for i, item := range n.Content {
			l[i] = d.plain(item, problems)
		}
		return l
	}
	v, err := Scalar(n)
	if err != nil {
		problems.Add(d.Problem(n, CodeType, "%s", err))
		return nil
	}
	return v
}
