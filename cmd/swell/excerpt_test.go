// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/config/rapidtest"
	"github.com/swell-sh/swell/render"
)

func TestCut(t *testing.T) {
	long := strings.Repeat("0123456789", 30)
	for _, test := range []struct {
		name, line string
		index      int
		text       string
		offset     int
	}{
		{"plain", "a: b", 3, "a: b", 3},
		{"behind the end", "a", 9, "a", 1},
		{"empty", "", 0, "", 0},
		{"tab", "\ta: \tb", 5, "    a:  b", 8},
		{"wide", "日本: x", 4, "日本: x", 6},
		{"combining", "e\u0301: x", 4, "e\u0301: x", 3},
		{"control", "a\x1b[31m: x", 8, "a\uFFFD[31m: x", 8},
		{"right to left mark", "a\u202eb: x", 5, "a\uFFFDb: x", 5},
		{"long, at the start", long, 3, long[:100] + "…", 3},
		{"long, inside", long, 150, "…" + long[90:190] + "…", 61},
		{"long, at the end", long, 300, "…" + long[240:], 61},
	} {
		t.Run(test.name, func(t *testing.T) {
			text, offset := cut(test.line, test.index)
			if text != test.text || offset != test.offset {
				t.Errorf("cut(%q, %d) = %q, %d\nwant %q, %d", test.line, test.index, text, offset, test.text, test.offset)
			}
		})
	}
}

// TestRuneColumn: .proto files count tabs as up to 8 columns, YAML files count
// runes, and where a file is no text bytes are counted.
func TestRuneColumn(t *testing.T) {
	for _, test := range []struct {
		file, line   string
		column, want int
	}{
		{"a.yaml", "日本: x", 5, 5},
		{"a.yaml", "\ta", 2, 2},
		{"a.proto", "\ta", 9, 2},
		{"a.proto", "  \tab", 10, 5},
		{"a.proto", "日本 x", 4, 4},
		{"a.yaml", "日\xff", 4, 2},
		{"a.yaml", "日\x00", 4, 2},
		{"a.yaml", "abc", 0, 0},
	} {
		if got := runeColumn(document.Position{File: test.file, Line: 1, Column: test.column}, test.line); got != test.want {
			t.Errorf("%s %q column %d: rune %d, want %d", test.file, test.line, test.column, got, test.want)
		}
	}
}

// TestHideSecrets: no line shows a value of a Secret, however it is written.
// In each file the values that must not be seen contain hunter2.
func TestHideSecrets(t *testing.T) {
	for _, test := range []struct{ name, file, want string }{
		{"block", "apiVersion: v1\nkind: Secret\ndata:\n  a: hunter2\n", "apiVersion: ...\nkind: ...\ndata: ...\n  a: ...\n"},
		{"quoted key", "kind: Secret\ndata:\n  \"a b\": hunter2\n  'c': hunter2", "kind: ...\ndata: ...\n" + notShown + "\n  'c': ..."},
		{"flow", "{kind: Secret, stringData: {a: hunter2}}", "{kind: ..."},
		{"block scalar", "kind: Secret\nstringData:\n  a: |\n    user: hunter2\n    hunter2\n", "kind: ...\nstringData: ...\n  a: ...\n" + notShown + "\n" + notShown + "\n"},
		{"folded plain", "kind: Secret\nstringData:\n  a: x\n    hunter2\n", "kind: ...\nstringData: ...\n  a: ...\n" + notShown + "\n"},
		{"second document", "kind: ConfigMap\ndata: {a: b}\n---\nkind: Secret\ndata: {a: hunter2}\n---\nkind: Service\n",
			"kind: ConfigMap\ndata: {a: b}\n---\nkind: ...\ndata: ...\n---\nkind: Service\n"},
		{"in a template", "objects:\n- id: s\n  template:\n    kind: Secret\n    stringData:\n      a: hunter2\n- id: t\n  template: {kind: Service}\n",
			"objects:\n- id: s\n  template:\n    kind: ...\n    stringData: ...\n      a: ...\n- id: t\n  template: {kind: Service}\n"},
		{"kind by an escape", "kind: \"Sec\\x72et\"\ndata: {a: hunter2}", "kind: ...\ndata: ..."},
		{"kind by an alias", "x: &k Secret\ny: {kind: *k, data: {a: hunter2}}", "x: ...\ny: ..."},
		{"data by an alias", "x: &d {a: hunter2}\ny: {kind: Secret, data: *d}", "x: ...\ny: ..."},
		{"mistyped kind", "kid: Secret\nstringData: {a: hunter2}", "kid: ...\nstringData: ..."},
		{"other case", "kind: secret\ndata: {a: hunter2}", "kind: ...\ndata: ..."},
		{"no YAML", "kind: Secret\ndata: {a: hunter2", notShown + "\n" + notShown},
		{"comment in it", "kind: Secret\n# hunter2\ndata: {}", "kind: ...\n" + notShown + "\ndata: ..."},
		{"flow generator", "kind: Kustomization\nsecretGenerator: [{name: x, literals: [password=hunter2]}]\nresources: [a.yaml]", "kind: Kustomization\nsecretGenerator: ...\nresources: [a.yaml]"},
		{"generator", "secretGenerator:\n- name: x\n  literals: [password=hunter2]\n  # hunter2\nresources: []", "secretGenerator: ...\n- name: ...\n  literals: ...\n" + notShown + "\nresources: []"},
		{"inline patch", "patches:\n- patch: |\n    kind: Secret\n    data: {a: hunter2}\n  target: {name: x}\n", "patches:\n- patch: ...\n" + notShown + "\n" + notShown + "\n  target: {name: x}\n"},
		{"inline patch in a list", "patchesStrategicMerge:\n- |\n  kind: Secret\n  data: {a: hunter2}\n", "patchesStrategicMerge:\n" + notShown + "\n" + notShown + "\n" + notShown + "\n"},
		{"inline patch in quotes", "patches: [{patch: \"kind: Secret\\n\n\n  a: hunter2\", options: {}}]\nx: y", "patches: ...\n\n" + notShown + "\nx: y"},
		{"inline JSON", "a: '{\"kind\": \"Secret\", \"data\": {\"a\": \"hunter2\"}}'\nb: c", "a: ...\nb: c"},
		{"inline patch that is no YAML", "a: |\n  kind: Secret\n  data: {a: hunter2\nb: c", "a: ...\n" + notShown + "\n" + notShown + "\nb: c"},
		{"inline in an inline text", "a: |\n  b: |\n    kind: Secret\n    data: {a: hunter2}\nb: c", "a: ...\n" + notShown + "\n" + notShown + "\n" + notShown + "\nb: c"},
		{"inline JSON patch", "patch: |\n  - {op: replace, path: /data/a, value: hunter2}\ntarget: {kind: x}", "patch: ...\n" + notShown + "\ntarget: {kind: x}"},
		{"JSON patch", "- op: replace\n  path: /data/a\n  value: hunter2\n", "- op: ...\n  path: ...\n  value: ...\n"},
		{"override", "kind: Thing\nspec:\n  size: 1\n  override:\n    secret:\n      set: [{path: data.a, value: hunter2}]\n  after: 2\n",
			"kind: Thing\nspec:\n  size: 1\n  override: ...\n    secret: ...\n      set: ...\n  after: 2\n"},
		{"flow override", "kind: Thing\nspec: {override: {secret: {patch: [{op: add, path: /data/a, value: hunter2}]}}}\n", "kind: Thing\nspec: ...\n"},
		{"override by an alias", "x: &x {secret: {set: [{path: data.a, value: hunter2}]}}\nspec: {override: *x}", "x: ...\nspec: ..."},
		{"overrides", "kind: Defaults\nspec:\n  overrides:\n  - kind: Thing\n    update:\n    - {path: data.a, value: hunter2}\n", "kind: Defaults\nspec:\n  overrides: ...\n  - kind: ...\n    update: ...\n    - {path: ...\n"},
		{"override, no YAML", "spec: {override: {s: {set: [{path: data.a, value: hunter2", notShown},
		{"bare document", "kind: ConfigMap\n...\nkind: Secret\ndata: {a: hunter2}\n", strings.Repeat(notShown+"\n", 4) + notShown},
		{"bare document that is no YAML", "kind: ConfigMap\n...\nkind: Secret\ndata: {a: hunter2\n", notShown + "\n" + notShown + "\n" + notShown + "\n" + notShown + "\n" + notShown},
		{"bare document after a Secret", "kind: Secret\ndata: {a: hunter2}\n...\nkind: ConfigMap\n", strings.Repeat(notShown+"\n", 4) + notShown},
		{"bare document without a Secret", "kind: ConfigMap\n...\nkind: Service\n", "kind: ConfigMap\n...\nkind: Service\n"},
		{"text that ends beside another", "x: {s: {kind: Secret, data: {a: \"x\n  hunter2\"}}, b: c}\nd: e", "x: ...\n" + notShown + "\nd: e"},
		{"text that is none", "a: |\n  kind: ConfigMap\n  data: {}\nb: registry:5000/x", "a: |\n  kind: ConfigMap\n  data: {}\nb: registry:5000/x"},
		{"no YAML, none", "kind: ConfigMap\ndata: {a: b", "kind: ConfigMap\ndata: {a: b"},
		{"none", "kind: ConfigMap\ndata: {a: b}", "kind: ConfigMap\ndata: {a: b}"},
	} {
		t.Run(test.name, func(t *testing.T) {
			lines := strings.Split(test.file, "\n")
			hideSecrets(lines, nil)
			got := strings.Join(lines, "\n")
			if strings.Contains(got, "hunter2") {
				t.Error("the value is shown")
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestHideSecretsAnyText: of a text that reads as a Secret with a value, no
// line shows the value.
func TestHideSecretsAnyText(t *testing.T) {
	const value = "hunter2"
	pieces := rapid.SampledFrom([]string{"kind: Secret\n", "apiVersion: v1\n", "kind: ConfigMap\n", "data:\n", "stringData:\n", "data: {",
		"stringData: {", "  a: ", "  'b': ", "  c: |\n    ", "    ", "\n", "---\n", "x: ", "{", "}", "[", "]", ", ", "- ", "&x ", "*x", "<<: *x\n",
		"\"", "'", "# c\n", "metadata: {name: n}\n", "apiVersion: v1, kind: Secret, ", "? ", "a: b\n", "text "})
	random := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(pieces, 0, 5).Draw(t, "pieces"), "") })
	before := rapid.OneOf(rapid.Just(""), rapid.SampledFrom([]string{"  a: ", "  'b': \"", "  c: |\n    x\n    ", "  d: x\n    ", "a: "}), random)
	after := rapid.OneOf(rapid.SampledFrom([]string{"", "\n", "\n  b: c\n", "}}", "}, x: y}", "\"\n", "\n    more\n", "\n---\na: b\n"}), random)
	secrets := 0
	rapidtest.Check(t, 300, 50*time.Millisecond, func(t *rapid.T) {
		start := rapid.SampledFrom([]string{"", "apiVersion: v1\nkind: Secret\n", "apiVersion: v1\nkind: Secret\ndata:\n  a: ",
			"{apiVersion: v1, kind: Secret, data: {", "x: &x {a: ", "a: b\n---\napiVersion: v1\nkind: Secret\nstringData:\n"}).Draw(t, "start")
		text := start + before.Draw(t, "before") + value + after.Draw(t, "after")
		lines := strings.Split(text, "\n")
		hideSecrets(lines, nil)
		docs, _ := document.ReadDocuments("a.yaml", []byte(text))
		for _, doc := range docs {
			if doc.Kind != "Secret" || !holds(document.Lookup(doc.Node, "data"), value) && !holds(document.Lookup(doc.Node, "stringData"), value) {
				continue
			}
			secrets++
			if strings.Contains(strings.Join(lines, "\n"), value) {
				t.Fatalf("the value of\n%s\nis shown:\n%s", text, strings.Join(lines, "\n"))
			}
		}
	})
	if secrets == 0 {
		t.Error("no text was a Secret with a value")
	}
}

// holds says whether a value at or below the node, not a key, has the text.
func holds(n *yaml.Node, text string) bool {
	if n == nil {
		return false
	}
	if n.Kind == yaml.ScalarNode {
		return strings.Contains(n.Value, text)
	}
	for i, child := range n.Content {
		if (n.Kind != yaml.MappingNode || i%2 == 1) && holds(child, text) {
			return true
		}
	}
	return false
}

// TestExcerptOddLines: what has other ends of lines than people count has no
// excerpt, CRLF has.
func TestExcerptOddLines(t *testing.T) {
	s := newSources(&render.Snapshot{Repository: &config.Repository{Data: "data", Tree: config.Files(fstest.MapFS{
		"data/crlf.yaml": {Data: []byte("a: b\r\nc: d\r\n")},
		"data/cr.yaml":   {Data: []byte("a: b\rc: d\n")},
		"data/nel.yaml":  {Data: []byte("a: \u0085b\n")},
		"app.toml":       {Data: []byte("password\n")},
	})}})
	for _, test := range []struct {
		at   document.Position
		line string
		ok   bool
	}{
		{document.Position{File: "data/crlf.yaml", Line: 2}, "c: d", true},
		{document.Position{File: "data/crlf.yaml", Line: 9}, "", false},
		{document.Position{File: "data/crlf.yaml"}, "", false},
		{document.Position{File: "data/cr.yaml", Line: 1}, "", false},
		{document.Position{File: "data/nel.yaml", Line: 1}, "", false},
		{document.Position{File: "app.toml", Line: 1}, "", false},
		{document.Position{File: "data/none.yaml", Line: 1}, "", false},
	} {
		line, _, ok := s.line(test.at)
		if line != test.line || ok != test.ok {
			t.Errorf("%s: %q, %v, want %q, %v", test.at, line, ok, test.line, test.ok)
		}
	}
}

// TestVisible: a problem's text cannot move the cursor.
func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"plain 日本":     "plain 日本",
		"a\x1b[2Jb":    `a\x1b[2Jb`,
		"a\nb":         `a\nb`,
		"a\u202eb":     `a\u202eb`,
		"broken \xff.": "broken \uFFFD.",
	} {
		if got := visible(in); got != want {
			t.Errorf("visible(%q) = %q, want %q", in, got, want)
		}
	}
}
