// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config"
)

// layout says where things stand in the proposed monorepo.
type layout struct {
	fleet, units string
	renamed      map[string]string // folders of swell whose names are taken: kinds, data
}

// free is a folder of that name, or one in swell/ where the name is taken.
func (r *reader) free(name string) string {
	if !r.isThere(name) {
		return name
	}
	return path.Join("swell", name)
}

func (r *reader) isThere(name string) bool {
	_, err := r.tree.Hash(name)
	return err == nil
}

func (r *reader) layout() (layout, error) {
	l := layout{fleet: r.free("fleet"), units: r.free("units"), renamed: map[string]string{}}
	for _, folder := range []string{"kinds", "data", "schemas", "policies", "facts"} {
		if name := r.free(folder); name != folder {
			l.renamed[folder] = name
		}
	}
	for _, folder := range append([]string{l.fleet, l.units}, sortedKeys(l.renamed)...) {
		if at := cmp.Or(l.renamed[folder], folder); r.isThere(at) {
			return l, fmt.Errorf("%s: there already: swell needs a folder for it: rename %s or %s first", at, path.Base(at), at)
		}
	}
	return l, nil
}

// place finds the folder of each unit: that of the release where nothing else is to be
// said of it, or else a new one.
func (r *reader) place(groups []*group, l layout) {
	folders := map[string]int{}
	for _, g := range groups {
		if g.isFolder() {
			folders[g.folder]++
		}
	}
	nested, taken := nestedIn(folders), map[string]bool{}
	for _, g := range groups {
		if why := r.whyNowhere(g); why != "" {
			r.leave(g.of, "", why, "move what it brings into a folder of its own")
			continue
		}
		if g.isFolder() && folders[g.folder] == 1 && !nested[g.folder] && r.canStand(g) {
			g.unit = g.folder
			continue
		}
		g.generated = true
		scope := l.units
		if len(r.clusters) > 1 {
			scope = path.Join(l.units, scopeOf(g))
		}
		name := cmp.Or(asLabel(g.called), "unit")
		g.unit = path.Join(scope, name)
		if taken[g.unit] && g.chart != nil {
			name = fmt.Sprintf("%.50s-chart", name)
			g.unit = path.Join(scope, name)
		}
		for i := 2; taken[g.unit]; i++ {
			g.unit = path.Join(scope, fmt.Sprintf("%.58s-%d", name, i))
		}
		taken[g.unit] = true
	}
}

// whyNowhere says why a release cannot be a unit; empty when it can.
func (r *reader) whyNowhere(g *group) string {
	if g.isFolder() && g.folder == "." {
		return "its folder is the root of the repository, where swell's own files stand"
	}
	return ""
}

// scopeOf is the folder of the generated units on the same clusters.
func scopeOf(g *group) string {
	if g.everywhere {
		return "all"
	}
	name := strings.Join(g.clusters, "-")
	if len(name) > 40 {
		name = fmt.Sprintf("%.30s-and-%d", name, len(g.clusters)-1)
	}
	return name
}

// nestedIn are the folders that are in another one of them, or have one in them: what a
// swell.yaml says there holds for both.
func nestedIn(folders map[string]int) map[string]bool {
	nested := map[string]bool{}
	for folder := range folders {
		for dir := path.Dir(folder); dir != "."; dir = path.Dir(dir) {
			if folders[dir] > 0 {
				nested[dir], nested[folder] = true, true
			}
		}
	}
	return nested
}

// canStand says whether the folder of a release can be its unit.
func (r *reader) canStand(g *group) bool {
	if len(g.changes) > 0 || r.isThere(path.Join(g.folder, config.SettingsFile)) || r.components[g.folder] || r.inChart(g.folder) {
		return false
	}
	if r.kustomizations[g.folder] != "" {
		return true
	}
	if !g.deep || len(g.leaves) > 0 {
		if r.isThere(path.Join(g.folder, config.IgnoreFile)) {
			return false
		}
	}
	for _, resource := range r.content(g.folder, g.deep).resources {
		if g.settings.Off != "" && strings.Contains(resource, "/") {
			return false // unit: false says nothing of what is below
		}
		if below := path.Join(g.folder, resource); r.kustomizations[below] != "" && (len(r.named[below]) > 0 || r.components[below]) {
			return false // swell takes it for a base
		}
	}
	return true
}

// scopes are the folders of generated units, with the clusters of each.
func scopes(groups []*group) map[string][]string {
	found := map[string][]string{}
	for _, g := range groups {
		if g.generated {
			found[path.Dir(g.unit)] = g.clusters
		}
	}
	return found
}

// order sorts the clusters: those that the user named as the user did, then those that come
// before production, and production last.
func (r *reader) order() {
	given := len(r.options.Clusters)
	slices.SortStableFunc(r.clusters[given:], func(a, b string) int {
		return cmp.Or(cmp.Compare(stageOf(a), stageOf(b)), strings.Compare(a, b))
	})
}

// stages are words for environments, in the order in which a change goes through them.
var stages = [][]string{{"dev", "development", "sandbox"}, {"test", "testing", "qa", "int", "integration"}, {"stage", "staging", "stg", "uat", "preprod"}, {"canary"}}

// production has words for the last one.
var production = []string{"prod", "production", "prd", "live"}

// stageOf is how early a name's cluster or environment comes.
func stageOf(name string) int {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return strings.ContainsRune("-_./", r) })
	for i, stage := range stages {
		if slices.ContainsFunc(words, func(w string) bool { return slices.Contains(stage, w) }) {
			return i
		}
	}
	if slices.ContainsFunc(words, func(w string) bool { return slices.Contains(production, w) }) {
		return len(stages) + 1
	}
	return len(stages)
}

// isStage says whether a name is a word for an environment.
func isStage(name string) bool {
	name = strings.ToLower(name)
	return slices.Contains(production, name) || slices.ContainsFunc(stages, func(words []string) bool { return slices.Contains(words, name) })
}
