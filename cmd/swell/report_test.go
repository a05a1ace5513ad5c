// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io/fs"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/testdata"
)

// checkedExample checks the example monorepo with files laid over it, as if it
// stood in a folder of a Git repository.
func checkedExample(t *testing.T, files map[string]string) *checked {
	t.Helper()
	tree := fstest.MapFS{}
	err := fs.WalkDir(testdata.Monorepo(), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := fs.ReadFile(testdata.Monorepo(), name)
		tree[name] = &fstest.MapFile{Data: content}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		tree[name] = &fstest.MapFile{Data: []byte(content)}
	}
	laid := config.Files(tree)
	var compiler render.Compiler
	s := compiler.Snapshot("", laid)
	return &checked{Snapshot: s, folder: "infra/mono repo", Problems: s.Problems, sources: newSources(s)}
}

var badUnits = map[string]string{
	"services/pay/fraud/runtime.yaml":   "apiVersion: easy.example.com/v1\nkind: Runtime\nmetadata: {name: fraud}\nspec:\n  replicsa: {sas: 1}\n  image: 31\n",
	"services/pay/space/space.yaml":     "apiVersion: easy.example.com/v1\nkind: Space\nmetadata: {name: Pay}\nspec: {maxPods: 9}\n",
	"services/shop/a b/c%d.yaml":        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: x}\n\"{a}\": 1\n",
	"services/shop/link/c.yaml":         "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: x}\n\"[x](http://evil.example.com)\\\\[\": 1\n",
	"services/shop/nothing/swell.yaml":  "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: x}\nspec: {placement: {match: {labels: {region: moon}}}}\n",
	"services/shop/nothing/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: x}\n",
}

func sarifOf(t *testing.T, c *checked) map[string]any {
	t.Helper()
	var out bytes.Buffer
	if err := writeSARIF(&out, c); err != nil {
		t.Fatal(err)
	}
	var log map[string]any
	if err := json.Unmarshal(out.Bytes(), &log); err != nil {
		t.Fatal(err)
	}
	return log
}

// get walks a decoded JSON value.
func get(t *testing.T, v any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch s := step.(type) {
		case string:
			m, ok := v.(map[string]any)
			if _, there := m[s]; !ok || !there {
				t.Fatalf("%v: no %q in %v", path, s, v)
			}
			v = m[s]
		case int:
			list, ok := v.([]any)
			if !ok || s >= len(list) {
				t.Fatalf("%v: no %d in %v", path, s, v)
			}
			v = list[s]
		}
	}
	return v
}

// TestSARIF checks what sections 3.13 to 3.52 of SARIF 2.1.0 ask of the parts
// that are written.
func TestSARIF(t *testing.T) {
	c := checkedExample(t, badUnits)
	log := sarifOf(t, c)
	if get(t, log, "version") != "2.1.0" || !strings.HasSuffix(get(t, log, "$schema").(string), "sarif-schema-2.1.0.json") {
		t.Error("no version 2.1.0")
	}
	run := get(t, log, "runs", 0)
	rules := get(t, run, "tool", "driver", "rules").([]any)
	var ids []string
	for _, rule := range rules {
		ids = append(ids, get(t, rule, "id").(string))
		if get(t, rule, "help", "text") == "" || get(t, rule, "shortDescription", "text") == "" {
			t.Errorf("rule %v without a text", rule)
		}
	}
	var codes []string
	for _, code := range slices.Sorted(maps.Keys(document.Codes)) {
		codes = append(codes, string(code))
	}
	if diff := cmp.Diff(codes, ids); diff != "" {
		t.Error("rules (-codes):", diff)
	}
	results := get(t, run, "results").([]any)
	if len(results) != len(c.Problems) {
		t.Fatalf("%d results for %d problems", len(results), len(c.Problems))
	}
	seen := map[string]bool{}
	for i, result := range results {
		problem := c.Problems[i]
		if id := get(t, result, "ruleId"); id != string(problem.Code) || ids[int(get(t, result, "ruleIndex").(float64))] != id {
			t.Errorf("%s: rule %v", problem, id)
		}
		if get(t, result, "level") != "error" {
			t.Errorf("%s: no error", problem)
		}
		checkMessage(t, get(t, result, "message", "text").(string), problem.Text())
		places := append([]document.Position{problem.Position}, problem.Via...)
		locations := get(t, result, "locations").([]any)
		if len(problem.Via) > 0 {
			locations = append(locations, get(t, result, "relatedLocations").([]any)...)
		}
		if len(locations) != len(places) {
			t.Fatalf("%s: %d locations, want %d", problem, len(locations), len(places))
		}
		for j, location := range locations {
			checkLocation(t, location, places[j])
		}
		fingerprint := get(t, result, "partialFingerprints", fingerprintName).(string)
		if seen[fingerprint] {
			t.Errorf("%s: its fingerprint is that of another", problem)
		}
		seen[fingerprint] = true
	}
}

// checkMessage undoes the escapes of sections 3.11.5 and 3.11.6.
func checkMessage(t *testing.T, text, want string) {
	t.Helper()
	if regexp.MustCompile(`(^|[^{])(\{\{)*\{([^{]|$)`).MatchString(text) {
		t.Errorf("%q: a brace that is not escaped", text)
	}
	if rest := regexp.MustCompile(`\\[\\\[\]]`).ReplaceAllString(text, ""); strings.ContainsAny(rest, `\[]`) {
		t.Errorf("%q: a bracket or a backslash that is not escaped", text)
	}
	if got := strings.NewReplacer("{{", "{", "}}", "}", `\\`, `\`, `\[`, "[", `\]`, "]").Replace(text); got != want {
		t.Errorf("message %q, want %q", got, want)
	}
}

func checkLocation(t *testing.T, location any, want document.Position) {
	t.Helper()
	artifact := get(t, location, "physicalLocation", "artifactLocation")
	uri, err := url.Parse(get(t, artifact, "uri").(string))
	if err != nil || uri.IsAbs() || strings.HasPrefix(uri.Path, "/") || uri.Path != "infra/mono repo/"+want.File {
		t.Errorf("%s: uri %v, %v", want, uri, err)
	}
	if get(t, artifact, "uriBaseId") != sarifRoot {
		t.Errorf("%s: %v", want, artifact)
	}
	region := get(t, location, "physicalLocation").(map[string]any)["region"]
	switch {
	case want.Line == 0 && region != nil:
		t.Errorf("%s: region %v, want none", want, region)
	case want.Line > 0 && get(t, region, "startLine") != float64(want.Line):
		t.Errorf("%s: region %v", want, region)
	}
}

// TestFingerprints: a result is the same one when its lines move, and another
// when its text changes.
func TestFingerprints(t *testing.T) {
	fingerprints := func(c *checked) map[string]bool {
		all := map[string]bool{}
		for _, result := range get(t, sarifOf(t, c), "runs", 0, "results").([]any) {
			all[get(t, result, "partialFingerprints", fingerprintName).(string)] = true
		}
		return all
	}
	before := fingerprints(checkedExample(t, badUnits))
	moved := maps.Clone(badUnits)
	for name := range moved {
		moved[name] = "# a line\n\n" + moved[name]
	}
	if diff := cmp.Diff(before, fingerprints(checkedExample(t, moved))); diff != "" {
		t.Error("moved lines:", diff)
	}
	moved["services/pay/fraud/runtime.yaml"] = strings.Replace(moved["services/pay/fraud/runtime.yaml"], "31", "32", 1)
	after := fingerprints(checkedExample(t, moved))
	gone := 0
	for f := range before {
		if !after[f] {
			gone++
		}
	}
	if gone != 1 || len(after) != len(before) {
		t.Errorf("one text changed: %d fingerprints are gone, %d there, want 1 and %d", gone, len(after), len(before))
	}
	same := document.Problem{Position: document.Position{File: "a", Line: 1}, Code: "SW1001", Message: "x: set twice, first on line 4"}
	other := same
	other.Message = "x: set twice, first on line 9"
	if problemFingerprint(same) != problemFingerprint(other) {
		t.Error("a line inside the text is part of the fingerprint")
	}
}

// TestEqualProblems: two problems with one text have different fingerprints.
func TestEqualProblems(t *testing.T) {
	at := func(line int) document.Problem {
		return document.Problem{Position: document.Position{File: "a.yaml", Line: line, Column: 1}, Code: document.CodeType, Message: "same"}
	}
	c := checkedExample(t, nil)
	c.Problems = document.Problems{at(1), at(2)}
	results := get(t, sarifOf(t, c), "runs", 0, "results")
	if get(t, results, 0, "partialFingerprints", fingerprintName) == get(t, results, 1, "partialFingerprints", fingerprintName) {
		t.Error("equal fingerprints")
	}
}

// TestAnnotations reads the commands back as the runner of GitHub Actions does:
// it splits at "::", "," and "=", then undoes the escapes.
func TestAnnotations(t *testing.T) {
	c := checkedExample(t, nil)
	c.folder = "a,b:c"
	c.Problems = document.Problems{
		{Position: document.Position{File: "x%y.yaml", Line: 3, Column: 7}, Code: document.CodeType, Message: "100%: want\r\n::error::x, y"},
		{Position: document.Position{File: "kinds/x"}, Code: document.CodeKind, Message: "m", Via: []document.Position{{File: "k", Line: 2}}},
	}
	var out strings.Builder
	if err := writeAnnotations(&out, c); err != nil {
		t.Fatal(err)
	}
	var got [][2]any
	for line := range strings.Lines(out.String()) {
		rest, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "::error ")
		head, text, found := strings.Cut(rest, "::")
		if !ok || !found {
			t.Fatalf("%q: no command", line)
		}
		properties := map[string]string{}
		for property := range strings.SplitSeq(head, ",") {
			key, value, _ := strings.Cut(property, "=")
			properties[key] = unescape(value)
		}
		got = append(got, [2]any{properties, unescape(text)})
	}
	want := [][2]any{
		{map[string]string{"file": "a,b:c/x%y.yaml", "line": "3", "col": "7", "title": "swell SW1004"}, "100%: want\r\n::error::x, y"},
		{map[string]string{"file": "a,b:c/kinds/x", "title": "swell SW1007"}, "m (from k:2)"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func unescape(s string) string {
	return strings.NewReplacer("%25", "%", "%0D", "\r", "%0A", "\n", "%3A", ":", "%2C", ",").Replace(s)
}

// TestJUnit: every unit is one case, the counts are those of the cases, and a
// text that is no XML is made one.
func TestJUnit(t *testing.T) {
	files := maps.Clone(badUnits)
	files["services/shop/odd/x.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: x}\n\"a\\x01<b>]]>\": 1\n"
	c := checkedExample(t, files)
	var out bytes.Buffer
	if err := writeJUnit(&out, c); err != nil {
		t.Fatal(err)
	}
	var report junitReport
	if err := xml.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	failed := map[string]string{}
	tests, failures := 0, 0
	for _, suite := range report.Suites {
		suiteFailures := 0
		for _, test := range suite.Cases {
			tests++
			if test.Class != suite.Name {
				t.Errorf("%s: class %q in suite %q", test.Name, test.Class, suite.Name)
			}
			if test.Failure != nil {
				suiteFailures++
				failed[suite.Name+"/"+test.Name] = test.Failure.Text
			}
		}
		if suite.Tests != len(suite.Cases) || suite.Failures != suiteFailures {
			t.Errorf("suite %s: %d tests, %d failures, want %d, %d", suite.Name, suite.Tests, suite.Failures, len(suite.Cases), suiteFailures)
		}
		failures += suiteFailures
	}
	if report.Tests != tests || report.Failures != failures || tests != 1+c.Units.Len() {
		t.Errorf("%d tests, %d failures in the report, %d and %d cases, %d units", report.Tests, report.Failures, tests, failures, c.Units.Len())
	}
	want := []string{"services/pay/fraud", "services/pay/space", "services/shop/a b", "services/shop/link", "services/shop/nothing", "services/shop/odd"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(failed))); diff != "" {
		t.Error(diff)
	}
	if got := failed["services/shop/odd"]; !strings.Contains(got, `a\x01<b>]]>`) {
		t.Errorf("failure %q", got)
	}
	if got := strings.Count(failed["services/pay/fraud"], "\n"); got != 2 {
		t.Errorf("%d lines of failure for 2 problems", got)
	}
}
