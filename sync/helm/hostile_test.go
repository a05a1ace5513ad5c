// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/swell-sh/swell/render/helm"
)

// TestHostile: charts that would take all there is are one problem each, and the next chart
// is rendered.
func TestHostile(t *testing.T) {
	const memory = "takes more (memory than there is for it|than 512 MiB of memory): does a template loop|more than 64 MiB|took more than 1024 MiB"
	impatient := &Renderer{Wait: shared.Wait, CPU: 3 * time.Second}
	t.Cleanup(impatient.Close)
	if limit := shared.cpu(); limit != 20*time.Second {
		t.Errorf("a request may take %s of CPU", limit)
	}
	for _, test := range []struct {
		name, template, want string
		slow                 bool // it takes all of its time
	}{
		{"list", `{{ range until 200000000 }}x{{ end }}`, memory, false},
		{"text", `x: {{ repeat 2000000000 "x" }}`, memory, false},
		{"doubled text", `{{ $s := "xxxxxxxx" }}{{ range until 40 }}{{ $s = print $s $s }}{{ end }}`, memory, false},
		{"tpl in itself", `{{ define "t" }}{{ tpl "{{ include \"t\" . }}" . }}{{ end }}{{ include "t" . }}`, "nested reference name|without an end|" + memory, false},
		{"calls", `{{ define "c" }}{{ template "c" . }}{{ end }}{{ template "c" . }}`, "without an end|exceeded maximum template depth", false},
		{"output", `{{ range until 100000 }}{{ range until 1000 }}- a line of output
{{ end }}{{ end }}`, memory, false},
		{"loops", `{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}`, "more than 3 s of CPU: does a template loop|was not done after", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.slow && testing.Short() {
				t.Skip("takes 3 s of CPU")
			}
			t.Parallel()
			renderer, begun := shared, time.Now()
			if test.slow {
				renderer = impatient
			}
			answer := renderer.Render(request(test.name, map[string]string{"Chart.yaml": someChart, "templates/x.yaml": test.template}))
			if len(answer.Problems) != 1 || !regexp.MustCompile(test.want).MatchString(answer.Problems[0].Text) {
				t.Fatalf("after %s: got %q, want %q", time.Since(begun), problemsOf(answer), test.want)
			}
			next := renderer.Render(request("next", map[string]string{"Chart.yaml": someChart, "templates/x.yaml": someObject}))
			if len(next.Problems) > 0 || len(next.Objects) != 1 {
				t.Errorf("the next chart: %s", problemsOf(next))
			}
		})
	}
}

// TestLate: a request has an end also where the machine is slow. It may be made again.
func TestLate(t *testing.T) {
	t.Parallel()
	r := &Renderer{Wait: time.Millisecond}
	t.Cleanup(r.Close)
	answer := r.Render(request("late", map[string]string{"Chart.yaml": someChart, "templates/x.yaml": `{{ range until 1000000 }}{{ range until 1000 }}{{ end }}{{ end }}`}))
	if got := problemsOf(answer); got != "rendering was not done after 1ms" || !answer.Retry() {
		t.Errorf("got %q, retry %v", got, answer.Retry())
	}
}

// TestPatience: who renders a commit does not wait for a chart that takes long. Its answer is there
// later; that of one that loops for an hour, without another try. Other charts are rendered
// meanwhile.
func TestPatience(t *testing.T) {
	t.Parallel()
	r := &Impatient{&Renderer{CPU: time.Second}, time.Millisecond}
	t.Cleanup(r.Close)
	const configMap = "\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"
	chart := func(name, template string) helm.Request {
		return request(name, map[string]string{"Chart.yaml": someChart, "templates/x.yaml": template})
	}
	loop := chart("loop", `{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}`)
	slow := chart("slow", `{{ range until 1000 }}{{ range until 1000 }}{{ end }}{{ end }}`+configMap)
	quick := chart("quick", configMap)
	if got := problemsOf(r.Renderer.Render(quick)); got != "" {
		t.Fatal(got)
	}
	const aside = "rendering takes longer than 1ms: it goes on aside, and the unit stays as it is until then"
	for _, c := range []struct {
		request helm.Request
		want    string
	}{{slow, ""}, {loop, "rendering takes more than 1 s of CPU: does a template loop?"}} {
		answer := r.Render(c.request)
		if got := problemsOf(answer); got != aside || !answer.Retry() {
			t.Errorf("at once: got %q, retry %t", got, answer.Retry())
		}
		for got := aside; got == aside; time.Sleep(10 * time.Millisecond) {
			got = problemsOf(r.Render(c.request))
			if got != aside && got != c.want {
				t.Errorf("in the end: got %q, want %q", got, c.want)
			}
		}
	}
	if got := problemsOf(r.Render(loop)); !strings.Contains(got, "does a template loop") {
		t.Errorf("once more: got %q", got)
	}
}

// TestNothingOfTheMachine: a chart reads no file but its own, and asks no network.
func TestNothingOfTheMachine(t *testing.T) {
	t.Parallel()
	answer := shared.Render(request("machine", map[string]string{"Chart.yaml": someChart, "values.yaml": "path: ../../../../../../etc/passwd",
		"templates/x.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: x}
data:
  file: {{ .Files.Get .Values.path | quote }}
  glob: {{ .Files.Glob (print "/etc/" "*") | len | quote }}
  parts: {{ (.Files.Glob (print "../" "**")).AsConfig | quote }}
  host: {{ getHostByName "localhost" | quote }}
  looked: {{ lookup "v1" "Secret" "kube-system" "" | len | quote }}
`}))
	if len(answer.Problems) > 0 || len(answer.Objects) != 1 {
		t.Fatal(problemsOf(answer))
	}
	const want = `"data":{"file":"","glob":"0","host":"","looked":"0","parts":"{}"}`
	if got := string(answer.Objects[0].JSON); !strings.Contains(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
	if len(answer.Notes) != 1 || !strings.Contains(answer.Notes[0].Text, "looks for objects of the cluster") {
		t.Errorf("notes %v", answer.Notes)
	}
}

// TestValues: what the values of a request are of the wrong form is one problem each.
func TestValues(t *testing.T) {
	t.Parallel()
	r := request("values", map[string]string{"Chart.yaml": someChart, "templates/x.yaml": "x: {{ .Values.image.tag }}",
		"charts/db/Chart.yaml": "{apiVersion: v2, name: db, version: 1.0.0}"})
	for values, want := range map[string]string{
		`{"db": "text"}`:       `db`,
		`{"image": "text"}`:    `can't evaluate field tag in type interface {}`,
		`{"global": "text"}`:   `nil pointer evaluating interface {}.tag`,
		`["a"]`:                `values: `,
		`{"image": {"tag": `:   `values: `,
		`{"image": [{}, "a"]}`: `can't evaluate field tag`,
	} {
		r.Values = []byte(values)
		if answer := shared.Render(r); len(answer.Problems) != 1 || !strings.Contains(problemsOf(answer), want) {
			t.Errorf("%s: got %q, want %q", values, problemsOf(answer), want)
		}
	}
}
