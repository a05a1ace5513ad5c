// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"testing"
	"testing/fstest"
)

func TestWritten(t *testing.T) {
	tree := fstest.MapFS{
		"swell.yaml": {Data: []byte("apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: r}\nspec:\n  units: [services]\n")},
		"fleet/f.yaml": {Data: []byte(`apiVersion: swell.sh/v1
kind: Rollout
metadata: {name: default}
spec: {waves: [{name: all}]}
---
apiVersion: swell.sh/v1
kind: Cluster
metadata:
  name: one
  labels:
    a: cluster
    b: cluster
spec:
  variables:
    v: cluster
  cells:
  - name: x
    labels:
      a: cell
  - name: z
    variables:
      v: cell
`)},
		"services/swell.yaml":      {Data: []byte("apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: a}\nspec:\n  tenant: outer\n  labels:\n    l: outer\n    m: outer\n")},
		"services/in/swell.yaml":   {Data: []byte("apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: a}\nspec:\n  labels:\n    l: inner\n")},
		"services/in/u/x.yaml":     {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n")},
		"services/in/u/swell.yaml": {Data: []byte("apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: a}\nspec:\n  placement: {}\n")},
	}
	r := Load(Files(tree), nil)
	if len(r.Problems) > 0 {
		t.Fatal(r.Problems)
	}
	for _, c := range []struct {
		field []string
		want  string
	}{
		{[]string{"tenant"}, "services/swell.yaml:5:11"},
		{[]string{"labels", "l"}, "services/in/swell.yaml:6:8"},
		{[]string{"labels", "m"}, "services/swell.yaml:8:8"},
		{[]string{"labels", "none"}, ""},
		{[]string{"rollout"}, ""},
	} {
		at, ok := r.DefaultsAt("services/in/u", c.field...)
		if ok != (c.want != "") || ok && at.String() != c.want {
			t.Errorf("%v: got %v %v, want %q", c.field, at, ok, c.want)
		}
	}
	if at, ok := r.DefaultsAt("elsewhere/u", "tenant"); ok {
		t.Errorf("a unit in no folder of units: %v", at)
	}
	cells, whole := r.Clusters[0].Targets(false), r.Clusters[0].Targets(true)
	for _, c := range []struct {
		target *Target
		field  []string
		want   string
	}{
		{&cells[0], []string{"labels", "a"}, "fleet/f.yaml:19:10"},
		{&cells[0], []string{"labels", "b"}, "fleet/f.yaml:12:8"},
		{&cells[0], []string{"variables", "v"}, "fleet/f.yaml:15:8"},
		{&cells[1], []string{"variables", "v"}, "fleet/f.yaml:22:10"},
		{&cells[1], []string{"labels", "a"}, "fleet/f.yaml:11:8"},
		{&cells[1], []string{"cell"}, "fleet/f.yaml:20:11"},
		{&cells[1], []string{"name"}, "fleet/f.yaml:20:11"},
		{&cells[1], []string{"cluster"}, "fleet/f.yaml:9:9"},
		{&whole[0], []string{"labels", "a"}, "fleet/f.yaml:11:8"},
		{&whole[0], []string{"name"}, "fleet/f.yaml:9:9"},
		{&whole[0], []string{"cell"}, ""},
		{&cells[0], []string{"labels", "none"}, ""},
		{&cells[0], nil, ""},
		{&Target{Cluster: "other"}, []string{"name"}, ""},
	} {
		at, ok := r.TargetAt(c.target, c.field...)
		if ok != (c.want != "") || ok && at.String() != c.want {
			t.Errorf("%s %v: got %v %v, want %q", c.target.Name, c.field, at, ok, c.want)
		}
	}
}
