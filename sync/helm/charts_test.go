// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/swell-sh/swell/render/helm"
)

// refusals are the reasons for which swell alone may refuse a chart.
var refusals = regexp.MustCompile(`is called, which (gives something else each time|asks the clock or the time zone)|which is never fetched|leads out of the chart|is a link to`)

// TestRealCharts renders each chart of the folder SWELL_CHARTS, a folder or an archive, with
// its own values, with swell and with `helm template`. What both render is equal. A chart
// that swell refuses because it makes up a password gets one where swell says.
// SWELL_CHARTS_REPORT is a file for the table; testdata/charts.md is such a one.
func TestRealCharts(t *testing.T) {
	dir := os.Getenv("SWELL_CHARTS")
	if dir == "" {
		t.Skip("SWELL_CHARTS names no folder of charts")
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	r := &Renderer{}
	defer r.Close()
	warm(t, r)
	var table bytes.Buffer
	counts := map[string]int{}
	var all compared
	fmt.Fprintln(&table, "| chart | objects | result | swell, first | swell, again | `helm template` |\n|---|---|---|---|---|---|")
	for _, e := range entries {
		t.Run(e.Name(), func(t *testing.T) {
			c := compare(t, r, filepath.Join(dir, e.Name()))
			all.lines, all.traced = all.lines+c.lines, all.traced+c.traced
			short := strings.FieldsFunc(c.result, func(r rune) bool { return r == ':' || r == ';' })[0]
			if strings.Contains(c.result, "; equal with") {
				short += ", equal with values"
			}
			counts[short]++
			fmt.Fprintf(&table, "| %s | %d | %s | %s | %s | %s |\n", c.name, c.objects, c.result, shown(c.first), shown(c.again), shown(c.helm))
		})
	}
	t.Logf("%v\n%s", counts, &table)
	t.Logf("of %d lines of objects, %d are said to be from a line of a template that has the same key, or an expression", all.lines, all.traced)
	if file := os.Getenv("SWELL_CHARTS_REPORT"); file != "" {
		if err := os.WriteFile(file, table.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func shown(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return fmt.Sprintf("%d ms", max(1, d.Milliseconds()))
}

// warm has the renderer start its process.
func warm(t testing.TB, r *Renderer) {
	t.Helper()
	answer := r.Render(request("warm", map[string]string{"Chart.yaml": "{apiVersion: v2, name: warm, version: 1.0.0}", "templates/x.yaml": "a: b"}))
	if len(answer.Problems) > 0 {
		t.Fatal(problemsOf(answer))
	}
}

// compared is a row of the table.
type compared struct {
	name, result       string
	objects            int
	lines, traced      int // of the objects, and those of which a template's line is known
	first, again, helm time.Duration
}

// compare renders a chart both ways. Where swell asks for values, it gets them, and helm does
// too.
func compare(t *testing.T, r *Renderer, chart string) (c compared) {
	g := given{chart: chart, kubernetes: "1.36"}
	asked, err := g.read(t)
	if err != nil {
		return compared{name: filepath.Base(chart), result: "refused by swell: " + inCell(err.Error())}
	}
	c.name = named(asked.Chart, filepath.Base(chart))
	output, took, byHelm := g.template(t)
	begun := time.Now()
	answer := r.Render(asked)
	c.first = time.Since(begun)
	refused, reason := len(answer.Problems) > 0, problemsOf(answer)
	if refused && byHelm != nil {
		t.Logf("helm says: %v", byHelm)
		return compared{name: c.name, result: "refused by both: " + inCell(reason)}
	}
	if refused && !refusals.MatchString(reason) {
		t.Errorf("swell alone says: %s", reason)
	}
	given := givenUntilGood(t, r, &g, &answer)
	if len(given) > 0 {
		output, took, byHelm = g.template(t)
	}
	asked = g.request(t)
	begun = time.Now()
	if again := r.Render(asked); !cmp.Equal(answer, again) {
		t.Error("the second time, it is not the same")
	}
	c.again = time.Since(begun)
	c.helm, c.objects = took, len(of(t, answer))
	switch {
	case byHelm != nil && len(answer.Problems) == 0:
		c.result = "refused by helm only: " + inCell(byHelm.Error())
		t.Error(c.result)
	case len(answer.Problems) > 0:
		return compared{name: c.name, result: "refused by swell: " + inCell(problemsOf(answer))}
	case !cmp.Equal(objectsOf(t, output), of(t, answer)):
		c.result = "different"
		t.Errorf("(-helm +swell):\n%s", cmp.Diff(objectsOf(t, output), of(t, answer)))
	case refused:
		c.result = "refused by swell; equal with " + inCell(strings.Join(given, ", "))
	default:
		c.result = "equal"
	}
	if info, err := os.Stat(chart); err == nil && info.IsDir() {
		existing(t, g, answer)
	}
	c.lines, c.traced = traced(asked.Chart.Texts(), answer)
	return c
}

// traced counts the lines with a key of rendered documents, and of them those whose line in
// the template has the same key or an expression.
func traced(texts map[string]string, answer helm.Answer) (all, traced int) {
	key := regexp.MustCompile(`^[\s-]*("?[\w./-]+"?:)(\s|$)`)
	for _, o := range answer.Objects {
		template := strings.Split(texts[o.File], "\n")
		lines := helm.Lines(texts[o.File], o.Text)
		for i, line := range strings.Split(o.Text, "\n") {
			m := key.FindStringSubmatch(line)
			if m == nil || o.OfCRDs {
				continue
			}
			all++
			if at := lines[i]; at > 0 && (strings.Contains(template[at-1], m[1]) || strings.Contains(template[at-1], "{{")) {
				traced++
			}
		}
	}
	return all, traced
}

// givenUntilGood sets the values that swell asks for, one after another, and returns them.
func givenUntilGood(t *testing.T, r *Renderer, g *given, answer *helm.Answer) (names []string) {
	values := map[string]any{}
	const most = 20
	for range most {
		if len(answer.Problems) == 0 {
			return names
		}
		next := ""
		for _, name := range answer.Problems[0].Values {
			if next == "" && !slices.Contains(names, name) {
				next = name
			}
		}
		if next == "" || !set(values, strings.Split(next, ".")) {
			return names
		}
		names = append(names, next)
		text, err := yaml.Marshal(values)
		if err != nil {
			t.Fatal(err)
		}
		g.values = []string{filepath.Join(t.TempDir(), "values.yaml")}
		write(t, g.values[0], string(text))
		*answer = r.Render(g.request(t))
	}
	return names
}

// set sets a value to a text that may be a password. It is false where there is one already.
func set(values map[string]any, steps []string) bool {
	for _, step := range steps[:len(steps)-1] {
		if values[step] == nil {
			values[step] = map[string]any{}
		}
		below, ok := values[step].(map[string]any)
		if !ok {
			return false
		}
		values = below
	}
	last := steps[len(steps)-1]
	if values[last] != nil {
		return false
	}
	values[last] = "cGFzc3dvcmQtZm9yLXRlc3Rz"
	return true
}

func inCell(text string) string {
	const most = 160
	text = strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", "/")
	if len(text) > most {
		text = text[:most] + "..."
	}
	return text
}

// named is the chart's name and version.
func named(c helm.Chart, otherwise string) string {
	var metadata struct{ Name, Version string }
	if err := yaml.Unmarshal([]byte(c.Texts()["Chart.yaml"]), &metadata); err != nil || metadata.Name == "" {
		return otherwise
	}
	return metadata.Name + " " + metadata.Version
}
