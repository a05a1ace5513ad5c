// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package compat_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	gocmp "github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/kind"
	"github.com/swell-sh/swell/render/schema"
	"github.com/swell-sh/swell/render/schema/compat"
)

var update = flag.Bool("update", false, "write what comes out into testdata")

// Each case is two states of a kind or of a definition, below was and is, a document that
// was good, what is found, and what becomes of the document. rulesFolder has a case for
// each rule, goodFolder has changes that are no rule's matter.
const (
	rulesFolder = "testdata/rules"
	goodFolder  = "testdata/good"
)

// ruleCase is one file of these folders.
type ruleCase struct {
	name, path string
	archive    *txtar.Archive
}

func casesIn(t *testing.T, folder string) (all []ruleCase) {
	t.Helper()
	files, err := filepath.Glob(folder + "/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(err, len(files))
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, ruleCase{strings.TrimSuffix(filepath.Base(file), ".txtar"), file, archive})
	}
	return all
}

func (c ruleCase) file(name string) string {
	for _, f := range c.archive.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

// side is one of the two states.
type side struct {
	kinds *kind.Kinds
	crd   *compat.Definition
	hard  *schema.Set
}

const plainKind = `apiVersion: swell.sh/v1
kind: EasyKind
metadata: {name: app}
spec:
  message: app.v1.App
  objects:
  - {id: config, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: app, namespace: apps}}}
`

func (c ruleCase) side(t *testing.T, name string) side {
	t.Helper()
	hard, err := schema.Kubernetes("")
	if err != nil {
		t.Fatal(err)
	}
	s := side{kinds: &kind.Kinds{}, hard: hard}
	if text := c.file(name + "/app.proto"); text != "" {
		files := fstest.MapFS{"kinds/app/app.proto": {Data: []byte(text)}, "kinds/app/kind.yaml": {Data: []byte(plainKind)}}
		if text := c.file(name + "/kind.yaml"); text != "" {
			files["kinds/app/kind.yaml"] = &fstest.MapFile{Data: []byte(text)}
		}
		s.kinds = kind.LoadAll(config.Files(files), []config.Folder{{Path: "kinds/app"}}, hard, nil)
		if len(s.kinds.Problems) > 0 {
			t.Fatalf("%s: %v", name, s.kinds.Problems)
		}
	}
	if text := c.file(name + "/crd.yaml"); text != "" {
		doc := c.document(t, "crd.yaml", text)
		object := plain(t, doc)
		s.crd = &compat.Definition{Object: object, At: func(path ...any) document.Position { return doc.At(document.NodeAt(doc.Node, path)) }}
		definition := hard.Define("crd.yaml", schema.AppendJSON(nil, object), false)
		s.hard = hard.With([]*schema.Definition{definition})
		if problems := definition.Violations(); len(problems) > 0 {
			t.Fatalf("%s: %v", name, problems)
		}
	}
	return s
}

func (c ruleCase) document(t *testing.T, name, text string) *document.Document {
	t.Helper()
	docs, problems := document.ReadDocuments(name, []byte(text))
	if len(problems) > 0 || len(docs) != 1 {
		t.Fatal(problems, len(docs))
	}
	return docs[0]
}

func plain(t *testing.T, doc *document.Document) map[string]any {
	t.Helper()
	value, problems := doc.Plain(doc.Node)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return value.(map[string]any)
}

// verdict is what is wrong with the document on one side.
func (s side) verdict(t *testing.T, doc *document.Document) string {
	t.Helper()
	if s.hard.Kind(doc.APIVersion, doc.Kind) != nil {
		var all []string
		for _, v := range schema.Check(s.hard.Kind(doc.APIVersion, doc.Kind).Type(), plain(t, doc)) {
			all = append(all, schema.PathText(v.Path)+": "+v.Message)
		}
		return strings.Join(all, "\n")
	}
	k := s.kinds.ByName(doc.APIVersion, doc.Kind)
	if k == nil {
		return "no such kind"
	}
	_, problems := k.Decode(doc, func(string) ([]byte, error) { return []byte("text"), nil })
	return problems.String()
}

// findings compares the two sides.
func findings(was, is side, use compat.Use) []compat.Finding {
	if was.crd != nil {
		if is.crd == nil {
			return []compat.Finding{compat.RemovedDefinition(*was.crd)}
		}
		return compat.Definitions(*was.crd, *is.crd, use)
	}
	before := loaded(was.kinds)
	if now := is.kinds.ByName(before.APIVersion(), before.Name); now != nil {
		return compat.Kinds(before.State(), now.State())
	}
	if other := loaded(is.kinds); other != nil {
		state := other.State()
		return []compat.Finding{compat.Removed(before.State(), &state)}
	}
	return []compat.Finding{compat.Removed(before.State(), nil)}
}

// loaded is the kind in the folder; nil for none.
func loaded(kinds *kind.Kinds) *kind.Kind {
	for _, k := range kinds.All() {
		if k.Folder != "" {
			return k
		}
	}
	return nil
}

// run loads a case and compares its two states. The document must have been good.
func (c ruleCase) run(t *testing.T) (found []compat.Finding, verdict string) {
	t.Helper()
	was, is := c.side(t, "was"), c.side(t, "is")
	doc := c.document(t, "document.yaml", c.file("document.yaml"))
	if wrong := was.verdict(t, doc); wrong != "" {
		t.Errorf("the document was never good: %s", wrong)
	}
	if same := findings(was, was, compat.Use{}); len(same) > 0 {
		t.Errorf("found without a change: %v", same)
	}
	_, version, _ := strings.Cut(doc.APIVersion, "/")
	found = findings(was, is, compat.Use{Documents: func(v string) bool { return v == version }})
	return found, is.verdict(t, doc)
}

// TestRules: each rule has its case, which it finds, at its line; and nothing is found
// between a state and itself.
func TestRules(t *testing.T) {
	missing := maps.Clone(compat.Rules)
	for _, c := range casesIn(t, rulesFolder) {
		rule := compat.Rule(c.name)
		delete(missing, rule)
		t.Run(c.name, func(t *testing.T) {
			found, verdict := c.run(t)
			gone := c.file("is/app.proto")+c.file("is/crd.yaml") == ""
			if !slices.ContainsFunc(found, func(f compat.Finding) bool { return f.Rule == rule && (f.Line > 0 || gone) }) {
				t.Errorf("%s is not found at a line", rule)
			}
			c.golden(t, foundText(found, verdict))
		})
	}
	for rule := range missing {
		t.Errorf("%s has no case in %s", rule, rulesFolder)
	}
}

// TestGood: these changes break nothing, and their documents stay good.
func TestGood(t *testing.T) {
	for _, c := range casesIn(t, goodFolder) {
		t.Run(c.name, func(t *testing.T) {
			found, verdict := c.run(t)
			if refused(found) || verdict != "" {
				t.Errorf("refused: %v\n%s", found, verdict)
			}
			c.golden(t, foundText(found, verdict))
		})
	}
}

func refused(found []compat.Finding) bool {
	return slices.ContainsFunc(found, func(f compat.Finding) bool { return f.Severity == compat.Breaking })
}

func foundText(found []compat.Finding, verdict string) string {
	var text strings.Builder
	for _, f := range found {
		fmt.Fprintf(&text, "%s: %s: %s\n", f.Position, f.Severity, f.Text())
	}
	return text.String() + cmp.Or(verdict, "the document is good") + "\n"
}

// golden compares with the last file of the case.
func (c ruleCase) golden(t *testing.T, got string) {
	t.Helper()
	const name = "found"
	if !*update {
		if diff := gocmp.Diff(c.file(name), got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		return
	}
	c.archive.Files = slices.DeleteFunc(c.archive.Files, func(f txtar.File) bool { return f.Name == name })
	c.archive.Files = append(c.archive.Files, txtar.File{Name: name, Data: []byte(got)})
	if err := os.WriteFile(c.path, txtar.Format(c.archive), 0o644); err != nil {
		t.Fatal(err)
	}
}
