// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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
// its own values, with swell and with `helm template`. What both render is equal.
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
	fmt.Fprintln(&table, "| chart | objects | result | swell, first | swell, again | `helm template` |\n|---|---|---|---|---|---|")
	for _, e := range entries {
		t.Run(e.Name(), func(t *testing.T) {
			c := compare(t, r, filepath.Join(dir, e.Name()))
			short, _, _ := strings.Cut(c.result, ":")
			counts[short]++
			fmt.Fprintf(&table, "| %s | %d | %s | %s | %s | %s |\n", c.name, c.objects, c.result, shown(c.first), shown(c.again), shown(c.helm))
		})
	}
	t.Logf("%v\n%s", counts, &table)
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
	first, again, helm time.Duration
}

func compare(t *testing.T, r *Renderer, chart string) (c compared) {
	g := given{chart: chart, kubernetes: "1.36"}
	asked := g.request(t)
	c.name = named(asked.Chart, filepath.Base(chart))
	output, took, err := g.template(t)
	begun := time.Now()
	answer := r.Render(asked)
	c.first = time.Since(begun)
	begun = time.Now()
	if again := r.Render(asked); !cmp.Equal(answer, again) {
		t.Error("the second time, it is not the same")
	}
	c.again, c.helm = time.Since(begun), took
	c.objects = len(of(t, answer))
	reason, _, _ := strings.Cut(problemsOf(answer), "\n")
	reason = inCell(reason)
	switch {
	case err != nil && len(answer.Problems) > 0:
		c.result = "refused by both: " + reason
		c.first, c.again, c.helm = 0, 0, 0
		t.Logf("helm says: %v", err)
	case err != nil:
		c.result = "refused by helm only: " + inCell(err.Error())
		t.Error(c.result)
	case len(answer.Problems) > 0:
		c.result = "refused by swell: " + reason
		c.first, c.again, c.objects = 0, 0, len(objectsOf(t, output))
		if !refusals.MatchString(problemsOf(answer)) {
			t.Error(c.result)
		}
	default:
		c.result = "equal"
		if diff := cmp.Diff(objectsOf(t, output), of(t, answer)); diff != "" {
			c.result = "different"
			t.Errorf("(-helm +swell):\n%s", diff)
		}
		if info, err := os.Stat(chart); err == nil && info.IsDir() {
			existing(t, g, answer)
		}
	}
	return c
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
