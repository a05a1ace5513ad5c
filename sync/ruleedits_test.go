// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/cache"
)

var teams = []string{"pay", "platform", "search", "shop", "travel"}

// withRules gives each team of the example a Tenant that takes what the team has, and a
// Rollout that is slower than that of all.
func (f files) withRules() {
	var text strings.Builder
	for _, team := range teams {
		fmt.Fprintf(&text, "apiVersion: swell.sh/v1\nkind: Tenant\nmetadata: {name: %[1]s}\nspec:\n  folders: [services/%[1]s]\n"+
			"  clusterKinds: [\"*\", ClusterRoleBinding.rbac.authorization.k8s.io]\n  podSecurity: privileged\n  allow: [controlPlaneNodes, systemPriority]\n---\n", team)
	}
	f["fleet/tenants.yaml"] = strings.TrimSuffix(text.String(), "---\n")
	f["fleet/careful.yaml"] = "apiVersion: swell.sh/v1\nkind: Rollout\nmetadata: {name: careful}\nspec:\n  waves:\n" +
		"  - {name: canary, match: {labels: {ring: canary}}, soak: 1h}\n  - {name: rest, maxConcurrent: 1}\n"
}

// ofTenant writes a line into the spec of a team's Tenant.
func (f files) ofTenant(team, line string) {
	head := "metadata: {name: " + team + "}\nspec:\n"
	f.replace("fleet/tenants.yaml", head, head+"  "+line+"\n")
}

// document adds a document to the folder of the fleet.
func (f files) document(kind, name, spec string) {
	f["fleet/"+name+".yaml"] = fmt.Sprintf("apiVersion: swell.sh/v1\nkind: %s\nmetadata: {name: %s}\nspec: %s\n", kind, name, spec)
}

func drawTeam(t *rapid.T) string { return rapid.SampledFrom(teams).Draw(t, "team") }

// drawWhere is a part of the fleet, as a Mask and a Window have it.
func drawWhere(t *rapid.T, f files) string {
	return rapid.SampledFrom([]string{
		"{targets: [sas-1]}", "{targets: [vla-1/rz10a]}", "{match: {labels: {ring: canary}}}", "{match: {labels: {region: vla}}}",
		"{units: [" + rapid.SampledFrom(f.unitFolders()).Draw(t, "unit") + "]}", "{units: [services/" + drawTeam(t) + "]}",
		"{tenants: [" + drawTeam(t) + "]}", "{waves: [canary]}", "{waves: [rest]}", "{tenants: [shop], targets: [vla-1]}",
	}).Draw(t, "where")
}

// ruleEdits are what people do to the rules of a fleet.
var ruleEdits = []func(t *rapid.T, f files){
	func(t *rapid.T, f files) {
		f.document("Mask", "mask", "{reason: works, where: "+drawWhere(t, f)+"}")
	},
	func(t *rapid.T, f files) { // it is always shut
		f.document("Window", "allow", "{action: allow, schedule: \"0 0 1 7 *\", duration: 1h, where: "+drawWhere(t, f)+"}")
	},
	func(t *rapid.T, f files) { // never open in the days of the test
		f.document("Window", "allow", "{action: allow, schedule: \"0 0 1 7 *\", duration: 1h, where: "+drawWhere(t, f)+"}")
	},
	func(t *rapid.T, f files) {
		f.replace("fleet/rollout.yaml", "soak: 10m", "soak: "+rapid.SampledFrom([]string{"0s", "1h"}).Draw(t, "soak"))
	},
	func(t *rapid.T, f files) { f.replace("fleet/rollout.yaml", "{name: canary,", "{name: early,") },
	func(t *rapid.T, f files) {
		f.replace("fleet/rollout.yaml", "  - {name: canary, match: {labels: {ring: canary}}, soak: 10m}\n", "")
	},
	func(t *rapid.T, f files) {
		f.replace("fleet/rollout.yaml", "maxConcurrent: 50%", "maxConcurrent: 1, gates: [{window: {schedule: \"0 0 1 7 *\", duration: 1h}}]")
	},
	func(t *rapid.T, f files) {
		f.replace("services/"+drawTeam(t)+"/swell.yaml", "rollout: default", "rollout: careful")
	},
	func(t *rapid.T, f files) { f.replace("fleet/careful.yaml", "soak: 1h", "soak: 1m") },
	func(t *rapid.T, f files) {
		budget := rapid.SampledFrom([]string{"units: 1", "unitsPerTarget: 1", "units: 3, unitsPerTarget: 2"}).Draw(t, "budget")
		f.replace("swell.yaml", "spec:\n", "spec:\n  release: {budget: {"+budget+"}}\n")
	},
	func(t *rapid.T, f files) {
		f.ofTenant(drawTeam(t), "kinds: ["+rapid.SampledFrom([]string{
			"\"*\", \"!HorizontalPodAutoscaler.autoscaling\"", "\"*\", \"!ConfigMap\"", "\"*.apps\", \"*\"",
		}).Draw(t, "kinds")+"]")
	},
	func(t *rapid.T, f files) { f.ofTenant(drawTeam(t), "images: [other.example.com/*]") },
	func(t *rapid.T, f files) { f.ofTenant(drawTeam(t), "clusters: [sas-1]") },
	func(t *rapid.T, f files) {
		f.ofTenant(drawTeam(t), "owners: [\"@example/"+drawTeam(t)+"\"]")
	},
	func(t *rapid.T, f files) {
		f.replace("CODEOWNERS", "@example/"+drawTeam(t), "@example/"+drawTeam(t))
	},
	func(t *rapid.T, f files) {
		f.replace("fleet/tenants.yaml", "podSecurity: privileged", "podSecurity: restricted")
	},
	func(t *rapid.T, f files) {
		f.replace("fleet/vla-1.yaml", "tenants: [\"*\"]", "tenants: [shop, platform, pay, search]")
	},
	func(t *rapid.T, f files) { f.replace("services/travel/swell.yaml", "tenant: travel", "tenant: pay") },
	func(t *rapid.T, f files) { f.document("Tenant", "spare", "{folders: [services/shop/cart]}") },
	func(t *rapid.T, f files) { // a policy of the fleet
		f["policies/few.yaml"] = fewReplicas
	},
}

// fewReplicas is a policy that some Deployments of the example break.
const fewReplicas = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: few}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}]
  validations: [{expression: "object.spec.replicas < 3", message: too many}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: few}
spec: {policyName: few, validationActions: [Deny]}
`

// TestPreviewOfRules is [TestPreviewIsWhatTheDaemonDoes] in a fleet with Tenants, for edits of
// rules and of all else together. What was said to wait waits. SWELL_EDITS=all takes all of
// rapid's edits (-rapid.checks), else it is the first twenty.
func TestPreviewOfRules(t *testing.T) {
	t.Parallel()
	example := exampleFiles(t)
	example.withRules()
	edited, most := 0, 20
	if os.Getenv("SWELL_EDITS") == "all" {
		most = math.MaxInt
	}
	var compiler render.Compiler
	shared := cache.Memory()
	all := slices.Concat(edits, ruleEdits)
	rapid.Check(t, func(rt *rapid.T) {
		if edited++; edited > most {
			return
		}
		f := maps.Clone(example)
		base, baseTree := compiler.Snapshot("base", f.tree()), f.tree()
		ruleEdits[rapid.IntRange(0, len(ruleEdits)-1).Draw(rt, "rule")](rt, f)
		for range rapid.IntRange(0, 3).Draw(rt, "edits") {
			all[rapid.IntRange(0, len(all)-1).Draw(rt, "edit")](rt, f)
		}
		comparePreview(rt, newFleetOf(rt, t.TempDir(), shared, base, baseTree), &compiler, base, baseTree, f)
	})
}
