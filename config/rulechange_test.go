// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
)

// TestRuleChanges: an edit of a rule was told by its name alone, and a unit that moved to another
// Tenant or Rollout not at all. Each case is files that a change writes, and the lines that tell of it.
func TestRuleChanges(t *testing.T) {
	fleet := func(kind, name, spec string) string {
		return "apiVersion: swell.sh/v1\nkind: " + kind + "\nmetadata: {name: " + name + "}\nspec: {" + spec + "}\n"
	}
	unit := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	before := map[string]string{
		"services/swell.yaml":   fleet("Defaults", "a", "tenant: yam, placement: {topology: cluster}"),
		"services/b/b.yaml":     unit,
		"services/c/c.yaml":     unit,
		"services/d/d.yaml":     unit,
		"services/z/z.yaml":     unit,
		"services/z/swell.yaml": fleet("Defaults", "z", "tenant: zed, rollout: slow"),
		"fleet/tenants.yaml":    fleet("Tenant", "yam", `namespaces: [a, b], owners: ["@yam"]`) + "---\n" + fleet("Tenant", "zed", ""),
		"fleet/slow.yaml": fleet("Rollout", "slow",
			"waves: [{name: canary, targets: [dev-1], soak: 60s}, {name: other, targets: [dev-2]}, {name: rest}]"),
		"fleet/mask.yaml": fleet("Mask", "night", "reason: broken, where: {units: [services/a]}"),
		"fleet/window.yaml": fleet("Window", "friday",
			`action: deny, schedule: "0 0 * * 5", duration: 24h, where: {targets: [dev-1], units: [services/z]}`),
		"fleet/checker.yaml": fleet("Checker", "json",
			"program: jsonschema, schema: schema.json, from: [{kind: ConfigMap, key: a, optional: true}]"),
		"policies/p.yaml": "apiVersion: x/v1\nkind: Policy\nmetadata: {name: replicas}\nspec: {validations: [{expression: replicas < " +
			"20, message: few}]}\n---\n" +
			"apiVersion: x/v1\nkind: PolicyBinding\nmetadata: {name: replicas}\nspec: {policyName: replicas, validationActions: [Deny]}\n",
		"schema.json": "{}",
		"CODEOWNERS":  "* @yam\n/services/z/ @zed\n",
		"swell.yaml":  fleet("Repository", "shop", "units: [services], release: {budget: {units: 3}}"),
	}
	const waves = "waves: [{name: all}]"
	load := func(files map[string]string) *config.Repository {
		r := config.Load(treeOf(waves, files), nil)
		if len(r.Problems) > 0 {
			t.Fatal(r.Problems)
		}
		return r
	}
	base := load(before)
	for _, c := range []struct {
		name   string
		change map[string]string
		want   []string
	}{
		{"nothing", nil, nil},
		{"the same in other lines", map[string]string{"fleet/tenants.yaml": "# two\n" + before["fleet/tenants.yaml"],
			"fleet/mask.yaml": "\n\n" + before["fleet/mask.yaml"]}, nil},
		{"a shorter soak", map[string]string{"fleet/slow.yaml": strings.Replace(before["fleet/slow.yaml"], "60s", "0s", 1)},
			[]string{"Rollout slow (looser): waves[canary].soak: 60s -> 0s; it is about 1 unit: services/z"}},
		{"waves in another order", map[string]string{"fleet/slow.yaml": fleet("Rollout", "slow",
			"waves: [{name: other, targets: [dev-2]}, {name: canary, targets: [dev-1], soak: 60s}, {name: rest}]")},
			[]string{`Rollout slow (looser): waves: ["canary","other","rest"] -> ["other","canary","rest"]; ` +
				`it is about 1 unit: services/z`}},
		{"a unit chooses another Rollout", map[string]string{"services/z/swell.yaml": fleet("Defaults", "z", "tenant: zed")},
			[]string{"move from Rollout slow to Rollout default; it is about 1 unit: services/z"}},
		{"units move to another Tenant", map[string]string{"services/swell.yaml": fleet("Defaults", "a", "tenant: zed, placement: {}")},
			[]string{"move from Tenant yam to Tenant zed; it is about 4 units: services/a, services/b, services/c and 1 more"}},
		{"a Tenant", map[string]string{"fleet/tenants.yaml": strings.Replace(before["fleet/tenants.yaml"], "[a, b]", `[a, b, "*"]`, 1)},
			[]string{`Tenant yam: namespaces: ["a","b"] -> ["a","b","*"]; ` +
				`it is about 4 units: services/a, services/b, services/c and 1 more`}},
		{"a Mask goes elsewhere", map[string]string{"fleet/mask.yaml": fleet("Mask", "night",
			"reason: broken, where: {units: [services/a, services/b]}")},
			[]string{`Mask night: where.units: ["services/a"] -> ["services/a","services/b"]; it is about 1 unit: services/b`}},
		{"a Mask is about no unit of a target", map[string]string{"fleet/mask.yaml": fleet("Mask", "night",
			"reason: broken, where: {units: [services/a], tenants: [zed], optional: true}")},
			[]string{"Mask night: where.optional: not set -> true; where.tenants: not set -> [\"zed\"]; it is about 1 unit: services/a"}},
		{"a Mask goes, another one comes", map[string]string{"fleet/mask.yaml": fleet("Mask", "day", "where: {tenants: [zed]}")},
			[]string{`Mask day (new): where: not set -> {"tenants":["zed"]}; it is about 1 unit: services/z`,
				`Mask night (removed): reason: broken -> not set; where: {"units":["services/a"]} -> not set; ` +
					`it is about 1 unit: services/a`}},
		{"a shorter Window", map[string]string{"fleet/window.yaml": strings.Replace(before["fleet/window.yaml"], "24h", "1h", 1)},
			[]string{"Window friday: duration: 24h -> 1h; it is about 1 unit: services/z"}},
		{"a larger budget", map[string]string{"swell.yaml": strings.Replace(before["swell.yaml"], "units: 3", "units: 30", 1)},
			[]string{"budget (looser): units: 3 -> 30; it is about 5 units: services/a, services/b, services/c and 2 more"}},
		{"who owns", map[string]string{"CODEOWNERS": "* @yam\n/services/z/ @yam\n/services/none/ @zed\n"},
			[]string{"CODEOWNERS: /services/none/: not set -> @zed; /services/z/: @zed -> @yam; it is about 1 unit: services/z"}},
		{"which line counts", map[string]string{"CODEOWNERS": "/services/z/ @zed\n* @yam\n"},
			[]string{"CODEOWNERS; it is about 1 unit: services/z"}},
		{"no Tenant asks who owns", map[string]string{"fleet/tenants.yaml": strings.Replace(before["fleet/tenants.yaml"],
			`, owners: ["@yam"]`, "", 1)},
			[]string{`Tenant yam: owners: ["@yam"] -> not set; it is about 4 units: services/a, services/b, services/c and 1 more`}},
		{"a policy", map[string]string{"policies/p.yaml": strings.NewReplacer("< 20", "< 200", "Deny",
			"Audit").Replace(before["policies/p.yaml"])},
			[]string{"policies: Policy replicas: spec.validations[0].expression: replicas < 20 -> replicas < 200; " +
				`PolicyBinding replicas: spec.validationActions: ["Deny"] -> ["Audit"]`}},
		{"a policy goes", map[string]string{"policies/p.yaml": ""},
			[]string{"policies: Policy replicas (removed); PolicyBinding replicas (removed)"}},
		{"a policy in another file", map[string]string{"policies/p.yaml": "", "policies/q.yaml": before["policies/p.yaml"]},
			[]string{"policies"}},
		{"a schema", map[string]string{"schema.json": `{"type": "object"}`},
			[]string{"Checker json: the file of its schema has changed"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := maps.Clone(before)
			maps.Copy(files, c.change)
			if diff := cmp.Diff(c.want, config.RuleLines(config.RuleChanges(base, load(files)))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	files := maps.Clone(before)
	files["fleet/broken.yaml"] = fleet("Mask", "broken", "wheree: {}")
	if got := config.RuleLines(config.RuleChanges(base, config.Load(treeOf(waves, files), nil))); strings.Contains(strings.Join(got,
		"\n"), "CODEOWNERS") {
		t.Errorf("a fleet with a problem: CODEOWNERS did not change, got %q", got)
	}
}

// TestUnitByPath: each unit is found by its path, and nothing else is.
func TestUnitByPath(t *testing.T) {
	for _, units := range []string{"services", "."} {
		files := map[string]string{"swell.yaml": "apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: shop}\n" +
			"spec: {units: [" + units + "]}\n"}
		for _, folder := range []string{"services/a-b", "services/a/b", "services/a/c/d", "services/ab"} {
			files[folder+"/x.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
		}
		r := config.Load(treeOf("waves: [{name: all}]", files), nil)
		found := 0
		for unit := range r.Units() {
			if found++; r.Unit(unit.Path) != unit {
				t.Errorf("%s: got %v", unit.Path, r.Unit(unit.Path))
			}
		}
		for _, path := range []config.UnitPath{"services", "services/a/c", "services/a/b/x", "fleet", "", "."} {
			if r.Unit(path) != nil {
				t.Errorf("%q is a unit", path)
			}
		}
		if found != 5 {
			t.Errorf("%d units: want 5", found)
		}
	}
}
