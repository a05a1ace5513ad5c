// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// rootWith is a monorepo with these files, and with this spec of its Repository.
func rootWith(spec string, files map[string]string) fstest.MapFS {
	tree := repositoryOf(nil)
	delete(tree, "services/.keep")
	tree["swell.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: x}\nspec: {" + spec + "}\n")}
	for name, content := range files {
		tree[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return tree
}

// TestSelection: the patterns of spec.units and ignore files say which folders are units;
// what is left out is listed, and nothing of it is deleted.
func TestSelection(t *testing.T) {
	files := map[string]string{
		"x.yaml":                        someObject,
		"README.md":                     "",
		".github/workflows/ci.yaml":     "on: push",
		".gitlab-ci.yml":                "a: b",
		"teams/a/services/cart/x.yaml":  someObject,
		"teams/a/docs/x.yaml":           someObject,
		"teams/b/services/old/x.yaml":   someObject,
		"teams/b/services/web/x.yaml":   someObject,
		"charts/redis/Chart.yaml":       "apiVersion: v2\nname: redis\n",
		"charts/redis/values.yaml":      "a: b",
		"charts/redis/templates/x.yaml": "{{ x }}",
		"kinds/run/kind.yaml":           "a: b",
	}
	for name, test := range map[string]struct {
		spec  string
		more  map[string]string
		units string
		left  string
	}{
		"everything": {`units: ["."]`, nil, ". teams/a/docs teams/a/services/cart teams/b/services/old teams/b/services/web",
			"charts/redis: a Helm chart: only a HelmChart brings it\n"},
		"a folder in each":  {`units: [teams/*/services]`, nil, "teams/a/services/cart teams/b/services/old teams/b/services/web", ""},
		"all but some":      {`units: [teams/**, "!teams/*/services/old", "!**/docs"]`, nil, "teams/a/services/cart teams/b/services/web", "teams/a/docs: swell.yaml leaves it out: spec.units has \"!**/docs\"\nteams/b/services/old: swell.yaml leaves it out: spec.units has \"!teams/*/services/old\"\n"},
		"two, one in other": {`units: ["teams/*", teams/a]`, nil, "teams/a/docs teams/a/services/cart teams/b/services/old teams/b/services/web", ""},
		"ignore files": {`units: [teams]`, map[string]string{
			"teams/.swellignore":   "# what is no service\ndocs/\n*.tmpl.yaml\n",
			"teams/b/.swellignore": "/services/*\n!services/web\n",
			"teams/b/docs/x.yaml":  someObject,
		}, "teams/a/services/cart teams/b/services/web", "teams/a/docs: teams/.swellignore:2: leaves it out\nteams/b/docs: teams/.swellignore:2: leaves it out\nteams/b/services/old: teams/b/.swellignore:1: leaves it out\n"},
		"a slash before": {`units: [teams]`, map[string]string{"teams/.swellignore": "/docs\n", "teams/docs/x.yaml": someObject},
			"teams/a/docs teams/a/services/cart teams/b/services/old teams/b/services/web",
			"teams/docs: teams/.swellignore:1: leaves it out\n"},
	} {
		t.Run(name, func(t *testing.T) {
			all := maps.Clone(files)
			maps.Copy(all, test.more)
			r := Load(Files(rootWith(test.spec, all)), nil)
			var paths []string
			for u := range r.Units() {
				paths = append(paths, string(u.Path)+u.Problems.Error())
			}
			if got := strings.Join(paths, " "); got != test.units || len(r.Problems) > 0 {
				t.Errorf("units: got  %s\nwant %s\n%s", got, test.units, r.Problems)
			}
			var left strings.Builder
			for _, l := range r.LeftOut() {
				fmt.Fprintf(&left, "%s: %s\n", l.Path, l.Why)
				if strings.HasPrefix(l.Path, "teams") && r.Kept(UnitPath(l.Path)) == "" {
					t.Errorf("%s would be deleted", l.Path)
				}
			}
			if left.String() != test.left {
				t.Errorf("left out: got\n%s\nwant\n%s", &left, test.left)
			}
		})
	}
}

// TestWrongSelection: a mistake in a pattern or in an ignore file is told at its line.
func TestWrongSelection(t *testing.T) {
	r := Load(Files(rootWith(`units: ["../x", "a/[", "/a"]`, nil)), nil)
	if got := r.Problems.Error(); strings.Count(got, "want a folder relative to the root") != 3 {
		t.Error(got)
	}
	r = Load(Files(rootWith(`units: [teams]`, map[string]string{"teams/.swellignore": "b\n[\n", "teams/a/x.yaml": someObject, "teams/x.yaml": someObject})), nil)
	for u := range r.Units() {
		if got, want := u.Defaults.Problems.Error(), "teams/.swellignore:2: \"[\": want a pattern of a file or folder, as in a .gitignore"; got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", u.Path, got, want)
		}
	}
}

// TestDefaultsAround: a swell.yaml and a .swellignore hold for all folders of units below
// them, also where swell.yaml at the root names only these. A change of one is seen.
func TestDefaultsAround(t *testing.T) {
	files := map[string]string{
		"apps/swell.yaml":             settings(`tenant: web, adopt: take`),
		"apps/staging/x.yaml":         someObject,
		"apps/staging/swell.yaml":     settings(`adopt: never`),
		"apps/production/x.yaml":      someObject,
		"apps/production/skip/x.yaml": someObject,
		".swellignore":                "skip/\n",
	}
	load := func(previous *Repository) (*Repository, string) {
		r := Load(Files(rootWith(`units: [apps/staging, apps/production]`, files)), previous)
		var got []string
		for u := range r.Units() {
			got = append(got, fmt.Sprintf("%s %s %s %d", u.Path, u.Defaults.Tenant, u.Defaults.Policy.Adopt, len(u.Defaults.Problems)))
		}
		slices.Sort(got)
		return r, strings.Join(got, "\n")
	}
	r, got := load(nil)
	if want := "apps/production web take 0\napps/staging web never 0"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	files["apps/swell.yaml"] = settings(`tenant: other`)
	files[".swellignore"] = ""
	if _, got = load(r); got != "apps/production other ifSame 0\napps/production/skip other ifSame 0\napps/staging other never 0" {
		t.Errorf("after a change: got\n%s", got)
	}
	files["apps/swell.yaml"] = "kind: [\n"
	r, _ = load(r)
	for u := range r.Units() {
		if len(u.Defaults.Problems) == 0 {
			t.Errorf("%s: no problem of the Defaults around it", u.Path)
		}
	}
}

func settings(spec string) string {
	return "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: it}\nspec: {" + spec + "}\n"
}

// TestOrphans: objects of a unit stay where the nearest Defaults say so, also those of a
// unit whose files or whose folder are gone, and where a swell.yaml cannot be read.
func TestOrphans(t *testing.T) {
	r := Load(Files(rootWith(`units: [apps]`, map[string]string{
		"apps/swell.yaml":      settings(`prune: keep`),
		"apps/web/x.yaml":      someObject,
		"apps/api/swell.yaml":  settings(`prune: delete`),
		"apps/api/x.yaml":      someObject,
		"apps/gone/swell.yaml": settings(`unit: false, prune: keep`),
		"other/swell.yaml":     settings(`unit: false, prune: keep`),
		"odd/swell.yaml":       "kind: [\n",
	})), nil)
	for unit, want := range map[UnitPath]bool{"apps/web": true, "apps/api": false, "apps/api/below": false, "apps/gone": true, "apps/removed": true,
		"other": true, "odd/web": true, "nowhere/web": false, ".": false} {
		for range 2 { // from memory, too
			if got := r.Orphans(unit); got != want {
				t.Errorf("%s: %t, want %t", unit, got, want)
			}
		}
	}
}

// TestNearerDriftRules: of the rules for drift, those of a nearer folder come first, and the
// first that fits holds.
func TestNearerDriftRules(t *testing.T) {
	files := map[string]string{
		"apps/swell.yaml":     settings(`drift: [{mode: correct}]`),
		"apps/web/swell.yaml": settings(`drift: [{mode: report}]`),
		"apps/web/x.yaml":     someObject,
	}
	units := 0
	for u := range Load(Files(rootWith(`units: [apps]`, files)), nil).Units() {
		units++
		if got := u.Defaults.Policy.Drift; len(got) != 2 || got[0].Mode != DriftReport || got[1].Mode != DriftCorrect {
			t.Errorf("%s: %v", u.Path, got)
		}
	}
	if units != 1 {
		t.Errorf("%d units", units)
	}
}

// TestStricterChecks: of two sets of checks, what lets less pass holds, whichever has it.
func TestStricterChecks(t *testing.T) {
	strict := Checks{UnknownKinds: Refuse, PlainSecrets: Warn}
	loose := Checks{UnknownKinds: Pass, PlainSecrets: Pass, SkipMissing: true}
	for _, got := range []Checks{strict.Stricter(loose), loose.Stricter(strict)} {
		if got != strict {
			t.Errorf("got %+v", got)
		}
	}
	if got := loose.Stricter(loose); got != loose {
		t.Errorf("both skip: got %+v", got)
	}
}
