// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
)

// TestRulesOfTheBase: a change that takes a rule away, or lets something pass, is judged
// by the rule all the same, once, and says whose rule it is.
func TestRulesOfTheBase(t *testing.T) {
	before := judgedFiles()
	before["services/app/app.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: two, namespace: shop}\n")}
	const facts = "apiVersion: swell.sh/v1\nkind: ClusterFacts\nmetadata: {name: sas-1}\nspec: {kubernetes: v1.36.0, namespaces: [{name: shop, labels: {pod-security.kubernetes.io/enforce: baseline}}]}\n"
	before["facts/sas-1.yaml"] = &fstest.MapFile{Data: []byte(facts)}
	pod := &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: two, namespace: shop}\nspec: {hostNetwork: true, containers: [{name: main, image: registry.example.com/a}]}\n")}
	const notHere = `spec: refused by PodSecurity: "baseline:latest" of namespace shop: host namespaces (hostNetwork=true)`
	const jsonChecker = "apiVersion: swell.sh/v1\nkind: Checker\nmetadata: {name: colours}\nspec: {program: jsonschema, schema: schemas.json/colour.json, from: [{kind: ConfigMap, key: colour}]}\n"
	before["fleet/checkers.yaml"] = &fstest.MapFile{Data: []byte(jsonChecker)}
	before["schemas.json/colour.json"] = &fstest.MapFile{Data: []byte(`{"enum": ["red"]}`)}
	base := config.Load(config.Files(before), nil)
	green := &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: two, namespace: shop}\ndata: {colour: green}\n")}
	const notGreen = `data.colour: checker colours: value must be 'red'`
	one := &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, namespace: shop}\n")}
	const refused = `refused by policy "a" (binding "a"): not one`
	other := []byte(strings.ReplaceAll(strings.ReplaceAll(namedPolicy, "NAME", "b"), "configmaps", "services"))
	const repository = "apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: shop}\n"
	for name, c := range map[string]struct {
		change  fstest.MapFS // a nil file goes
		want    string       // empty for no problem
		changes string
	}{
		"nothing":       {nil, "", ""},
		"an object":     {fstest.MapFS{"services/app/app.yaml": one}, refused, ""},
		"a policy gone": {fstest.MapFS{"services/app/app.yaml": one, "policies/a.yaml": nil}, refused + ofBase, "policies"},
		"a policy that audits": {fstest.MapFS{"services/app/app.yaml": one,
			"policies/a.yaml": {Data: []byte(strings.Replace(string(before["policies/a.yaml"].Data), "[Deny]", "[Audit]", 1))}}, refused + ofBase, "policies"},
		"one more policy": {fstest.MapFS{"services/app/app.yaml": one, "policies/b.yaml": {Data: other}}, refused, "policies"},
		"folder moved": {fstest.MapFS{"services/app/app.yaml": one, "swell.yaml": {Data: []byte(repository + "spec: {policies: none}\n")}, "none/x.yaml": {Data: other}},
			refused + ofBase, "policies"},
		"a pod":                         {fstest.MapFS{"services/app/app.yaml": pod}, notHere, ""},
		"a pod, and facts gone":         {fstest.MapFS{"services/app/app.yaml": pod, "facts/sas-1.yaml": nil}, notHere + ofBase, "facts"},
		"a pod, and no labels in facts": {fstest.MapFS{"services/app/app.yaml": pod, "facts/sas-1.yaml": {Data: []byte(strings.Replace(facts, "enforce", "audit", 1))}}, notHere + ofBase, "facts"},
		"a cluster takes others": {fstest.MapFS{"fleet/fleet.yaml": {Data: []byte(strings.Replace(string(before["fleet/fleet.yaml"].Data), "{name: sas-1}", "{name: sas-1}\nspec: {tenants: [shop]}", 1))}},
			"", "tenants of Cluster sas-1"},
		"a longer soak": {fstest.MapFS{"services/app/app.yaml": nil,
			"fleet/fleet.yaml": {Data: []byte(strings.Replace(string(before["fleet/fleet.yaml"].Data), "waves: [{name: all}]",
				"waves: [{name: all, soak: 2m}]", 1))}},
			"", "Rollout default"},
		"more failures, a budget, and a Mask": {fstest.MapFS{"services/app/app.yaml": nil,
			"fleet/mask.yaml": {Data: []byte("apiVersion: swell.sh/v1\nkind: Mask\nmetadata: {name: night}\nspec: {where: {targets: " +
				"[sas-1]}}\n")},
			"swell.yaml": {Data: []byte(repository + "spec: {release: {budget: {units: 3}}}\n")},
			"fleet/fleet.yaml": {Data: []byte(strings.Replace(string(before["fleet/fleet.yaml"].Data), "waves: [{name: all}]",
				"waves: [{name: all, maxFailures: 1}]", 1))}},
			"", "Mask night (new) Rollout default (looser) budget"},
		"a text": {fstest.MapFS{"services/app/app.yaml": green}, notGreen, ""},
		"a text in base64": {fstest.MapFS{"services/app/app.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: two, namespace: shop}\nbinaryData:\n  colour: |\n    Z3Jl\n    ZW4=\n")}},
			"services/app/app.yaml:5:3: binaryData.colour: checker colours: value must be 'red'", ""},
		"a text, and no Checker": {fstest.MapFS{"services/app/app.yaml": green, "fleet/checkers.yaml": nil}, notGreen + ofBase, "Checker colours (removed)"},
		"a text, and a wider schema": {fstest.MapFS{"services/app/app.yaml": green, "schemas.json/colour.json": {Data: []byte(`{"enum": ["red", "green"]}`)}},
			notGreen + ofBase, "Checker colours"},
		"secrets pass": {fstest.MapFS{"swell.yaml": {Data: []byte(repository + "spec: {checks: {plainSecrets: pass}}\n")},
			"services/app/app.yaml": {Data: []byte("apiVersion: v1\nkind: Secret\nmetadata: {name: two, namespace: shop}\nstringData: {token: abcdefgh}\n")}},
			"a value that everybody with the repository can read", "checks"},
	} {
		t.Run(name, func(t *testing.T) {
			files := maps.Clone(before)
			for file, content := range c.change {
				if files[file] = content; content == nil {
					delete(files, file)
				}
			}
			judged := Compiler{Base: base}
			var after Compiler
			after.Snapshot("", base.Tree)
			after.Base = base
			for _, compiler := range []*Compiler{&judged, &after} {
				s := compiler.Snapshot("", config.Files(files))
				if got := s.Problems.String(); (c.want == "") != (got == "") || !strings.Contains(got, c.want) || strings.HasSuffix(got, ofBase) != strings.HasSuffix(c.want, ofBase) || len(s.Problems) > 1 {
					t.Errorf("got %q, want %q", got, c.want)
				}
				if diff := cmp.Diff(c.changes, strings.Join(ruleNames(base, s.Repository), " ")); diff != "" {
					t.Errorf("changes (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func ruleNames(base, head *config.Repository) (names []string) {
	for _, change := range config.RuleChanges(base, head) {
		names = append(names, change.Name)
	}
	return names
}
