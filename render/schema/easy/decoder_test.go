// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package easy_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/config/rapidtest"
	"github.com/swell-sh/swell/render/schema/easy"
	"github.com/swell-sh/swell/render/schema/schematest"
)

// TestSchemaAgreesWithDecoder makes messages with random rules and modes of
// ignore, and specs of them, and holds the JSON Schema against the decoder: it
// takes every spec that the decoder takes, and refuses every one that breaks
// only what a JSON Schema can say.
func TestSchemaAgreesWithDecoder(t *testing.T) {
	verdicts := map[string]int{}
	rapidtest.Check(t, 100, time.Second, func(t *rapid.T) {
		g := ruleGenerator{t: t, exact: rapid.Bool().Draw(t, "exact")}
		proto := g.proto()
		k := compiledKind(t, proto)
		if k == nil {
			verdicts["no kind"]++
			return
		}
		for range 12 {
			spec := g.message("Spec", 2)
			text := fmt.Sprintf(`{"apiVersion": "easy.example.com/v1", "kind": "Random", "metadata": {"name": "a"}, "spec": %s}`, spec)
			problems := k.check(t, text)
			refused := k.refuses(t, text)
			switch accepted := len(problems) == 0; {
			case accepted && refused != nil:
				t.Fatalf("the decoder takes it, the schema does not: %v\n%s\n%s", refused, proto, spec)
			case !accepted && refused == nil && g.exact:
				t.Fatalf("the schema takes it, the decoder does not: %v\n%s\n%s", problems, proto, spec)
			case accepted:
				verdicts["taken"]++
			default:
				verdicts["refused"]++
			}
		}
	})
	if verdicts["taken"] < 50 || verdicts["refused"] < 50 || verdicts["no kind"] > 20 {
		t.Errorf("verdicts %v: want many of both", verdicts)
	}
}

type randomKind struct {
	decode func(doc *document.Document) document.Problems
	schema *jsonschema.Schema
}

// compiledKind is nil where the rules contradict each other so that the kind
// does not load.
func compiledKind(t *rapid.T, proto string) *randomKind {
	file, problems := document.CompileProto("random.proto", func(name string) ([]byte, error) {
		if content, ok := easy.ProtoFile(name); ok {
			return content, nil
		}
		if name == "random.proto" {
			return []byte(proto), nil
		}
		return nil, fs.ErrNotExist
	})
	if len(problems) > 0 {
		t.Fatalf("%v\n%s", problems, proto)
	}
	message := file.Messages().ByName("Random")
	k, problems := easy.New(message)
	if len(problems) > 0 {
		t.Fatalf("%v\n%s", problems, proto)
	}
	envelope, err := document.Envelope(message)
	if err != nil {
		t.Fatal(err)
	}
	rules, problems := document.CompileRules(envelope, message)
	if len(problems) > 0 {
		t.Logf("%v\n%s", problems, proto)
		return nil
	}
	text, err := json.Marshal(k.JSONSchema())
	if err != nil {
		t.Fatalf("%v\n%s", err, proto)
	}
	for _, other := range []any{k.CRD(), easy.OpenAPI([]*easy.Schema{k}, nil), easy.EditorSchema([]*easy.Schema{k}, nil, true)} {
		if _, err := json.Marshal(other); err != nil {
			t.Fatalf("%v\n%s", err, proto)
		}
	}
	_, compiled, err := schematest.Compile(string(text))
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, proto, text)
	}
	return &randomKind{schema: compiled, decode: func(doc *document.Document) document.Problems {
		decoded, problems := doc.Decode(envelope, document.Decoding{})
		if len(problems) > 0 {
			return problems
		}
		return rules.Check(doc, decoded)
	}}
}

func (k *randomKind) check(t *rapid.T, text string) document.Problems {
	docs, problems := document.ReadDocuments("spec.yaml", []byte(text))
	if len(problems) > 0 || len(docs) != 1 {
		t.Fatalf("%v\n%s", problems, text)
	}
	return k.decode(docs[0])
}

func (k *randomKind) refuses(t *rapid.T, text string) error {
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return k.schema.Validate(value)
}

// ruleGenerator makes messages with rules. With exact, only rules that a JSON
// Schema can say are used, and values that are written in one way.
type ruleGenerator struct {
	t     *rapid.T
	exact bool
	// fields are those of the messages, with what a value of them may be.
	fields map[string][]randomField
}

type randomField struct {
	name, shape, key string
	typ              *randomType
}

type randomType struct {
	name    string   // in the .proto
	rules   string   // the field of FieldRules
	sayable []string // rules that a JSON Schema can say
	others  []string // and those that it cannot, or only nearly
	values  []string // JSON
	odd     []string // other spellings, or of another type
}

// GoString keeps reports of failures short.
func (t *randomType) GoString() string { return t.name }

var randomTypes = []*randomType{
	{"string", "string",
		[]string{"min_len: 1", "min_len: 2", "max_len: 2", "max_len: 18446744073709551615", "len: 1", `pattern: "^a"`, `pattern: "^\\S$"`, `pattern: "(?i)^AB?$"`, `pattern: "^.$"`,
			`pattern: "^(?P<x>a|b)+\\z"`, `pattern: "^[[:alpha:]]*$"`, `pattern: "^[^a]$"`, `pattern: "\\Qa.\\E"`, `pattern: "a\\-b|a{|]"`, `pattern: "\\x{61}"`,
			`prefix: "a"`, `suffix: "b"`, `contains: "."`, `in: ["a", "b", ""]`, `in: "a"`, `not_in: ["a"]`, `not_in: ["", "b"]`, `const: "a"`, `const: ""`},
		[]string{"email: true", "hostname: true", "ipv4: true", "ipv6: true", "uri: true", "uri_ref: true", `not_contains: "a"`, "min_bytes: 2", "uuid: true", "ip: true", `pattern: "(?m)^a$"`, `pattern: "^\\pL+$"`},
		[]string{`""`, `"a"`, `"b"`, `"ab"`, `"AB"`, `"abc"`, `"a.b"`, `"."`, `"a-b"`, `"a{"`, `"]"`, `"\u00e4"`, `"\u00a0"`, `"\r"`},
		[]string{`"a@b.c"`, `"a.example."`, `"1.2.3.4"`, `"::1"`, `"fe80::1%eth0"`, `"https://a/b?c#d"`, `"/x"`, `"a\nb"`, `"😀"`, `"\u2028"`, `"urn:a:b"`, `"a b"`, `"\"a b\"@c"`, `"a@localhost"`, `"x_y.z"`, `"1"`, `"::ffff:1.2.3.4"`, "1", "{}"}},
	{"int32", "int32", []string{"gt: 0", "gte: 1", "gte: -5", "lt: 2", "lte: 0", "in: [1, 2]", "not_in: [0, 2]", "const: 1"}, []string{"gt: 5 lt: 1", "gte: 5 lte: 1"},
		[]string{"0", "1", "2", "-1", "7"}, []string{"1.0", `"1"`, "2147483648"}},
	{"int64", "int64", []string{"gt: 0", "gte: 1", "lt: 2", "lte: 9223372036854775806", "in: [1, 9223372036854775807]", "not_in: 0", "const: 2"}, []string{"gte: 9223372036854775807 lte: 9223372036854775806", "gte: -9223372036854775808"},
		[]string{"0", "1", "2", "-1"}, []string{`"1"`, `"-3"`, "9223372036854775807", `"9223372036854775807"`}},
	{"uint32", "uint32", []string{"gt: 0", "lt: 2", "in: [1, 2]", "not_in: 0"}, nil, []string{"0", "1", "2"}, []string{"-1", "4294967296"}},
	{"uint64", "uint64", []string{"gt: 0", "lte: 18446744073709551615", "lt: 2", "in: [1, 18446744073709551615]", "not_in: 1"}, []string{"gte: 18446744073709551615", "gt: 18446744073709551614 lt: 1"},
		[]string{"0", "1", "2"}, []string{`"1"`, `"18446744073709551615"`, "18446744073709551615"}},
	{"float", "float", []string{"lte: 0.1", "lt: 0.1", "gte: 0.1", "gt: 16777216", "lte: inf", "lt: inf", "gt: -inf", "lte: -inf", "gte: inf", "lte: nan", "gt: nan", "in: [0.1, inf]", "in: inf", "not_in: [0.1, nan]", "const: 0.3", "const: nan", "finite: true"}, []string{"gt: 5 lt: 1", "gt: inf lt: 1", "gt: 1 lt: nan"},
		[]string{"0", "0.1", "0.3", "1", "16777216", "16777218", "3.4e38"}, []string{"1e39", "0.25", `"x"`}},
	{"double", "double", []string{"lte: 0.1", "lt: 1e300", "gte: 0.1", "lte: inf", "lt: -inf", "gt: inf", "gte: nan", "in: [0.1, -inf]", "not_in: [0.1, inf]", "const: inf"}, []string{"gte: 5 lte: 1", "lte: nan gte: 1", "gte: inf lte: -inf"},
		[]string{"0", "0.1", "0.3", "1e301", "-2"}, []string{"1e-320", `"0"`}},
	{"bool", "bool", []string{"const: true", "const: false"}, nil, []string{"true", "false"}, []string{`"true"`}},
	{"bytes", "", nil, nil, []string{`""`, `"aGk="`}, []string{"1"}},
	{"Color", "enum", []string{"const: 1", "in: [0, 2]", "not_in: 0", "not_in: 1", "defined_only: true"}, nil, []string{`"NONE"`, `"RED"`, "2", "0"}, []string{"3", `"GREEN"`}},
	{"google.protobuf.StringValue", "string", []string{"min_len: 2", `in: ["a", "b"]`, `pattern: "^a"`}, nil, []string{`""`, `"a"`, `"ab"`}, nil},
	{"google.protobuf.Int64Value", "int64", []string{"gt: 1", "in: [1, 2]", "not_in: 0"}, nil, []string{"0", "1", "2"}, []string{`"1"`}},
	{"google.protobuf.FloatValue", "float", []string{"gte: 0.1", "lte: inf"}, nil, []string{"0", "0.1", "1"}, nil},
	{"google.protobuf.Duration", "", nil, nil, []string{`"1s"`, `"1h30m"`}, []string{`"1d"`}},
	{"google.protobuf.Struct", "", nil, nil, []string{"{}", `{"a": [1]}`}, []string{"[]"}},
	{"Sub", "", nil, nil, nil, nil},
	{"Leaf", "", nil, nil, nil, nil},
}

var ignoreModes = []string{"", "", "IGNORE_UNSPECIFIED", "IGNORE_IF_ZERO_VALUE", "IGNORE_ALWAYS"}

// proto makes the file: Spec has Subs, which have Leaves.
func (g *ruleGenerator) proto() string {
	var b strings.Builder
	b.WriteString(`syntax = "proto3";
package random;
import "buf/validate/validate.proto";
import "github.com/yandex/protoc-gen-crd/library/go/k8s/protoc_gen_crd/proto/crd.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/wrappers.proto";
message Random {
  option (protoc_gen_crd.k8s_crd) = {api_group: "easy.example.com", kind: "Random"};
  Spec spec = 1;
}
enum Color { NONE = 0; RED = 1; BLUE = 2; }
`)
	g.fields = map[string][]randomField{}
	for i, message := range []string{"Leaf", "Sub", "Spec"} {
		fmt.Fprintf(&b, "message %s {\n", message)
		types := randomTypes[:len(randomTypes)-2+i] // without what is not declared yet
		if message == "Sub" {
			types = slices.Concat(randomTypes[:len(randomTypes)-2], randomTypes[len(randomTypes)-1:])
		}
		var names []string
		for n := range rapid.IntRange(1, 3).Draw(g.t, "fields") {
			f := randomField{name: fmt.Sprintf("f%d", n), typ: rapid.SampledFrom(types).Draw(g.t, "type")}
			f.shape = rapid.SampledFrom([]string{"", "", "optional ", "repeated ", "map"}).Draw(g.t, "shape")
			f.key = rapid.SampledFrom([]string{"string", "string", "int32", "bool"}).Draw(g.t, "key")
			g.fields[message] = append(g.fields[message], f)
			names = append(names, f.name)
			declared := f.shape + f.typ.name
			if f.shape == "map" {
				declared = fmt.Sprintf("map<%s, %s>", f.key, f.typ.name)
			}
			fmt.Fprintf(&b, "  %s %s = %d%s;\n", declared, f.name, n+1, g.options(f))
		}
		if rapid.IntRange(0, 2).Draw(g.t, "oneof") == 0 {
			required := rapid.Bool().Draw(g.t, "required")
			fmt.Fprintf(&b, "  oneof one {\n    option (buf.validate.oneof).required = %v;\n", required)
			for n := 10; n < 12; n++ {
				f := randomField{name: fmt.Sprintf("f%d", n), typ: rapid.SampledFrom(types).Draw(g.t, "type"), key: "string"}
				g.fields[message] = append(g.fields[message], f)
				fmt.Fprintf(&b, "    %s %s = %d%s;\n", f.typ.name, f.name, n, g.options(f))
			}
			b.WriteString("  }\n")
		}
		if !g.exact && rapid.IntRange(0, 3).Draw(g.t, "message oneof") == 0 {
			fmt.Fprintf(&b, "  option (buf.validate.message).oneof = {fields: [%q]};\n", names[0])
		}
		b.WriteString("}\n")
	}
	return b.String()
}

func (g *ruleGenerator) options(f randomField) string {
	var all []string
	if mode := rapid.SampledFrom(ignoreModes).Draw(g.t, "ignore"); mode != "" {
		all = append(all, "ignore: "+mode)
	}
	if rapid.IntRange(0, 3).Draw(g.t, "required") == 0 {
		all = append(all, "required: true")
	}
	isEmbedded := f.typ.rules == ""
	switch f.shape {
	case "repeated ":
		var list []string
		if rapid.Bool().Draw(g.t, "counts") {
			if count := rapid.SampledFrom([]string{"min_items: 1", "max_items: 1", "min_items: 2"}).Draw(g.t, "count"); !g.exact || !strings.HasSuffix(f.typ.name, "Value") {
				list = append(list, count) // protovalidate does not look at those of wrappers
			}
		}
		if !isEmbedded && f.typ.rules != "enum" && !strings.Contains(f.typ.name, ".") && rapid.IntRange(0, 3).Draw(g.t, "unique") == 0 {
			list = append(list, "unique: true")
		}
		if items := g.part(f.typ, rapid.Bool().Draw(g.t, "items")); items != "" && !(g.exact && isEmbedded && strings.Contains(items, "ZERO")) {
			list = append(list, "items: "+items)
		}
		if len(list) > 0 {
			all = append(all, "repeated: {"+strings.Join(list, ", ")+"}")
		}
	case "map":
		var pairs []string
		if rapid.Bool().Draw(g.t, "counts") {
			pairs = append(pairs, rapid.SampledFrom([]string{"min_pairs: 1", "max_pairs: 1"}).Draw(g.t, "count"))
		}
		if values := g.part(f.typ, rapid.Bool().Draw(g.t, "values")); values != "" && !(g.exact && isEmbedded && strings.Contains(values, "ZERO")) {
			pairs = append(pairs, "values: "+values)
		}
		if f.key == "string" {
			if keys := g.part(randomTypes[0], rapid.Bool().Draw(g.t, "keys")); keys != "" {
				pairs = append(pairs, "keys: "+keys)
			}
		}
		if len(pairs) > 0 {
			all = append(all, "map: {"+strings.Join(pairs, ", ")+"}")
		}
	default:
		if rules := g.rules(f.typ); rules != "" {
			all = append(all, rules)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return " [(buf.validate.field) = {" + strings.Join(all, ", ") + "}]"
}

// part are the rules of items, keys or values.
func (g *ruleGenerator) part(typ *randomType, some bool) string {
	if !some {
		return ""
	}
	var all []string
	if mode := rapid.SampledFrom(ignoreModes).Draw(g.t, "ignore"); mode != "" {
		all = append(all, "ignore: "+mode)
	}
	if rules := g.rules(typ); rules != "" {
		all = append(all, rules)
	}
	if len(all) == 0 {
		return ""
	}
	return "{" + strings.Join(all, ", ") + "}"
}

func (g *ruleGenerator) rules(typ *randomType) string {
	if typ.rules == "" || rapid.IntRange(0, 4).Draw(g.t, "none") == 0 {
		return ""
	}
	known := typ.sayable
	if !g.exact {
		known = slices.Concat(known, typ.others)
	}
	return typ.rules + ": {" + rapid.SampledFrom(known).Draw(g.t, "rule") + "}"
}

// message makes a value of a message as JSON.
func (g *ruleGenerator) message(name string, depth int) string {
	var members []string
	one := false // of a oneof only one is set
	for _, f := range g.fields[name] {
		inOneof := len(f.name) > 2
		if rapid.IntRange(0, 3).Draw(g.t, "absent") == 0 || inOneof && one {
			continue
		}
		one = one || inOneof
		var value string
		switch f.shape {
		case "repeated ":
			var items []string
			for range rapid.IntRange(0, 2).Draw(g.t, "items") {
				items = append(items, g.value(f.typ, depth))
			}
			value = "[" + strings.Join(items, ", ") + "]"
		case "map":
			keys := map[string][]string{"string": {"", "a", "b", "ab", "a.b"}, "int32": {"0", "1", "-7"}, "bool": {"true", "false"}}[f.key]
			var pairs []string
			for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom(keys), 0, 2, rapid.ID[string]).Draw(g.t, "keys") {
				pairs = append(pairs, fmt.Sprintf("%q: %s", key, g.value(f.typ, depth)))
			}
			value = "{" + strings.Join(pairs, ", ") + "}"
		default:
			value = g.value(f.typ, depth)
		}
		members = append(members, fmt.Sprintf("%q: %s", f.name, value))
	}
	return "{" + strings.Join(members, ", ") + "}"
}

func (g *ruleGenerator) value(typ *randomType, depth int) string {
	if typ.values == nil {
		return g.message(typ.name, depth-1)
	}
	values := typ.values
	if !g.exact {
		values = slices.Concat(values, values, typ.odd)
	}
	return rapid.SampledFrom(values).Draw(g.t, "value")
}
