// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/swell-sh/swell/config"
)

const namedPolicy = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: NAME}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}
  validations:
  - {expression: "object.metadata.name != 'one' && namespaceObject.metadata.name != 'x'", message: not one}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: NAME}
spec: {policyName: NAME, validationActions: [Deny], matchResources: {namespaceSelector: {matchLabels: {checked: "yes"}}}}
`

// judgedFiles are two units: one brings a namespace, one has objects in it.
func judgedFiles() fstest.MapFS {
	files := fstest.MapFS{}
	for name, content := range map[string]string{
		"swell.yaml":                   "apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: shop}\n",
		"fleet/fleet.yaml":             "apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: sas-1}\n---\napiVersion: swell.sh/v1\nkind: Rollout\nmetadata: {name: default}\nspec: {waves: [{name: all}]}\n",
		"services/swell.yaml":          "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: all}\nspec: {tenant: shop, placement: {topology: cluster}}\n",
		"services/zone/namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {checked: \"yes\"}}\n",
		"services/app/app.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, namespace: shop}\n---\n" +
			"apiVersion: v1\nkind: Pod\nmetadata: {name: one, namespace: shop}\nspec: {hostNetwork: true, containers: [{name: main, image: a}]}\n",
		"policies/a.yaml": strings.ReplaceAll(namedPolicy, "NAME", "a"),
	} {
		files[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return files
}

// TestJudgedAnew: what judges the objects of a unit changes elsewhere, and the verdict
// is the one of a new compiler.
func TestJudgedAnew(t *testing.T) {
	var c Compiler
	files := judgedFiles()
	facts := func(labels, kubernetes, policies string) string {
		return `{"apiVersion":"swell.sh/v1","kind":"ClusterFacts","metadata":{"name":"sas-1"},"spec":{"pulled":"2026-01-31T12:00:00Z","kubernetes":"` + kubernetes + `","namespaces":[{"name":"shop","labels":` + labels + `}],"policies":[` + policies + `]}}`
	}
	for _, step := range []struct {
		what, file, content string // no content: the file goes
		want                string // of the problems
	}{
		{"at first", "", "", `refused by policy "a" (binding "a"): not one`},
		{"the label goes", "services/zone/namespace.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n", ""},
		{"a level comes", "services/zone/namespace.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {pod-security.kubernetes.io/enforce: baseline}}\n", "hostNetwork=true"},
		{"the unit of the namespace goes", "services/zone/namespace.yaml", "", ""},
		{"facts come", "facts/sas-1.yaml", facts(`{"checked":"yes"}`, "v1.36.3", ""), `refused by policy "a"`},
		{"facts change", "facts/sas-1.yaml", facts(`{"checked":"no"}`, "v1.36.3", ""), ""},
		{"the level of facts", "facts/sas-1.yaml", facts(`{"pod-security.kubernetes.io/enforce":"baseline","checked":"yes"}`, "v1.36.3", ""), "hostNetwork=true"},
		{"the folder of policies goes", "policies/a.yaml", "", "hostNetwork=true"},
		{"a policy of the cluster", "facts/sas-1.yaml", facts(`{}`, "v1.36.3", clusterPolicy), `refused by policy "of-cluster" (binding "of-cluster")`},
		{"facts go", "facts/sas-1.yaml", "", ""},
		{"a policy comes", "policies/b.yaml", strings.ReplaceAll(namedPolicy, "NAME", "b"), ""},
		{"the namespace comes back", "services/new/namespace.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {checked: \"yes\"}}\n", `refused by policy "b"`},
	} {
		files = maps.Clone(files)
		switch {
		case step.content != "":
			files[step.file] = &fstest.MapFile{Data: []byte(step.content)}
		case step.file != "":
			delete(files, step.file)
		}
		var fresh Compiler
		got, want := c.Snapshot("", config.Files(files)), fresh.Snapshot("", config.Files(files))
		if diff := differ(want.Problems.String(), got.Problems.String()); diff != "" {
			t.Errorf("%s: (-a new compiler +this one)\n%s", step.what, diff)
		}
		if text := got.Problems.String(); (step.want == "") != (text == "") || !strings.Contains(text, step.want) {
			t.Errorf("%s: want %q, got %q", step.what, step.want, text)
		}
	}
}

const clusterPolicy = `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy","metadata":{"name":"of-cluster"},"spec":{"matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["pods"]}]},"validations":[{"expression":"object.spec.dnsPolicy != 'ClusterFirst'"}]}},
{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicyBinding","metadata":{"name":"of-cluster"},"spec":{"policyName":"of-cluster","validationActions":["Deny"]}}`

// TestLimitsGoToAnotherUnit: a unit that brought a LimitRange is judged by it also when
// another unit brings the same one.
func TestLimitsGoToAnotherUnit(t *testing.T) {
	const (
		space  = "apiVersion: v1\nkind: Namespace\nmetadata: {name: NAME}\n---\n"
		limits = "apiVersion: v1\nkind: LimitRange\nmetadata: {name: top, namespace: shop}\nspec: {limits: [{type: Container, max: {cpu: 1}}]}\n---\n"
		pod    = "apiVersion: v1\nkind: Pod\nmetadata: {name: one, namespace: shop}\nspec: {containers: [{name: main, image: a, resources: {limits: {cpu: 2}}}]}\n"
	)
	files := judgedFiles()
	write := func(unit, text string) {
		files["services/"+unit+"/x.yaml"] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(text, "NAME", unit))}
	}
	delete(files, "services/zone/namespace.yaml")
	delete(files, "services/app/app.yaml")
	write("app", space+limits+pod)
	write("zone", space)
	var c Compiler
	for range 2 {
		if got := c.Snapshot("", config.Files(maps.Clone(files))).Problems.String(); !strings.Contains(got, "at most 1 is allowed") {
			t.Errorf("got %q, want a refusal by the LimitRange", got)
		}
		write("app", space+pod)
		write("zone", space+limits)
	}
}
