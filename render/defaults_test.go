// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
)

// TestDefaultOverrides: the overrides of Defaults hold for the targets, kinds
// and objects that they name, from the root down, and the spec's own come last.
func TestDefaultOverrides(t *testing.T) {
	files := exampleFiles(t, "swell.yaml", "fleet", "kinds/runtime", "kinds/space")
	for name, text := range map[string]string{
		"services/swell.yaml": `
  tenant: shop
  placement: {}
  overrides:
  - kind: Runtime
    object: deployment
    set:
    - {path: spec.minReadySeconds, value: 1}
    - {path: spec.progressDeadlineSeconds, value: 10}
    - {path: spec.revisionHistoryLimit, value: 1}
  - kind: Runtime
    object: deployment
    match: {labels: {region: sas}}
    update: [{path: spec, value: {template: {spec: {containers: [{name: main, tty: true}]}}}}]
  - kind: ConfigMap
    update: [{path: data, value: {all: "1"}}]
`,
		"services/shop/swell.yaml": `
  overrides:
  - {kind: Runtime, object: deployment, set: [{path: spec.minReadySeconds, value: 2}, {path: spec.progressDeadlineSeconds, value: 20}]}
  - {kind: ConfigMap, object: plain, match: {labels: {region: vla}}, update: [{path: data, value: {one: "1"}}]}
`,
		"services/shop/plain/swell.yaml": `
  placement: {topology: cluster}
`,
	} {
		files[name] = &fstest.MapFile{Data: []byte("apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: x}\nspec:" + text)}
	}
	files["services/shop/cart/x.yaml"] = &fstest.MapFile{Data: []byte(`apiVersion: easy.example.com/v1
kind: Runtime
metadata: {name: cart}
spec:
  image: registry.example.com/cart:1
  replicas: {sas: 1, myt: 1}
  config: c
  override:
    deployment:
      update:
      - {path: spec.minReadySeconds, value: 3}
`)}
	files["services/shop/plain/x.yaml"] = &fstest.MapFile{Data: []byte(`apiVersion: v1
kind: ConfigMap
metadata: {name: plain, namespace: shop}
data: {a: b}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other, namespace: shop}
data: {a: b}
`)}
	var c Compiler
	s := c.Snapshot("", config.Files(files))
	if len(s.Problems) > 0 {
		t.Fatal(s.Problems)
	}
	for _, check := range []struct {
		unit   config.UnitPath
		target config.TargetName
		id     string
		want   string
	}{
		{"services/shop/cart", "sas-1/rz00a", "Deployment/shop-rz00a/cart", "3 20 1 true"},
		{"services/shop/cart", "myt-1/rz20a", "Deployment/shop-rz20a/cart", "3 20 1 <nil>"},
		{"services/shop/cart", "sas-1/rz00a", "ConfigMap/shop-rz00a/cart", "map[config.toml:c]"}, // rendered, not written out
		{"services/shop/plain", "sas-1", "ConfigMap/shop/plain", "map[a:b all:1]"},
		{"services/shop/plain", "vla-1", "ConfigMap/shop/plain", "map[a:b all:1 one:1]"},
		{"services/shop/plain", "vla-1", "ConfigMap/shop/other", "map[a:b all:1]"},
	} {
		got := "not there"
		bundle, err := s.Bundle(check.unit, check.target)
		if err != nil || bundle == nil {
			t.Fatal(bundle, err)
		}
		for _, o := range bundle.Objects {
			if o.ID.String() != check.id {
				continue
			}
			var object struct {
				Data map[string]string
				Spec struct {
					MinReadySeconds, ProgressDeadlineSeconds, RevisionHistoryLimit int
					Template                                                       struct {
						Spec struct{ Containers []map[string]any }
					}
				}
			}
			if err := json.Unmarshal(o.JSON, &object); err != nil {
				t.Fatal(err)
			}
			got = fmt.Sprint(object.Data)
			if spec := object.Spec; len(spec.Template.Spec.Containers) > 0 {
				got = fmt.Sprint(spec.MinReadySeconds, spec.ProgressDeadlineSeconds, spec.RevisionHistoryLimit, spec.Template.Spec.Containers[0]["tty"])
			}
		}
		if diff := cmp.Diff(check.want, got); diff != "" {
			t.Errorf("%s on %s (-want +got):\n%s", check.id, check.target, diff)
		}
	}
}
