// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/object"
)

// TestRead: what is no chart is told, and is no passing trouble.
func TestRead(t *testing.T) {
	files := fstest.MapFS{
		"good/Chart.yaml": {}, "good/templates/x.yaml": {}, "text": {}, "empty/x": {},
		"outer/a/Chart.yaml": {}, "outer/a/charts/b/Chart.yaml": {}, "outer/charts/d/Chart.yaml": {},
	}
	for i := range 6 {
		files[fmt.Sprintf("many/%d/Chart.yaml", i)] = &fstest.MapFile{}
	}
	for name, want := range map[string]string{
		"good":    "",
		"missing": "no such folder or archive in this tree; `swell vendor chart` says how",
		"text":    "want a folder with a Chart.yaml, or a .tgz",
		"empty":   "no chart: the folder has no Chart.yaml",
		"outer":   "no chart: the folder has no Chart.yaml; did you mean the chart in a or charts/d?",
		"many":    "no chart: the folder has no Chart.yaml, and holds 6 charts: name one",
	} {
		_, err := Read(config.Files(files), name)
		if want == "" && err == nil {
			continue
		}
		if err == nil || want == "" || !strings.HasPrefix(err.Error(), want) || document.MayPass(err) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
}

// TestPlace: hooks that Helm waits for are in an earlier phase.
func TestPlace(t *testing.T) {
	object := func(kind, hook, weight string) map[string]any {
		version := map[string]string{"Job": "batch/v1"}[kind]
		annotations := map[string]any{"helm.sh/hook": hook, "helm.sh/hook-weight": weight}
		if hook == "" {
			annotations = map[string]any{"helm.sh/resource-policy": "keep"}
		}
		return map[string]any{"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": hook, "annotations": annotations}}
	}
	objects := []map[string]any{
		object("Deployment", "", ""), object("Job", "pre-install,pre-upgrade", "5"), object("ServiceAccount", "pre-install", "-1"), object("Job", "Post-Install", ""),
		object("Job", "test", ""), object("Job", "pre-install, never", ""), object("Job", "post-delete", ""), object("Job", "pre-delete", ""),
		object("CustomResourceDefinition", "crd-install", ""), object("CustomResourceDefinition", "crd-install", ""),
		object("Job", "never, pre-install", ""),
	}
	from := make([]Object, len(objects))
	from[8].OfCRDs = true
	placed, dropped := Place(objects, from)
	var got []string
	for _, p := range placed {
		annotations := p.Object["metadata"].(map[string]any)["annotations"].(map[string]any)
		got = append(got, fmt.Sprint(p.Index, " ", annotations["swell.sh/hook"], " ", annotations["swell.sh/phase"], " ", annotations["swell.sh/prune"]))
	}
	for _, d := range dropped {
		got = append(got, fmt.Sprint(d.Index, " left out: ", d.Why))
	}
	want := []string{"0 <nil> 1 disabled", "1 before 1 <nil>", "2 <nil> <nil> <nil>", "3 after-install 1 <nil>",
		"7 before-delete 1 <nil>", "8 <nil> <nil> <nil>",
		"4 left out: test", "5 left out: never, pre-install", "6 left out: post-delete", "9 left out: crd-install",
		"10 left out: never, pre-install"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestPlaceByEvent: hooks that Helm runs for only one of both events say so. One that runs
// before the others for one and after them for the other goes with those.
func TestPlaceByEvent(t *testing.T) {
	for helms, want := range map[string]string{
		"pre-install,pre-upgrade": "before", "post-install, post-upgrade": "after", "pre-install,post-install,pre-upgrade": "before",
		"pre-install": "before-install", "pre-upgrade": "before-upgrade",
		"post-install": "after-install", "post-upgrade,pre-rollback": "after-upgrade",
		"post-install,pre-upgrade": "before-upgrade,after-install", "Post-Upgrade,Pre-Install": "before-install,after-upgrade",
		"pre-delete,post-upgrade": "after-upgrade", "pre-delete": "before-delete",
	} {
		placed, dropped := Place([]map[string]any{hooked("Job", helms, "")}, make([]Object, 1))
		if len(placed) != 1 || len(dropped) != 0 {
			t.Fatalf("%s: placed %d, left out %v", helms, len(placed), dropped)
		}
		if got := annotationsOf(placed[0])["swell.sh/hook"]; got != want {
			t.Errorf("%s: got %v, want %s", helms, got, want)
		}
		if !slices.Contains(object.Hooks, want) {
			t.Errorf("%s: no annotation may name %s", helms, want)
		}
	}

	placed, _ := Place([]map[string]any{
		hooked("Deployment", "", ""), hooked("ConfigMap", "post-install,pre-upgrade", "-5"), hooked("Job", "post-install,pre-upgrade", "0"),
		hooked("Job", "pre-install", "5"), hooked("Job", "post-upgrade", "0"), hooked("Job", "post-upgrade", "1"),
	}, make([]Object, 6))
	var phases []string
	for _, p := range placed {
		phase, _ := annotationsOf(p)["swell.sh/phase"].(string)
		phases = append(phases, phase)
	}
	if diff := cmp.Diff([]string{"2", "", "2", "2", "2", "3"}, phases); diff != "" {
		t.Errorf("phases (-want +got):\n%s", diff)
	}
}

// hooked is an object with annotations of Helm.
func hooked(kind, hook, weight string) map[string]any {
	return map[string]any{
		"apiVersion": map[string]string{"Job": "batch/v1"}[kind], "kind": kind,
		"metadata": map[string]any{"annotations": map[string]any{"helm.sh/hook": hook, "helm.sh/hook-weight": weight}},
	}
}

func annotationsOf(p Placed) map[string]any {
	return p.Object["metadata"].(map[string]any)["annotations"].(map[string]any)
}

// TestReads finds the values that lines of templates ask for.
func TestReads(t *testing.T) {
	texts := map[string]string{
		"Chart.yaml": "dependencies: [{name: db, alias: orders}, {name: db, alias: users}]",
		"templates/x.yaml": `a: {{ .Values.a.b }}-{{ $.Values.c }}
b: {{ include "image" . }}
{{- with .Values.resources }}
c:
  {{ toYaml . }}
{{- end }}
d: plain
e: {{ include "loop" . }}
f: {{ .Values.global.x }}`,
		"templates/_h.tpl":                               `{{- define "image" }}{{ .Values.image.name }}{{ include "tag" . }}{{ end }}{{ define "tag" }}{{ .Values.image.tag }}{{ end }}{{- define "loop" -}}{{ include "loop" . }}{{ end }}`,
		"charts/db-1.0.0.tgz/Chart.yaml":                 "name: db",
		"charts/db-1.0.0.tgz/templates/x.yaml":           "port: {{ .Values.port }} {{ .Values.global.x }}",
		"charts/db-1.0.0.tgz/charts/in/templates/x.yaml": "{{ .Values.deep }}",
	}
	for _, test := range []struct {
		file string
		line int
		want []string
	}{
		{"templates/x.yaml", 1, []string{"a.b", "c"}},
		{"templates/x.yaml", 2, []string{"image.name", "image.tag"}},
		{"templates/x.yaml", 5, []string{"resources"}},
		{"templates/x.yaml", 7, nil},
		{"templates/x.yaml", 8, nil},
		{"templates/x.yaml", 9, []string{"global.x"}},
		{"templates/x.yaml", 0, nil},
		{"templates/x.yaml", 99, nil},
		{"missing", 1, nil},
		{"charts/db-1.0.0.tgz/templates/x.yaml", 1, []string{"orders.port", "users.port", "db.port", "global.x"}},
		{"charts/db-1.0.0.tgz/charts/in/templates/x.yaml", 1, []string{"orders.in.deep", "users.in.deep", "db.in.deep"}},
	} {
		if got := Reads(texts, test.file, test.line); !slices.Equal(got, test.want) {
			t.Errorf("%s:%d: got %q, want %q", test.file, test.line, got, test.want)
		}
	}
	want := []Owner{{"", "orders.in.deep"}, {"charts/db-1.0.0.tgz", "in.deep"}, {"charts/db-1.0.0.tgz/charts/in", "deep"}}
	if got := Owners("charts/db-1.0.0.tgz/charts/in/templates/x.yaml", "orders.in.deep"); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestLinesOfALongText: the lines of a long template were not compared in their order, so a
// line that stands there often was always the first one.
func TestLinesOfALongText(t *testing.T) {
	var template, text []string
	for i := range 3000 {
		template = append(template, fmt.Sprintf("  field%d:", i), "    type: string")
		text = append(text, fmt.Sprintf("  field%d:", i), "    type: string")
	}
	template = append([]string{"{{- if .Values.crds }}", "metadata:", `  labels: {{ include "labels" . | nindent 4 }}`}, template...)
	text = append([]string{"metadata:", "  labels:", "    app: a"}, text...)
	lines := Lines(strings.Join(template, "\n"), strings.Join(text, "\n"))
	want := []int{2, 3, 3}
	for i := range text[3:] {
		want = append(want, i+4)
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLinesWithoutAnchors: where nothing stands out in a long text, a line is from the first
// one of the template that it fits.
func TestLinesWithoutAnchors(t *testing.T) {
	template := strings.Repeat("- a: {{ .x }}\n- b\n", 2000)
	text := strings.Repeat("- a: 1\n- b\n- c\n", 2000)
	lines := Lines(template, text)
	if want := []int{1, 2, 0, 1, 2, 0}; !slices.Equal(lines[len(lines)-7:len(lines)-1], want) {
		t.Errorf("got %v at the end, want %v", lines[len(lines)-7:len(lines)-1], want)
	}
}
