// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	v3 "go.yaml.in/yaml/v3"
	k8s "k8s.io/apimachinery/pkg/util/yaml"
	sigs "sigs.k8s.io/yaml"
)

// odd are pieces of YAML that readers take for different things, or did.
var odd = []string{
	"a: &x 1\n---\nb: *x\n", "a: &x {b: 1}\n---\nc: {<<: *x}\n", "a: &x 1\nb: *x\nc: &x 2\nd: *x\n",
	"x: &a {p: 1}\ny: &b {q: 2}\nz:\n  <<: *a\n  <<: *b\n", "z: {p: 1, <<: {p: 2}}\n", "z: {<<: {p: 2}, p: 1}\n", "z: {<<: [{p: 1}, {p: 2}]}\n", `z: {"<<": {p: 1}}` + "\n",
	"a: \"x\u0085y\"\n", "a: 'x\u2028y'\n", "a: x # c\u2028b: 1\n", "a: x\u2029\n", "a: |\n  x\u0085y\n", "a: \"x\\u2028y\"\n", "a: x\rb: y\n", "a: \"x\ry\"\n",
	"a: 1e-999\n", "a: -1e-400\n", "a: 1e999\n", "a: 99999999999999999999\n", "a: -9223372036854775809\n", "a: 18446744073709551615\n", "a: 9007199254740993\n", "a: 0.1234567890123456789\n",
	"a: 0x1F\nb: 0b11\nc: 1_000\nd: +12\ne: -0\nf: 0x_1\ng: .5\nh: 5.\ni: 1.e3\nj: 1__0\n", "a: 0o17\n", "a: 017\n", "a: 08\n", "a: 0_8\n", "a: -0x10\nb: -0b1\n", "a: 0x8000000000000000\n", "a: 0x1p4\n", "a: 1_0.5\n", "a: 1e5_0\n", "a: 00\n", "a: 0.0e0\n", "a: 190:20:30\n",
	"a: yes\n", "a: True\nb: FALSE\nc: nUll\nd: Null\ne: ~\nf:\n", "1: a\n", "1.5: a\n", "? a\n: b\n", "0x10: a\n16: b\n", "1_0: a\n10: b\n", "-0: a\n", "+1: a\n1: b\n", "~: a\n", "true: a\n",
	"a: 2001-12-14\nb: 2001-12-14t21:59:43.10-05:00\n2001-12-14: x\n", "a: !!str 1\n", "a: !!binary aGk=\n", "a: !!int '1'\n", "a: !!float 1\n", "a: ! x\n", "!!str a: b\n", "a: !!binary gIA=\n",
	"!", "a: !\n", "a: ! 1\n", "- ! true\n", "a: &x ! null\n", "a: [! 1, 2]\n", "a: =\n", "a: <<\n", "- <<\n", "a: .inf\n", "a: .NaN\n", "a: !x y\n", "%YAML 1.1\n---\na: b\n", "%TAG ! tag:x,2000:\n---\na: !str b\n",
	"--- a\n...\n--- b\n", "a: b\n...\nc: d\n", "a: b\n--- \nc: d\n", "a: b\n---\t\nc: d\n", "a: b\n---c\n", "a: |\n  x\n  ---\n  y\n", "a: |\n--- x\n", "a: 'x\n---\n  y'\n", "# c\n---\n---\na: b\n", "---\n# c\n", "a: b\n--- # c\nc: d\n", "a: b\n--- {c: d}\n", "a: b\n--- |\n  x\n", "\"a\n--- b\"\n",
	"{a: b}\n", "[a, b,]\n", "a: [b, {c: d}, ]\n", "{a, b: c}\n", "[a: b]\n", "a: {b}\n", "{\"a\":1}\n", "{\"a\":1, \"b\": \"\\/\"}\n", "a: \"\\e\\0\\x41\\_\\N\\L\\P\"\n", "a: \"\\ud83d\\ude00\"\n", "a: \"\\ud800\"\n",
	"a: b # c\n", "a: b#c\n", "a: 'it''s'\n", "a: \"x\n  y\n\n  z\"\n", "a: x\n  y\n", "a: >\n  x\n  y\n\n  z\n", "a: |2\n   x\n", "a: |-\n  x\n", "a: |+\n  x\n\n\n", "a: >+\n\n  x\n\n", "a:\n- b\n-\n- - c\n", "a: -\n", "a: - b\n", "a: ?\n", "a: :\n", "a: b: c\n",
	"a: \tb\n", "a:\tb\n", "\ta: b\n", "a:\n\t- b\n", "a: |\n\tx\n", "a: |\n  x\n\ty\n", "{a:\tb}\n", "\ufeffa: b\n", "a: \ufeffb\n", "a: b\ufeff\n", "a: *b\n", "*a : b\n", "&a a: *a\n", "&a : b\n", "a: &b\n", "a: &b\nc: *b\n",
	"a: \x7f\n", "a: \"\\x7f\"\n", "a: \u00a0\n", "\u00a0a: b\n", "a: \u200bb\n", "a: \ufffe\n", "a: \U0010ffff\n", "a: b\r\nc: d\r\n", "a: |\r\n  x\r\n  y\r\n", "a: b\n\r\n", "a: 1\na: 2\n", "a: {b: 1, b: 2}\n", "\"a\": 1\na: 2\n", "a: b\n b: c\n", "a:\n  b\n c\n",
	"|\n 0", "a: |\n  x", "a: >\n  x", "a: |+\n  x", "a: >+\n  x\n\n  y", "a: |-\n  x", "a: |\r\n  x", "a: |\n  x\r", "- |\n x\n  ", "a: |\n  x\n---\nb: |\n  y", "a: |", "a: 'x'", "a: # c", "- >2\n    x",
	"0A\n---#00", "a: b\n---\u00a0\nc: d\n", "a: b\n---\u00a0# x\n", "a: b\n---\u2003#\n", "'a\n---#b'\n", "a: |\n  ---#\n",
}

// FuzzReaders: YAML that is taken is read in the same way by the reader of
// kubectl (sigs.k8s.io/yaml, after its splitter of documents) and by yaml.v3.
func FuzzReaders(f *testing.F) {
	taken := 0
	for _, text := range odd {
		f.Add([]byte(text))
		if _, problems := ReadValues("x.yaml", []byte(text)); len(problems) == 0 {
			taken++
		}
	}
	if taken < len(odd)/3 {
		f.Errorf("%d of %d texts are taken, and so compared", taken, len(odd))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		docs, problems := ReadValues("x.yaml", content)
		if len(problems) > 0 {
			return
		}
		var ours []any
		for _, doc := range docs {
			value, problems := doc.Plain(doc.Node)
			if len(problems) > 0 {
				return
			}
			ours = append(ours, value)
		}
		for _, reader := range []struct {
			name string
			read func([]byte) ([]any, error)
		}{{"kubectl", asKubectl}, {"yaml.v3", asV3}} {
			theirs, err := reader.read(content)
			if err != nil && notSplit.MatchString(err.Error()) {
				continue // it says so, and reads nothing else instead
			}
			if err != nil {
				t.Fatalf("%q: we take it, %s says %v", content, reader.name, err)
			}
			if reader.name == "yaml.v3" && goTime.MatchString(fmt.Sprintf("%#v", theirs)) {
				continue // a text to kubectl and to us
			}
			if got, want := plainText(ours), plainText(theirs); got != want {
				t.Fatalf("%q: we read\n%s\n%s reads\n%s", content, got, reader.name, want)
			}
		}
	})
}

// TestLastLine: a block in a last line without its end has the same value and
// place as in one that ends.
func TestLastLine(t *testing.T) {
	const text = "apiVersion: v1\nkind: A\nb: |\n  x"
	for _, content := range []string{text, text + "\n"} {
		docs, problems := ReadDocuments("x.yaml", []byte(content))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		n := Lookup(docs[0].Node, "b")
		if got := fmt.Sprintf("%s %q", docs[0].At(n), n.Value); got != `x.yaml:3:4 "x\n"` {
			t.Errorf("%q: got %s", content, got)
		}
	}
}

// notSplit are errors of kubectl about what YAML says of documents, and it does
// not know: a %YAML line, a value behind ---.
var notSplit = regexp.MustCompile(`invalid Yaml document separator|did not find expected <document start>`)

var goTime = regexp.MustCompile(`time\.(Time|Date)`)

// asKubectl reads documents as kubectl does, without those that are nothing.
func asKubectl(content []byte) (values []any, err error) {
	reader := k8s.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return values, nil
		}
		if err != nil {
			return nil, err
		}
		converted, err := sigs.YAMLToJSON(text)
		if err != nil {
			return nil, err
		}
		decoder := json.NewDecoder(bytes.NewReader(converted))
		decoder.UseNumber()
		var value any
		if err := decoder.Decode(&value); err != nil {
			return nil, err
		}
		if value != nil {
			values = append(values, value)
		}
	}
}

// asV3 reads documents with yaml.v3, the last line ended as kubectl ends it.
func asV3(content []byte) (values []any, err error) {
	if !bytes.HasSuffix(content, []byte("\n")) {
		content = append(slices.Clip(content), '\n')
	}
	decoder := v3.NewDecoder(bytes.NewReader(content))
	for {
		var value any
		if err := decoder.Decode(&value); errors.Is(err, io.EOF) {
			return values, nil
		} else if err != nil {
			return nil, err
		}
		if value != nil {
			values = append(values, value)
		}
	}
}

// plainText writes values so that equal ones are equal texts, whatever Go types
// their reader gives them. Bytes of !!binary are a text in base64 to kubectl.
func plainText(value any) string {
	switch v := value.(type) {
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = plainText(v[i])
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case string:
		return fmt.Sprintf("%q", v)
	case nil, bool:
		return fmt.Sprint(v)
	}
	if m := reflect.ValueOf(value); m.Kind() == reflect.Map {
		parts := map[string]string{}
		for _, key := range m.MapKeys() {
			parts[fmt.Sprint(key.Interface())] = plainText(m.MapIndex(key).Interface())
		}
		return fmt.Sprintf("%q", parts)
	}
	if number, ok := new(big.Float).SetPrec(200).SetString(fmt.Sprint(value)); ok {
		f, _ := number.Float64()
		if i, accuracy := number.Int(nil); accuracy == big.Exact {
			return i.String()
		}
		return fmt.Sprint(f)
	}
	return fmt.Sprintf("%T %v", value, value)
}
