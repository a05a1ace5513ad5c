// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// repositoryOf is a monorepo with these files below services.
func repositoryOf(files map[string]string) fstest.MapFS {
	tree := fstest.MapFS{
		"swell.yaml": {Data: []byte("apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: x}\n")},
		"fleet/a.yaml": {Data: []byte("apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: a}\nspec: {kubernetes: \"1.36\", tenants: [\"*\"]}\n---\n" +
			"apiVersion: swell.sh/v1\nkind: Rollout\nmetadata: {name: default}\nspec: {waves: [{name: all}]}\n")},
		"services/.keep": {},
	}
	for name, content := range files {
		tree["services/"+name] = &fstest.MapFile{Data: []byte(content)}
	}
	return tree
}

// units are a line for each unit: its path, and its problems.
func units(r *Repository) string {
	var b strings.Builder
	for _, p := range r.Problems {
		fmt.Fprintln(&b, p)
	}
	for u := range r.Units() {
		fmt.Fprintf(&b, "%s %s\n", strings.TrimPrefix(string(u.Path), "services/"), u.Problems)
	}
	return b.String()
}

// TestKustomizeUnits: which folders are units where kustomize is used.
func TestKustomizeUnits(t *testing.T) {
	const plain = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"
	const stray = " stands below services/app/kustomization.yaml, which does not name it: a folder below a kustomization is no unit of its own; name it there or move it out\n"
	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"base and overlays": {map[string]string{
			"app/base/kustomization.yaml":          "resources: [x.yaml]",
			"app/base/x.yaml":                      plain,
			"app/overlays/test/kustomization.yaml": "resources: [../../base]",
			"app/overlays/prod/kustomization.yml":  "bases: [../../base/]",
		}, "app/overlays/prod \napp/overlays/test \n"},
		"nobody names it": {map[string]string{"app/base/Kustomization": "namePrefix: x", "app/base/x.yaml": plain}, "app/base \n"},
		"components": {map[string]string{
			"app/one/kustomization.yaml": "kind: Component\nresources: [x.yaml]",
			"app/two/kustomization.yaml": "kind: Component # a comment\n bad: yaml",
		}, ""},
		"anywhere in the commit": {map[string]string{
			"shop/cart/kustomization.yaml": "namePrefix: x",
			"pay/x/kustomization.yaml":     "resources: [../../shop/cart]",
		}, "pay/x \n"},
		"below": {map[string]string{
			"app/kustomization.yaml":       "resources: [a, b/x.yaml]\npatches: [{path: p/q/x.yaml}]\nconfigMapGenerator: [{name: x, files: [k=conf/x.yaml]}]",
			"app/a/kustomization.yaml":     "resources: [x.yaml]",
			"app/a/x.yaml":                 plain,
			"app/b/x.yaml":                 plain,
			"app/p/q/x.yaml":               plain,
			"app/conf/x.yaml":              plain,
			"app/other/x.yaml":             plain,
			"app/deep/er/Kustomization":    "namePrefix: x",
			"app/deep/conf/x/y.yaml":       plain,
			"app/deep/swell.yaml":          "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: x}\nspec: {tenant: x}\n",
			"app/a/below/the/base/x.yaml":  plain,
			"app/a/below/the/base/.hidden": "",
		}, "app \n" +
			"app/a/below/the/base services/app/a/below/the/base/x.yaml: " + strings.ReplaceAll(stray[1:], "app/", "app/a/") +
			"app/deep/conf/x services/app/deep/conf/x/y.yaml:" + stray +
			"app/deep/er services/app/deep/er/Kustomization:" + stray +
			"app/other services/app/other/x.yaml:" + stray},
		"siblings in a cycle": {map[string]string{
			"app/base/kustomization.yaml":   "resources: [x.yaml, ../canary]",
			"app/canary/kustomization.yaml": "resources: [../base]",
			"app/prod/kustomization.yaml":   "resources: [../base]",
		}, "app/base \napp/canary \napp/prod \n"},
		"three in a cycle, one of them deeper, and a base of theirs": {map[string]string{
			"app/a/kustomization.yaml":     "components: [../b]",
			"app/b/kustomization.yaml":     "bases: [../c/deep]",
			"app/c/deep/kustomization.yml": "resources: [../../a, ../../base]",
			"app/base/Kustomization":       "namePrefix: x",
		}, "app/a \napp/b \napp/c/deep \n"},
		"a component in a cycle": {map[string]string{
			"app/a/kustomization.yaml": "components: [../c]",
			"app/c/kustomization.yaml": "kind: Component\nresources: [../a]",
		}, "app/a \n"},
		"parent and child in a cycle": {map[string]string{
			"app/kustomization.yaml":       "resources: [child]",
			"app/child/kustomization.yaml": "resources: [..]",
		}, "app \napp/child \n"},
		"a child that names what it stands in": {map[string]string{
			"app/kustomization.yaml":       "namePrefix: x",
			"app/child/kustomization.yaml": "resources: [..]",
		}, "app \napp/child services/app/child/kustomization.yaml:" + stray},
		"it names itself": {map[string]string{"app/a/kustomization.yaml": "resources: [../a]"}, "app/a \n"},
		"words that are no paths": {map[string]string{
			"app/a/kustomization.yaml":    "commonLabels: {app: ../b}\nimages: [{name: ../b}]\nnamePrefix: ../b",
			"app/b/kustomization.yaml":    "namePrefix: x",
			"shop/kustomization.yaml":     "namePrefix: cart\ncommonLabels: {app: cart}",
			"shop/cart/x.yaml":            plain,
			"pay/a/kustomization.yaml":    "labels:\n- pairs: {kind: Component}\n bad: yaml",
			"pay/b/kustomization.yaml":    "namePrefix: x\n---\nkind: Component\n",
			"pay/c/kustomization.yaml":    "kind: Component",
			"pay/c/Kustomization":         "namePrefix: x",
			"pay/d/kustomization.yaml":    "resources: [x.yaml]",
			"pay/e/Kustomization":         "resources: [../d]",
			"pay/e/kustomization.yaml":    "resources: [x.yaml]",
			"pay/f/g/kustomization.yaml":  "kind: Component\nresources: [../h]",
			"pay/f/h/kustomization.yaml":  "namePrefix: x",
			"pay/f/hh/kustomization.yaml": "namePrefix: x",
		}, "app/a \napp/b \npay/a \npay/b \npay/c \npay/e \npay/f/hh \nshop \nshop/cart services/shop/cart/x.yaml:" + strings.ReplaceAll(stray, "app/", "shop/")},
		"a base of a file that is no YAML": {map[string]string{
			"app/base/kustomization.yaml": "namePrefix: x",
			"app/prod/kustomization.yaml": "resources:\n- ../base\n - x: y\n",
			"app/test/kustomization.yaml": "# - ../prod\n\tresources: [\"../base\"]\n",
		}, "app/prod \napp/test \n"},
	} {
		t.Run(name, func(t *testing.T) {
			tree := Files(repositoryOf(test.files))
			first := Load(tree, nil)
			if diff := cmp.Diff(test.want, units(first)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			test.files["zzz/x.yaml"] = plain
			again := Load(Files(repositoryOf(test.files)), first)
			if diff := cmp.Diff(test.want+"zzz \n", units(again)); diff != "" {
				t.Errorf("loaded after an earlier commit (-want +got):\n%s", diff)
			}
		})
	}
}

// flaky cannot read one file.
type flaky struct {
	Tree
	file string
}

func (f flaky) ReadFile(name string) ([]byte, error) {
	if name == f.file {
		return nil, errors.New("the disk is away")
	}
	return f.Tree.ReadFile(name)
}

// TestUnreadKustomization: while it is not known what an overlay names, its
// base is neither rendered as a unit nor taken for gone.
func TestUnreadKustomization(t *testing.T) {
	tree := Files(repositoryOf(map[string]string{"app/base/kustomization.yaml": "namePrefix: x", "app/prod/kustomization.yaml": "resources: [../base]"}))
	first := Load(flaky{tree, "services/app/prod/kustomization.yaml"}, nil)
	want := "app/base services/app/prod/kustomization.yaml: the disk is away\napp/prod services/app/prod/kustomization.yaml: the disk is away\n"
	if diff := cmp.Diff(want, units(first)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff("app/prod \n", units(Load(tree, first))); diff != "" {
		t.Errorf("once it can be read (-want +got):\n%s", diff)
	}
}

// TestKept: what was a unit and is none by what a file says now is not gone; it
// went, and its objects with it, when a neighbour named it.
func TestKept(t *testing.T) {
	const plain = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"
	const advice = ": nothing is deleted; rename or remove the folder to remove the unit"
	r := Load(Files(repositoryOf(map[string]string{
		"app/base/kustomization.yaml":       "resources: [x.yaml]",
		"app/base/x.yaml":                   plain,
		"app/prod/kustomization.yaml":       "namePrefix: x\nresources:\n- ../base\n",
		"app/part/kustomization.yaml":       "kind: Component",
		"app/a/kustomization.yaml":          "resources: [../b]",
		"app/b/kustomization.yaml":          "resources: [../a]",
		"far/base/kustomization.yaml":       "resources: [x.yaml]",
		"far/over/lays/kustomization.yaml":  "components: [../../base]",
		"shop/kustomization.yaml":           "resources: [sub, deep/er/x.yaml]",
		"shop/sub/kustomization.yaml":       "resources: [x.yaml]",
		"shop/deep/er/x.yaml":               plain,
		"shop/deep/other/kustomization.yml": "resources: []",
		"plain/x.yaml":                      plain,
		"files/conf/x.toml":                 "",
	})), nil)
	for path, want := range map[string]string{
		"app/base":        "services/app/prod/kustomization.yaml:3: names the folder, which makes it a base and no unit" + advice,
		"far/base":        "services/far/over/lays/kustomization.yaml:1: names the folder, which makes it a base and no unit" + advice,
		"app/part":        "services/app/part/kustomization.yaml: the folder is a Component now, and so no unit" + advice,
		"shop/sub":        "services/shop/kustomization.yaml:1: names the folder, which makes it a base and no unit" + advice,
		"shop/deep/er":    "services/shop/kustomization.yaml: takes what is in the folder, which makes it no unit of its own" + advice,
		"app":             "",
		"app/gone":        "",
		"app/base/below":  "",
		"shop/deep":       "",
		"files":           "",
		"files/conf":      "",
		"nothing/of/this": "",
	} {
		if got := r.Kept(UnitPath("services/" + path)); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	if got := r.Kept("fleet"); !strings.HasPrefix(got, "swell.yaml names no folder of units any more") {
		t.Errorf("a folder that is not one of units any more: got %q", got)
	}
	for u := range r.Units() {
		if u.Path == "services/app/base" {
			t.Errorf("%s is a unit", u.Path)
		}
	}
}
