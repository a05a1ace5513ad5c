// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package easy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/swell-sh/swell/render/schema/easy"
)

// TestKustomizeMerges gives the client schema to kustomize, which must then
// merge lists by their keys and replace the others, and go on knowing the kinds
// of Kubernetes.
func TestKustomizeMerges(t *testing.T) {
	k := easyOf(t, parse(t, "everything.txtar"))
	builtIn, err := easy.BuiltIn()
	if err != nil {
		t.Fatal(err)
	}
	files := filesys.MakeFsInMemory()
	for name, text := range map[string]string{
		"schema.json": string(indented(t, easy.OpenAPI([]*easy.Schema{k}, builtIn))),
		"kustomization.yaml": `
openapi: {path: schema.json}
namespace: here
resources: [spec.yaml, deployment.yaml]
patches: [{path: patch.yaml}, {path: deployment-patch.yaml}]
`,
		"spec.yaml": `
apiVersion: easy.example.com/v1
kind: Everything
metadata: {name: a}
spec:
  ports: [{name: http, number: 80}, {name: https, number: 443}]
  byPath: [{name: a, kind: x}, {name: b, kind: x}]
  byField: [{name: a, kind: x}, {name: b, kind: x}]
  byKeys: [{number: 53, protocol: TCP, name: a}, {number: 53, protocol: UDP, name: b}]
  replaced: [{name: a, kind: x}, {name: b, kind: x}]
  names: [a, b]
  tree: {children: [{name: a}]}
`,
		"patch.yaml": `
apiVersion: easy.example.com/v1
kind: Everything
metadata: {name: a}
spec:
  ports: [{number: 443, note: secure}]
  byPath: [{name: b, kind: y}]
  byField: [{name: b, kind: y}]
  byKeys: [{number: 53, protocol: UDP, name: patched}]
  replaced: [{name: b, kind: y}]
  names: [c]
  tree: {children: [{name: b}]}
`,
		"deployment.yaml": `
apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec: {template: {spec: {containers: [{name: a, image: x}, {name: b, image: x}]}}}
`,
		"deployment-patch.yaml": `
apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec: {template: {spec: {containers: [{name: b, image: y}]}}}
`,
	} {
		if err := files.WriteFile(name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, ".")
	if err != nil {
		t.Fatal(err)
	}
	got, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	const want = `apiVersion: easy.example.com/v1
kind: Everything
metadata:
  name: a
spec:
  byField:
  - kind: "y"
    name: b
  - kind: x
    name: a
  byKeys:
  - name: a
    number: 53
    protocol: TCP
  - name: patched
    number: 53
    protocol: UDP
  byPath:
  - kind: "y"
    name: b
  - kind: x
    name: a
  names:
  - c
  - a
  - b
  ports:
  - name: https
    note: secure
    number: 443
  - name: http
    number: 80
  replaced:
  - kind: "y"
    name: b
  tree:
    children:
    - name: b
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: d
  namespace: here
spec:
  template:
    spec:
      containers:
      - image: "y"
        name: b
      - image: x
        name: a
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
