// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

// aRepository is a fleet of two clusters, and units that stand in services.
func aRepository(checks string, units map[string]string) fstest.MapFS {
	files := fstest.MapFS{}
	add := func(name, content string) { files[name] = &fstest.MapFile{Data: []byte(content)} }
	add("swell.yaml", "apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: test}\nspec: {fleet: fleet, units: [services], "+checks+"}\n")
	add("fleet/c.yaml", "apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: new}\nspec: {kubernetes: \"1.36\", tenants: [\"*\"]}\n---\n"+
		"apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: old}\nspec: {kubernetes: \"1.34\", tenants: [\"*\"]}\n---\n"+
		"apiVersion: swell.sh/v1\nkind: Rollout\nmetadata: {name: default}\nspec: {waves: [{name: all}]}\n")
	add("services/swell.yaml", "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: x}\nspec: {placement: {topology: cluster}}\n")
	for unit, content := range units {
		add("services/"+unit+"/x.yaml", content)
	}
	return files
}

// said are the problems and notes of the units, a line each.
func said(s *Snapshot) (lines []string) {
	for _, unit := range s.Units.Sorted() {
		for _, p := range unit.Problems {
			lines = append(lines, fmt.Sprintf("%s: %s (%s %s)", strings.TrimPrefix(string(unit.Path), "services/"), p.Text(), p.Code, p.Basis))
		}
		for _, n := range unit.Notes {
			lines = append(lines, fmt.Sprintf("%s: note: %s (%s)", strings.TrimPrefix(string(unit.Path), "services/"), n.Text(), n.Code))
		}
	}
	return lines
}

// TestVersionsOfKinds: what a cluster's Kubernetes version does not serve is a problem on
// its targets, and what it will not serve for ever is a note.
func TestVersionsOfKinds(t *testing.T) {
	route := strings.NewReplacer("name: v1\n", "name: v1\n    deprecated: true\n", "example.com", "net.example.com").Replace(gadgets)
	route += "  - name: v2\n    served: true\n    storage: false\n    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}\n"
	files := aRepository("", map[string]string{
		"removed":    "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: x, namespace: a}\n",
		"new":        "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicyBinding\nmetadata: {name: x}\nspec: {policyName: x}\n",
		"deprecated": "apiVersion: net.example.com/v1\nkind: Gadget\nmetadata: {name: x, namespace: a}\nspec: {size: 3}\n",
		"misspelt":   "apiVersion: apps/v1\nkind: Deploymnt\nmetadata: {name: x, namespace: a}\n",
	})
	files["schemas/gadget.yaml"] = &fstest.MapFile{Data: []byte(route)}
	var c Compiler
	want := []string{
		"deprecated: note: net.example.com/v1 Gadget is deprecated; use net.example.com/v2 Gadget (SW1024)",
		`misspelt: apps/v1 Deploymnt: no such kind, did you mean "apps/v1 Deployment"? (SW1002 )`,
		"new: admissionregistration.k8s.io/v1 MutatingAdmissionPolicyBinding: new in Kubernetes 1.36, and this cluster has 1.34 (on target old) (SW1024 exact)",
		"removed: policy/v1beta1 PodDisruptionBudget: removed in Kubernetes 1.25, write policy/v1 PodDisruptionBudget (SW1024 exact)",
	}
	if diff := cmp.Diff(want, said(c.Snapshot("", config.Files(files)))); diff != "" {
		t.Errorf("said (-want +got):\n%s", diff)
	}
}

// TestUnknownKinds: the repository says what becomes of a custom resource whose definition
// is nowhere. What may be a misspelling is refused in any case.
func TestUnknownKinds(t *testing.T) {
	const where = ": its definition is nowhere: `swell facts pull` takes those of the clusters, or put its CustomResourceDefinition into a file of the folder of schemas"
	units := map[string]string{
		"tunnel": "apiVersion: vpn.example.org/v1\nkind: Tunnel\nmetadata: {name: x, namespace: a}\nspec: {peers: [1, {a: null}]}\n",
		"global": "apiVersion: vpn.example.org/v1\nkind: Realm\nmetadata: {name: x}\n",
		"typo":   "apiVersion: app/v1\nkind: Deployment\nmetadata: {name: x, namespace: a}\n",
		"near":   "apiVersion: networkin.k8s.io/v1\nkind: Ingress\nmetadata: {name: x, namespace: a}\n",
		"kindof": "apiVersion: net.example.com/v1\nkind: Gadgte\nmetadata: {name: x, namespace: a}\n",
		"meta":   "apiVersion: vpn.example.org/v1\nkind: Tunnel\nmetadata: {name: z, namespace: a, label: {}}\n",
	}
	always := []string{
		`kindof: net.example.com/v1 Gadgte: no such kind, did you mean "net.example.com/v1 Gadget"? (SW1002 )`,
		`near: networkin.k8s.io/v1 Ingress: no such kind, did you mean "networking.k8s.io/v1 Ingress"? (SW1002 )`,
		`typo: app/v1 Deployment: no such kind, did you mean "apps/v1 Deployment"? (SW1002 )`,
	}
	var c Compiler
	bundles := func(checks string) (lines []string, objects int) {
		files := aRepository(checks, units)
		files["schemas/gadget.yaml"] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(gadgets, "example.com", "net.example.com"))}
		s := c.Snapshot("", config.Files(maps.Clone(files)))
		for _, unit := range s.Units.Sorted() {
			bundles, err := s.Bundles(unit)
			if err != nil {
				continue
			}
			for _, b := range bundles {
				objects += len(b.Objects)
			}
		}
		return said(s), objects
	}
	for _, test := range []struct {
		checks  string
		want    []string
		objects int
	}{
		{"", []string{
			"global: vpn.example.org/v1 Realm" + where + "; checks.unknownKinds of the root's swell.yaml can let it pass (SW1024 )",
			always[0],
			"meta: vpn.example.org/v1 Tunnel" + where + "; checks.unknownKinds of the root's swell.yaml can let it pass (SW1024 )",
			always[1],
			"tunnel: vpn.example.org/v1 Tunnel" + where + "; checks.unknownKinds of the root's swell.yaml can let it pass (SW1024 )",
			always[2],
		}, 0},
		{"checks: {unknownKinds: warn}", []string{
			"global: note: vpn.example.org/v1 Realm" + where + "; only its metadata is checked (SW1024)",
			always[0],
			`meta: metadata.label: unknown field, did you mean "labels"? (SW1003 exact)`,
			"meta: note: vpn.example.org/v1 Tunnel" + where + "; only its metadata is checked (SW1024)",
			always[1],
			"tunnel: note: vpn.example.org/v1 Tunnel" + where + "; only its metadata is checked (SW1024)",
			always[2],
		}, 4},
		{"checks: {unknownKinds: pass}", []string{
			always[0], `meta: metadata.label: unknown field, did you mean "labels"? (SW1003 exact)`, always[1], always[2],
		}, 4},
	} {
		lines, objects := bundles(test.checks)
		if diff := cmp.Diff(test.want, lines); diff != "" {
			t.Errorf("%q: said (-want +got):\n%s", test.checks, diff)
		}
		if objects != test.objects {
			t.Errorf("%q: %d objects, want %d", test.checks, objects, test.objects)
		}
	}
}

// TestBasis: a finding by a schema is exact, one by swell's own rule for a built-in kind
// is modelled.
func TestBasis(t *testing.T) {
	files := aRepository("", map[string]string{
		"rule":   "apiVersion: v1\nkind: Service\nmetadata: {name: x, namespace: a}\nspec: {ports: [{port: 80}, {port: 81}]}\n",
		"schema": "apiVersion: v1\nkind: Service\nmetadata: {name: x, namespace: a}\nspec: {prots: [], clusterIP: None}\n",
		"custom": "apiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: x, namespace: a, labels: {a: \"b \"}}\nspec: {size: 30}\n",
	})
	files["schemas/gadget.yaml"] = &fstest.MapFile{Data: []byte(gadgets)}
	var c Compiler
	got := map[string]document.Basis{}
	s := c.Snapshot("", config.Files(files))
	for _, unit := range s.Units.All() {
		for _, p := range unit.Problems {
			place, _, _ := strings.Cut(p.Message, ":")
			got[place] = p.Basis
		}
	}
	want := map[string]document.Basis{"spec.ports[0]": document.Modelled, "spec.ports[1]": document.Modelled, "spec.prots": document.Exact, "spec.size": document.Exact, "metadata.labels.a": document.Exact}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("basis (-want +got):\n%s\n%s", diff, s.Problems)
	}
}

// TestRoleNames: names of RBAC are any part of a path that can be seen.
func TestRoleNames(t *testing.T) {
	for name, good := range map[string]bool{"system:node": true, "a_b:C": true, "a*": true, "a-": true, "a@b": true, "": false, ".": false, "..": false,
		"a/b": false, "a%b": false, "a b": false, "a\u202eb": false, "ä": false, strings.Repeat("a", 254): false} {
		if isRoleName(name) != good {
			t.Errorf("%q: got %t", name, !good)
		}
	}
}
