// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"maps"
	"strings"
	"testing"
	"testing/fstest"
)

// richFiles is a small monorepo that uses everything that the compiler follows:
// data, files of specs and of kinds, nested kinds, collections, kustomize with
// bases elsewhere, custom resources, overrides of Defaults.
func richFiles() fstest.MapFS {
	files := fstest.MapFS{}
	for name, text := range richTexts {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return files
}

// with is the files with some changed; an empty text takes a file away.
func with(files fstest.MapFS, texts map[string]string) fstest.MapFS {
	files = maps.Clone(files)
	for name, text := range texts {
		files[name] = &fstest.MapFile{Data: []byte(text)}
		if text == "" {
			delete(files, name)
		}
	}
	return files
}

func protoOf(kindName, fields string) string {
	return `syntax = "proto3";
package rich;
import "github.com/yandex/protoc-gen-crd/library/go/k8s/protoc_gen_crd/proto/crd.proto";
message ` + kindName + ` {
  option (protoc_gen_crd.k8s_crd) = {api_group: "easy.example.com", kind: "` + kindName + `"};
  ` + kindName + `Spec spec = 1;
}
message ` + kindName + "Spec {\n" + fields + "}\n"
}

func easyKind(kindName, rest string) string {
	return "apiVersion: swell.sh/v1\nkind: EasyKind\nmetadata: {name: x}\nspec:\n  message: rich." + kindName + "\n" + rest
}

func easySpec(kindName, name, spec string) string {
	return "apiVersion: easy.example.com/v1\nkind: " + kindName + "\nmetadata: {name: " + name + "}\nspec: " + spec + "\n"
}

func defaultsOf(spec string) string {
	return "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: x}\nspec:\n  " + spec + "\n"
}

func crdOf(kindName, plural, group string) string {
	return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: " + plural + "." + group + "}\nspec:\n  group: " + group +
		"\n  names: {kind: " + kindName + ", plural: " + plural + "}\n  scope: Namespaced\n  versions:\n  - name: v1\n    served: true\n    storage: true\n" +
		"    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}\n"
}

func configMapOf(name, namespace, value string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: " + namespace + "}\ndata: {key: \"" + value + "\"}\n"
}

const configMapTemplate = "      apiVersion: v1\n      kind: ConfigMap\n"

var richTexts = map[string]string{
	"swell.yaml": "apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: rich}\nspec: {fleet: fleet, kinds: kinds, data: data, units: [services]}\n",
	"fleet/one.yaml": `apiVersion: swell.sh/v1
kind: Cluster
metadata: {name: one, labels: {region: a, tier: prod}}
spec:
  kubernetes: "1.36"
  tenants: ["*"]
  variables: {net: n1}
  cells:
  - {name: c1, labels: {ring: canary}}
  - {name: c2, variables: {net: n2}}
`,
	"fleet/two.yaml": `apiVersion: swell.sh/v1
kind: Cluster
metadata: {name: two, labels: {region: b}}
spec:
  kubernetes: "1.35"
  tenants: ["*"]
  variables: {net: n3}
`,
	"fleet/rollout.yaml": "apiVersion: swell.sh/v1\nkind: Rollout\nmetadata: {name: default}\nspec: {waves: [{name: all}]}\n---\n" +
		"apiVersion: swell.sh/v1\nkind: Rollout\nmetadata: {name: other}\nspec: {waves: [{name: all}]}\n",
	"data/quotas.yaml": "shop: {pods: 5}\npay: {pods: 7}\nunused: 1\n",
	"data/zones.yaml":  "a: north\nb: south\n",

	"kinds/app/app.proto": protoOf("App", "  string image = 1;\n  string config = 2;\n  int32 size = 3;\n"),
	"kinds/app/kind.yaml": easyKind("App", `  let:
  - {name: ns, value: "unit.tenant + '-' + target.name.replace('/', '-')"}
  objects:
  - id: main
    template:
`+configMapTemplate+`      metadata: {name: "${self.metadata.name}", namespace: "${ns}"}
      data: {image: "${self.spec.image}", zone: "${data.zones[target.labels.region]}"}
  - id: config
    when: self.spec.config != ''
    template:
`+configMapTemplate+`      metadata: {name: "${self.metadata.name}-config", namespace: "${ns}"}
      data: {config: "${file(self.spec.config)}", rendered: "${template('app.tmpl', {'net': target.variables['net']})}"}
`),
	"kinds/app/app.tmpl": "net={{.net}}\n",

	"kinds/room/room.proto": protoOf("Room", "  bool quota = 1;\n"),
	"kinds/room/kind.yaml": easyKind("Room", `  let:
  - {name: ns, value: "unit.tenant + '-' + target.name.replace('/', '-')"}
  objects:
  - id: namespace
    template: {apiVersion: v1, kind: Namespace, metadata: {name: "${ns}"}}
  - id: quota
    when: self.spec.quota
    template:
      apiVersion: v1
      kind: ResourceQuota
      metadata: {name: quota, namespace: "${ns}"}
      spec: {hard: {pods: "${string(data.quotas[unit.tenant].pods)}"}}
`),

	"kinds/stack/stack.proto": protoOf("Stack", "  string image = 1;\n  repeated string parts = 2;\n"),
	"kinds/stack/kind.yaml": easyKind("Stack", `  objects:
  - id: part
    each: {part: self.spec.parts}
    template:
      apiVersion: easy.example.com/v1
      kind: App
      metadata: {name: "${self.metadata.name}-${part}"}
      spec: {image: "${self.spec.image}"}
`),

	"kinds/pipe/pipe.proto": protoOf("Pipe", "  string source = 1;\n  string body = 2;\n"),
	"kinds/pipe/kind.yaml":  easyKind("Pipe", "  objects: []\n"),

	"kinds/vector/vector.proto": protoOf("Vector", "  string note = 1;\n"),
	"kinds/vector/kind.yaml": easyKind("Vector", `  collect:
    pipes: {kind: Pipe, scope: fleet}
  objects:
  - id: config
    template:
`+configMapTemplate+`      metadata: {name: "${self.metadata.name}", namespace: vector}
      data: {pipes: "${pipes.map(p, p.unit.path + ':' + p.metadata.name + '=' + p.spec.source).join(',')}"}
`),
	"kinds/gather/gather.proto": protoOf("Gather", "  string note = 1;\n"),
	"kinds/gather/kind.yaml": easyKind("Gather", `  collect:
    pipes: {kind: Pipe, scope: tenant, onInvalid: hold}
  objects:
  - id: config
    template:
`+configMapTemplate+`      metadata: {name: "${self.metadata.name}", namespace: "gather-${target.name.replace('/', '-')}"}
      data: {pipes: "${pipes.map(p, p.metadata.name + '=' + p.spec.source).join(',')}"}
`),
	"kinds/box/box.proto": protoOf("Box", "  int32 size = 1;\n"),
	"kinds/box/kind.yaml": easyKind("Box", `  objects:
  - id: box
    template:
      apiVersion: boxes.example.org/v1
      kind: Carton
      metadata: {name: "${self.metadata.name}", namespace: boxes}
      spec: {size: "${self.spec.size}"}
`),

	// All that could follow the machine: its zone, its zone files, its locale.
	"kinds/times/times.proto": strings.Replace(protoOf("Times", "  string at = 1;\n  google.protobuf.Timestamp moment = 2;\n  double part = 3;\n  map<string, double> parts = 4;\n"), "import ", "import \"google/protobuf/timestamp.proto\";\nimport ", 1),
	"kinds/times/kind.yaml": easyKind("Times", `  let:
  - {name: at, value: timestamp(self.spec.at)}
  - {name: parts, value: "['getFullYear', at.getFullYear('Europe/Berlin'), at.getMonth('America/New_York'), at.getDayOfYear('Asia/Kathmandu')]"}
  objects:
  - id: times
    template:
`+configMapTemplate+`      metadata: {name: "${self.metadata.name}", namespace: boxes}
      data:
        berlin: "${at.getHours('Europe/Berlin')}:${at.getMinutes('Asia/Kathmandu')}:${at.getSeconds('UTC')}.${at.getMilliseconds('+02:00')}"
        days: "${at.getDate('Pacific/Auckland')} ${at.getDayOfMonth('Pacific/Auckland')} ${at.getDayOfWeek('Pacific/Auckland')} ${at.getHours()}"
        texts: "${string(at)} ${at} ${string(at + duration('4800h'))} ${'%s'.format([at + duration('4800h')])} ${parts.map(p, string(p)).join(' ')}"
        moment: "${string(self.spec.moment + duration('4800h'))} ${self.spec.moment.getHours('Europe/Berlin')}"
        numbers: "${self.spec.part} ${yaml.encode(self.spec.parts)} ${json.encode(self.spec.parts)} ${hash(self.spec.parts)} ${self.spec.part / 3.0}"
        file: "${template('times.tmpl', self.spec)}"
`),
	"kinds/times/times.tmpl":             "{{upper \"titi\"}} {{lower \"TITI\"}} {{printf \"%g %6.3f %e\" .part .part .part}} {{range keys .parts}}{{.}} {{end}}{{json .parts}} {{.moment}}",
	"services/platform/times/times.yaml": easySpec("Times", "times", `{at: "2026-01-01T00:30:00.5+01:00", moment: "2026-01-01T00:30:00+05:45", part: 0.1, parts: {a: 1e21, b: 0.30000000000000004, c: 1e-7}}`),

	"services/swell.yaml": defaultsOf("placement: {topology: cell}\n  labels: {team: none}"),
	"services/shop/swell.yaml": defaultsOf("tenant: shop\n  placement: {match: {labels: {region: [a, b]}}}\n  overrides:\n" +
		"  - kind: App\n    object: main\n    match: {labels: {region: a}}\n    update:\n    - {path: data.extra, value: \"yes\"}\n"),
	"services/shop/room/room.yaml":             easySpec("Room", "room", "{quota: true}"),
	"services/shop/cart/app.yaml":              easySpec("App", "cart", "{image: \"cart:1\", config: conf/cart.toml}"),
	"services/shop/cart/conf/cart.toml":        "[cart]\n",
	"services/shop/cart/pipe.yaml":             easySpec("Pipe", "cart", "{source: cart}"),
	"services/shop/stack/stack.yaml":           easySpec("Stack", "stack", "{image: \"stack:1\", parts: [a, b]}"),
	"services/shop/gather/x.yaml":              easySpec("Gather", "gather", "{}") + "---\n" + easySpec("Pipe", "own", "{source: own}"),
	"services/pay/swell.yaml":                  defaultsOf("tenant: pay"),
	"services/pay/room/room.yaml":              easySpec("Room", "room", "{}"),
	"services/pay/ledger/app.yaml":             easySpec("App", "ledger", "{image: \"ledger:1\"}"),
	"services/pay/pipe/pipe.yaml":              easySpec("Pipe", "ledger", "{source: ledger}"),
	"services/pay/shared/swell.yaml":           defaultsOf("placement: {topology: cluster}"),
	"services/pay/shared/x.yaml":               configMapOf("shared", "shared", "1"),
	"services/platform/swell.yaml":             defaultsOf("tenant: platform\n  placement: {topology: cluster}"),
	"services/platform/crds/carton.yaml":       crdOf("Carton", "cartons", "boxes.example.org"),
	"services/platform/crds/tube.yaml":         crdOf("Tube", "tubes", "tubes.example.org"),
	"services/platform/boxes/box.yaml":         easySpec("Box", "small", "{size: 1}"),
	"services/platform/tubes/tube.yaml":        "apiVersion: tubes.example.org/v1\nkind: Tube\nmetadata: {name: tube, namespace: boxes}\nspec: {size: 2}\n",
	"services/platform/spaces/x.yaml":          "apiVersion: v1\nkind: Namespace\nmetadata: {name: boxes}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: vector}\n",
	"services/platform/vector/x.yaml":          easySpec("Vector", "vector", "{}"),
	"services/platform/web/kustomization.yaml": "namespace: boxes\nresources: [../../../bases/web, sub/x.yaml]\n",
	"services/platform/web/sub/x.yaml":         configMapOf("sub", "boxes", "1"),
	"bases/web/kustomization.yaml":             "resources: [x.yaml]\n",
	"bases/web/x.yaml":                         configMapOf("web", "boxes", "1"),
}

// TestRich: the monorepo that other tests change is right as it stands.
func TestRich(t *testing.T) {
	var c Compiler
	s := snapshot(&c, richFiles())
	if len(s.Problems) > 0 {
		t.Fatal(s.Problems)
	}
	if s.Units.Len() != 15 {
		t.Errorf("%d units, want 15", s.Units.Len())
	}
	for _, unit := range s.Units.Sorted() {
		if objectsIn(s, unit.Path) == 0 && unit.Path != "services/pay/pipe" {
			t.Errorf("%s renders to nothing", unit.Path)
		}
	}
}
