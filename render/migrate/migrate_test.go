// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/migrate"
	"github.com/swell-sh/swell/sync/helm"
)

var update = flag.Bool("update", false, "rewrite the want files of testdata")

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(m.Run())
}

// example is a repository of another tool in an archive. The first line of its comment is
// the tool and the clusters that the user names, those after it say what the clusters get:
//
//	flux staging production
//	staging: oracle/staging
//
// Files in oracle/ are no part of the repository: kustomize builds the folder to the same
// objects as the other tool. Those in want/ are the proposal.
type example struct {
	tool    string
	options migrate.Options
	files   fstest.MapFS
	oracles map[string]string // folders, by cluster
	all     fstest.MapFS      // with oracle/
	archive *txtar.Archive
}

func readExample(t *testing.T, name string) *example {
	t.Helper()
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	first, rest, _ := strings.Cut(string(archive.Comment), "\n")
	words := strings.Fields(first)
	e := &example{tool: words[0], options: migrate.Options{Name: "shop", Clusters: words[1:]}, files: fstest.MapFS{}, all: fstest.MapFS{}, oracles: map[string]string{}, archive: archive}
	for line := range strings.Lines(rest) {
		if cluster, folder, ok := strings.Cut(strings.TrimSpace(line), ": oracle/"); ok {
			e.oracles[cluster] = "oracle/" + folder
		}
	}
	for _, f := range archive.Files {
		file := &fstest.MapFile{Data: f.Data}
		if !strings.HasPrefix(f.Name, "want/") {
			e.all[f.Name] = file
		}
		if !strings.HasPrefix(f.Name, "oracle/") && !strings.HasPrefix(f.Name, "want/") {
			e.files[f.Name] = file
		}
	}
	return e
}

// TestExamples reads each archive, compares the proposal, has swell check it, and compares
// the objects of each cluster with those that kustomize builds.
func TestExamples(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) < 4 {
		t.Fatal("too few archives", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			e := readExample(t, name)
			proposal, err := migrate.From(e.tool, config.Files(e.files), e.options)
			if err != nil {
				t.Fatal(err)
			}
			e.compare(t, name, proposal)
			merged := maps.Clone(e.files)
			for _, f := range proposal.Files {
				if merged[f.Name] != nil {
					t.Errorf("%s: is there already", f.Name)
				}
				merged[f.Name] = &fstest.MapFile{Data: f.Data}
			}
			compiler := &render.Compiler{Charts: &helm.Renderer{}}
			snapshot := compiler.Snapshot("", config.Files(merged))
			for _, p := range snapshot.Problems {
				t.Errorf("check: %s", p)
			}
			got := objectsOf(t, snapshot)
			for cluster, folder := range e.oracles {
				if diff := cmp.Diff(oracle(t, e.all, folder), got[cluster]); diff != "" {
					t.Errorf("cluster %s: -kustomize +swell\n%s", cluster, diff)
				}
			}
			again, err := migrate.From(e.tool, config.Files(merged), e.options)
			if err == nil || !strings.Contains(err.Error(), "a monorepo of swell already") {
				t.Errorf("the second time: got %v, %v", again, err)
			}
		})
	}
}

// compare holds the proposal against the files in want/.
func (e *example) compare(t *testing.T, name string, p *migrate.Proposal) {
	t.Helper()
	got := []txtar.File{{Name: "want/report", Data: []byte(report(p))}}
	for _, f := range p.Files {
		data := f.Data
		if len(data) == 0 {
			data = []byte("\n")
		}
		got = append(got, txtar.File{Name: "want/" + f.Name, Data: data})
	}
	input := slices.DeleteFunc(slices.Clone(e.archive.Files), func(f txtar.File) bool { return strings.HasPrefix(f.Name, "want/") })
	want := slices.DeleteFunc(slices.Clone(e.archive.Files), func(f txtar.File) bool { return !strings.HasPrefix(f.Name, "want/") })
	if *update {
		text := txtar.Format(&txtar.Archive{Comment: e.archive.Comment, Files: append(input, got...)})
		if err := os.WriteFile(name, text, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(txtar.Format(&txtar.Archive{Files: want})), string(txtar.Format(&txtar.Archive{Files: got}))); diff != "" {
		t.Errorf("proposal: -want +got\n%s", diff)
	}
}

func report(p *migrate.Proposal) string {
	var b strings.Builder
	fmt.Fprintln(&b, "clusters", strings.Join(p.Clusters, " "))
	for _, u := range p.Units {
		fmt.Fprintf(&b, "unit %s on %s: %s, %s; off: %q\n", u.Path, strings.Join(u.Clusters, " "), strings.Join(u.From, ", "), u.At, u.Off)
	}
	for _, c := range p.Charts {
		fmt.Fprintf(&b, "chart %s: %s\n", c.Path, c.Command)
	}
	for title, notes := range map[string][]migrate.Note{"not carried": p.NotCarried} {
		for _, n := range notes {
			fmt.Fprintf(&b, "%s %s: %s: %s: %s; by hand: %s\n", title, n.At, n.What, n.Field, n.Why, n.Do)
		}
	}
	for _, n := range p.Notes {
		fmt.Fprintf(&b, "note %s: %s: %s: %s; by hand: %s\n", n.At, n.What, n.Field, n.Why, n.Do)
	}
	return b.String()
}

// objectsOf are the objects on each cluster, without swell's marks and but for those of
// charts and of namespaces that are made, by their ids.
func objectsOf(t *testing.T, s *render.Snapshot) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{}
	for _, unit := range s.Units.Sorted() {
		bundles, err := s.Bundles(unit)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range bundles {
			for _, o := range b.Objects {
				if o.Template.File != "" || strings.HasSuffix(string(b.Unit), "/namespaces") {
					continue
				}
				var value map[string]any
				if err := json.Unmarshal(o.JSON, &value); err != nil {
					t.Fatal(err)
				}
				add(t, all, string(b.Target), unmarked(value))
			}
		}
	}
	return all
}

func add(t *testing.T, all map[string]map[string]any, cluster string, value map[string]any) {
	t.Helper()
	metadata, _ := value["metadata"].(map[string]any)
	id := fmt.Sprint(value["apiVersion"], " ", value["kind"], " ", metadata["namespace"], "/", metadata["name"])
	if all[cluster] == nil {
		all[cluster] = map[string]any{}
	}
	if all[cluster][id] != nil {
		t.Errorf("cluster %s: %s: twice", cluster, id)
	}
	all[cluster][id] = value
}

// unmarked is an object without the marks of swell.
func unmarked(value map[string]any) map[string]any {
	metadata, _ := value["metadata"].(map[string]any)
	for _, field := range []string{"labels", "annotations"} {
		m, _ := metadata[field].(map[string]any)
		for key, v := range m {
			if strings.HasPrefix(key, "swell.sh/") || key == "app.kubernetes.io/managed-by" && v == "swell" {
				delete(m, key)
			}
		}
		if len(m) == 0 {
			delete(metadata, field)
		}
	}
	return value
}

// oracle are the objects that kustomize builds a folder to.
func oracle(t *testing.T, files fstest.MapFS, folder string) map[string]any {
	t.Helper()
	disk := filesys.MakeFsInMemory()
	for name, f := range files {
		if err := disk.WriteFile("/"+name, f.Data); err != nil {
			t.Fatal(err)
		}
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(disk, "/"+folder)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]map[string]any{}
	for _, resource := range built.Resources() {
		text, err := resource.MarshalJSON()
		var value map[string]any
		if err == nil {
			err = json.Unmarshal(text, &value)
		}
		if err != nil {
			t.Fatal(err)
		}
		group, _, _ := strings.Cut(fmt.Sprint(value["apiVersion"]), "/")
		if !strings.HasSuffix(group, "toolkit.fluxcd.io") && group != "argoproj.io" {
			add(t, all, folder, unmarked(value))
		}
	}
	return all[folder]
}
