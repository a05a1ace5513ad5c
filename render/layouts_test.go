// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"encoding/json"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	gocmp "github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

// TestLayouts: repositories in the layouts of other tools are accepted as they are, with
// swell.yaml files for the placement. Their units are what those tools deploy, and the
// objects are those that kustomize itself builds, or that the files hold.
func TestLayouts(t *testing.T) {
	archives, err := filepath.Glob("testdata/layouts/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatal(err, archives)
	}
	for _, name := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files := fstest.MapFS{"fleet/fleet.yaml": {Data: []byte("apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: one, labels: {environment: production}}\nspec: {}\n---\napiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: two, labels: {environment: staging}}\nspec: {}\n---\napiVersion: swell.sh/v1\nkind: Rollout\nmetadata: {name: default}\nspec: {waves: [{name: all}]}\n")}}
			want := ""
			for _, f := range archive.Files {
				if f.Name == "want" {
					want = string(f.Data)
					continue
				}
				files[f.Name] = &fstest.MapFile{Data: f.Data}
			}
			var c Compiler
			s := c.Snapshot("", config.Files(maps.Clone(files)))
			if len(s.Problems)+len(s.Notes) > 0 {
				t.Fatalf("problems:\n%s\nnotes:\n%s", s.Problems, s.Notes)
			}
			got := ""
			for _, unit := range s.Units.Sorted() {
				got += string(unit.Path) + "\n"
				bundle, err := s.Bundle(unit.Path, unit.Placements[0].Target.Name)
				if err != nil || bundle == nil {
					t.Fatal(unit.Path, err, unit.Notes)
				}
				is := map[string]any{}
				for _, o := range bundle.Objects {
					add(is, decoded(t, o.JSON), "")
				}
				if diff := gocmp.Diff(byOthers(t, files, unit), is); diff != "" {
					t.Errorf("%s (-others +swell):\n%s", unit.Path, diff)
				}
			}
			if got != want {
				t.Errorf("units:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// byOthers are the objects of a unit as kustomize builds them, or as its files hold them.
func byOthers(t *testing.T, files fstest.MapFS, unit *Unit) map[string]any {
	t.Helper()
	all, space := map[string]any{}, unit.source.Defaults.Namespace
	if unit.source.Kustomization == "" {
		for _, file := range unit.source.Files {
			docs, problems := document.ReadDialect(file, files[file].Data, document.Kubectl)
			for _, doc := range docs {
				object, ok := plain(doc)
				if !ok || len(problems) > 0 {
					t.Fatal(file, problems)
				}
				add(all, object, space)
			}
		}
		return all
	}
	disk := filesys.MakeFsInMemory()
	for name, file := range files {
		if err := disk.WriteFile("/"+name, file.Data); err != nil {
			t.Fatal(err)
		}
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(disk, "/"+path.Dir(unit.source.Kustomization))
	if err != nil {
		t.Fatal(err)
	}
	for _, resource := range built.Resources() {
		text, err := resource.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		add(all, decoded(t, text), space)
	}
	return all
}

func decoded(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

// add notes an object under its identity, without swell's marks, in the namespace of the
// Defaults where it has none and lives in one.
func add(all map[string]any, object map[string]any, space string) {
	metadata := object["metadata"].(map[string]any)
	for _, field := range []string{"labels", "annotations"} {
		marks, _ := metadata[field].(map[string]any)
		maps.DeleteFunc(marks, func(key string, value any) bool {
			return strings.HasPrefix(key, "swell.sh/") || key == "app.kubernetes.io/managed-by" && value == "swell"
		})
		if len(marks) == 0 {
			delete(metadata, field)
		}
	}
	kindName := object["kind"].(string)
	if namespace, _ := metadata["namespace"].(string); space != "" && !slices.Contains([]string{"PriorityClass", "Namespace", "ClusterRole"}, kindName) {
		metadata["namespace"] = cmp.Or(namespace, space)
	}
	all[kindName+" "+metadata["name"].(string)] = throughJSON(object)
}

// throughJSON is a value with its numbers as JSON has them.
func throughJSON(value any) (same any) {
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, &same)
	}
	if err != nil {
		panic(err) // of a value that came from JSON or YAML
	}
	return same
}

// TestDocumentsForOtherTools: who leaves documents of Flux or of Argo CD among the units is
// told what they are for, and what to do.
func TestDocumentsForOtherTools(t *testing.T) {
	for id, want := range map[string]string{
		"kustomize.toolkit.fluxcd.io/v1 Kustomization": "it tells Flux which folder to apply, and swell finds units by itself; leave it out by spec.units of the root's swell.yaml or a .swellignore. " +
			"If the tool goes on reading it: its definition is nowhere: `swell facts pull` takes those of the clusters, or put its CustomResourceDefinition into a file of the folder of schemas; " +
			"checks.unknownKinds of the root's swell.yaml can let it pass",
		"helm.toolkit.fluxcd.io/v2 HelmRelease":        "put the chart into the tree and write a HelmChart in its place",
		"source.toolkit.fluxcd.io/v1 GitRepository":    "it is for Flux, and swell needs no such document",
		"argoproj.io/v1alpha1 Application":             "it tells Argo CD which folder to apply",
		"argoproj.io/v1alpha1 ApplicationSet":          "it tells Argo CD which folders to apply",
		"argoproj.io/v1alpha1 AppProject":              "a Tenant of the fleet says so",
		"argoproj.io/v1alpha1 Rollout":                 "Rollout: its definition is nowhere",
		"monitoring.coreos.com/v1 ServiceMonitor":      "ServiceMonitor: its definition is nowhere",
		"nottoolkit.fluxcd.io.example.com/v1 Anything": "Anything: its definition is nowhere",
	} {
		apiVersion, kindName, _ := strings.Cut(id, " ")
		files := exampleFiles(t, "swell.yaml", "fleet", "kinds/runtime", "kinds/space")
		files["services/a/swell.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: a}\nspec: {tenant: a, placement: {topology: cluster}}\n")}
		files["services/a/one/x.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: " + apiVersion + "\nkind: " + kindName + "\nmetadata: {name: x, namespace: x}\nspec: {}\n")}
		var c Compiler
		s := c.Snapshot("", config.Files(files))
		if got := s.Problems.String(); !strings.Contains(got, id+": ") || !strings.Contains(got, want) {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
}
