// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"testing"

	"github.com/swell-sh/swell/config"
)

// keyedKinds are a kind Ports with a list of ports that have a name, which
// reach a ConfigMap as text, and a kind Harbour that stands for a Ports.
var keyedKinds = map[string]string{
	"kinds/ports/ports.proto": strings.Replace(protoOf("Ports", "  repeated Port ports = 1 [(swell.keys) = \"name\"];\n  map<string, Group> groups = 2;\n"),
		"import ", "import \"swell/options.proto\";\nmessage Port { string name = 1; int32 port = 2; string zone = 3; }\n"+
			"message Group { repeated Port ports = 1 [(swell.keys) = \"name\"]; repeated Group groups = 2; }\nimport ", 1),
	"kinds/ports/kind.yaml": easyKind("Ports", `  objects:
  - id: map
    template:
`+configMapTemplate+`      metadata: {name: "${self.metadata.name}", namespace: boxes}
      data:
        ports: "${self.spec.ports.map(p, p.name + ':' + string(p.port) + ':' + p.zone).join(',')}"
        groups: "${self.spec.groups.map(g, g + '=' + self.spec.groups[g].ports.map(p, p.name + ':' + string(p.port) + ':' + p.zone).join(',')).join(';')}"
`),
	"kinds/harbour/harbour.proto": protoOf("Harbour", "  string zone = 1;\n"),
	"kinds/harbour/kind.yaml": easyKind("Harbour", `  objects:
  - id: ports
    template:
      apiVersion: easy.example.com/v1
      kind: Ports
      metadata: {name: "${self.metadata.name}"}
      spec:
        ports: [{name: a, port: 1, zone: "${self.spec.zone}"}, {name: b, port: 2, zone: "${self.spec.zone}"}]
        groups: {g: {ports: [{name: c, port: 3}, {name: d, port: 4}]}}
`),
}

// dataOf is the data of the one ConfigMap of that name in a unit, on its
// first target, as JSON.
func dataOf(t *testing.T, s *Snapshot, unit config.UnitPath, name string) string {
	t.Helper()
	bundles, err := s.Bundles(s.Units.Get(unit))
	if err != nil || len(bundles) == 0 {
		t.Fatalf("%d bundles: %v", len(bundles), err)
	}
	for _, o := range bundles[0].Objects {
		if o.ID.Kind == "ConfigMap" && o.ID.Name == name {
			_, data, _ := strings.Cut(string(o.JSON), `"data":`)
			data, _, _ = strings.Cut(data, "}")
			return data + "}"
		}
	}
	t.Fatalf("no ConfigMap %s in %s", name, unit)
	return ""
}

// TestOverrideOfARenderedSpec: an update of one item of a keyed list in an easy
// spec that a template rendered replaced the whole list.
func TestOverrideOfARenderedSpec(t *testing.T) {
	files := with(with(richFiles(), keyedKinds), map[string]string{"services/platform/x/x.yaml": easySpec("Harbour", "x", `
  zone: z
  override:
    ports:
      update:
      - {path: spec, value: {ports: [{name: b, port: 22}]}}
      - {path: spec.groups.g.ports, value: [{name: c, zone: q}]}`)})
	var c Compiler
	s := snapshot(&c, files)
	if len(s.Problems) > 0 {
		t.Fatal(s.Problems)
	}
	want := `{"groups":"g=c:3:q,d:4:","ports":"a:1:z,b:22:z"}`
	if got := dataOf(t, s, "services/platform/x", "x"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
