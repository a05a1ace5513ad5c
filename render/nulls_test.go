// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/swell-sh/swell/config"
)

// TestNullsOfTemplates: a null of a template, of an expression in it or of an
// override is read as one that is written out in a unit. A real API server is
// asked in TestNullsOnAServer.
func TestNullsOfTemplates(t *testing.T) {
	files := exampleFiles(t, "swell.yaml", "fleet", "kinds/space")
	for name, text := range map[string]string{
		"kinds/note/note.proto": `syntax = "proto3";
package example.platform;
import "google/protobuf/struct.proto";
import "github.com/yandex/protoc-gen-crd/library/go/k8s/protoc_gen_crd/proto/crd.proto";
message Note {
  option (protoc_gen_crd.k8s_crd) = {api_group: "easy.example.com", kind: "Note", singular: "note", plural: "notes"};
  NoteSpec spec = 1;
}
message NoteSpec {
  google.protobuf.Value any = 1;
  google.protobuf.Struct all = 2;
}
`,
		"kinds/note/kind.yaml": `apiVersion: swell.sh/v1
kind: EasyKind
metadata: {name: note}
spec:
  message: example.platform.Note
  objects:
  - id: map
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "${self.metadata.name}", namespace: a, annotations: , labels: {written: ~}}
      data: {written: , computed: "${null}", absent: "${optional.none()}", any: "${self.spec.any}", text: x}
  - id: whole
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "${self.metadata.name}-whole", namespace: a}
      data: "${self.spec.all}"
`,
		"services/swell.yaml": "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: a}\nspec: {tenant: a, placement: {topology: cluster, match: {labels: {region: sas}}}}\n",
		"services/a/x.yaml": `apiVersion: easy.example.com/v1
kind: Note
metadata: {name: x}
spec:
  any: null
  all: {a: null, b: c}
  override:
    map:
      update:
      - {path: data, value: {text: null}}
      set:
      - {path: metadata.labels, value: {set: null}}
`,
	} {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	var c Compiler
	s := c.Snapshot("", config.Files(files))
	if len(s.Problems) > 0 {
		t.Fatal(s.Problems)
	}
	bundles, err := s.Bundles(s.Units.Get("services/a"))
	if err != nil || len(bundles) != 1 {
		t.Fatal(bundles, err)
	}
	for i, want := range []string{
		`"data":{"any":"","computed":"","written":""}`,
		`"data":{"a":"","b":"c"}`,
	} {
		if got := string(bundles[0].Objects[i].JSON); !strings.Contains(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := string(bundles[0].Objects[0].JSON); !strings.Contains(got, `"set":"",`) || strings.Contains(got, `"annotations":{"a`) {
		t.Errorf("got %s, want a label that was set to nothing", got)
	}
}

// TestEmptyValues: what the API takes for no value is not sent, so that what a server sets there
// is no drift; where an empty value means something it stays.
func TestEmptyValues(t *testing.T) {
	files := exampleFiles(t, "swell.yaml", "fleet")
	files["services/swell.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: a}\n" +
		"spec: {tenant: a, placement: {topology: cluster, match: {labels: {region: sas}}}}\n")}
	files["services/a/x.yaml"] = &fstest.MapFile{Data: []byte(`apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: x, namespace: a}
spec: {accessModes: [ReadWriteOnce], volumeName: "", storageClassName: "", resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: x, namespace: a}
spec:
  replicas: 0
  minReadySeconds: 0
  revisionHistoryLimit: 0
  selector: {matchLabels: {app: x}}
  template:
    metadata: {labels: {app: x}}
    spec:
      terminationGracePeriodSeconds: 0
      schedulerName: ""
      containers:
      - {name: main, image: x, imagePullPolicy: "", readinessProbe: {timeoutSeconds: 0, tcpSocket: {port: 80}}, env: [{name: A, value: ""}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: x}
webhooks:
- name: x.example.com
  clientConfig: {caBundle: "", url: "https://example.com/"}
  sideEffects: None
  admissionReviewVersions: [v1]
`)}
	var c Compiler
	s := c.Snapshot("", config.Files(files))
	bundles, err := s.Bundles(s.Units.Get("services/a"))
	if err != nil || len(bundles) == 0 {
		t.Fatal(s.Problems, s.Units.Get("services/a").Problems, err)
	}
	for _, o := range bundles[0].Objects {
		want := map[string]string{
			"PersistentVolumeClaim": `"spec":{"accessModes":["ReadWriteOnce"],` +
				`"resources":{"requests":{"storage":"1Gi"}},"storageClassName":""}`,
			"Deployment": `"spec":{"replicas":0,"revisionHistoryLimit":0,"selector":{"matchLabels":{"app":"x"}},` +
				`"template":{"metadata":{"labels":{"app":"x"}},"spec":{"containers":[{"env":[{"name":"A"}],"image":"x",` +
				`"name":"main","readinessProbe":{"tcpSocket":{"port":80}}}],"terminationGracePeriodSeconds":0}}}`,
			"ValidatingWebhookConfiguration": `"clientConfig":{"url":"https://example.com/"}`,
		}[o.ID.Kind]
		if got := string(o.JSON); want == "" || !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s in it", o.ID, got, want)
		}
	}
}
