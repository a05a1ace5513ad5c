// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

// tryKinds loads kinds and renders a Thing with them. Whatever they hold, it
// ends soon, and nothing that is wrong with them is a mistake of swell.
func tryKinds(t *testing.T, files map[string]string) {
	t.Helper()
	tree := fstest.MapFS{}
	for name, content := range files {
		tree[name] = &fstest.MapFile{Data: []byte(content)}
	}
	began := time.Now()
	kinds := loadTree(t, config.Files(tree))
	problems := kinds.Problems
	if kinds.ByName("easy.example.com/v1", "Thing") != nil {
		docs, _ := document.ReadDocuments("thing.yaml", []byte(thing))
		if spec, _ := kinds.ByName("easy.example.com/v1", "Thing").Decode(docs[0], nil); spec != nil {
			first, found := spec.Render(NewPlace(testUnit, testTarget, Inputs{File: testFile}))
			again, _ := spec.Render(NewPlace(testUnit, testTarget, Inputs{File: testFile}))
			problems = append(problems, found...)
			if len(first) != len(again) {
				t.Errorf("%d objects, then %d", len(first), len(again))
			}
			for i := range min(len(first), len(again)) {
				if a, b := appendJSON(nil, first[i].Object), appendJSON(nil, again[i].Object); string(a) != string(b) {
					t.Errorf("%s, then %s", a, b)
				}
			}
		}
	}
	for _, p := range problems {
		if p.Code == document.CodeInternal || strings.Contains(p.Message, "internal error") {
			t.Error(p)
		}
	}
	if took := time.Since(began); took > maxRunaway {
		t.Errorf("took %s", took)
	}
}

func thingFiles(spec string) map[string]string {
	return map[string]string{
		"kinds/thing/thing.proto": thingProto,
		"kinds/thing/kind.yaml":   "apiVersion: swell.sh/v1\nkind: EasyKind\nmetadata: {name: thing}\nspec:\n  message: example.Thing\n" + spec,
		"kinds/thing/a.tmpl":      "{{range $k, $v := .replicas}}{{$k}}{{end}}",
		"data/a.yaml":             "x: {v: 1}\nl: [1, 2]\n",
	}
}

var unbroken = strings.NewReplacer("\n", " ", "\r", " ")

func FuzzExpression(f *testing.F) {
	for _, seed := range []string{"self.spec.text", "yaml.encode(self.spec)", "template('a.tmpl', self.spec)", "file('app.toml')", "data.a.x.map(k, data.a.x[k])",
		"self.spec.modeOf.x + self.spec.mode", "self.?spec.?inner.?mode.orValue('x')", "[1,2].map(x, [x, x]) == [[1, 1]]", "'%s %d'.format(['a', 1])",
		"hash(self)", "self.spec.any.list[0]", "lists.range(5).map(i, string(i)).join(',')", "'a'.matches('[a-z]+')", "timestamp('2020-01-01T00:00:00Z')", "b'\\xff'"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, x string) {
		tryKinds(t, thingFiles(oneExpression(unbroken.Replace(x))))
	})
}

func FuzzKind(f *testing.F) {
	f.Add("  let:\n  - {name: a, value: self.spec.text}\n  collect: {things: {kind: Thing}}\n"+oneExpression("a + things[0].spec.text"), thingProto)
	f.Add(oneExpression("self.spec.mode"), thingProto)
	f.Add("  objects:\n  - {id: a, each: {x: self.spec.hosts}, when: x != '', template: {apiVersion: easy.example.com/v1, kind: Thing, metadata: {name: '${x}'}}}\n", thingProto)
	f.Fuzz(func(t *testing.T, spec, proto string) {
		files := thingFiles(spec)
		files["kinds/thing/thing.proto"] = proto
		tryKinds(t, files)
	})
}

func FuzzTemplateFile(f *testing.F) {
	for _, seed := range []string{"{{.text}}", "{{range $k, $v := .replicas}}{{$k}}={{$v}}{{end}}", `{{define "x"}}{{template "x" .}}{{end}}{{template "x" .}}`,
		"{{range 1000000}}{{end}}", `{{printf "%5d" .count}}`, "{{with .inner}}{{json .}}{{else}}{{.}}{{end}}", "{{join \",\" .hosts | quote | indent 2}}",
		"{{if and (eq .text \"hello\") (lt .count 5)}}{{yaml .}}{{break}}{{end}}", "{{range keys .replicas}}{{continue}}{{end}}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content string) {
		files := thingFiles(oneExpression("template('a.tmpl', self.spec)"))
		files["kinds/thing/a.tmpl"] = content
		tryKinds(t, files)
	})
}
