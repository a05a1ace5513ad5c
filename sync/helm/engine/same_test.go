// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/helm"
)

// seen is what one process sees and renders.
type seen struct {
	Year    int
	Zone    string
	Answers map[string]helm.Answer
}

// TestSameBytes renders charts in two processes. One has the clock of 2000 and another time
// zone; each has its own seeds of maps. The answers are the same bytes. SWELL_CHARTS names a
// folder with more charts.
func TestSameBytes(t *testing.T) {
	run := func(mode, zone string) seen {
		file := filepath.Join(t.TempDir(), "seen")
		cmd := exec.Command(os.Args[0], "-test.run=^TestOneOfTwo$")
		cmd.Env = append(os.Environ(), "SWELL_SAME="+mode, "SWELL_SAME_FILE="+file, "TZ="+zone)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var s seen
		if err := json.Unmarshal(content, &s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	now, then := run("now", "Pacific/Kiritimati"), run("then", "America/New_York")
	if now.Year == then.Year || now.Zone == then.Zone || then.Year != 1999 {
		t.Fatalf("clock and zone are the same: %d %s, %d %s", now.Year, now.Zone, then.Year, then.Zone)
	}
	if len(now.Answers) < 10 || len(now.Answers) != len(then.Answers) {
		t.Fatalf("%d and %d charts", len(now.Answers), len(then.Answers))
	}
	objects := 0
	for name, answer := range now.Answers {
		objects += len(answer.Objects)
		one, other := written(t, answer), written(t, then.Answers[name])
		if one != other {
			t.Errorf("%s: once\n%s\nand once\n%s", name, one, other)
		}
	}
	t.Logf("%d charts, %d objects", len(now.Answers), objects)
}

func written(t *testing.T, answer helm.Answer) string {
	t.Helper()
	text, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestOneOfTwo is what a process of TestSameBytes does. It does nothing else.
func TestOneOfTwo(t *testing.T) {
	switch os.Getenv("SWELL_SAME") {
	case "now":
		tellSeen(t)
	case "then":
		synctest.Test(t, tellSeen) // its clock begins with the year 2000, in UTC
	}
}

func tellSeen(t *testing.T) {
	s := seen{Year: time.Now().Year(), Answers: map[string]helm.Answer{}}
	s.Zone, _ = time.Now().Zone()
	for name, chart := range someCharts(t) {
		s.Answers[name] = load(chart).render(&helm.Request{Release: "demo", Namespace: "space", Kubernetes: "1.36", APIVersions: []string{"apps/v1", "v1"}})
	}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(os.Getenv("SWELL_SAME_FILE"), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// someCharts are those of the tests against helm, with folders in place of archives, and
// those of SWELL_CHARTS.
func someCharts(t *testing.T) map[string]helm.Chart {
	t.Helper()
	maps := "{a: 1, b: 2, c: 3, d: 4, e: 5, f: 6, g: 7, h: 8, i: 9, j: 10}"
	charts := map[string]helm.Chart{"maps": {Files: []helm.File{
		{Name: "Chart.yaml", Content: []byte("{apiVersion: v2, name: maps, version: 1.0.0}")},
		{Name: "values.yaml", Content: []byte(maps)},
		{Name: "templates/x.yaml", Content: []byte(`keys: {{ keys .Values | toJson }}
values: {{ values .Values | toJson }}
ranged: "{{ range $k, $v := .Values }}{{ $k }}{{ $v }} {{ end }}"
printed: {{ print .Values | quote }}
`)}}}}
	archives, err := filepath.Glob("../testdata/charts/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range archives {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var c helm.Chart
		for _, f := range archive.Files {
			c.Files = append(c.Files, helm.File{Name: strings.ReplaceAll(f.Name, ".tgz/", "/"), Content: f.Data})
		}
		charts[filepath.Base(name)] = c
	}
	dir := os.Getenv("SWELL_CHARTS")
	if dir == "" {
		return charts
	}
	tree := config.Files(os.DirFS(dir))
	entries, err := tree.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		c, err := helm.Read(tree, e.Name())
		if err != nil {
			t.Fatal(fmt.Errorf("%s: %w", e.Name(), err))
		}
		charts[e.Name()] = c
	}
	return charts
}
