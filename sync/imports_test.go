// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"encoding/json"
	"errors"
	"go/version"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/swell-sh/swell/"

// listed is what go list tells of a package or a module.
type listed struct {
	ImportPath, Path, Version, GoVersion string
	Imports, Deps                        []string
}

func goList(t *testing.T, dir string, args ...string) []listed {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json"}, args...)...)
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v: %s", err, stderr.String())
	}
	var all []listed
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var one listed
		if err := decoder.Decode(&one); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
}

// layer is how far down the one way of imports a package stands:
// config <- render <- sync <- cmd.
func layer(path string) int {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, module), "/")
	layers := map[string]int{"config": 1, "render": 2, "sync": 3, "testdata": 3, "cmd": 4, "deploy": 4}
	return layers[first]
}

func TestImportsPointOneWay(t *testing.T) {
	packages := goList(t, "..", "./...")
	if len(packages) < 8 {
		t.Fatalf("only %d packages listed", len(packages))
	}
	for _, p := range packages {
		if layer(p.ImportPath) == 0 {
			t.Errorf("%s: in none of the known folders", p.ImportPath)
		}
		for _, imported := range p.Imports {
			if strings.HasPrefix(imported, module) && layer(imported) > layer(p.ImportPath) {
				t.Errorf("%s imports %s, which stands above it", p.ImportPath, imported)
			}
		}
	}
}

// TestRoomsOfTheCompiler: each package of config and render imports only these of
// its neighbours.
func TestRoomsOfTheCompiler(t *testing.T) {
	rooms := map[string]string{
		"config":                   "config/bounds config/document config/sops config/timezone",
		"config/bounds":            "",
		"config/document":          "config/bounds",
		"config/rapidtest":         "",
		"config/sops":              "config/document",
		"config/timezone":          "",
		"render":                   "config config/document config/sops render/blame render/cache render/checker render/helm render/kind render/kustomize render/object render/override render/policy render/schema",
		"render/blame":             "config config/document render/kind render/override render/schema",
		"render/cache":             "",
		"render/checker":           "config config/document",
		"render/diff":              "config config/document config/sops render render/object",
		"render/helm":              "config config/document render/object",
		"render/impact":            "config config/document render render/diff render/kind render/object render/schema/compat",
		"render/kind":              "config config/bounds config/document config/timezone render/schema render/schema/compat render/schema/easy",
		"render/kustomize":         "config config/document",
		"render/migrate":           "config config/document config/sops render/kustomize",
		"render/object":            "config config/document",
		"render/override":          "config config/document render/schema",
		"render/policy":            "config/document render/schema/defaults",
		"render/report":            "config config/document render/diff render/impact",
		"render/report/reporttest": "",
		"render/schema":            "config config/document render/schema/crdrule render/schema/validation",
		"render/schema/compat":     "config/document render/schema/easy",
		"render/schema/crdrule":    "",
		"render/schema/defaults":   "",
		"render/schema/easy":       "config config/document render/schema",
		"render/schema/schematest": "",
		"render/schema/validation": "config/document config/timezone",
	}
	for _, p := range goList(t, "..", "./config/...", "./render/...") {
		name := strings.TrimPrefix(p.ImportPath, module)
		var own []string
		for _, imported := range p.Imports {
			if strings.HasPrefix(imported, module) {
				own = append(own, strings.TrimPrefix(imported, module))
			}
		}
		if got := strings.Join(own, " "); got != rooms[name] {
			t.Errorf("%s imports %q, want %q", name, got, rooms[name])
		}
		delete(rooms, name)
	}
	for name := range rooms {
		t.Errorf("%s: no such package", name)
	}
}

// TestOnlyOneDoor: go-git, ssa, SQLite, Helm, kustomize, age and the SDKs of forges each have one package that knows
// them, and the pure packages know no transport.
func TestOnlyOneDoor(t *testing.T) {
	doors := map[string]string{
		"code.gitea.io/sdk":           module + "sync/forge",
		"github.com/google/go-github": module + "sync/forge",
		"gitlab.com/gitlab-org/api":   module + "sync/forge",
		"filippo.io/age":              module + "sync/sops",
		"github.com/go-git/":          module + "sync/source",
		"helm.sh/helm/":               module + "sync/helm/engine",
		"github.com/fluxcd/pkg/ssa":   module + "sync/apply",
		"modernc.org/sqlite":          module + "sync/store",
		"sigs.k8s.io/kustomize/api":   module + "render/kustomize",
	}
	for _, p := range goList(t, "..", "./...") {
		for _, imported := range p.Imports {
			for prefix, door := range doors {
				if strings.HasPrefix(imported, prefix) && !slices.Contains([]string{door, door + "/sopstest", door + "/gittest"}, p.ImportPath) {
					t.Errorf("%s imports %s, only %s may", p.ImportPath, imported, door)
				}
			}
		}
		if layer(p.ImportPath) > 2 {
			continue
		}
		for _, imported := range p.Imports {
			if imported == "net" || imported == "net/http" || strings.HasPrefix(imported, "k8s.io/client-go") {
				t.Errorf("%s imports %s: config and render talk to nobody", p.ImportPath, imported)
			}
		}
		for _, dep := range p.Deps {
			if strings.HasPrefix(dep, "k8s.io/client-go") || strings.HasPrefix(dep, "github.com/go-git/") {
				t.Errorf("%s depends on %s: config and render talk to nobody", p.ImportPath, dep)
			}
		}
	}
}

// TestImportsOfLightPackages: what decides, keeps and tells of rollouts is built and tested without
// the compiler and without clients of clusters. Of render these packages know the values alone.
func TestImportsOfLightPackages(t *testing.T) {
	heavy := []string{module + "render", "sigs.k8s.io/kustomize", "helm.sh/helm", "k8s.io/client-go"}
	for _, p := range goList(t, ".", "./rollout", "./order", "./status", "./store", "./approval", "./informer") {
		for _, path := range heavy {
			i := slices.IndexFunc(p.Deps, func(dep string) bool {
				return dep != module+"render/object" && (dep == path || strings.HasPrefix(dep, path+"/"))
			})
			if i >= 0 {
				t.Errorf("%s depends on %s", p.ImportPath, p.Deps[i])
			}
		}
	}
}

// TestGoVersion: no module of a build asks for a newer Go than its go.mod does;
// a plain go get -u would change that without a word.
func TestGoVersion(t *testing.T) {
	for _, dir := range []string{"..", "../deploy/devcluster", "../deploy/release"} {
		modules := goList(t, dir, "-m", "all")
		own := modules[0].GoVersion
		for _, m := range modules[1:] {
			if m.GoVersion != "" && version.Compare(version.Lang("go"+m.GoVersion), version.Lang("go"+own)) > 0 {
				t.Errorf("%s: %s %s asks for Go %s, go.mod for %s", dir, m.Path, m.Version, m.GoVersion, own)
			}
		}
	}
}

// TestConfiguredFilesAreBounded: what reads files that a configuration names reads them with
// a bound.
func TestConfiguredFilesAreBounded(t *testing.T) {
	for _, dir := range []string{"fleet", "gate", "forge", "source"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no files: %v", dir, err)
		}
		for _, file := range files {
			// A repository's own files are Git's, and may be large.
			base := filepath.Base(file)
			if strings.HasSuffix(base, "_test.go") || dir == "source" && (base == "repository.go" || base == "origin.go") {
				continue
			}
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(content), "os.ReadFile(") {
				t.Errorf("%s reads a file without a bound: want package smallfile", file)
			}
		}
	}
}
