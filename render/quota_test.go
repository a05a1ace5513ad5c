// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

// TestQuotasOfAll: where the units of a namespace together want more than a quota has, those that want more
// than before have a problem. Where none does, or nobody knows what units had, it is a note. A commit is
// written as units with the replicas of a Deployment of 500m each, and "quota=" is how much CPU there is.
// Releases are written as units with their commits; the base is the commit before the newest one.
func TestQuotasOfAll(t *testing.T) {
	const (
		has  = `namespace shop in cluster sas-1: quota "q" has %s of requests.cpu, and the units there want %s in all`
		this = "; this one wants %s, which is %s more than before"
	)
	line := func(unit, format string, args ...any) string { return unit + ": " + fmt.Sprintf(format, args...) }
	for name, c := range map[string]struct {
		commits  []string
		releases string
		problems []string
		notes    []string
	}{
		"enough": {[]string{"quota=4 a=4", "quota=4 a=4 b=4"}, "", nil, nil},
		"one wants more": {[]string{"quota=4 a=4 b=4", "quota=4 a=4 b=5"}, "",
			[]string{line("b", has+this, "4", "4500m", "2500m", "500m")}, nil},
		"one comes": {[]string{"quota=4 a=8", "quota=4 a=8 b=1"}, "",
			[]string{line("b", has+this, "4", "4500m", "500m", "500m")}, nil},
		"both want more": {[]string{"quota=4 a=4 b=4", "quota=4 a=5 b=6"}, "",
			[]string{line("a", has+this, "4", "5500m", "2500m", "500m"), line("b", has+this, "4", "5500m", "3", "1")}, nil},
		"one gives, and one takes more": {[]string{"quota=4 a=4 b=4", "quota=4 a=3 b=6"}, "",
			[]string{line("b", has+this, "4", "4500m", "3", "1")}, nil},
		"the quota falls": {[]string{"quota=4 a=4 b=5", "quota=3 a=4 b=4"}, "", nil,
			[]string{line("a", has, "3", "4")}},
		"at first": {[]string{"quota=2 a=4 b=1"}, "", nil, []string{line("a", has, "2", "2500m")}},
		"merged in spite of its problem": {[]string{"quota=4 a=4 b=4", "quota=4 a=4 b=5", "quota=4 a=4 b=5 c=0"}, "a:0 b:0",
			[]string{line("b", has+this, "4", "4500m", "2500m", "500m")}, nil},
		"never released": {[]string{"quota=4 a=8", "quota=4 a=8 b=1", "quota=4 a=8 b=1"}, "a:0",
			[]string{line("b", has+this, "4", "4500m", "500m", "500m")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := &releases{units: map[config.UnitPath]config.Commit{}}
			var kept Compiler
			for i, text := range c.commits {
				r.trees = append(r.trees, quotaTree(text))
				if i < len(c.commits)-1 {
					kept.Base = kept.Snapshot("", r.trees[i]).Repository
				}
			}
			for _, each := range strings.Fields(c.releases) {
				unit, commit, _ := strings.Cut(each, ":")
				r.units[config.UnitPath("services/"+unit)] = config.Commit(commit)
			}
			anew := Compiler{Base: kept.Base}
			if c.releases != "" {
				kept.Releases, anew.Releases = r, r
			}
			for _, compiler := range []*Compiler{&kept, &anew} {
				s := compiler.Snapshot("", r.trees[len(r.trees)-1])
				if diff := cmp.Diff([][]string{c.problems, c.notes}, [][]string{tellUnits(s.Problems), tellUnits(s.Notes)}); diff != "" {
					t.Errorf("problems and notes (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func tellUnits(problems document.Problems) (lines []string) {
	for _, p := range problems {
		lines = append(lines, strings.TrimPrefix(p.Unit, "services/")+": "+p.Message)
	}
	return lines
}

// quotaFiles is a monorepo whose units are in its cluster once.
func quotaFiles() treeFiles {
	files := oneCluster("quotas")
	files.write("services/swell.yaml", "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: all}\n"+
		"spec: {placement: {topology: cluster}}\n")
	return files
}

// quotaTree is a monorepo, as a test writes it.
func quotaTree(text string) config.Tree {
	files := quotaFiles()
	for _, each := range strings.Fields(text) {
		name, number, _ := strings.Cut(each, "=")
		if name == "quota" {
			files.write("services/space/x.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n---\n"+
				"apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q, namespace: shop}\nspec: {hard: {requests.cpu: %q}}\n", number)
			continue
		}
		files.write("services/"+name+"/x.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: %[1]s, namespace: shop}\nspec:\n"+
			"  replicas: %[2]s\n  selector: {matchLabels: {app: %[1]s}}\n  template:\n    metadata: {labels: {app: %[1]s}}\n"+
			"    spec: {containers: [{name: main, image: registry.example.com/a, resources: {requests: {cpu: 500m}}}]}\n", name, number)
	}
	return config.Files(fstest.MapFS(files))
}

// TestQuotaMoves: a quota that moves to another namespace judges what a unit has there.
func TestQuotaMoves(t *testing.T) {
	tree := func(namespace string) config.Tree {
		const deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, namespace: %s}\nspec:\n" +
			"  replicas: %d\n  selector: {matchLabels: {app: a}}\n  template:\n    metadata: {labels: {app: a}}\n" +
			"    spec: {containers: [{name: main, image: registry.example.com/a, resources: {requests: {cpu: 500m}}}]}\n---\n"
		files := quotaFiles()
		const space = "apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n---\n"
		spaces := fmt.Sprintf(space+space, "mall", "shop") +
			"apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q, namespace: " + namespace + "}\nspec: {hard: {requests.cpu: 2}}\n"
		files.write("services/space/x.yaml", spaces)
		files.write("services/a/x.yaml", deployment+deployment, "mall", 1, "shop", 4)
		other := strings.ReplaceAll(deployment, "name: a,", "name: b,")
		files.write("services/b/x.yaml", other, "shop", 1)
		return config.Files(fstest.MapFS(files))
	}
	var compiler Compiler
	want := []string{`a: namespace shop in cluster sas-1: quota "q" has 2 of requests.cpu, and the units there want 2500m in all`}
	for namespace, want := range map[string][]string{"mall": nil, "shop": want} {
		for range 2 {
			s := compiler.Snapshot("", tree(namespace))
			if diff := cmp.Diff(want, tellUnits(s.Notes)); diff != "" || len(s.Problems) > 0 {
				t.Errorf("quota in %s: notes (-want +got):\n%s%s", namespace, diff, s.Problems)
			}
		}
	}
}

// TestQuotasOfManyReleases: what units had is known after some passes, however many commits they were released
// with. Those that want less than they had are not stopped then.
func TestQuotasOfManyReleases(t *testing.T) {
	r := &releases{units: map[config.UnitPath]config.Commit{}}
	text := func(replicas int) string {
		units := "quota=2"
		for n := range 9 {
			units += fmt.Sprintf(" u%d=%d", n, replicas)
		}
		return units
	}
	for n := range 9 {
		commit := len(r.trees)
		if commit == 8 { // which is gone in releases
			commit = 7
		} else {
			r.trees = append(r.trees, quotaTree(text(3)+fmt.Sprintf(" more%d=0", n)))
		}
		r.units[config.UnitPath(fmt.Sprintf("services/u%d", n))] = config.Commit(fmt.Sprint(commit))
	}
	r.units["services/u8"] = "a" // the eleventh
	for range 10 {
		r.trees = append(r.trees, quotaTree(text(3)))
	}
	compiler := Compiler{Releases: manyReleases{r}, Base: config.Load(quotaTree(text(2)), nil)}
	for pass, want := range []string{"services/u8", "", ""} {
		s := compiler.Snapshot("", quotaTree(text(1)))
		var units []string
		for _, p := range s.Problems {
			units = append(units, p.Unit)
		}
		if got := strings.Join(units, " "); got != want || s.Retry != (want != "") {
			t.Errorf("pass %d: units with problems: got %q, retry %t, want %q\n%s", pass, got, s.Retry, want, s.Problems)
		}
	}
}

// manyReleases are releases with more than ten commits.
type manyReleases struct{ *releases }

func (r manyReleases) Newest(path config.UnitPath) Release {
	if r.units[path] == "a" {
		return Release{Commit: "a", Bundles: r.releases.Newest("services/u0").Bundles}
	}
	return r.releases.Newest(path)
}

func (r manyReleases) Commit(commit config.Commit) (*Commit, error) {
	if commit == "a" {
		commit = "7"
	}
	return r.releases.Commit(commit)
}
