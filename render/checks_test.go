// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/cache"
	"github.com/swell-sh/swell/render/checker"
)

// wordChecker refuses texts by the words in them, and counts what it is asked.
type wordChecker struct {
	version string
	missing string

	mu    sync.Mutex
	asked []string
}

func (c *wordChecker) Identity(string) (string, string) {
	if c.missing != "" {
		return "", c.missing
	}
	return "words " + c.version, ""
}

func (c *wordChecker) Judge(r checker.Request) checker.Verdict {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, r.File.Content)
	for i, line := range strings.Split(r.File.Content, "\n") {
		switch {
		case strings.Contains(line, "hang"):
			return checker.Verdict{Findings: []checker.Finding{{Text: "stopped", Retry: true}}}
		case strings.Contains(line, "bad"):
			return checker.Verdict{Findings: []checker.Finding{{Line: i + 1, Text: "bad word"}}}
		}
	}
	if strings.Contains(r.File.Content, "left") && strings.Contains(r.File.Content, "right") {
		return checker.Verdict{Findings: []checker.Finding{{Text: "left and right"}}}
	}
	return checker.Verdict{}
}

// wordFiles are a fleet with a Checker of ConfigMaps, and units.
func wordFiles(units map[string]string) fstest.MapFS {
	files := fstest.MapFS{}
	for name, text := range map[string]string{
		"swell.yaml": "apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: words}\n",
		"fleet/fleet.yaml": `apiVersion: swell.sh/v1
kind: Cluster
metadata: {name: dev}
---
apiVersion: swell.sh/v1
kind: Cluster
metadata: {name: prod}
---
apiVersion: swell.sh/v1
kind: Rollout
metadata: {name: default}
spec: {waves: [{name: all}]}
---
apiVersion: swell.sh/v1
kind: Checker
metadata: {name: words}
spec:
  program: words
  from:
  - {kind: ConfigMap, name: app-*, match: {labels: {app: [a, b]}}, key: "*.txt", optional: true}
`,
		"services/swell.yaml": "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: all}\nspec: {placement: {topology: cluster}}\n",
		"kinds/word/word.proto": `syntax = "proto3";
package example;
import "github.com/yandex/protoc-gen-crd/library/go/k8s/protoc_gen_crd/proto/crd.proto";
message Word {
  option (protoc_gen_crd.k8s_crd) = {api_group: "easy.example.com", kind: "Word", singular: "word", plural: "words"};
  WordSpec spec = 1;
}
message WordSpec { string text = 1; }
`,
		"kinds/word/kind.yaml": "apiVersion: swell.sh/v1\nkind: EasyKind\nmetadata: {name: word}\nspec: {message: example.Word, objects: []}\n",
		"kinds/list/list.proto": `syntax = "proto3";
package example;
import "github.com/yandex/protoc-gen-crd/library/go/k8s/protoc_gen_crd/proto/crd.proto";
message List {
  option (protoc_gen_crd.k8s_crd) = {api_group: "easy.example.com", kind: "WordList", singular: "wordlist", plural: "wordlists"};
  ListSpec spec = 1;
}
message ListSpec { string head = 1; }
`,
		"kinds/list/kind.yaml": `apiVersion: swell.sh/v1
kind: EasyKind
metadata: {name: list}
spec:
  message: example.List
  collect:
    words: {kind: Word, scope: fleet, onInvalid: exclude}
  objects:
  - id: list
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: app-list, namespace: default, labels: {app: a}}
      data:
        words.txt: "${self.spec.head + words.map(w, '\\n' + w.spec.text).join('')}"
`,
	} {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	for name, text := range units {
		files["services/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	return files
}

func wordMap(name, label, key, text string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: default, labels: {app: %s}}\ndata:\n  %s: %s\n", name, label, key, text)
}

func word(name, text string) string {
	return fmt.Sprintf("apiVersion: easy.example.com/v1\nkind: Word\nmetadata: {name: %s}\nspec: {text: %s}\n", name, text)
}

func wordList(head string) string {
	return fmt.Sprintf("apiVersion: easy.example.com/v1\nkind: WordList\nmetadata: {name: list}\nspec: {head: %s}\n", head)
}

// TestCheckersAreAsked: about the texts that they say, each once, and what they refuse
// freezes the unit.
func TestCheckersAreAsked(t *testing.T) {
	files := wordFiles(map[string]string{
		"good/a.yaml":  wordMap("app-good", "a", "a.txt", "good"),
		"block/a.yaml": wordMap("app-block", "b", "a.txt", "|\n    fine\n    very bad"),
		"flow/a.yaml":  wordMap("app-flow", "b", "a.txt", "bad"),
		"name/a.yaml":  wordMap("other", "a", "a.txt", "bad"),
		"label/a.yaml": wordMap("app-label", "c", "a.txt", "bad"),
		"key/a.yaml":   wordMap("app-key", "a", "a.conf", "bad"),
	})
	c := &wordChecker{}
	compiler := &Compiler{Checkers: c, Cache: cache.Memory()}
	s := compiler.Snapshot("", hashed(t, onDisk(t, files)))
	want := `services/block/a.yaml:7: data["a.txt"]: checker words: bad word
services/flow/a.yaml:5:3: data["a.txt"]: checker words: bad word`
	if diff := cmp.Diff(want, s.Problems.String()); diff != "" {
		t.Error(diff)
	}
	if len(c.asked) != 3 { // on two targets the same
		t.Errorf("asked %q", c.asked)
	}
	// A snapshot of the same, and a compiler with the same cache, ask nothing.
	compiler.Snapshot("", hashed(t, onDisk(t, files)))
	(&Compiler{Checkers: c, Cache: compiler.Cache}).Snapshot("", hashed(t, onDisk(t, files)))
	if len(c.asked) != 3 {
		t.Errorf("asked again: %q", c.asked)
	}
	// Another program is asked again, about no more than what it is for.
	other := &wordChecker{version: "2"}
	compiler.Checkers = other
	if again := compiler.Snapshot("", hashed(t, onDisk(t, files))); len(other.asked) != 3 || again.Rendered != 6 || again.Problems.String() != want {
		t.Errorf("asked %q, rendered %d units: %s", other.asked, again.Rendered, again.Problems)
	}
	// Without the program nothing passes; with the policy, it is said.
	compiler.Checkers = &wordChecker{missing: "not here"}
	if gone := compiler.Snapshot("", hashed(t, onDisk(t, files))); strings.Count(gone.Problems.String(), "checker words: not checked: not here") != 3 {
		t.Errorf("%s", gone.Problems)
	}
	files["swell.yaml"].Data = append(files["swell.yaml"].Data, "spec: {checks: {missingCheckers: skip}}\n"...)
	skipped := compiler.Snapshot("", hashed(t, onDisk(t, files)))
	if note := skipped.Units.Get("services/flow").Notes.String(); len(skipped.Problems) > 0 || note != "fleet/fleet.yaml:14:1: checker words: skipped: not here" {
		t.Errorf("%s %s", skipped.Problems, note)
	}
}

// TestFieldsOfSpecsAreAsked: a text in a spec is judged where it is written, also in a file
// beside it.
func TestFieldsOfSpecsAreAsked(t *testing.T) {
	files := wordFiles(map[string]string{
		"good/w.yaml":  word("good", "good"),
		"flow/w.yaml":  word("flow", "bad"),
		"block/w.yaml": word("block", "x")[:len(word("block", "x"))-len("spec: {text: x}\n")] + "spec:\n  text: |\n    fine\n    bad\n",
		"file/w.yaml":  word("file", "{fromFile: w.txt}"),
		"file/w.txt":   "fine\nfine\nbad\n",
		"list/l.yaml":  wordList("head"),
	})
	files["fleet/fleet.yaml"].Data = []byte(strings.Replace(string(files["fleet/fleet.yaml"].Data), "{kind: ConfigMap, name: app-*, match: {labels: {app: [a, b]}}, key: \"*.txt\", optional: true}", "{group: easy.example.com, kind: Word, path: spec.text}", 1))
	s := (&Compiler{Checkers: &wordChecker{}}).Snapshot("", hashed(t, onDisk(t, files)))
	want := `services/block/w.yaml:7: spec.text: checker words: bad word
services/file/w.txt:3: spec.text: checker words: bad word (from services/file/w.yaml:4:8)
services/flow/w.yaml:4:8: spec.text: checker words: bad word`
	if diff := cmp.Diff(want, s.Problems.String()); diff != "" {
		t.Error(diff)
	}
}

// TestSchemas: a text is held against a JSON Schema of the monorepo without any program,
// and again when the schema changes.
func TestSchemas(t *testing.T) {
	files := wordFiles(map[string]string{"one/a.yaml": wordMap("app-one", "a", "a.txt", "|\n    port: 80\n    hosts: [a, 1]")})
	files["fleet/fleet.yaml"].Data = []byte(strings.Replace(string(files["fleet/fleet.yaml"].Data), "program: words", "program: jsonschema\n  schema: checks/app.json", 1))
	files["checks/app.json"] = &fstest.MapFile{Data: []byte(`{"type": "object", "properties": {"port": {"type": "integer", "minimum": 1024}, "hosts": {"items": {"type": "string"}}}}`)}
	compiler := &Compiler{}
	want := `services/one/a.yaml:6: data["a.txt"]: checker words: port: minimum: got 80, want 1,024
services/one/a.yaml:7: data["a.txt"]: checker words: hosts.1: got number, want string`
	if got := compiler.Snapshot("", hashed(t, onDisk(t, files))).Problems.String(); got != want {
		t.Error(cmp.Diff(want, got))
	}
	files["checks/app.json"].Data = []byte(`{"properties": {"port": {"maximum": 80}}}`)
	if s := compiler.Snapshot("", hashed(t, onDisk(t, files))); len(s.Problems) > 0 {
		t.Errorf("%s", s.Problems)
	}
	files["checks/app.json"].Data = []byte(`{"$ref": "http://example.com/schema.json"}`)
	if s := compiler.Snapshot("", hashed(t, onDisk(t, files))); !strings.Contains(s.Problems.String(), "a schema may refer to itself only") {
		t.Errorf("%s", s.Problems)
	}
	delete(files, "checks/app.json")
	if s := compiler.Snapshot("", hashed(t, onDisk(t, files))); !strings.Contains(s.Problems.String(), `"checks/app.json": there is no such file`) {
		t.Errorf("%s", s.Problems)
	}
}

// TestExclude: what a program refuses of a collection is left out, and its own unit says
// so; the collector goes on.
func TestExclude(t *testing.T) {
	for name, c := range map[string]struct {
		head  string
		words []string
		want  string // the list, or the problem
		left  []string
	}{
		"all good":       {"head", []string{"one", "two"}, "head\none\ntwo", nil},
		"one bad":        {"head", []string{"one", "bad", "two"}, "head\none\ntwo", []string{"checker words: bad word"}},
		"all bad":        {"head", []string{"bad", "bad2"}, "head", []string{"checker words: bad word", "checker words: bad word"}},
		"not beside":     {"head", []string{"one", "left", "two", "right", "three"}, "head\none\nleft\ntwo\nthree", []string{"beside those before it: checker words: left and right"}},
		"both":           {"head", []string{"right", "bad", "left", "left2"}, "head\nright", []string{"checker words: bad word", "beside those before it: checker words: left and right", "beside those before it: checker words: left and right"}},
		"itself":         {"bad", []string{"one"}, "services/list/list.yaml:1:1: WordList list: ConfigMap/app-list: data[\"words.txt\"]: checker words: bad word (from kinds/list/kind.yaml:15:9)", nil},
		"hangs on one":   {"head", []string{"one", "hang"}, "stopped", nil},
		"nothing at all": {"head", nil, "head", nil},
	} {
		t.Run(name, func(t *testing.T) {
			units := map[string]string{"list/list.yaml": wordList(c.head)}
			for i, text := range c.words {
				units[fmt.Sprintf("w%d/word.yaml", i)] = word("w", text)
			}
			s := (&Compiler{Checkers: &wordChecker{}}).Snapshot("", hashed(t, onDisk(t, wordFiles(units))))
			list := s.Units.Get("services/list")
			var left []string
			for _, note := range list.Notes {
				left = append(left, strings.TrimPrefix(note.Message, "left out of words by services/list: "))
				unit := s.Units.Get(config.UnitPath(strings.TrimSuffix(note.File, "/word.yaml")))
				if len(unit.Problems) != 1 || unit.Problems[0].Code != document.CodeChecker || !strings.HasPrefix(unit.Problems[0].Message, "services/list collects this without success: ") {
					t.Errorf("%s: %s", unit.Path, unit.Problems)
				}
			}
			if diff := cmp.Diff(c.left, left); diff != "" {
				t.Error(diff)
			}
			if len(list.Problems) > 0 {
				if !strings.Contains(list.Problems.String(), c.want) {
					t.Errorf("%s", list.Problems)
				}
				return
			}
			for _, target := range []config.TargetName{"dev", "prod"} {
				b, err := s.Bundle(list.Path, target)
				if err != nil {
					t.Fatal(err)
				}
				if want := fmt.Sprintf(`"words.txt":%q`, c.want); !strings.Contains(string(b.Objects[0].JSON), want) {
					t.Errorf("%s: %s, want %s", target, b.Objects[0].JSON, want)
				}
			}
			if s.Problems.Retry() || len(s.Problems) != len(left) {
				t.Errorf("%s", s.Problems)
			}
		})
	}
}

// TestExcludedIsNotJudged: a policy is not asked about an object with what was left out.
func TestExcludedIsNotJudged(t *testing.T) {
	files := wordFiles(map[string]string{"list/list.yaml": wordList("head"), "one/word.yaml": word("one", "one"), "two/word.yaml": word("two", "bad")})
	files["policies/a.yaml"] = &fstest.MapFile{Data: []byte(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: words}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}
  validations:
  - {expression: "!object.data['words.txt'].contains('bad')", message: bad}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: words}
spec: {policyName: words, validationActions: [Deny]}
`)}
	s := (&Compiler{Checkers: &wordChecker{}}).Snapshot("", hashed(t, onDisk(t, files)))
	if list := s.Units.Get("services/list"); len(list.Problems) > 0 || len(list.Notes) != 1 {
		t.Errorf("problems %s, notes %s: want no problem, and one word left out", list.Problems, list.Notes)
	}
}

// TestExcludedComesBack: a word that is mended is taken up again, and its unit is good.
func TestExcludedComesBack(t *testing.T) {
	files := wordFiles(map[string]string{"list/list.yaml": wordList("head"), "one/word.yaml": word("one", "one"), "two/word.yaml": word("two", "bad")})
	compiler := &Compiler{Checkers: &wordChecker{}}
	dir := onDisk(t, files)
	before := compiler.Snapshot("", hashed(t, dir))
	if len(before.Units.Get("services/two").Problems) != 1 {
		t.Fatalf("%s", before.Problems)
	}
	files["services/two/word.yaml"].Data = []byte(word("two", "good"))
	if after := compiler.Snapshot("", hashed(t, onDisk(t, files))); len(after.Problems) > 0 || len(after.Units.Get("services/list").Notes) > 0 {
		t.Errorf("%s %s", after.Problems, after.Units.Get("services/list").Notes)
	}
	// What was released of it comes back as it was, whatever programs say today.
	digest := before.Units.Get("services/list").On("dev").Digest
	for name, checkers := range map[string]Checkers{"the same": &wordChecker{}, "another version": &wordChecker{version: "2"}} {
		commit, err := NewCommit(hashed(t, dir), nil, "", checkers, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := commit.Bundle("services/list", "dev", digest); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReleasedIsNotRefused: a bundle of an earlier release comes back although the program
// is gone, or refuses it today.
func TestReleasedIsNotRefused(t *testing.T) {
	dir := onDisk(t, wordFiles(map[string]string{"one/a.yaml": wordMap("app-one", "a", "a.txt", "bad")}))
	digest := (&Compiler{Checkers: &wordChecker{}}).Snapshot("", hashed(t, onDisk(t, wordFiles(map[string]string{"one/a.yaml": wordMap("other", "a", "a.txt", "bad")})))).Units.Get("services/one").On("dev").Digest
	if digest == "" {
		t.Fatal("no bundle")
	}
	for _, checkers := range []Checkers{nil, &wordChecker{}, &wordChecker{missing: "gone"}} {
		commit, err := NewCommit(hashed(t, dir), nil, "", checkers, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := commit.Bundle("services/one", "dev", digest); err == nil || !strings.Contains(err.Error(), "renders to") {
			t.Errorf("want it rendered, to another digest than that of another name, got %v", err)
		}
	}
}

// TestAllOrNothing: a unit with a problem holds those of its folder, where the folder says
// so; and lets them go when it is mended or removed.
func TestAllOrNothing(t *testing.T) {
	defaults := func(all string) string {
		return "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: x}\nspec: {allOrNothing: " + all + "}\n"
	}
	good := func(name string) string { return wordMap(name, "c", "a.txt", "good") }
	files := wordFiles(map[string]string{
		"shop/swell.yaml": defaults("true"), "shop/a/a.yaml": good("shop-a"), "shop/b/b.yaml": wordMap("app-b", "a", "a.txt", "bad"), "shop/c/c.yaml": good("shop-c"),
		"shop/alone/swell.yaml": defaults("false"), "shop/alone/d/d.yaml": good("shop-d"),
		"pay/swell.yaml": defaults("true"), "pay/a/a.yaml": good("pay-a"), "pay/b/b.yaml": good("pay-b"),
	})
	compiler := &Compiler{Checkers: &wordChecker{}}
	frozen := func() []string {
		s := compiler.Snapshot("", hashed(t, onDisk(t, files)))
		fresh := (&Compiler{Checkers: &wordChecker{}}).Snapshot("", hashed(t, onDisk(t, files)))
		if diff := cmp.Diff(fresh.Problems.String(), s.Problems.String()); diff != "" {
			t.Errorf("from another commit than from nothing: %s", diff)
		}
		var units []string
		for path, unit := range s.Units.All() {
			if len(unit.Problems) > 0 {
				units = append(units, strings.TrimPrefix(string(path), "services/"))
			}
			if got := slices.ContainsFunc(unit.Placements, func(p Placement) bool { return p.Digest != "" }); got == (len(unit.Problems) > 0) {
				t.Errorf("%s: bundles %t, problems %s", path, got, unit.Problems)
			}
		}
		slices.Sort(units)
		return units
	}
	if diff := cmp.Diff([]string{"shop/a", "shop/b", "shop/c"}, frozen()); diff != "" {
		t.Error(diff)
	}
	want := "services/shop/swell.yaml:4:22: spec.allOrNothing: unit services/shop/b has a problem: nothing below services/shop is released"
	s := compiler.Snapshot("", hashed(t, onDisk(t, files)))
	if got := s.Units.Get("services/shop/a").Problems.String(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := s.Problems.String(); !strings.Contains(got, want+" (holds 2 units)") {
		t.Errorf("got %s", got)
	}
	// Another one breaks, in another folder.
	files["services/pay/a/a.yaml"].Data = []byte("apiVersion: v1\nkind: ConfigMap\n")
	if diff := cmp.Diff([]string{"pay/a", "pay/b", "shop/a", "shop/b", "shop/c"}, frozen()); diff != "" {
		t.Error(diff)
	}
	// Both are mended, one by its removal.
	files["services/shop/b/b.yaml"].Data = []byte(good("shop-b"))
	maps.DeleteFunc(files, func(name string, _ *fstest.MapFile) bool { return strings.HasPrefix(name, "services/pay/a/") })
	if got := frozen(); len(got) > 0 {
		t.Errorf("still held: %s", got)
	}
}

// TestAllOrNothingOutside: what holds a unit from outside of it holds those of its folder, too.
func TestAllOrNothingOutside(t *testing.T) {
	files := judgedFiles()
	defaults := "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: x}\nspec: {allOrNothing: true}\n"
	object := func(name string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: shop}\n"
	}
	for name, content := range map[string]string{
		"services/all/swell.yaml": defaults,
		"services/all/a/a.yaml":   object("same"),
		"services/all/b/b.yaml":   object("b"),
		"services/else/c/c.yaml":  object("same"),
	} {
		files[name] = &fstest.MapFile{Data: []byte(content)}
	}
	var c Compiler
	unit := c.Snapshot("", config.Files(files)).Units.Get("services/all/b")
	want := "services/all/swell.yaml:4:22: spec.allOrNothing: unit services/all/a has a problem: nothing below services/all is released"
	if got := unit.Problems.String(); got != want || unit.Placements[0].Digest != "" {
		t.Errorf("got %q, with a bundle: %t; want %q", got, unit.Placements[0].Digest != "", want)
	}
	files["services/else/c/c.yaml"] = &fstest.MapFile{Data: []byte(object("c"))}
	if unit := c.Snapshot("", config.Files(files)).Units.Get("services/all/b"); len(unit.Problems) > 0 {
		t.Errorf("still held: %s", unit.Problems)
	}
}
