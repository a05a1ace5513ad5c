// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/swell-sh/swell/config/document"
)

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
	if _, problems = ReadFolders(tree("{unit: [apps]}")); len(problems) != 1 || problems[0].Code != document.CodeUnknown {
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
