// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kustomize_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/testdata/large"
)

// BenchmarkAgainstKustomize makes the same objects with kustomize's own code, in
// the same three layers: a base of four objects that all services share (our
// kind), a service with its name, image, settings and config file (our spec),
// and an overlay for each target. Both run on one core; kustomize reads from
// memory, and what loads once (schemas) is loaded before.
func BenchmarkAgainstKustomize(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	few, many := snapshot(b, 50), largeTree(b, 5_000)
	disk, overlays := overlaysOf(b, few)
	buildAll(b, disk, overlays[:1])
	var c render.Compiler
	c.Snapshot("", largeTree(b, 1))
	var ours, theirs time.Duration
	objects, theirObjects := 0, 0
	for b.Loop() {
		began := time.Now()
		s := c.Snapshot("", many)
		ours += time.Since(began)
		if len(s.Problems) > 0 {
			b.Fatal(s.Problems)
		}
		objects += s.Rendered * large.ObjectsPerSpec
		c = render.Compiler{}
		began = time.Now()
		theirObjects += buildAll(b, disk, overlays)
		theirs += time.Since(began)
	}
	b.ReportMetric(float64(objects)/ours.Seconds(), "objects/s")
	b.ReportMetric(float64(theirObjects)/theirs.Seconds(), "kustomize-objects/s")
	b.ReportMetric(float64(objects)/ours.Seconds()*theirs.Seconds()/float64(theirObjects), "times-faster")
}

func buildAll(tb testing.TB, disk filesys.FileSystem, overlays []string) (objects int) {
	for _, overlay := range overlays {
		built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(disk, overlay)
		if err != nil {
			tb.Fatal(err)
		}
		if _, err := built.AsYaml(); err != nil {
			tb.Fatal(err)
		}
		objects += built.Size()
	}
	return objects
}

func largeTree(tb testing.TB, specs int) config.Tree {
	dir := tb.TempDir()
	if err := (large.Monorepo{Example: "../../testdata/monorepo", Specs: specs}).Folder(dir); err != nil {
		tb.Fatal(err)
	}
	tree := config.Files(os.DirFS(dir))
	if _, err := tree.Hash("."); err != nil { // which a Git tree has at no cost
		tb.Fatal(err)
	}
	return tree
}

func snapshot(tb testing.TB, specs int) *render.Snapshot {
	var c render.Compiler
	s := c.Snapshot("", largeTree(tb, specs))
	if len(s.Problems) > 0 {
		tb.Fatal(s.Problems)
	}
	return s
}

const base = `apiVersion: v1
kind: Service
metadata: {name: app}
spec: {ports: [{name: http, port: 80, targetPort: http}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: app}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: app}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: app}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: app}
  minReplicas: 2
  maxReplicas: 2
  metrics:
  - {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: app}
spec:
  template:
    metadata: {annotations: {example.com/config: none}}
    spec:
      containers:
      - name: main
        image: app
        ports: [{name: http, containerPort: 8080}]
        env: [{name: NETWORK, value: _NETS_}]
        resources: {requests: {cpu: 100m, memory: 128Mi}}
        readinessProbe: {httpGet: {path: /ready, port: http}}
        volumeMounts: [{name: config, mountPath: /etc/app, readOnly: true}]
      volumes: [{name: config, configMap: {name: app-config}}]
`

const service = `resources: [../../../base]
images: [{name: app, newName: registry.example.com/NAME, newTag: 1.0.0}]
configMapGenerator: [{name: app-config, files: [config.toml=app.toml], options: {disableNameSuffixHash: true}}]
labels: [{pairs: {app: NAME}, includeSelectors: true}]
patches:
- target: {kind: Deployment}
  patch: |
    - {op: replace, path: /spec/template/metadata/annotations, value: {example.com/config: HASH}}
    - {op: add, path: /spec/template/spec/containers/0/env/0, value: {name: LOG_LEVEL, value: info}}
    - {op: add, path: /spec/template/spec/containers/0/env/1, value: {name: REGION, value: sas}}
- patch: |
    apiVersion: autoscaling/v2
    kind: HorizontalPodAutoscaler
    metadata: {name: app}
    spec:
      maxReplicas: 6
      metrics:
      - {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 70}}}
- target: {}
  options: {allowNameChange: true}
  patch: |
    - {op: replace, path: /metadata/name, value: NAME}
`

const target = `namespace: NAMESPACE
resources: [../../base]
labels: [{pairs: {app.kubernetes.io/managed-by: swell, swell.sh/repository: shop, swell.sh/unit: UNITLABEL}}]
transformers:
- |
  apiVersion: builtin
  kind: AnnotationsTransformer
  metadata: {name: marks}
  annotations: {swell.sh/unit: UNITPATH}
  fieldSpecs: [{path: metadata/annotations, create: true}]
patches:
- target: {kind: Deployment}
  patch: |
    - {op: replace, path: /spec/template/spec/containers/0/env/2/value, value: NETWORK}
`

var networks = map[config.TargetName]string{"sas-1/rz00a": "_SAS_CANARY_NETS_", "sas-1/rz01a": "_SAS_NETS_"}

// overlaysOf writes layers that build to the snapshot's objects.
func overlaysOf(tb testing.TB, s *render.Snapshot) (disk filesys.FileSystem, overlays []string) {
	disk = filesys.MakeFsInMemory()
	write := func(name string, content string) {
		if err := disk.WriteFile(name, []byte(content)); err != nil {
			tb.Fatal(err)
		}
	}
	write("/services/base/kustomization.yaml", "resources: [objects.yaml]\n")
	write("/services/base/objects.yaml", base)
	for i, unit := range s.Units.Sorted() {
		bundles, err := s.Bundles(unit)
		if err != nil {
			tb.Fatal(err)
		}
		dir, name := "/"+string(unit.Path), path.Base(string(unit.Path))
		write(dir+"/base/app.toml", fmt.Sprintf("[app]\nname = %q\n", large.Unit(i)))
		write(dir+"/base/kustomization.yaml", strings.NewReplacer("NAME", name, "HASH", configHash(bundles[0])).Replace(service))
		for _, b := range bundles {
			overlay := dir + "/" + string(b.Target)
			write(overlay+"/kustomization.yaml", strings.NewReplacer("NAMESPACE", b.Objects[0].ID.Namespace, "NETWORK", networks[b.Target],
				"UNITLABEL", render.UnitLabel(unit.Path), "UNITPATH", string(unit.Path)).Replace(target))
			overlays = append(overlays, overlay)
		}
	}
	return disk, overlays
}

// configHash is the annotation that the kind computes, which kustomize cannot.
func configHash(b *object.Bundle) string {
	for _, o := range b.Objects {
		if _, after, ok := strings.Cut(string(o.JSON), `"example.com/config":"`); ok {
			hash, _, _ := strings.Cut(after, `"`)
			return hash
		}
	}
	return ""
}

// TestOverlaysAreEqual holds the benchmark's overlays against what they stand for.
func TestOverlaysAreEqual(t *testing.T) {
	s := snapshot(t, 2)
	disk, overlays := overlaysOf(t, s)
	got, want := map[string]string{}, map[string]string{}
	for _, overlay := range overlays {
		built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(disk, overlay)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range built.Resources() {
			text, err := r.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			got[r.GetNamespace()+" "+r.GetKind()+" "+r.GetName()] = string(text)
		}
	}
	for _, unit := range s.Units.Sorted() {
		bundles, err := s.Bundles(unit)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range bundles {
			for _, o := range b.Objects {
				want[o.ID.Namespace+" "+o.ID.Kind+" "+o.ID.Name] = string(o.JSON)
			}
		}
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.AcyclicTransformer("JSON", func(s string) (value any) {
		if err := json.Unmarshal([]byte(s), &value); err != nil {
			return s
		}
		return value
	})); diff != "" {
		t.Error(diff)
	}
}
