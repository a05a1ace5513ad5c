// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
)

// nullDefinition is a custom resource with a field of each sort that a null can
// stand in.
const nullDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: nothings.null.example.com}
spec:
  group: null.example.com
  scope: Namespaced
  names: {kind: Nothing, plural: nothings}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              text: {type: string}
              textOrNull: {type: string, nullable: true}
              textDefault: {type: string, default: D}
              textOrNullDefault: {type: string, nullable: true, default: D}
              enumOrNull: {type: string, nullable: true, enum: [a]}
              map: {type: object, additionalProperties: {type: string}}
              mapOrNull: {type: object, additionalProperties: {type: string, nullable: true}}
              mapDefault: {type: object, additionalProperties: {type: string, default: D}}
              maps: {type: object, additionalProperties: {type: object, additionalProperties: {type: string}}}
              objects: {type: object, additionalProperties: {type: object, properties: {a: {type: string}}}}
              object: {type: object, properties: {a: {type: string}}}
              objectOrNull: {type: object, nullable: true, properties: {a: {type: string}}}
              objectDefault: {type: object, default: {a: x}, properties: {a: {type: string, default: d}}}
              list: {type: array, items: {type: string}}
              listOrNull: {type: array, items: {type: string, nullable: true}}
              listDefault: {type: array, items: {type: string, default: D}}
              keyed:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [k]
                items: {type: object, required: [k], properties: {k: {type: string}, v: {type: string}}}
              set: {type: array, x-kubernetes-list-type: set, items: {type: string}}
              port: {x-kubernetes-int-or-string: true}
              open: {type: object, x-kubernetes-preserve-unknown-fields: true}
              openAny: {x-kubernetes-preserve-unknown-fields: true}
              openFields: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {s: {type: string}, z: {type: string, nullable: true}}}
              embedded: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
              required: {type: object, required: [a], properties: {a: {type: string}}}
              requiredOrNull: {type: object, required: [a], properties: {a: {type: string, nullable: true}}}
              requiredDefault: {type: object, required: [a], properties: {a: {type: string, default: z}}}
`

// nullCases are parts of objects of a kind, by its resource. Each case is an
// object of its own.
var nullCases = []struct {
	apiVersion, kind, resource string
	parts                      []string
}{
	{"v1", "ConfigMap", "configmaps", []string{
		`data: {LOG_LEVEL: , b: c}`, `data: {L: ~}`, `data: null`, `binaryData: {a: }`, `immutable: null`,
		`metadata: {annotations: {a: , b: c}}`, `metadata: {labels: {a: }}`, `metadata: {labels: , annotations: ~, creationTimestamp: null}`,
	}},
	{"v1", "Secret", "secrets", []string{`data: {a: , b: Yw==}`, `stringData: {a: , b: c}`, `type: null`}},
	{"v1", "Service", "services", []string{
		`spec: {selector: {a: }, ports: [{port: 80}]}`, `spec: {selector: {a: b}, ports: [{port: 80, targetPort: , name: }]}`,
		`spec: {selector: {a: b}, ports: [{port: 80}, ]}`, `spec: {selector: {a: b}, ports: [null, {port: 80}]}`, `spec: {selector: {a: b}, ports: [{port: 80}], externalIPs: [null]}`,
	}},
	{"v1", "ResourceQuota", "resourcequotas", []string{`spec: {hard: {pods: , cpu: "1"}}`}},
	{"v1", "LimitRange", "limitranges", []string{`spec: {limits: [{type: Container, max: {cpu: }, min: {cpu: ~}}]}`}},
	{"v1", "Pod", "pods", []string{
		`spec: {containers: [{name: c, image: i, env: [{name: A, value: }]}]}`, `spec: {containers: [{name: c, image: i, env: [null]}]}`,
		`spec: {containers: [{name: c, image: i, args: [a, ~], command: null}]}`, `spec: {containers: [{name: c, image: i}, null]}`,
		`spec: {containers: [{name: c, image: i, resources: {limits: {cpu: , memory: 1Gi}}}]}`, `spec: {containers: [{name: c, image: i, resources: {limits: , requests: null}}]}`,
		`spec: {nodeSelector: {a: }, containers: [{name: c, image: i}]}`, `spec: {nodeSelector: ~, tolerations: null, containers: [{name: c, image: i}]}`,
		`spec: {volumes: [{name: v, emptyDir: }], containers: [{name: c, image: i}]}`,
		`spec: {containers: [{name: c, image: i, securityContext: {capabilities: {drop: [null]}}}]}`,
	}},
	{"apps/v1", "Deployment", "deployments", []string{
		`spec: {replicas: , strategy: ~, selector: {matchLabels: {a: }}, template: {metadata: {labels: {a: }}, spec: {containers: [{name: c, image: i}]}}}`,
	}},
	{"rbac.authorization.k8s.io/v1", "Role", "roles", []string{`rules: [{apiGroups: [null], resources: [pods], verbs: [get]}]`, `rules: null`, `rules: [null]`}},
	{"null.example.com/v1", "Nothing", "nothings", []string{
		`spec: {text: }`, `spec: {textOrNull: }`, `spec: {textDefault: }`, `spec: {textOrNullDefault: }`, `spec: {enumOrNull: }`,
		`spec: {map: }`, `spec: {map: {a: , b: c}}`, `spec: {mapOrNull: {a: }}`, `spec: {mapDefault: {a: }}`, `spec: {maps: {a: }}`, `spec: {maps: {a: {b: }}}`,
		`spec: {objects: {a: }}`, `spec: {objects: {k: {a: }}}`, `spec: {object: }`, `spec: {object: {a: }}`, `spec: {objectOrNull: }`, `spec: {objectDefault: }`, `spec: {objectDefault: {a: }}`,
		`spec: {list: }`, `spec: {list: [a, ~]}`, `spec: {listOrNull: [a, ~]}`, `spec: {listDefault: [a, ~]}`, `spec: {keyed: [null]}`, `spec: {keyed: [{k: a, v: }]}`, `spec: {set: [a, ~]}`,
		`spec: {port: }`, `spec: {open: }`, `spec: {open: {a: , b: {c: }, l: [null]}}`, `spec: {openAny: }`, `spec: {openAny: [null]}`, `spec: {openAny: {a: }}`,
		`spec: {openFields: {s: , z: , x: }}`, `spec: {embedded: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {x: }}, data: {a: }}}`,
		`spec: {required: {a: }}`, `spec: {requiredOrNull: {a: }}`, `spec: {requiredDefault: {a: }}`, `spec: null`, `metadata: {labels: {a: }}`,
	}},
}

// nullSpace is the namespace of objects of a kind. What others are judged by that live
// beside it is in one of its own.
func nullSpace(kind string) string {
	if kind == "ResourceQuota" || kind == "LimitRange" {
		return "kube-public"
	}
	return "default"
}

// TestNullsOnAServer: what a real API server makes of an object with nulls, it
// makes of what is rendered for it too, written out in a unit or built by
// kustomize; and an object that it refuses, swell refuses or sends to the same
// refusal.
func TestNullsOnAServer(t *testing.T) {
	t.Parallel()
	s := newCRDServer(t)
	var definition map[string]any
	if err := yaml.Unmarshal([]byte(nullDefinition), &definition); err != nil {
		t.Fatal(err)
	}
	definitions := s.client.Resource(apischema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	if _, err := definitions.Create(t.Context(), &unstructured.Unstructured{Object: definition}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{}
	for name, text := range map[string]string{
		"swell.yaml":           "apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: nulls}\nspec: {checks: {plainSecrets: pass}}\n",
		"schemas/nothing.yaml": nullDefinition,
		"fleet/fleet.yaml": "apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: dev-1}\n---\n" +
			"apiVersion: swell.sh/v1\nkind: Rollout\nmetadata: {name: default}\nspec: {waves: [{name: all}]}\n",
		"services/swell.yaml": "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: all}\nspec: {tenant: a, placement: {topology: cluster}}\n",
	} {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	name := func(kind string, i int) string { return fmt.Sprintf("%s-%d", strings.ToLower(kind), i) }
	manifest := func(apiVersion, kind, part string, i int) string {
		head, rest := fmt.Sprintf("name: %s, namespace: %s", name(kind, i), nullSpace(kind)), part
		if more, ok := strings.CutPrefix(part, "metadata: {"); ok {
			head, rest = head+", "+strings.TrimSuffix(more, "}"), ""
		}
		return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {%s}\n%s\n", apiVersion, kind, head, rest)
	}
	routes := map[string]*render.Snapshot{}
	for _, route := range []string{"plain", "built"} {
		files := maps.Clone(files)
		for _, c := range nullCases {
			for i, part := range c.parts {
				folder := "services/" + name(c.kind, i)
				text := manifest(c.apiVersion, c.kind, part, i)
				if route == "built" { // kustomize itself makes a text of {a: }, not of {a: null}
					text = emptyValue.ReplaceAllString(text, ": null$1")
				}
				files[folder+"/x.yaml"] = &fstest.MapFile{Data: []byte(text)}
				if route == "built" {
					files[folder+"/kustomization.yaml"] = &fstest.MapFile{Data: []byte("resources: [x.yaml]\n")}
				}
			}
		}
		var compiler render.Compiler
		if routes[route] = compiler.Snapshot("", config.Files(files)); routes[route].Held {
			t.Fatal(routes[route].Problems)
		}
	}
	for _, c := range nullCases {
		version, _ := apischema.ParseGroupVersion(c.apiVersion)
		where := s.client.Resource(version.WithResource(c.resource)).Namespace(nullSpace(c.kind))
		s.await(where)
		for i, part := range c.parts {
			t.Run(c.kind+" "+part, func(t *testing.T) {
				var object map[string]any
				if err := yaml.Unmarshal([]byte(manifest(c.apiVersion, c.kind, part, i)), &object); err != nil {
					t.Fatal(err)
				}
				want, refused := where.Create(t.Context(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{FieldValidation: "Strict"})
				if refused == nil {
					remove(t, where, name(c.kind, i))
				}
				for route, snapshot := range routes {
					if route == "built" && strings.Contains(part, "annotations: {a: ") {
						continue // kustomize itself makes the text "null" of it
					}
					unit := snapshot.Units.Get(config.UnitPath("services/" + name(c.kind, i)))
					if unit == nil {
						t.Fatalf("%s: no unit", route)
					}
					bundles, err := snapshot.Bundles(unit)
					if err != nil || len(unit.Problems) > 0 != (len(bundles) == 0) {
						t.Fatalf("%s: %v %v", route, err, unit.Problems)
					}
					if len(unit.Problems) > 0 {
						if refused == nil {
							t.Errorf("%s: swell refuses what the server takes: %v", route, unit.Problems)
						}
						continue
					}
					var rendered map[string]any
					if err := json.Unmarshal(bundles[0].Objects[0].JSON, &rendered); err != nil {
						t.Fatal(err)
					}
					got, err := s.apply(where, "test", rendered)
					if err != nil {
						if refused == nil {
							t.Errorf("%s: the server takes the object and refuses what is rendered, %s: %v", route, bundles[0].Objects[0].JSON, err)
						}
						continue
					}
					remove(t, where, name(c.kind, i))
					if refused != nil {
						t.Errorf("%s: the server refuses the object and takes what is rendered, %s: %v", route, bundles[0].Objects[0].JSON, refused)
					} else if diff := cmp.Diff(withoutMarks(want.Object), withoutMarks(got.Object)); diff != "" {
						t.Errorf("%s: of the object the server makes this (-), of what is rendered that (+):\n%s", route, diff)
					}
				}
			})
		}
	}
}

var emptyValue = regexp.MustCompile(`: *([,}])`)

// tokenName is the volume of a service account's token, by a random name.
var tokenName = regexp.MustCompile(`kube-api-access-\w+`)

// await waits until objects of a kind can be had.
func (s *crdServer) await(where dynamic.ResourceInterface) {
	s.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := where.List(s.Context(), metav1.ListOptions{}); err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-s.Context().Done():
			s.Fatal(s.Context().Err())
		}
	}
}

// remove has the object gone. A controller may have deleted it before: a pod that no node
// can have, for one.
func remove(t *testing.T, where dynamic.ResourceInterface, name string) {
	t.Helper()
	if err := where.Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
}

// withoutMarks is an object without what differs from one to the next: what the
// server sets anew, and swell's own marks.
func withoutMarks(object map[string]any) map[string]any {
	u := (&unstructured.Unstructured{Object: object}).DeepCopy()
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	for _, field := range []string{"labels", "annotations"} {
		kept := map[string]any{}
		values, _, _ := unstructured.NestedStringMap(u.Object, "metadata", field)
		for key, value := range values {
			if !strings.HasPrefix(key, "swell.sh/") && key != "app.kubernetes.io/managed-by" {
				kept[key] = value
			}
		}
		unstructured.RemoveNestedField(u.Object, "metadata", field)
		if len(kept) > 0 {
			_ = unstructured.SetNestedMap(u.Object, kept, "metadata", field) // a mapping takes it
		}
	}
	spec, _, _ := unstructured.NestedMap(u.Object, "spec")
	for field := range spec {
		switch field {
		case "clusterIP", "clusterIPs": // given out by the server
			unstructured.RemoveNestedField(u.Object, "spec", field)
		case "volumes", "containers": // with the account's token, whose volume has a random name
			text, _ := json.Marshal(spec[field])
			var list []any
			_ = json.Unmarshal([]byte(tokenName.ReplaceAllString(string(text), "kube-api-access")), &list)
			_ = unstructured.SetNestedSlice(u.Object, list, "spec", field)
		}
	}
	return u.Object
}
