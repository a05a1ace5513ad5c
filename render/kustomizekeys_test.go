// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/openapi"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/schema"
	"github.com/swell-sh/swell/render/schema/easy"
)

const keyedPatch = "apiVersion: easy.example.com/v1\nkind: Ports\nmetadata: {name: x}\nspec:\n  ports: [{name: b, port: 22}, {name: c, port: 3}]\n" +
	"  groups: {g: {ports: [{name: d, zone: q}]}}\n"

const keyedSpec = "{ports: [{name: a, port: 1}, {name: b, port: 2}], groups: {g: {ports: [{name: c, port: 3}, {name: d, port: 4}]}}}"

var keyedUnit = map[string]string{
	"services/platform/x/kustomization.yaml": "resources: [x.yaml]\npatches: [{path: patch.yaml}]\n",
	"services/platform/x/x.yaml":             easySpec("Ports", "x", keyedSpec),
	"services/platform/x/patch.yaml":         keyedPatch,
}

// TestKustomizeKnowsEasyKinds: a patch of one item replaced the whole list of an
// easy document, where kustomize outside, with what swell schema openapi writes,
// merges by its keys.
func TestKustomizeKnowsEasyKinds(t *testing.T) {
	files := with(with(richFiles(), keyedKinds), keyedUnit)
	var c Compiler
	for _, step := range []struct {
		name   string
		change map[string]string
		want   string
	}{
		{"keyed", nil, `"ports":"b:22:,c:3:,a:1:"`},
		{"no keys any more", map[string]string{"kinds/ports/ports.proto": strings.ReplaceAll(keyedKinds["kinds/ports/ports.proto"], ` [(swell.keys) = "name"]`, "")}, `"ports":"b:22:,c:3:"`},
		{"keyed again", map[string]string{"kinds/ports/ports.proto": keyedKinds["kinds/ports/ports.proto"]}, `"ports":"b:22:,c:3:,a:1:"`},
	} {
		files = with(files, step.change)
		s := snapshot(&c, files)
		if len(s.Problems) > 0 {
			t.Fatalf("%s: %v", step.name, s.Problems)
		}
		if got := dataOf(t, s, "services/platform/x", "x"); !strings.Contains(got, step.want) {
			t.Errorf("%s: got %s, want %s", step.name, got, step.want)
		}
	}
	outside(t, snapshot(&c, files), files["services/platform/x/x.yaml"].Data)
}

// TestKustomizeFailsByAKind: what kustomize refuses because of a kind's schema is
// looked at again when the kind is another one.
func TestKustomizeFailsByAKind(t *testing.T) {
	files := with(with(with(richFiles(), keyedKinds), keyedUnit), map[string]string{
		"services/platform/x/patch.yaml": strings.Replace(keyedPatch, "{name: b, port: 22}", "{name: b, $patch: zap}", 1)})
	var c Compiler
	keyed := snapshot(&c, files).Problems.Error()
	files = with(files, map[string]string{"kinds/ports/ports.proto": strings.ReplaceAll(keyedKinds["kinds/ports/ports.proto"], ` [(swell.keys) = "name"]`, "")})
	got, want := snapshot(&c, files).Problems.Error(), snapshot(new(Compiler), files).Problems.Error()
	if got != want || want == keyed {
		t.Errorf("with the kind's keys: %s; without them: %s, want %s", keyed, got, want)
	}
}

// TestKustomizeItemsWithoutKeys: a patch whose items lack the key of their list
// emptied the list without a word.
func TestKustomizeItemsWithoutKeys(t *testing.T) {
	files := with(with(with(richFiles(), keyedKinds), keyedUnit), map[string]string{
		"services/platform/x/patch.yaml": strings.Replace(keyedPatch, "{name: d, zone: q}", "{zone: q}", 1)})
	got := snapshot(new(Compiler), files).Problems.Error()
	if want := "services/platform/x/patch.yaml:6:24: patch of Ports: item 0 of spec.groups.g.ports has no name, which tells the items of this list apart: kustomize drops it"; !strings.Contains(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
}

// outside holds the unit against what kustomize makes of the same folder when a
// kustomization names the file that swell schema openapi writes.
func outside(t *testing.T, s *Snapshot, document []byte) {
	t.Helper()
	builtIn, err := easy.BuiltIn()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(easy.OpenAPI([]*easy.Schema{s.world.kinds.ByName("easy.example.com/v1", "Ports").Schema()}, builtIn))
	if err != nil {
		t.Fatal(err)
	}
	disk := filesys.MakeFsInMemory()
	for name, content := range map[string][]byte{"kinds.json": text, "x.yaml": document, "patch.yaml": []byte(keyedPatch),
		"kustomization.yaml": []byte("resources: [x.yaml]\npatches: [{path: patch.yaml}]\nopenapi: {path: kinds.json}\n")} {
		if err := disk.WriteFile("/a/"+name, content); err != nil {
			t.Fatal(err)
		}
	}
	defer openapi.ResetOpenAPI()
	built, err := krusty.MakeKustomizer(&krusty.Options{LoadRestrictions: types.LoadRestrictionsRootOnly, PluginConfig: types.DisabledPluginConfig()}).Run(disk, "/a")
	if err != nil {
		t.Fatal(err)
	}
	got, err := built.Resources()[0].MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	docs, _, problems := s.world.documents(s.Units.Get("services/platform/x").source, &recorder{world: s.world})
	if len(problems) > 0 || len(docs) != 1 {
		t.Fatal(docs, problems)
	}
	inside, _ := docs[0].Plain(docs[0].Node)
	if want := string(schema.AppendJSON(nil, inside)); want != string(schema.AppendJSON(nil, decodeJSON(t, got))) {
		t.Errorf("inside %s\noutside %s", want, got)
	}
}

func decodeJSON(t *testing.T, text []byte) any {
	t.Helper()
	docs, problems := document.ReadDocuments("x.json", text)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	value, _ := docs[0].Plain(docs[0].Node)
	return value
}
