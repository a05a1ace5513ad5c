// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func protoFiles(files map[string]string) func(string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		if text, ok := files[name]; ok {
			return []byte(text), nil
		}
		return nil, fs.ErrNotExist
	}
}

// TestHostileProto: files made to take the compiler down, or for ever. Each
// must end with a problem; the package's timeout is the bound on time.
func TestHostileProto(t *testing.T) {
	const head = "syntax = \"proto3\";\n"
	chain := map[string]string{}
	for i := range 300 {
		chain[fmt.Sprintf("f%d.proto", i)] = fmt.Sprintf("%simport \"f%d.proto\";\n", head, i+1)
	}
	diamond := map[string]string{"f50a.proto": head, "f50b.proto": head}
	for i := range 50 {
		for _, side := range []string{"a", "b"} {
			diamond[fmt.Sprintf("f%d%s.proto", i, side)] = fmt.Sprintf("%simport public \"f%da.proto\";\nimport public \"f%db.proto\";\n", head, i+1, i+1)
		}
	}
	diamond["f0.proto"] = head + "import public \"f0a.proto\";\nmessage A { Nowhere n = 1; }\n"
	one := func(text string) map[string]string { return map[string]string{"f0.proto": head + text} }
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"deep messages": {one(strings.Repeat("message A {", 50_000)), "nested more than 100 levels deep"},
		"hidden depth":  {one(strings.Repeat("message A { /*}*/ // }\n", 40_000)), "nested more than 100 levels deep"},
		"closed first":  {one(strings.Repeat("}", 90_000) + strings.Repeat("message A {", 50_000)), "nested more than 100 levels deep"},
		"deep option":   {one("option (x) = " + strings.Repeat("{a: ", 50_000)), "nested more than 100 levels deep"},
		"deep list":     {one("option (x) = {a: " + strings.Repeat("[", 50_000)), "nested more than 100 levels deep"},
		"deep group":    {one("option (x) = {a " + strings.Repeat("<a ", 50_000)), "nested more than 100 levels deep"},
		"large":         {one(strings.Repeat(" ", maxProtoSize)), "more than 1048576 bytes of .proto up to here"},
		"many imports":  {chain, "more than 200 files are imported up to here"},
		"diamond":       {diamond, "more than 32 public imports up to here"},
		"itself":        {one("import \"f0.proto\";"), "cycle"},
		"cycle":         {map[string]string{"f0.proto": head + "import \"f1.proto\";", "f1.proto": head + "import \"f0.proto\";"}, "cycle"},
		"many errors":   {one("message A {\n" + strings.Repeat("Nowhere a = 1;\n", 10_000) + "}"), ""},
		"many fields":   {one("message A {\n" + many(18_000, "int32 a%[1]d = %[1]d;\n") + "}\nmessage B { Nowhere a = 1; }"), "Nowhere"},
		"many ranges":   {one("message A {\n" + many(30_000, "reserved %[1]d;\n") + "Nowhere a = 536870911; }"), "Nowhere"},
		"many values":   {one("enum A { Z = 0;\n" + many(30_000, "A%[1]d = %[1]d;\n") + "}\nmessage B { Nowhere a = 1; }"), "Nowhere"},
		"many messages": {one(many(20_000, "message A%[1]d {A%[1]d a = 1;}\n") + "message B { Nowhere a = 1; }"), "Nowhere"},
		"many options":  {one("import \"google/protobuf/descriptor.proto\"; extend google.protobuf.FileOptions { repeated int32 x = 50000; }\n" + many(30_000, "option (x) = %d;\n") + "message B { Nowhere a = 1; }"), "Nowhere"},
		"NUL":           {one("\x00"), "invalid"},
		"not UTF-8":     {one("// \xff\nmessage \xfe {}"), "invalid"},
		"a long line":   {one("message " + strings.Repeat("a", 500_000) + " { Nowhere n = 1; }"), "field aaa"},
	} {
		t.Run(name, func(t *testing.T) {
			compiled, problems := CompileProto("f0.proto", protoFiles(c.files))
			if compiled != nil || len(problems) == 0 || !strings.Contains(problems.String(), c.want) {
				t.Errorf("got %.500s, want %s", problems, c.want)
			}
			if len(problems) > maxProtoProblems+1 {
				t.Errorf("%d problems, want at most %d", len(problems), maxProtoProblems)
			}
			for _, p := range problems {
				if len(p.Message) > 2000 || !IsPrintable(p.Message) {
					t.Errorf("a message of %d bytes: %.300q", len(p.Message), p.Message)
				}
			}
		})
	}
}

func many(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i+1)
	}
	return b.String()
}

// TestProtoRetry: an import that cannot be read now may be read later.
func TestProtoRetry(t *testing.T) {
	_, problems := CompileProto("a.proto", func(name string) ([]byte, error) {
		if name == "a.proto" {
			return []byte("syntax = \"proto3\"; import \"b.proto\";"), nil
		}
		return nil, errors.New("connection reset")
	})
	if !problems.Retry() {
		t.Errorf("got %s, want it tried again", problems)
	}
}

func FuzzCompileProto(f *testing.F) {
	for _, seed := range []string{"", "syntax = \"proto3\"; message A { string a = 1; }", everything, ruled,
		`edition = "2023"; message A { A a = 1 [features.message_encoding = DELIMITED]; }`,
		`syntax = "proto2"; import "b.proto"; message A { optional group G = 1 { required B b = 1; } extensions 100 to max; } extend A { optional int32 x = 100; }`,
		`syntax = "proto3"; import "google/protobuf/descriptor.proto"; extend google.protobuf.FieldOptions { string o = 50000; } message A { A a = 1 [(o) = "x"]; }`,
	} {
		f.Add(seed, "syntax = \"proto3\"; message B {}")
	}
	f.Fuzz(func(t *testing.T, text, imported string) {
		text, imported = text[:min(len(text), 1<<13)], imported[:min(len(imported), 1<<13)] // size is tried elsewhere
		file, problems := CompileProto("a.proto", protoFiles(map[string]string{"a.proto": text, "b.proto": imported, "codes.proto": imported}))
		if (file == nil) != (len(problems) > 0) {
			t.Fatalf("file %v with %d problems", file, len(problems))
		}
		for _, p := range problems {
			if p.Message == "" || !IsPrintable(p.Message) || p.Code == CodeInternal {
				t.Errorf("problem %s: %q", p.Code, p.Message)
			}
		}
		if file == nil {
			return
		}
		for i := range file.Messages().Len() {
			declared := file.Messages().Get(i)
			envelope, err := Envelope(declared)
			if err != nil {
				continue
			}
			if rules, problems := CompileRules(envelope, declared); len(problems) == 0 {
				checkSpec(t, envelope, rules, "spec: {a: [], b: {a: 1}, text: x}")
			}
		}
	})
}

// TestMissingProto: a file that is not there has one problem, without the words of the call that found it.
func TestMissingProto(t *testing.T) {
	_, problems := CompileProto("kinds/a/a.proto", fstest.MapFS{}.ReadFile)
	if diff := cmp.Diff("kinds/a/a.proto: file does not exist", strings.TrimSpace(problems.String())); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}
