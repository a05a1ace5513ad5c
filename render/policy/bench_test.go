// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"testing"

	"sigs.k8s.io/yaml"
)

func parsed(t testing.TB, text string) (object map[string]any) {
	t.Helper()
	var decoded map[string]any
	if err := yaml.Unmarshal([]byte(text), &decoded); err != nil {
		t.Fatal(err)
	}
	object, _ = whole(decoded).(map[string]any)
	return object
}

// whole gives numbers the types that objects have.
func whole(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, below := range v {
			v[key] = whole(below)
		}
	case []any:
		for i, below := range v {
			v[i] = whole(below)
		}
	case float64:
		return int64(v)
	}
	return value
}

// some are n policies with their bindings, all about a resource.
func some(t testing.TB, n int, group, resource string) (docs []Document) {
	for i := range n {
		docs = append(docs, Document{Object: parsed(t, fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p%d}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [%q], apiVersions: ["*"], operations: [CREATE], resources: [%s]}]}
  variables: [{name: containers, expression: object.spec.template.spec.containers}]
  validations:
  - {expression: "variables.containers.all(c, !c.image.endsWith(':latest'))", message: no latest}
  - {expression: object.spec.replicas < 100}
`, i, group, resource))}, Document{Object: parsed(t, fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: p%d}
spec: {policyName: p%d, validationActions: [Deny]}
`, i, i))})
	}
	return docs
}

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: a, namespace: shop, labels: {app: a}}
spec:
  replicas: 3
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}}
    spec:
      containers:
      - {name: main, image: "registry.example.com/a:1", ports: [{containerPort: 80}], resources: {limits: {memory: 1Gi}}}
`

func (o *Object) in(labels map[string]string) Surroundings {
	return Surroundings{
		Namespace: func(string) *Namespace { return &Namespace{Labels: labels} },
		Scope:     func(_, kind string) (bool, bool) { return kind != "Namespace", true },
		Versions:  func(string, string) []string { return nil },
	}
}

func newDeployment(t testing.TB) *Object {
	return &Object{APIVersion: "apps/v1", Kind: "Deployment", Resource: "deployments", Namespaced: true, Namespace: "shop", Name: "a", Content: parsed(t, deployment)}
}

// BenchmarkJudge judges one Deployment.
func BenchmarkJudge(b *testing.B) {
	for _, with := range []struct {
		name   string
		docs   []Document
		labels map[string]string
	}{
		{"none", nil, nil},
		{"50 of other kinds", some(b, 50, "", "services"), nil},
		{"restricted", nil, map[string]string{"pod-security.kubernetes.io/enforce": "privileged", "pod-security.kubernetes.io/warn": "restricted"}},
		{"1", some(b, 1, "apps", "deployments"), nil},
		{"10", some(b, 10, "apps", "deployments"), nil},
	} {
		b.Run(with.name, func(b *testing.B) {
			policies, flaws := Compile(with.docs)
			if len(flaws) > 0 {
				b.Fatal(flaws)
			}
			o := newDeployment(b)
			in := o.in(with.labels)
			b.ReportAllocs()
			for b.Loop() {
				policies.Judge(o, in)
			}
		})
	}
}

// BenchmarkCompile compiles a folder of policies.
func BenchmarkCompile(b *testing.B) {
	for _, n := range []int{1, 50} {
		docs := some(b, n, "apps", "deployments")
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if _, flaws := Compile(docs); len(flaws) > 0 {
					b.Fatal(flaws)
				}
			}
		})
	}
}
