// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/schema"
	"github.com/swell-sh/swell/testdata/large"
)

// BenchmarkAgainstKubeconform has kubeconform check the objects of a thousand units, ten
// Kubernetes objects and a custom resource with rules each, with the same schemas as
// swell. swell checks them twice: as the same plain files, and as the easy specs that the
// ten are rendered from. Both read, parse and check; what a core does a second is
// compared. kubeconform knows neither rules in CEL, nor policies, nor tenants.
func BenchmarkAgainstKubeconform(b *testing.B) {
	const units = 1000
	program := kubeconform(b)
	schemas := b.TempDir()
	writeSchemas(b, schemas)
	dir := b.TempDir()
	objects := plainMonorepo(b, dir, units)
	easy := bigMonorepo(b, large.Monorepo{Specs: units, Checked: true})
	check := func(dir string, objects int) float64 {
		tree := config.Files(os.DirFS(dir))
		began := cpuTime(b)
		var c Compiler
		s := c.Snapshot("", tree)
		took := (cpuTime(b) - began).Seconds()
		if len(s.Problems) > 0 {
			b.Fatal(s.Problems[0])
		}
		if got := countObjects(s); got != objects {
			b.Fatalf("%d objects, want %d", got, objects)
		}
		return took
	}
	var plain, specs, theirs float64
	for b.Loop() {
		plain += check(dir, objects)
		specs += check(easy, units*large.ObjectsPerSpec)
		cmd := exec.Command(program, "-strict", "-n", "1", "-summary", "-output", "json", "-kubernetes-version", "1.36.0", "-ignore-filename-pattern", "swell.yaml",
			"-schema-location", filepath.Join(schemas, "{{.ResourceKind}}{{.KindSuffix}}.json"), filepath.Join(dir, "services"))
		out, err := cmd.CombinedOutput()
		var report struct {
			Summary struct{ Valid, Invalid, Errors, Skipped int }
		}
		if jsonErr := json.Unmarshal(out, &report); err != nil || jsonErr != nil || report.Summary.Valid != objects {
			b.Fatalf("%v %v %+v, want %d valid\n%.2000s", err, jsonErr, report.Summary, objects, out)
		}
		theirs += (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	}
	n := float64(objects * b.N)
	b.ReportMetric(n/theirs, "kubeconform-objects/s/core")
	b.ReportMetric(n/plain, "plain-objects/s/core")
	b.ReportMetric(theirs/plain, "times-kubeconform-plain")
	easyObjects := float64(units * large.ObjectsPerSpec * b.N)
	b.ReportMetric(easyObjects/specs, "easy-objects/s/core")
	b.ReportMetric((easyObjects/specs)/(n/theirs), "times-kubeconform-easy")
}

func kubeconform(tb testing.TB) string {
	tb.Helper()
	program := filepath.Join(tb.TempDir(), "kubeconform")
	build := exec.Command("go", "build", "-modfile=deploy/tools/go.mod", "-o", program, "github.com/yannh/kubeconform/cmd/kubeconform")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		tb.Fatalf("%v: %s", err, out)
	}
	return program
}

// gauge is a custom resource with rules of the common sorts.
const gauge = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gauges.example.com}
spec:
  group: example.com
  names: {plural: gauges, kind: Gauge, singular: gauge, listKind: GaugeList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          apiVersion: {type: string}
          kind: {type: string}
          metadata: {type: object}
          spec:
            type: object
            x-kubernetes-validations:
            - {rule: self.min <= self.max, message: min above max}
            - {rule: "self.steps.all(s, s >= self.min && s <= self.max)"}
            properties:
              min: {type: integer}
              max: {type: integer}
              name: {type: string, maxLength: 40, pattern: "^[a-z0-9-]+$"}
              steps: {type: array, maxItems: 10, items: {type: integer}}
`

// plainMonorepo writes units of plain objects: what the large monorepo renders to, and a
// custom resource. It returns how many objects there are.
func plainMonorepo(tb testing.TB, dir string, units int) (objects int) {
	tb.Helper()
	from := bigMonorepo(tb, large.Monorepo{Specs: units})
	var c Compiler
	s := c.Snapshot("", config.Files(os.DirFS(from)))
	write := func(name, content string) {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	for _, name := range []string{"swell.yaml", "fleet/sas-1.yaml", "fleet/rollout.yaml"} {
		content, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			tb.Fatal(err)
		}
		write(name, string(content))
	}
	if err := (large.Monorepo{Specs: units}).Checks(large.Into(dir)); err != nil {
		tb.Fatal(err)
	}
	write("schemas/gauge.yaml", gauge)
	for _, unit := range s.Units.All() {
		bundles, err := s.Bundles(unit)
		if err != nil {
			tb.Fatal(err)
		}
		var text bytes.Buffer
		for _, bundle := range bundles {
			for _, o := range bundle.Objects {
				text.Write(plainYAML(tb, o.JSON))
				objects++
			}
		}
		namespace := bundles[0].Objects[0].ID.Namespace
		name := filepath.Base(string(unit.Path))
		fmt.Fprintf(&text, "---\napiVersion: example.com/v1\nkind: Gauge\nmetadata: {name: %s, namespace: %s}\nspec: {min: 1, max: 9, name: %s, steps: [1, 5, 9]}\n", name, namespace, name)
		objects++
		write(string(unit.Path)+"/objects.yaml", text.String())
		team := filepath.Base(filepath.Dir(string(unit.Path)))
		write("services/"+team+"/swell.yaml", fmt.Sprintf("apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: %s}\nspec: {tenant: %s, placement: {topology: cluster, match: {labels: {region: sas}}}}\n", team, team))
	}
	return objects
}

// plainYAML is an object as people would write it, without what swell adds.
func plainYAML(tb testing.TB, object []byte) []byte {
	tb.Helper()
	var m map[string]any
	if err := json.Unmarshal(object, &m); err != nil {
		tb.Fatal(err)
	}
	metadata := m["metadata"].(map[string]any)
	for _, field := range []string{"labels", "annotations"} {
		values, _ := metadata[field].(map[string]any)
		for _, key := range config.LabelsSet {
			delete(values, key)
		}
	}
	out, err := yaml.Marshal(m)
	if err != nil {
		tb.Fatal(err)
	}
	return append([]byte("---\n"), out...)
}

// writeSchemas writes the schemas of the newest Kubernetes, and of the custom resource,
// as kubeconform finds them, with unknown fields refused.
func writeSchemas(tb testing.TB, dir string) {
	tb.Helper()
	types, kinds, err := schema.Published("")
	if err != nil {
		tb.Fatal(err)
	}
	write := func(name string, value any) {
		content, err := json.Marshal(value)
		if err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	definitions := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(types)) {
		var t map[string]any
		text := strings.ReplaceAll(string(types[name]), "#/components/schemas/", "#/definitions/")
		if err := json.Unmarshal([]byte(text), &t); err != nil {
			tb.Fatal(err)
		}
		if t["properties"] != nil {
			t["additionalProperties"] = false
		}
		definitions[name] = t
	}
	write("_definitions.json", map[string]any{"definitions": definitions})
	for kind, name := range kinds {
		apiVersion, kindName, _ := strings.Cut(kind, " ")
		write(kubeconformFile(apiVersion, kindName), map[string]any{"$ref": "_definitions.json#/definitions/" + name})
	}
	var crd map[string]any
	if err := yaml.Unmarshal([]byte(gauge), &crd); err != nil {
		tb.Fatal(err)
	}
	version := crd["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
	custom := version["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
	custom["additionalProperties"] = false
	custom["properties"].(map[string]any)["spec"].(map[string]any)["additionalProperties"] = false
	write(kubeconformFile("example.com/v1", "Gauge"), custom)
}

// kubeconformFile is the name of a kind's schema: deployment-apps-v1.json.
func kubeconformFile(apiVersion, kind string) string {
	suffix := strings.ReplaceAll(apiVersion, "/", "-")
	if group, version, ok := strings.Cut(apiVersion, "/"); ok {
		group, _, _ = strings.Cut(group, ".")
		suffix = group + "-" + version
	}
	return strings.ToLower(kind) + "-" + suffix + ".json"
}
