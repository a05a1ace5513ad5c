// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"pgregory.net/rapid"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/rapidtest"
	"github.com/swell-sh/swell/render/object"
)

// judgedVariants are texts of the files by which objects are judged, and of the objects;
// an empty text takes the file away.
func judgedVariants() map[string][]string {
	space := func(name, labels string) string {
		return "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + name + ", labels: {" + labels + "}}\n"
	}
	const (
		limits = "---\napiVersion: v1\nkind: LimitRange\nmetadata: {name: top, namespace: shop}\nspec: {limits: [{type: Container, max: {cpu: 1}}]}\n"
		quota  = "---\napiVersion: v1\nkind: ResourceQuota\nmetadata: {name: few, namespace: shop}\nspec: {hard: {configmaps: 0}}\n"
		object = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, namespace: shop}\ndata: {a.txt: good}\n"
		pod    = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: POD, namespace: shop}\nspec: {hostNetwork: true, containers: [{name: main, image: a, resources: {limits: {cpu: 2}}}]}\n"
		fleet  = "apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: sas-1}\n---\napiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: vla-1}\n---\n" +
			"apiVersion: swell.sh/v1\nkind: Rollout\nmetadata: {name: default}\nspec: {waves: [{name: all}]}\n"
		tenant  = "---\napiVersion: swell.sh/v1\nkind: Tenant\nmetadata: {name: shop}\nspec: {clusterKinds: [Namespace], namespaces: [SPACES]}\n"
		checker = "---\napiVersion: swell.sh/v1\nkind: Checker\nmetadata: {name: words}\nspec: {program: words, from: [{kind: ConfigMap, key: \"*.txt\", optional: true}]}\n"
	)
	ordinary, baseline, checked := space("shop", "a: b"), space("shop", "pod-security.kubernetes.io/enforce: baseline"), space("shop", `checked: "yes"`)
	facts := func(cluster, labels, policies string) string {
		return `{"apiVersion":"swell.sh/v1","kind":"ClusterFacts","metadata":{"name":"` + cluster + `"},"spec":{"pulled":"2026-01-31T12:00:00Z","kubernetes":"v1.36.3","namespaces":[{"name":"shop","labels":` + labels + `}],"policies":[` + policies + `]}}`
	}
	unit := func(name string) []string {
		some := []string{"", strings.ReplaceAll(pod, "POD", name), strings.ReplaceAll(object, "one", name), strings.ReplaceAll(object, "good", "bad"), space("other-"+name, "x: y")}
		for _, s := range []string{ordinary, baseline, checked, checked + limits, baseline + quota, limits, quota} {
			some = append(some, s, s+strings.ReplaceAll(pod, "POD", name), space("other-"+name, "x: y")+"---\n"+s+strings.ReplaceAll(pod, "POD", name))
		}
		return append(some, space("other-"+name, "x: y")+strings.ReplaceAll(pod, "POD", name))
	}
	return map[string][]string{
		"services/zone/x.yaml": unit("zone"),
		"services/app/x.yaml":  unit("app"),
		"services/new/x.yaml":  unit("new"),
		"policies/a.yaml":      {"", strings.ReplaceAll(namedPolicy, "NAME", "a"), "# moved\n" + strings.ReplaceAll(namedPolicy, "NAME", "a")},
		"rules/a.yaml":         {"", strings.ReplaceAll(namedPolicy, "NAME", "a")},
		"swell.yaml": {"apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: shop}\n",
			"apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: shop}\nspec: {policies: rules}\n"},
		"facts/sas-1.yaml":   {"", facts("sas-1", `{"checked":"yes"}`, ""), facts("sas-1", `{"pod-security.kubernetes.io/enforce":"baseline"}`, clusterPolicy), facts("sas-1", "{}", "")},
		"facts/vla-1.yaml":   {"", facts("vla-1", `{"checked":"yes"}`, clusterPolicy), facts("vla-1", "{}", "")},
		"fleet/fleet.yaml":   {fleet, fleet + checker, strings.Replace(fleet, "vla-1", "man-1", 1)},
		"fleet/tenants.yaml": {"", strings.Replace(tenant, "SPACES", "shop", 1), strings.Replace(tenant, "SPACES", `shop, "other-*"`, 1)},
		"fleet/more.yaml":    {"", strings.Replace(tenant, "SPACES", "shop", 1)},
	}
}

// TestRandomJudgements: after every one of some edits, what a compiler that lived through
// them says of the objects is what a new one says.
func TestRandomJudgements(t *testing.T) {
	variants := judgedVariants()
	names := slices.Sorted(maps.Keys(variants))
	rapidtest.Check(t, 15, time.Second, func(t *rapid.T) {
		files := judgedFiles()
		delete(files, "services/zone/namespace.yaml")
		delete(files, "services/app/app.yaml")
		files["services/always/x.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: always, namespace: other}\n")}
		long := Compiler{Checkers: &wordChecker{version: "1"}}
		for range rapid.IntRange(2, 8).Draw(t, "steps") {
			for range rapid.IntRange(1, 4).Draw(t, "edits") {
				name := rapid.SampledFrom(names).Draw(t, "file")
				text := rapid.SampledFrom(variants[name]).Draw(t, "text")
				if delete(files, name); text != "" {
					files[name] = &fstest.MapFile{Data: []byte(text)}
				}
			}
			tree := config.Files(maps.Clone(files))
			fresh := Compiler{Checkers: &wordChecker{version: "1"}}
			clean := fresh.Snapshot("", tree)
			want := all(&fresh, clean, map[object.ID]bool{})
			if diff := differ(want, all(&long, long.Snapshot("", tree), map[object.ID]bool{})); diff != "" {
				t.Fatalf("(-a new compiler +this one)\n%s", diff)
			}
			if !clean.Held && !maps.Equal(fresh.uses, long.uses) {
				t.Fatalf("uses of a new compiler %v, of this one %v", fresh.uses, long.uses)
			}
		}
	})
}
