// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
)

// releasedBy is the Rollout default of a monorepo that says so of its two waves.
func releasedBy(t *testing.T, text string) *config.Rollout {
	t.Helper()
	r := config.Load(treeOf(text, nil), nil)
	if len(r.Problems) > 0 {
		t.Fatal(r.Problems)
	}
	return r.Rollouts["default"]
}

// treeOf is a monorepo of a Rollout and files.
func treeOf(spec string, files map[string]string) config.Tree {
	tree := fstest.MapFS{}
	for name, content := range map[string]string{
		"swell.yaml":        "apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: shop}\nspec: {units: [services]}\n",
		"services/a/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
		"fleet/fleet.yaml": "apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: dev-1, labels: {ring: canary}}\nspec: " +
			"{kubernetes: \"1.36\"}\n---\n" +
			"apiVersion: swell.sh/v1\nkind: Rollout\nmetadata: {name: default}\nspec: {" + spec + "}\n",
	} {
		tree[name] = &fstest.MapFile{Data: []byte(content)}
	}
	for name, content := range files {
		if tree[name] = (&fstest.MapFile{Data: []byte(content)}); content == "" {
			delete(tree, name)
		}
	}
	return config.Files(tree)
}

// TestStricterRollout: of two Rollouts, what both let through. Each case is the one that a commit
// has, the one that it goes to, and what a release begins by.
func TestStricterRollout(t *testing.T) {
	const canary, rest = "waves: [{name: canary, match: {labels: {ring: canary}}", "{name: rest"
	waves := func(first, last string) string { return canary + first + "}, " + rest + last + "}]" }
	for _, c := range []struct{ name, own, base, want string }{
		{"the same", waves(", soak: 60s", ""), waves(", soak: 60s", ""), waves(", soak: 60s", "")},
		{"a soak that ends at once", waves(", soak: 0s", ""), waves(", soak: 60s", ""), waves(", soak: 60s", "")},
		{"a longer soak", waves(", soak: 2m", ""), waves(", soak: 60s", ""), waves(", soak: 2m", "")},
		{"one of each", waves(", soak: 0s", ", maxConcurrent: 1"), waves(", soak: 60s", ", maxConcurrent: 3"), waves(", soak: 60s",
			", maxConcurrent: 1")},
		{"no bound any more", waves("", ""), waves("", ", maxConcurrent: 50%"), waves("", ", maxConcurrent: 50%")},
		{"a new bound", waves("", ", maxConcurrent: 50%, maxObjects: 10"), waves("", ", maxObjects: 20"), waves("",
			", maxConcurrent: 50%, maxObjects: 10")},
		{"another sort of bound", waves("", ", maxConcurrent: 5"), waves("", ", maxConcurrent: 50%"), waves("", ", maxConcurrent: 50%")},
		{"failures that are let through", waves("", ", maxFailures: 3"), waves("", ""), waves("", "")},
		{"fewer failures", waves("", ", maxFailures: 1"), waves("", ", maxFailures: 20%"), waves("", ", maxFailures: 20%")},
		{"a gate that goes", waves("", ""), waves(", gates: [{job: {name: smoke}}]", ""), waves(", gates: [{job: {name: smoke}}]", "")},
		{"a gate that comes", waves(", gates: [{job: {name: smoke}}]", ""), waves("", ""), waves(", gates: [{job: {name: smoke}}]", "")},
		{"who may approve", waves(", gates: [{approval: {by: [eve]}}]", ""), waves(", gates: [{approval: {by: [ann]}}]", ""),
			waves(", gates: [{approval: {by: [eve]}}, {approval: {by: [ann]}}]", "")},
		{"a longer timeout", waves(", timeout: 9m", ""), waves(", timeout: 1m", ""), waves(", timeout: 9m", "")},
		{"no canary any more", "waves: [" + rest + "}]", waves(", soak: 60s", ""), waves(", soak: 60s", "")},
		{"a fast revert", waves("", "") + ", revert: fast", waves("", ""), waves("", "")},
		{"what a failure does", waves("", "") + ", onFailure: hold", waves("", "") + ", onFailure: rollback", waves("", "") +
			", onFailure: rollback"},
	} {
		t.Run(c.name, func(t *testing.T) {
			own := releasedBy(t, c.own)
			got := own.Stricter(releasedBy(t, c.base))
			want := releasedBy(t, c.want)
			if diff := cmp.Diff(want.Waves, got.Waves); diff != "" || got.OnFailure != want.OnFailure || got.FastRevert != want.FastRevert {
				t.Errorf("-want +got:\n%s\n%+v", diff, got)
			}
			if same := c.own == c.want; same != (got == own) {
				t.Errorf("the commit's own: %t, want %t", got == own, same)
			}
		})
	}
}

// TestOnlyRules: what a commit may change beside rules so that these count alone.
func TestOnlyRules(t *testing.T) {
	const spec = "waves: [{name: all}]"
	base := config.Load(treeOf(spec, map[string]string{"charts/a/values.yaml": "a: 1\n"}), nil)
	for _, c := range []struct {
		name  string
		spec  string
		files map[string]string
		want  bool
	}{
		{"nothing", spec, nil, true},
		{"the fleet", "waves: [{name: all, soak: 1m}]", nil, true},
		{"a cluster", spec + "}\n---\napiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: dev-2}\nspec: {kubernetes: \"1.36\"",
			nil, false},
		{"a policy, facts, owners", spec, map[string]string{"policies/p.yaml": "a: 1\n", "facts/dev-1.yaml": "a: 1\n",
			"CODEOWNERS": "* @ann\n"}, true},
		{"a unit", spec, map[string]string{"services/a/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n"}, false},
		{"a unit that comes", spec, map[string]string{"services/b/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n"},
			false},
		{"a unit that goes", spec, map[string]string{"services/a/a.yaml": ""}, false},
		{"a file that units may read", spec, map[string]string{"charts/a/values.yaml": "a: 2\n"}, false},
		{"defaults", spec, map[string]string{"services/swell.yaml": "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: " +
			"services}\nspec: {tenant: shop}\n"}, false},
		{"a folder with a like name", spec, map[string]string{"fleet-of-ours/a.yaml": "a: 1\n"}, false},
	} {
		files := map[string]string{"charts/a/values.yaml": "a: 1\n"}
		for name, content := range c.files {
			files[name] = content
		}
		if got := config.Load(treeOf(c.spec, files), nil).OnlyRules(base); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}

// TestStricterBudget: a bound that goes, or grows, stays as it was.
func TestStricterBudget(t *testing.T) {
	few, more := 1, 2
	for _, c := range []struct{ own, base, want config.Budget }{
		{config.Budget{}, config.Budget{Units: 3, FailedUnits: &few}, config.Budget{Units: 3, FailedUnits: &few}},
		{config.Budget{Units: 5, UnitsPerTarget: 1}, config.Budget{Units: 3, UnitsPerTarget: 2}, config.Budget{Units: 3,
			UnitsPerTarget: 1}},
		{config.Budget{FailedUnits: &few}, config.Budget{FailedUnits: &more}, config.Budget{FailedUnits: &few}},
	} {
		if diff := cmp.Diff(c.want, c.own.Stricter(c.base)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}
