// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestProblemTargets: text names the first target, JSON all of them.
func TestProblemTargets(t *testing.T) {
	p := Problem{Position: Position{"a.yaml", 1, 2}, Code: CodeRender, Message: "no", Via: []Position{{"k.yaml", 3, 4}}}
	for _, test := range []struct {
		targets    []TargetName
		text, json string
	}{
		{nil, "a.yaml:1:2: no (from k.yaml:3:4)", ""},
		{[]TargetName{"c/a"}, "a.yaml:1:2: no (on target c/a) (from k.yaml:3:4)", `,"targets":["c/a"]`},
		{[]TargetName{"c/a", "c/b", "d"}, "a.yaml:1:2: no (on target c/a and 2 more) (from k.yaml:3:4)", `,"targets":["c/a","c/b","d"]`},
	} {
		p.Targets = test.targets
		if p.String() != test.text {
			t.Errorf("%q, want %q", p, test.text)
		}
		got, err := json.Marshal(p)
		want := `{"file":"a.yaml","line":1,"column":2,"code":"SW1008","message":"no","via":[{"file":"k.yaml","line":3,"column":4}]` + test.json + `}`
		if err != nil || string(got) != want {
			t.Errorf("%s, %v\nwant %s", got, err, want)
		}
	}
}

func TestReadFolders(t *testing.T) {
	tree := func(spec string) Tree {
		return Files(fstest.MapFS{
			"swell.yaml":        {Data: []byte("apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: x}\nspec: " + spec + "\n")},
			"kinds/b/kind.yaml": {}, "kinds/a/kind.yaml": {}, "kinds/README": {},
		})
	}
	got, problems := ReadFolders(tree("{units: [apps, jobs]}"))
	if diff := cmp.Diff(Folders{Fleet: "fleet", Kinds: "kinds", Data: "data", Schemas: "schemas", Units: []string{"apps", "jobs"}}, got); diff != "" || len(problems) > 0 {
		t.Error(diff, problems)
	}
	kinds, problems := got.KindFolders(tree("{}"))
	if diff := cmp.Diff([]Folder{{Path: "kinds/a"}, {Path: "kinds/b"}}, kinds, cmpopts.IgnoreFields(Folder{}, "Hash")); diff != "" || len(problems) > 0 {
		t.Error(diff, problems)
	}
	if _, problems = ReadFolders(tree("{unit: [apps]}")); len(problems) != 1 || problems[0].Code != CodeUnknown {
		t.Errorf("problems %v, want an unknown field", problems)
	}
}

// TestOwnKinds: the documents are found, the messages inside them are not.
func TestOwnKinds(t *testing.T) {
	var names []string
	for _, m := range OwnDocuments() {
		names = append(names, string(m.Name()))
	}
	want := []string{"Repository", "Cluster", "Rollout", "Defaults", "EasyKind", "Daemon"}
	for _, name := range want {
		found := false
		for _, got := range names {
			found = found || got == name
		}
		if !found {
			t.Errorf("no %s in %v", name, names)
		}
	}
	for _, name := range names {
		if name == "Metadata" || name == "Wave" {
			t.Errorf("%s is no document", name)
		}
	}
}
