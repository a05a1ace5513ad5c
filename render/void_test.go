// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config/document"
)

// TestVoidNames: a rule for an object that the unit had once held the unit. It is a
// note, also in a folder of many units, where nobody said anything; there only when none
// of them has the object, and once.
func TestVoidNames(t *testing.T) {
	files := with(richFiles(), map[string]string{
		"services/platform/swell.yaml": string(richFiles()["services/platform/swell.yaml"].Data) + `  ignore:
  - {kind: ConfigMap, object: anything, fields: [/data]}
  - {kind: ConfigMap, object: settings, fields: [/data]}
  overrides:
  - {kind: Deployment, object: nobody, set: [{path: spec.replicas, value: 1}]}
`,
		"services/platform/spaces/config.yaml": configMapOf("settings", "boxes", "x"),
		"services/platform/spaces/swell.yaml": defaultsOf(`ignore:
  - {kind: ConfigMap, object: setings, fields: [/data]}
  - {kind: ConfigMap, object: settings, fields: [/data]}
  - {kind: Secret, object: gone, fields: [/data]}
  overrides:
  - {kind: ConfigMap, object: seting, set: [{path: data.key, value: b}]}
  - {kind: ConfigMap, object: settings, set: [{path: data.key, value: b}]}`),
	})
	c := new(Compiler)
	s := snapshot(c, files)
	if len(s.Problems) > 0 {
		t.Errorf("held: %v", s.Problems)
	}
	below := 0
	for path := range s.Units.All() {
		if strings.HasPrefix(string(path), "services/platform/") {
			below++
		}
	}
	own := []string{
		`spec.ignore[0].object: "setings": the unit has no ConfigMap of this name on any target, did you mean "settings"?`,
		`spec.ignore[2].object: "gone": the unit has no Secret of this name on any target`,
		`spec.overrides[0].object: "seting": the unit has no ConfigMap of this name on any target, did you mean "settings"?`,
	}
	above := []string{
		fmt.Sprintf(`spec.ignore[0].object: "anything": none of the %d units below has a ConfigMap of this name on any target`, below),
		fmt.Sprintf(`spec.overrides[0].object: "nobody": none of the %d units below has a Deployment of this name on any target`, below),
	}
	expect := func(what string, s *Snapshot, folder string, want ...string) {
		t.Helper()
		var got []string
		for _, note := range s.IdleRules(folder) {
			text, _, _ := strings.Cut(note.Message, ", want one of")
			got = append(got, text)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(what, diff)
		}
	}
	expect("all", s, "", append(own, above...)...)
	expect("one unit", s, "services/platform/spaces", own...)
	expect("another folder", s, "services/shop")

	// The rules alone change: nothing is rendered, and the notes are those of now.
	files = with(files, map[string]string{"services/platform/spaces/swell.yaml": defaultsOf("ignore: [{kind: Secret, object: lost, fields: [/data]}]")})
	files = with(files, map[string]string{"services/platform/swell.yaml": strings.Replace(string(files["services/platform/swell.yaml"].Data), "object: anything", "object: settings", 1)})
	expect("after a change", snapshot(c, files), "", `spec.ignore[0].object: "lost": the unit has no Secret of this name on any target`, above[1])

	// Their lines are those of now, too.
	before := snapshot(c, files).IdleRules("services/platform/spaces")[0]
	files = with(files, map[string]string{"services/platform/spaces/swell.yaml": "# moved\n" + string(files["services/platform/spaces/swell.yaml"].Data)})
	if now := snapshot(c, files).IdleRules("services/platform/spaces")[0]; now.Line != before.Line+1 || now.Message != before.Message {
		t.Errorf("got %v, was %v", now, before)
	}

	// Of a unit with a problem nobody knows the objects.
	files = with(files, map[string]string{"services/platform/spaces/more.yaml": "kind: Nothing\n"})
	expect("with a broken unit", snapshot(c, files), "")
}

// TestAGateForAJobThatNobodyHas: it let each release through without a word.
func TestAGateForAJobThatNobodyHas(t *testing.T) {
	rollout := func(job string) map[string]string {
		const (
			head = "apiVersion: batch/v1\nkind: Job\nmetadata: "
			spec = "\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: registry.example.com/a:1}]}}}\n"
		)
		return map[string]string{
			"fleet/rollout.yaml": "apiVersion: swell.sh/v1\nkind: Rollout\nmetadata: {name: default}\n" +
				"spec:\n  waves: [{name: all, soak: 1m, gates: [{job: {name: " + job + "}}]}]\n",
			"services/platform/spaces/smoke.yaml": head + "{name: smoke, namespace: shop, annotations: {swell.sh/hook: gate}}" + spec,
			"services/platform/spaces/plain.yaml": head + "{name: load, namespace: shop}" + spec,
		}
	}
	for job, want := range map[string]string{"smoke": "", "smoek": `, did you mean "smoke"?`, "load": ", want one of smoke"} {
		s := snapshot(new(Compiler), with(richFiles(), rollout(job)))
		if s.Held || len(s.Problems) > 0 {
			t.Fatalf("%s: %v", job, s.Problems)
		}
		var got []string
		for _, note := range s.IdleRules("") {
			if strings.Contains(note.Message, "job.name") {
				got = append(got, note.Message)
			}
		}
		isTold := len(got) == 1 && strings.Contains(got[0], "so the gate lets all through"+want)
		if want == "" && len(got) > 0 || want != "" && !isTold {
			t.Errorf("%s: got %q", job, got)
		}
	}
	s := snapshot(new(Compiler), with(richFiles(), rollout(`"${name}-smoke"`)))
	if !strings.Contains(s.Problems.String(), "want the name of a Job, like smoke") {
		t.Errorf("a name with a placeholder: %v", s.Problems)
	}
}

// TestVoidFields: a misspelt field in a rule of ignore held nothing in place, without a
// word. It is a note where the kind is known.
func TestVoidFields(t *testing.T) {
	s := snapshot(new(Compiler), with(richFiles(), map[string]string{
		"services/platform/crds/widget.yaml": crdOf("Widget", "widgets", "void.example.com"),
		"services/platform/swell.yaml": string(richFiles()["services/platform/swell.yaml"].Data) + `  ignore:
  - kind: Deployment
    fields:
    - /spec/replcas
    - /spec/replicas
    - /spec/replicas/x
    - /spec/template/spec/containers/0/image
    - /spec/template/spec/containers/name=main/image
    - /spec/template/spec/containers/nmae=main/image
    - /spec/template/spec/containers/main/image
    - /spec/template/metadata/annotations/example.com~1a
    - /metadata/labels/example.com~1team
    - /metadata/managedFields
    - /status/replicas
    - /status/replicsa
  - {kind: Widget, fields: [/spec/size, /spec/sise, /metadata/finalizers, /status]}
  - {kind: FromElsewhere, fields: [/spec/anything]}
  - {kind: HorizontalPodAutoscaler, fields: [/spec/targetCPUUtilizationPercentage, /spec/metrics/0/type]}
  - {kind: Deployment, fields: ["/spec/template/spec/containers/*/image"]}
`}))
	if len(s.Problems) > 0 {
		t.Errorf("held: %v", s.Problems)
	}
	var got []string
	for _, note := range s.IdleRules("") {
		got = append(got, note.String())
	}
	want := []string{
		`services/platform/swell.yaml:10:7: spec.ignore[0].fields[0]: "/spec/replcas": no Deployment can have this field, did you mean "replicas"?`,
		`services/platform/swell.yaml:12:7: spec.ignore[0].fields[2]: "/spec/replicas/x": no Deployment can have this field, a field above it is an integer`,
		`services/platform/swell.yaml:15:7: spec.ignore[0].fields[5]: "/spec/template/spec/containers/nmae=main/image": no Deployment can have this field, did you mean "name"?`,
		`services/platform/swell.yaml:16:7: spec.ignore[0].fields[6]: "/spec/template/spec/containers/main/image": no Deployment can have this field, want an index or "name=value" for the items of the list`,
		`services/platform/swell.yaml:21:7: spec.ignore[0].fields[11]: "/status/replicsa": no Deployment can have this field, did you mean "replicas"?`,
		`services/platform/swell.yaml:22:41: spec.ignore[1].fields[1]: "/spec/sise": no Widget can have this field, did you mean "size"?`,
		`services/platform/swell.yaml:22:75: spec.ignore[1].fields[3]: "/status": no Widget can have this field, want one of apiVersion, kind, metadata, spec`,
		`services/platform/swell.yaml:25:33: spec.ignore[4].fields[0]: "/spec/template/spec/containers/*/image": no Deployment can have this field, want an index or "name=value" for the items of the list`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestIdleCheckers: a Checker that can judge nothing is a problem of who writes it, and a note
// after that. It holds nothing.
func TestIdleCheckers(t *testing.T) {
	files := judgedFiles()
	delete(files, "policies/a.yaml")
	files["fleet/checkers.yaml"] = &fstest.MapFile{Data: []byte(`
apiVersion: swell.sh/v1
kind: Checker
metadata: {name: some}
spec:
  program: jsonschema
  schema: any.json
  from:
  - {kind: Confgmap, path: data.x}
  - {kind: ConfigMap, key: x}
  - {kind: Deployment, path: spec.template.spec.containers.*.args}
  - {kind: Deployment, path: spec.template.spec.container.*.args}
  - {kind: ConfigMap, path: data.*}
`)}
	files["any.json"] = &fstest.MapFile{Data: []byte("{}")}
	c := &Compiler{}
	s := snapshot(c, files)
	texts := func(problems document.Problems) (texts []string) {
		for _, p := range problems {
			texts = append(texts, p.String())
		}
		return texts
	}
	const kind, field = `fleet/checkers.yaml:9:12: spec.from[0].kind: "Confgmap": no such kind, so nothing is judged`,
		`fleet/checkers.yaml:12:30: spec.from[3].path: "spec.template.spec.container.*.args": no Deployment can have this field, so nothing is judged`
	const key = `fleet/checkers.yaml:10:28: spec.from[1].key: "x": no ConfigMap of any unit that it is about has such a key, so nothing is judged`
	want := []string{kind + `, did you mean "ConfigMap"?`, key, field + `, did you mean "containers"?`}
	if diff := cmp.Diff(want, texts(s.Problems)); diff != "" || s.Held || len(s.Notes) > 0 {
		t.Errorf("held: %t, notes: %v, problems (-want +got):\n%s", s.Held, s.Notes, diff)
	}
	s = snapshot(c, files)
	if diff := cmp.Diff([]string{kind, key, field}, texts(s.Notes)); diff != "" || len(s.Problems) > 0 {
		t.Errorf("problems of the next commit: %v, notes (-want +got):\n%s", s.Problems, diff)
	}
	delete(files, "any.json")
	if s := snapshot(c, files); !strings.Contains(s.Problems.String(), `"any.json": there is no such file`) {
		t.Errorf("without the schema: %v", s.Problems)
	}
}
