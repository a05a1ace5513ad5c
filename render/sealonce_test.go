// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/helm"
)

// oneChart renders to a ConfigMap with the value of the release in a label, and to another one.
type oneChart struct{}

func (oneChart) Render(r helm.Request) helm.Answer {
	object := func(name, label string) helm.Object {
		return helm.Object{File: "templates/x.yaml", Line: 1, Text: "apiVersion: v1\nkind: ConfigMap\n# " + name + " " + label + "\n",
			JSON: []byte(`{"apiVersion":"v1","kind":"ConfigMap",` +
				`"metadata":{"name":"` + name + `","namespace":"a","labels":{"x":"` + label + `"}}}`)}
	}
	return helm.Answer{Objects: []helm.Object{object("own", strings.Trim(string(r.Values), `{}x":`)), object("shared", "same")}}
}

// TestSealedOnce: what a unit wants on each target was checked for each one, and the lines of
// a chart were found for each values.
func TestSealedOnce(t *testing.T) {
	files := fstest.MapFS{}
	for name, text := range map[string]string{
		"swell.yaml": "apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: r}\nspec: {}\n",
		"fleet/fleet.yaml": "apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: c1}\nspec: {}\n---\n" +
			"apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: c2}\nspec: {}\n---\n" +
			"apiVersion: swell.sh/v1\nkind: Rollout\nmetadata: {name: default}\nspec: {waves: [{name: all}]}\n",
		"services/swell.yaml": "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: all}\n" +
			"spec: {placement: {topology: cluster}}\n",
		"services/a/plain.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain, namespace: a}\n",
		"services/a/chart.yaml": "apiVersion: swell.sh/v1\nkind: HelmChart\nmetadata: {name: x}\n" +
			"spec: {chart: chart, namespace: a, values: {x: \"${target.cluster}\"}}\n",
		"services/a/chart/Chart.yaml":       "apiVersion: v2\nname: x\nversion: 1.0.0\n",
		"services/a/chart/values.yaml":      "{}\n",
		"services/a/chart/templates/x.yaml": "apiVersion: v1\n",
	} {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	c := Compiler{Charts: oneChart{}}
	s := c.Snapshot("", config.Files(files))
	if len(s.Problems) > 0 {
		t.Fatal(s.Problems)
	}
	e := c.entries["services/a"]
	r := s.world.renderUnit(e.source, e.placed)
	shared := map[string]bool{}
	for i, o := range r.bundles[0].Objects {
		shared[o.ID.Name] = o == r.bundles[1].Objects[i]
	}
	if diff := cmp.Diff(map[string]bool{"plain": true, "shared": true, "own": false}, shared); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestTargetProblems: a problem of many targets is one, with the targets in the order of the
// fleet whatever they were found in.
func TestTargetProblems(t *testing.T) {
	var placed []place
	for _, name := range []config.TargetName{"c1", "c2", "c3"} {
		placed = append(placed, place{target: &config.Target{Name: name}})
	}
	var found targetProblems
	for _, i := range []int{0, 2, 2, 1, 2} {
		found.place = i
		found.add(document.Problem{Message: "everywhere"})
		if i > 0 {
			found.add(document.Problem{Message: "on two"})
		}
	}
	all := found.all(placed)
	want := document.Problems{{Message: "everywhere"}, {Message: "on two", Targets: []string{"c2", "c3"}}}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
