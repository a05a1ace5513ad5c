// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/helm"
)

// chartDefaults place the units of a.
const chartDefaults = `apiVersion: swell.sh/v1
kind: Defaults
metadata: {name: a}
spec: {tenant: a, placement: {topology: cluster, match: {labels: {region: [sas, vla]}}}}
`

func chartFiles(t testing.TB, archive *txtar.Archive) fstest.MapFS {
	files := exampleFiles(t, "swell.yaml", "fleet", "kinds/runtime", "kinds/space")
	files["services/a/swell.yaml"] = &fstest.MapFile{Data: []byte(chartDefaults)}
	for _, f := range archive.Files {
		files[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	delete(files, "want.yaml")
	return files
}

// rendersTo is what there is on each target, as YAML.
func rendersTo(t *testing.T, s *Snapshot) []byte {
	var out bytes.Buffer
	for _, p := range s.Problems {
		fmt.Fprintf(&out, "# %s\n", p)
	}
	for _, unit := range s.Units.Sorted() {
		for _, p := range unit.Notes {
			fmt.Fprintf(&out, "# note: %s\n", p)
		}
		for _, placed := range unit.Placements {
			bundle, err := s.Bundle(unit.Path, placed.Target.Name)
			if err != nil {
				t.Fatal(err)
			}
			if bundle == nil {
				continue
			}
			for _, o := range bundle.Objects {
				text, err := yaml.JSONToYAML(o.JSON)
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&out, "--- # %s phase %d, from %s\n%s", placed.Target.Name, o.Phase, o.Template, text)
			}
		}
	}
	return out.Bytes()
}

// TestCharts renders the example with each archive of testdata/charts laid over it, and
// compares all objects. Written from nothing, they are the same again.
func TestCharts(t *testing.T) {
	archives, err := filepath.Glob("testdata/charts/*.txtar")
	if err != nil || len(archives) < 1 {
		t.Fatal("too few archives", err)
	}
	charts := &helm.Renderer{}
	for _, name := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files := chartFiles(t, archive)
			c := Compiler{Charts: charts}
			got := rendersTo(t, c.Snapshot("", config.Files(files)))
			var want []byte
			for _, f := range archive.Files {
				if f.Name == "want.yaml" {
					want = f.Data
				}
			}
			if bytes.Equal(got, want) {
				return
			}
			if !*update {
				t.Fatalf("got\n%s\nwant\n%s", got, want)
			}
			kept := archive.Files[:0]
			for _, f := range archive.Files {
				if f.Name != "want.yaml" {
					kept = append(kept, f)
				}
			}
			archive.Files = append(kept, txtar.File{Name: "want.yaml", Data: got})
			if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
}
