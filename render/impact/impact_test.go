// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package impact

import (
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
)

const box = "schemas/box.yaml"

// unusedVersion takes a version away that no object of the tree has.
var unusedVersion = [3]string{box, "  - {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}\n", ""}

// texts is a monorepo with a kind whose message is in a folder of others, two units of
// it, and a definition with an object.
var texts = map[string]string{
	"swell.yaml":          "apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: shop}\nspec: {protoPath: [protos]}\n",
	"fleet/one.yaml":      "apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: one}\nspec: {tenants: [\"*\"]}\n---\napiVersion: swell.sh/v1\nkind: Rollout\nmetadata: {name: default}\nspec: {waves: [{name: all}]}\n",
	"services/swell.yaml": "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: all}\nspec: {placement: {topology: cluster}}\n",
	"kinds/app/kind.yaml": `apiVersion: swell.sh/v1
kind: EasyKind
metadata: {name: app}
spec:
  message: app.v1.App
  objects:
  - id: config
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "${self.metadata.name}", namespace: apps}
      data: {ports: "${string(size(self.spec.net.ports))}"}
`,
	"kinds/app/app.proto": `syntax = "proto3";
package app.v1;
import "library/go/k8s/protoc_gen_crd/proto/crd.proto";
import "net/v1/net.proto";
message App {
  option (protoc_gen_crd.k8s_crd) = {api_group: "apps.example.com", kind: "App"};
  AppSpec spec = 1;
}
message AppSpec { net.v1.Net net = 1; }
`,
	"protos/net/v1/net.proto": `syntax = "proto3";
package net.v1;
message Net {
  repeated int32 ports = 1;
  string host = 2;
}
`,
	"services/a/app.yaml": "apiVersion: apps.example.com/v1\nkind: App\nmetadata: {name: a}\nspec: {net: {ports: [80], host: a}}\n",
	"services/b/app.yaml": "apiVersion: apps.example.com/v1\nkind: App\nmetadata: {name: b}\nspec: {net: {ports: [80, 81]}}\n",
	"schemas/box.yaml": `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boxes.example.org}
spec:
  group: example.org
  names: {kind: Box, plural: boxes}
  scope: Namespaced
  versions:
  - {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`,
	"services/c/box.yaml": "apiVersion: example.org/v1\nkind: Box\nmetadata: {name: c, namespace: apps}\nspec: {}\n",
}

func tree(all map[string]string) config.Tree {
	files := fstest.MapFS{}
	for name, text := range all {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return config.Files(files)
}

// judged is what a change of files does to the monorepo. Each change is a file, a text in
// it, and another one; a file without texts is removed.
func judged(t *testing.T, before map[string]string, changes ...[3]string) (*Report, []Changed) {
	t.Helper()
	after := maps.Clone(before)
	for _, c := range changes {
		name, from, to := c[0], c[1], c[2]
		if from+to == "" {
			delete(after, name)
			continue
		}
		changed := strings.Replace(after[name], from, to, 1)
		if changed == after[name] {
			t.Fatalf("%s has no %q", name, from)
		}
		after[name] = changed
	}
	var c render.Compiler
	base := c.Snapshot("", tree(before))
	if len(base.Problems) > 0 {
		t.Fatal(base.Problems)
	}
	head := config.Load(tree(after), nil)
	var mixed *render.Snapshot
	if Touched(base.Repository, head) {
		mixed = c.Snapshot("", Tree(base.Repository, head))
	}
	report, err := Judge(base, mixed, c.Snapshot("", tree(after)))
	if err != nil {
		t.Fatal(err)
	}
	changed, err := Changes(base, mixed)
	if err != nil {
		t.Fatal(err)
	}
	return report, changed
}

func linesOf(r *Report) (all []string) {
	for _, f := range r.Findings {
		all = append(all, f.Position.String()+" "+string(f.Severity)+" "+string(f.Rule)+" "+f.At)
	}
	for _, b := range r.Broken {
		for _, at := range b.Places {
			all = append(all, "breaks "+at.String())
		}
	}
	for _, b := range r.Mended {
		for _, at := range b.Places {
			all = append(all, "broke "+at.String())
		}
	}
	for _, p := range r.Unjudged {
		all = append(all, "unjudged "+p.Position.String())
	}
	return all
}

// TestJudge: what is found, and which documents break.
func TestJudge(t *testing.T) {
	const net, kind = "protos/net/v1/net.proto", "kinds/app/kind.yaml"
	remove := [3]string{net, "  string host = 2;\n", "  reserved 2;\n  reserved \"host\";\n"}
	for _, test := range []struct {
		name    string
		changes [][3]string
		want    []string
	}{
		{"nothing", nil, nil},
		{"a spec", [][3]string{{"services/a/app.yaml", "host: a", "host: b"}}, nil},
		{"a spec with a mistake", [][3]string{{"services/a/app.yaml", "host: a", "hots: b"}}, nil},
		{"an import on the path of protos", [][3]string{remove}, []string{net + ":3:1 breaking FIELD_REMOVED App.spec.net.host", "breaks services/a/app.yaml:4:27"}},
		{"mended", [][3]string{remove, {"services/a/app.yaml", ", host: a", ""}}, []string{net + ":3:1 breaking FIELD_REMOVED App.spec.net.host", "broke services/a/app.yaml:4:27"}},
		{"its unit is gone", [][3]string{remove, {"services/a/app.yaml"}}, []string{net + ":3:1 breaking FIELD_REMOVED App.spec.net.host", "broke services/a/app.yaml:4:27"}},
		{"a template that fails for some", [][3]string{{kind, "string(size(self.spec.net.ports))", "string(self.spec.net.ports[1])"}}, []string{"breaks services/a/app.yaml:1:1"}},
		{"a template that does not load", [][3]string{{kind, "self.spec.net.ports", "self.spec.net.prots"}}, []string{"unjudged " + kind + ":12:21"}},
		{"the kind is gone", [][3]string{{kind}, {"kinds/app/app.proto"}}, []string{kind + " breaking KIND_REMOVED App", "breaks services/a/app.yaml:1:1", "breaks services/b/app.yaml:1:1"}},
		{"a version that nobody has", [][3]string{unusedVersion},
			[]string{box + ":8:3 warning CRD_VERSION_REMOVED Box.v1beta1"}},
		{"a version that an object has", [][3]string{{box, "- {name: v1, served: true, storage: true", "- {name: v2, served: true, storage: true"}},
			[]string{box + ":8:3 breaking CRD_STORAGE_VERSION_REMOVED Box.v1", box + ":8:3 breaking CRD_VERSION_REMOVED Box.v1", "breaks services/c/box.yaml:1:1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			report, _ := judged(t, texts, test.changes...)
			if diff := cmp.Diff(test.want, linesOf(report)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestStoredVersions: the tree has no object of the version, but a cluster has, as the
// facts say.
func TestStoredVersions(t *testing.T) {
	before := maps.Clone(texts)
	before["facts/one.yaml"] = `{"apiVersion": "swell.sh/v1", "kind": "ClusterFacts", "metadata": {"name": "one"}, "spec": {
"pulled": "2026-11-23T12:00:00Z", "kubernetes": "v1.36.0",
"definitions": [
  {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "boxes.example.org"},
   "spec": {"group": "example.org", "names": {"kind": "Box", "plural": "boxes"}, "scope": "Namespaced", "versions": [
     {"name": "v1beta1", "served": true, "storage": false, "schema": {"openAPIV3Schema": {"type": "object"}}},
     {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]},
   "status": {"storedVersions": ["v1beta1", "v1"]}}
]}}
`
	report, _ := judged(t, before, unusedVersion)
	want := []string{box + ":8:3 breaking CRD_STORAGE_VERSION_REMOVED Box.v1beta1", box + ":8:3 breaking CRD_VERSION_REMOVED Box.v1beta1"}
	if diff := cmp.Diff(want, linesOf(report)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestChanges: objects that come out otherwise are counted, whatever changes in specs.
func TestChanges(t *testing.T) {
	_, changed := judged(t, texts, [3]string{"kinds/app/kind.yaml", "data: {ports", "data: {count"}, [3]string{"services/b/app.yaml", "[80, 81]", "[80, 82]"})
	want := []Changed{{Action: "configured", Kind: "ConfigMap", Fields: []string{"data.count", "data.ports"}, Units: []config.UnitPath{"services/a", "services/b"}, Objects: 2}}
	if diff := cmp.Diff(want, changed); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, changed := judged(t, texts, [3]string{"services/b/app.yaml", "[80, 81]", "[80, 82]"}); len(changed) > 0 {
		t.Errorf("a spec alone: %v", changed)
	}
}

// TestDefinitionsPerCluster: a definition is compared with the one that has its place in
// the same cluster, and what some clusters meet names them.
func TestDefinitionsPerCluster(t *testing.T) {
	const crd = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: jars.example.org}
spec:
  group: example.org
  scope: Cluster
  names: {kind: Jar, plural: jars}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {SIZE: {type: integer}}}}}}}
`
	before := maps.Clone(texts)
	for _, cluster := range []string{"two", "three"} {
		before["fleet/"+cluster+".yaml"] = "apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: " + cluster + ", labels: {name: " + cluster + "}}\nspec: {tenants: [\"*\"]}\n"
		before["jars/"+cluster+"/swell.yaml"] = "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: " + cluster + "}\nspec: {placement: {topology: cluster, match: {labels: {name: " + cluster + "}}}}\n"
	}
	before["swell.yaml"] = strings.Replace(before["swell.yaml"], "{protoPath: [protos]}", "{protoPath: [protos], units: [services, jars]}", 1)
	before["jars/two/crd/crd.yaml"], before["jars/three/crd/crd.yaml"] = strings.Replace(crd, "SIZE", "size", 1), strings.Replace(crd, "SIZE", "width", 1)
	for _, test := range []struct {
		name    string
		changes [][3]string
		want    []string
	}{
		{"nothing", nil, nil},
		{"one of two", [][3]string{{"jars/three/crd/crd.yaml", "width:", "height:"}}, []string{"jars/three/crd/crd.yaml:9:120 breaking CRD_FIELD_REMOVED Jar/v1.spec.width"}},
		{"they change places", [][3]string{{"jars/two/swell.yaml", "{name: two}}}}", "{name: three}}}}"}, {"jars/three/swell.yaml", "{name: three}}}}", "{name: two}}}}"}},
			[]string{"jars/three/crd/crd.yaml:9:120 breaking CRD_FIELD_REMOVED Jar/v1.spec.size", "jars/two/crd/crd.yaml:9:120 breaking CRD_FIELD_REMOVED Jar/v1.spec.width"}},
		{"gone from one", [][3]string{{"jars/two/crd/crd.yaml"}}, []string{"jars/two/crd/crd.yaml:1:1 breaking CRD_REMOVED Jar"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			report, _ := judged(t, before, test.changes...)
			if diff := cmp.Diff(test.want, linesOf(report)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, f := range report.Findings {
				if !strings.Contains(f.Message, "(in t") {
					t.Errorf("%s does not say where", f.Message)
				}
			}
		})
	}
}
