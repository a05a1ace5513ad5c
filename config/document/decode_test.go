// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
)

const everything = `syntax = "proto3";
package test;
import "google/protobuf/duration.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
message Everything {
  string text = 1;
  bytes data = 2;
  bool flag = 3;
  int32 small = 4;
  int64 big = 5;
  uint64 huge = 6;
  double number = 7;
  Color color = 8;
  repeated string list = 9;
  map<string, int64> counts = 10;
  map<int32, string> ports = 11;
  Everything inner = 12;
  repeated Everything items = 13;
  oneof choice { string left = 14; string right = 15; }
  google.protobuf.Duration wait = 16;
  google.protobuf.Timestamp at = 17;
  google.protobuf.Value any = 18;
  google.protobuf.Struct object = 19;
  google.protobuf.Int32Value maybe = 20;
  string snake_name = 21;
}
enum Color { NONE = 0; RED = 1; }
`

func everythingMessage(t testing.TB) protoreflect.MessageDescriptor {
	t.Helper()
	file, problems := CompileProto("test.proto", func(name string) ([]byte, error) {
		if name != "test.proto" {
			return nil, fs.ErrNotExist
		}
		return []byte(everything), nil
	})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return file.Messages().Get(0)
}

// decodeText decodes a document that is just the message.
func decodeText(message protoreflect.MessageDescriptor, text string) (protoreflect.Message, Problems) {
	// Every document has an apiVersion and a kind; here they are lifted away.
	docs, problems := ReadDocuments("f.yaml", []byte(text+"\napiVersion: v1\nkind: K\n"))
	if len(problems) > 0 {
		return nil, problems
	}
	doc := docs[0]
	kept := doc.Node.Content[:0]
	for i := 0; i+1 < len(doc.Node.Content); i += 2 {
		if key := doc.Node.Content[i].Value; key != "apiVersion" && key != "kind" {
			kept = append(kept, doc.Node.Content[i], doc.Node.Content[i+1])
		}
	}
	doc.Node.Content = kept
	decoded, problems := doc.Decode(message, Decoding{File: func(path string) ([]byte, error) {
		if path != "a.txt" {
			return nil, fmt.Errorf("%q: %w", path, fs.ErrNotExist)
		}
		return []byte("content"), nil
	}})
	if len(problems) > 0 {
		return nil, problems
	}
	return decoded, nil
}

func TestDecode(t *testing.T) {
	message := everythingMessage(t)
	for _, c := range []struct{ yaml, want string }{
		{`text: "1"`, `{"text":"1"}`},
		{"text: |\n  a\n  b", `{"text":"a\nb\n"}`},
		{`text: {fromFile: a.txt}`, `{"text":"content"}`},
		{`data: aGk=`, `{"data":"aGk="}`},
		{`data: {fromFile: a.txt}`, `{"data":"Y29udGVudA=="}`},
		{`flag: true`, `{"flag":true}`},
		{`small: 0x10`, `{"small":16}`},
		{`big: "9007199254740993"`, `{"big":"9007199254740993"}`},
		{`huge: 18446744073709551615`, `{"huge":"18446744073709551615"}`},
		{`number: 1e3`, `{"number":1000}`},
		{`color: RED`, `{"color":"RED"}`},
		{`color: 1`, `{"color":"RED"}`},
		{`list: [a, b]`, `{"list":["a","b"]}`},
		{`counts: {a: 1}`, `{"counts":{"a":"1"}}`},
		{`ports: {80: http, "443": https}`, `{"ports":{"80":"http","443":"https"}}`},
		{`inner: {inner: {small: 1}}`, `{"inner":{"inner":{"small":1}}}`},
		{`items: [{small: 1}, {}]`, `{"items":[{"small":1},{}]}`},
		{`left: x`, `{"left":"x"}`},
		{`wait: 1h30m`, `{"wait":"5400s"}`},
		{`at: 2026-01-02T03:04:05Z`, `{"at":"2026-01-02T03:04:05Z"}`},
		{`any: {a: [1, x, true, null]}`, `{"any":{"a":[1,"x",true,null]}}`},
		{`object: {a: 1}`, `{"object":{"a":1}}`},
		{`maybe: 0`, `{"maybe":0}`},
		{`snake_name: x`, `{"snake_name":"x"}`},
		{`text:`, `{}`},
		{"inner: &a {small: 1}\nitems: [*a, *a]", `{"inner":{"small":1},"items":[{"small":1},{"small":1}]}`},
		{"inner: &a {small: 1, text: v}\nitems: [{<<: *a, text: w}]", `{"inner":{"text":"v","small":1},"items":[{"text":"w","small":1}]}`},
	} {
		got, problems := decodeText(message, c.yaml)
		if len(problems) > 0 {
			t.Errorf("%s: %s", c.yaml, problems)
			continue
		}
		text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(got.Interface())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, strings.ReplaceAll(string(text), " ", "")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.yaml, diff)
		}
	}
}

func TestDecodeProblems(t *testing.T) {
	message := everythingMessage(t)
	for _, c := range []struct{ yaml, want string }{
		{`snakeName: x`, `f.yaml:1:1: snakeName: unknown field, did you mean "snake_name"?`},
		{`text: yes`, `f.yaml:1:7: a word that is a boolean to some YAML readers`},
		{`text: 2026-01-02`, ""},
		{`flag: "true"`, `flag: want true or false, got the string "true"`},
		{`small: 2147483648`, "small: want a 32-bit integer, got the number 2147483648"},
		{`big: 9223372036854775808`, "big: want a 64-bit integer"},
		{`huge: -1`, "huge: want a 64-bit integer from 0, got the number -1"},
		{`number: .nan`, "number: want a number, got the number .nan"},
		{`number: .inf`, "number: want a number"},
		{`color: REDD`, `color: want one of the enum's names, got the string "REDD", did you mean "RED"?`},
		{`color: 7`, "color: want one of the enum's names, got the number 7"},
		{`list: a`, `list: want a list, got the string "a"`},
		{`list: [a, [b]]`, "list[1]: want a string, got a list"},
		{`counts: {a: x}`, "counts.a: want a 64-bit integer"},
		{`ports: {http: x}`, `ports.http: want a 32-bit integer, got the string "http"`},
		{`inner: {inner: {smal: 1}}`, `inner.inner.smal: unknown field, did you mean "small"?`},
		{"left: v\nright: w", "right: only one of choice may be set, left is set too"},
		{`wait: 10`, "wait: want a duration like 30s or 1h30m, got the number 10"},
		{`at: today`, `at: want a time like 2006-01-02T15:04:05Z, got the string "today"`},
		{`any: 9007199254740993`, `any: a number that does not fit a JSON number exactly: write it in quotes`},
		{`data: "&&&"`, "data: want bytes in base64"},
		{`text: {fromFile: none.txt}`, `text.fromFile: "none.txt": file does not exist`},
		{`text: {fromFile: [a]}`, "text.fromFile: want the path of a file beside the spec, got a list"},
	} {
		_, problems := decodeText(message, c.yaml)
		if c.want == "" && len(problems) == 0 {
			continue
		}
		if got := problems.String(); c.want == "" || !strings.Contains(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", c.yaml, got, c.want)
		}
	}
}

// TestBombs: documents that are small and want to be large end with a problem.
func TestBombs(t *testing.T) {
	aliases := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 9; i++ {
		aliases += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	for name, c := range map[string]struct{ text, want string }{
		"aliases":     {aliases, "more than 500000 values once its aliases are written out"},
		"deep":        {"a: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "nested more than 100 levels deep"},
		"deeper":      {"a: " + strings.Repeat("{a: ", 20000) + strings.Repeat("}", 20000), "not valid YAML: exceeded max depth"},
		"NUL":         {"a: \x00", "a NUL byte"},
		"BOM":         {"\xef\xbb\xbfa: b", "f.yaml:1:1: a byte order mark: save"},
		"BOM inside":  {"a: b\n---\n\xef\xbb\xbfa: b", "f.yaml:3:1: a byte order mark inside the file"},
		"control":     {"a: b\nc: x\x1b[0m", "f.yaml:2:5: a control character: remove it"},
		"C1 control":  {"a: b\nc: x\u009b0m", "f.yaml:2:5: a control character: remove it"},
		"surrogate":   {"a: \xed\xa0\x80", "f.yaml:1:4: invalid UTF-8"},
		"UTF-16 BE":   {"\xfe\xff\x00a", "f.yaml:1:1: UTF-16 text"},
		"UTF-16 bare": {"a\x00:\x00", "f.yaml:1:2: a NUL byte"},
		"UTF-16":      {"\xff\xfea\x00", "UTF-16 text"},
		"not UTF-8":   {"a: b\nc: \xff", "f.yaml:2:4: invalid UTF-8"},
		"replacement": {"kind: \uFFFD", "apiVersion: missing"},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := ReadDocuments("f.yaml", []byte(c.text))
			if got := problems.String(); !strings.Contains(got, c.want) {
				t.Errorf("got %.200q, want %q", got, c.want)
			}
		})
	}
}

// TestLargeMerge: merging looked through all keys for each key, for minutes.
func TestLargeMerge(t *testing.T) {
	var text strings.Builder
	text.WriteString("apiVersion: v1\nkind: K\nbase: &base\n")
	const many = 100_000
	for i := range many {
		fmt.Fprintf(&text, "  a%d: x\n", i)
	}
	text.WriteString("spec:\n  <<: *base\n  a0: own\n")
	docs, problems := ReadDocuments("f.yaml", []byte(text.String()))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	spec := Lookup(docs[0].Node, "spec")
	if got := len(spec.Content) / 2; got != many || Lookup(spec, "a0").Value != "own" {
		t.Errorf("%d keys, want %d", got, many)
	}
}

func FuzzReadDocuments(f *testing.F) {
	for _, seed := range []string{"", "a: b", "apiVersion: v1\nkind: K\nspec: &a {x: *a}", "- [", "<<: {a: 1}", "a: !!binary x", "? [a]\n: b", everything} {
		f.Add([]byte(seed))
	}
	message := everythingMessage(f)
	f.Fuzz(func(t *testing.T, content []byte) {
		docs, problems := ReadDocuments("f.yaml", content)
		for _, p := range problems {
			if p.Message == "" || strings.Contains(p.Message, "\n") {
				t.Errorf("problem %q: want one line", p.Message)
			}
		}
		for _, doc := range docs {
			if doc.Kind == "" || doc.APIVersion == "" {
				t.Errorf("a document without kind or apiVersion: %+v", doc)
			}
			doc.Decode(message, Decoding{})
			doc.Plain(doc.Node)
		}
	})
}

// TestReadDocumentsEdges: files without documents, and files at the limits.
func TestReadDocumentsEdges(t *testing.T) {
	const doc = "apiVersion: v1\nkind: K\n"
	for name, c := range map[string]struct {
		text string
		docs int
		want string
	}{
		"empty":          {"", 0, ""},
		"comment":        {"# nothing\n", 0, ""},
		"markers":        {"---\n---\n# x\n--- ~\n...\n", 0, ""},
		"between":        {"---\n# x\n---\n" + doc + "---\n", 1, ""},
		"carriage":       {"apiVersion: v1\r\nkind: K\r\n", 1, ""},
		"JSON":           {`{"apiVersion": "v1", "kind": "K"}`, 1, ""},
		"trailing JSON":  {`{"apiVersion": "v1", "kind": "K"} {"a": 1}`, 1, "f.yaml:1:1: not valid YAML: did not find expected <document start>: something follows the end of the document"},
		"unclosed":       {doc + "a: {b: [c\n", 0, "f.yaml:3:4: not valid YAML: did not find expected ',' or ']'"},
		"tab":            {doc + "a:\n\tb: 1\n", 0, "f.yaml:4:1: not valid YAML: a tab: indent with spaces"},
		"tab and spaces": {doc + "a:\n  c: \t1\n  \tb: 1\n", 0, "f.yaml:5:3: not valid YAML: a tab: indent with spaces"},
		"reserved":       {doc + "a: @b\n", 0, "f.yaml:3:4: not valid YAML: found character that cannot start any token: write a string that begins with @, % or ` in quotes"},
		"reserved key":   {doc + "a: b\n`c: \td\n", 0, "f.yaml:4:1: not valid YAML: found character that cannot start any token: write a string that begins with @, % or ` in quotes"},
		"unknown anchor": {doc + "a: b\nc: *d\n", 0, "f.yaml:4:4: not valid YAML: an alias (*) without its anchor (&) before it: write a string that begins with * in quotes"},
		"null key":       {doc + "~: b\n", 0, "f.yaml:3:1: a key that is nothing: write it in quotes"},
		"float key":      {doc + "1.5: b\n", 0, "f.yaml:3:1: a key that is a number: write it in quotes"},
		"complex key":    {doc + "? {a: b}\n: c\n", 0, "f.yaml:3:3: a key must be a plain name, got a map"},
		"hidden anchor":  {doc + "a: &x\u202e [*x\u202e]\n", 0, "f.yaml:3:1: not valid YAML: did not find expected alphabetic or numeric character"},
		"directive":      {"%YAML 1.3\n---\n" + doc, 0, "f.yaml:1:1: not valid YAML: found incompatible YAML document: remove the %YAML line, or make it %YAML 1.1"},
		"conflict":       {doc + "a:\n<<<<<<< HEAD\n  b: c\n=======\n  b: d\n>>>>>>> other\n", 0, "f.yaml:4:1: not valid YAML: could not find expected ':': a merge conflict that is not resolved"},
		"Helm":           {doc + "a:\n  {{- toYaml .Values.b | nindent 2 }}\n", 0, "f.yaml:4:3: not valid YAML: did not find expected node content: templates of Helm and the like are not run"},
		"no-break space": {"apiVersion: v1\nkind:\u00a0K\n", 0, "f.yaml:2:5: not valid YAML: could not find expected ':': a space on this line is a no-break space"},
		"merged itself":  {doc + "a: &a\n  <<: *a\n", 0, "f.yaml:4:7: an alias (*) of what it stands in"},
		"types":          {"apiVersion: 1\nkind: [K]\n", 0, "f.yaml:1:13: apiVersion: want a string, got a number\nf.yaml:2:7: kind: want a string, got a list"},
		"hidden name":    {doc + "metadata: {name: \"a\\u200bb\"}\n", 0, `f.yaml:3:18: metadata.name: "a\u200bb": want a name whose characters all show`},
		"many documents": {strings.Repeat("---\n"+doc, maxDocuments+1), maxDocuments, "f.yaml:30001:1: the file is not read any further: more than 10000 documents in one file; split it"},
		"as many":        {strings.Repeat("---\n"+doc, maxDocuments) + "---\n", maxDocuments, ""},
		"a long list":    {"apiVersion: v1\nkind: List\nitems:\n" + strings.Repeat("- {apiVersion: v1, kind: K}\n", maxDocuments+1), maxDocuments, "more than 10000 documents in one file; split it"},
		"many problems":  {doc + "a:\n" + strings.Repeat("- yes\n", 1000), 0, "and more: only the first 100 problems of a document are told"},
		"long":           {doc + "a: " + strings.Repeat("x", 50<<20) + "\n", 1, ""}, // a Tree gives no such file
	} {
		docs, problems := ReadDocuments("f.yaml", []byte(c.text))
		got := problems.String()
		if len(docs) != c.docs || !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %d documents and %.300s\nwant %d and %s", name, len(docs), got, c.docs, c.want)
		}
		if len(problems) > MaxProblems+2 {
			t.Errorf("%s: %d problems", name, len(problems))
		}
	}
}

// TestNoSecretInSyntaxProblems: what was taken for the name of an anchor or of
// a tag may be the value of a Secret that lacks its quotes.
func TestNoSecretInSyntaxProblems(t *testing.T) {
	const head = "apiVersion: v1\nkind: Secret\nstringData:\n  password: "
	for _, text := range []string{head + "*hunter2", head + "!hunter2 x", head + "!hunter2", head + "!!hunter2 [x]", head + "!<hunter2> {}",
		head + "&hunter2 [*hunter2]", head + "{*hunter2 : x}", head + "&hunter2 x\n  b: {*hunter2 : x}", head + "\n    <<: hunter2", head + "\n    <<: [hunter2]",
		"apiVersion: easy.example.com/v1\nkind: Thing\nspec:\n  override: {secret: {set: [{path: data.a, value: !hunter2 x}]}}"} {
		for name, read := range map[string]func(string, []byte) ([]*Document, Problems){"documents": ReadDocuments, "values": ReadValues} {
			_, problems := read("f.yaml", []byte(text))
			if len(problems) == 0 || strings.Contains(problems.String(), "hunter2") {
				t.Errorf("%s of\n%s\ngive %q", name, text, problems.String())
			}
		}
	}
}
