// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
)

// goldens are the objects that the tests of one of the example's kinds expect,
// by "archive target", like "basic sas-1/rz00a".
func goldens(t *testing.T, kind string) map[string][]map[string]any {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(example, "kinds", kind, "tests/*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("kind %s: no tests: %v", kind, err)
	}
	all := map[string][]map[string]any{}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			target, ok := strings.CutPrefix(f.Name, wantPrefix)
			if !ok || f.Name == wantProblems {
				continue
			}
			name := strings.TrimSuffix(filepath.Base(file), ".txtar") + " " + strings.TrimSuffix(target, ".yaml")
			for document := range strings.SplitSeq(string(f.Data), "---\n") {
				var object map[string]any
				if err := yaml.Unmarshal([]byte(document), &object); err != nil {
					t.Fatalf("%s: %s: %v", file, f.Name, err)
				}
				all[name] = append(all[name], object)
			}
		}
	}
	return all
}

// renderedObjects are the objects that a unit has on sas-1/rz00a.
func renderedObjects(t *testing.T, s *render.Snapshot, unit config.UnitPath) []map[string]any {
	t.Helper()
	bundle, err := s.Bundle(unit, "sas-1/rz00a")
	if err != nil || bundle == nil {
		t.Fatalf("%s: nothing is rendered: %v; %s", unit, err, s.Problems)
	}
	var objects []map[string]any
	for _, o := range bundle.Objects {
		var object map[string]any
		if err := json.Unmarshal(o.JSON, &object); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
	return objects
}

// configFile is a file in a ConfigMap.
type configFile struct{ namespace, text string }

// configOf finds a file in a ConfigMap among objects; the zero value when it is
// not there.
func configOf(objects []map[string]any, name string) configFile {
	for _, object := range objects {
		text, there, _ := unstructured.NestedString(object, "data", name)
		if there && object["kind"] == "ConfigMap" {
			namespace, _, _ := unstructured.NestedString(object, "metadata", "namespace")
			return configFile{namespace, text}
		}
	}
	return configFile{}
}

// vectorConfig is the parts of Vector's configuration that the test looks at.
type vectorConfig struct {
	Sources map[string]struct {
		Type  string
		Field string `json:"extra_field_selector"`
	}
	Transforms, Sinks map[string]struct{ Inputs []string }
}

// pipelines checks that every component has its inputs and that only pods of
// one namespace are read. It returns the sources of logs.
func (c *vectorConfig) pipelines(t *testing.T, namespace string) []string {
	t.Helper()
	var logs []string
	for name, source := range c.Sources {
		if source.Type != "kubernetes_logs" {
			continue
		}
		logs = append(logs, name)
		if want := "metadata.namespace=" + namespace; source.Field != want {
			t.Errorf("source %s reads pods of %q, want %q", name, source.Field, want)
		}
	}
	read := map[string]bool{}
	known := func(name string) bool {
		_, source := c.Sources[name]
		_, transform := c.Transforms[name]
		read[name] = true
		return source || transform
	}
	for name, transform := range c.Transforms {
		if len(transform.Inputs) != 1 || !known(transform.Inputs[0]) {
			t.Errorf("transform %s: inputs %q", name, transform.Inputs)
		}
	}
	for name, sink := range c.Sinks {
		if len(sink.Inputs) != 1 || !known(sink.Inputs[0]) {
			t.Errorf("sink %s: inputs %q", name, sink.Inputs)
		}
	}
	for name := range c.Transforms {
		if !read[name] {
			t.Errorf("transform %s: nobody reads it", name)
		}
	}
	slices.Sort(logs)
	return logs
}

// TestLogAgents: an agent has the pipelines of its tenant in its cell and no
// others, and its configuration holds together.
func TestLogAgents(t *testing.T) {
	s := checkedExample(t, nil).Snapshot
	agents := map[string][]map[string]any{
		"shop":   renderedObjects(t, s, "services/shop/logs"),
		"search": renderedObjects(t, s, "services/search/logs"),
	}
	for name, objects := range goldens(t, "log-agent") {
		agents[name] = objects
	}
	got := map[string][]string{}
	for name, objects := range agents {
		var c vectorConfig
		file := configOf(objects, "vector.yaml")
		if err := yaml.Unmarshal([]byte(file.text), &c); err != nil {
			t.Errorf("%s: %v\n%s", name, err, file.text)
			continue
		}
		got[name] = c.pipelines(t, file.namespace)
	}
	want := map[string][]string{
		"shop":                {"services_shop_checkout_orders", "services_shop_web_access"},
		"search":              {"services_search_api_queries"},
		"alone sas-1/rz00a":   nil,
		"invalid sas-1/rz00a": {"services_log-agent_invalid_good_good"},
		"tenants sas-1/rz00a": {"services_log-agent_tenants_cart_carts", "services_log-agent_tenants_web_access"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestInvalidPipelineIsExcluded: it is named where the agent leaves it out.
func TestInvalidPipelineIsExcluded(t *testing.T) {
	broken := "apiVersion: easy.example.com/v1\nkind: LogPipeline\nmetadata: {name: broken}\nspec: {apps: [web], levle: INFO}\n"
	c := checkedExample(t, map[string]string{"services/shop/broken/logs.yaml": broken})
	agent := c.Units.Get("services/shop/logs")
	if len(agent.Problems) > 0 || len(agent.Notes) != 1 ||
		agent.Notes[0].String() != `services/shop/broken/logs.yaml:1:1: left out of pipelines by services/shop/logs: services/shop/broken/logs.yaml:4:21: spec.levle: unknown field, did you mean "level"?` {
		t.Errorf("problems %v, notes %v", agent.Problems, agent.Notes)
	}
	before := configOf(renderedObjects(t, checkedExample(t, nil).Snapshot, "services/shop/logs"), "vector.yaml")
	if after := configOf(renderedObjects(t, c.Snapshot, "services/shop/logs"), "vector.yaml"); after != before {
		t.Errorf("the agent's configuration changed (-before +after):\n%s", cmp.Diff(before.text, after.text))
	}
}

// TestStoreNames: what cannot be changed in place has another name after a
// change; what can be keeps it.
func TestStoreNames(t *testing.T) {
	names := func(test, kind string) []string {
		var all []string
		for _, object := range goldens(t, "store")[test+" sas-1/rz00a"] {
			if object["kind"] == kind {
				name, _, _ := unstructured.NestedString(object, "metadata", "name")
				all = append(all, name)
			}
		}
		slices.Sort(all)
		return all
	}
	overlap := func(a, b []string) bool {
		return slices.ContainsFunc(a, func(name string) bool { return slices.Contains(b, name) })
	}
	sets, jobs := names("basic", "StatefulSet"), names("basic", "Job")
	if len(sets) != 2 || len(jobs) != 2 {
		t.Fatalf("StatefulSets %q, Jobs %q: want two of each", sets, jobs)
	}
	if other := names("renamed", "StatefulSet"); len(other) != 2 || overlap(sets, other) {
		t.Errorf("another size of disk: StatefulSets %q, before %q", other, sets)
	}
	if same := names("upgraded", "StatefulSet"); !slices.Equal(same, sets) {
		t.Errorf("another image: StatefulSets %q, before %q", same, sets)
	}
	for _, test := range []string{"renamed", "upgraded"} {
		if other := names(test, "Job"); len(other) != 2 || overlap(jobs, other) {
			t.Errorf("%s: Jobs %q, before %q", test, other, jobs)
		}
	}
}
