// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/tools/txtar"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/migrate"
)

func filesOf(text string) fstest.MapFS {
	files := fstest.MapFS{}
	for _, f := range txtar.Parse([]byte(text)).Files {
		files[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	return files
}

const (
	fluxOf = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: %s, namespace: flux-system}\nspec: {path: %s, prune: true, sourceRef: {kind: GitRepository, name: flux-system}%s}\n---\n"
	argoOf = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: %s, namespace: argocd}\nspec: {source: {repoURL: https://git.example.com/shop, path: %s%s}, destination: {name: prod, namespace: web}}\n---\n"
	object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n"
)

// TestBadInput: what cannot be carried over is said in one line, at its place, and what
// can be is carried over all the same.
func TestBadInput(t *testing.T) {
	good := "-- apps/web/web.yaml --\n" + fmt.Sprintf(object, "web")
	flux := func(more string) string {
		return good + "-- clusters/prod/apps.yaml --\n" + fmt.Sprintf(fluxOf, "web", "./apps/web", ", targetNamespace: web") + more
	}
	argo := func(more string) string {
		return good + "-- argocd/apps.yaml --\n" + fmt.Sprintf(argoOf, "web", "apps/web", "") + more
	}
	set := func(generator, more string) string {
		return argo("apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: all, namespace: argocd}\nspec:\n  generators:\n  - " + generator + "\n" + more +
			"  template: {metadata: {name: x}, spec: {}}\n")
	}
	for name, c := range map[string]struct {
		tool, files string
		clusters    []string
		err         string // of From
		left        string // a line of what is not carried over
		units       int
	}{
		"no such tool":         {tool: "fluxx", err: `--from fluxx: want one of argocd, flux, helm, kustomize, did you mean "flux"\?`},
		"nothing of Flux":      {tool: "flux", files: good, err: "no Kustomization of Flux"},
		"nothing of Argo CD":   {tool: "argocd", files: good, err: "no Application or ApplicationSet"},
		"nothing of kustomize": {tool: "kustomize", files: good, err: "no kustomization.yaml"},
		"no charts":            {tool: "helm", files: good, err: "no chart"},
		"a monorepo":           {tool: "flux", files: "-- swell.yaml --\n", err: "swell.yaml: a monorepo of swell already"},
		"no cluster":           {tool: "kustomize", files: "-- a/kustomization.yaml --\nresources: [x.yaml]\n-- a/x.yaml --\n" + fmt.Sprintf(object, "x"), err: "--cluster: which clusters"},
		"a circle of bases": {tool: "kustomize", clusters: []string{"prod"}, files: "-- a/kustomization.yaml --\nresources: [../b]\n-- b/kustomization.yaml --\nresources: [../a]\n",
			err: "a/kustomization.yaml: each kustomization is named by another one: a circle"},
		"a circle above a unit": {tool: "kustomize", clusters: []string{"prod"}, files: "-- top/kustomization.yaml --\nresources: [../a]\n-- a/kustomization.yaml --\nresources: [../b]\n-- b/kustomization.yaml --\nresources: [../a]\n",
			err: "nothing can be carried over: top/kustomization.yaml: .* a cycle"},
		"broken YAML of Flux": {tool: "flux", files: flux("-- clusters/prod/broken.yaml --\nkind: Kustomization\napiVersion: kustomize.toolkit.fluxcd.io/v1\n{"), err: "clusters/prod/broken.yaml"},
		"a folder twice":      {tool: "flux", files: flux(fmt.Sprintf(fluxOf, "again", "./apps/web", ", targetNamespace: other")), units: 2},
		"Kustomizations in a circle": {tool: "flux", files: flux(fmt.Sprintf(fluxOf, "a", "./apps/a", ", targetNamespace: a, dependsOn: [{name: b}]") + fmt.Sprintf(fluxOf, "b", "./apps/b", ", targetNamespace: b, dependsOn: [{name: a}]") +
			"-- apps/a/a.yaml --\n" + fmt.Sprintf(object, "a") + "-- apps/b/b.yaml --\n" + fmt.Sprintf(object, "b")), units: 3, left: `clusters/prod/apps.yaml:\d+: Kustomization .: spec.dependsOn: it leads back to itself`},
		"a path that is missing":  {tool: "flux", files: flux(fmt.Sprintf(fluxOf, "gone", "./gone", "")), units: 1, left: `clusters/prod/apps.yaml:9: Kustomization gone: spec.path: "gone": no such folder`},
		"a path that leads out":   {tool: "flux", files: flux(fmt.Sprintf(fluxOf, "out", "../../out", "")), units: 1, left: `spec.path: "../../out" leads out of the repository`},
		"a folder of broken YAML": {tool: "flux", files: flux(fmt.Sprintf(fluxOf, "b", "./broken", "") + "-- broken/x.yaml --\na: [\n"), units: 1, left: `Kustomization b: spec.path: "broken" cannot be built: broken/x.yaml:`},
		"variables without their ConfigMap": {tool: "flux", files: flux(fmt.Sprintf(fluxOf, "v", "./apps/web", ", postBuild: {substituteFrom: [{kind: ConfigMap, name: none}]}")), units: 1,
			left: `Kustomization v: spec.postBuild: its values are in the ConfigMap "none", which is not in the repository`},
		"a HelmRelease of another repository": {tool: "flux", files: flux("-- clusters/prod/chart.yaml --\napiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: other, namespace: web}\nspec: {url: https://git.example.com/other}\n---\n" +
			"apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: other, namespace: web}\nspec: {chart: {spec: {chart: charts/other, sourceRef: {kind: GitRepository, name: other}}}}\n"),
			units: 1, left: `clusters/prod/chart.yaml:9: HelmRelease other: spec.chart.spec: its chart "charts/other" of GitRepository "other" is not in this repository`},
		"which cluster":               {tool: "flux", files: good + "-- flux/ks.yaml --\n" + fmt.Sprintf(fluxOf, "web", "./apps/web", ""), err: `--cluster: which cluster is flux/ks.yaml:1:1 for`},
		"an Application of nowhere":   {tool: "argocd", files: argo(strings.Replace(fmt.Sprintf(argoOf, "x", "apps/web", ""), "name: prod, ", "", 1)), units: 1, left: "Application x: spec.destination: it has neither a name nor a server"},
		"Applications in a circle":    {tool: "argocd", files: argo(fmt.Sprintf(argoOf, "self", "argocd", "")), units: 1},
		"a plugin":                    {tool: "argocd", files: argo(fmt.Sprintf(argoOf, "p", "apps/web", ", plugin: {}")), units: 1, left: "argocd/apps.yaml:9: Application p: spec.source.plugin: swell runs no plugins"},
		"Jsonnet":                     {tool: "argocd", files: argo(fmt.Sprintf(argoOf, "j", "js", "") + "-- js/a.jsonnet --\n{}\n"), units: 1, left: "spec.source.directory: js/a.jsonnet: swell runs no Jsonnet"},
		"pull requests":               {tool: "argocd", files: set("pullRequest: {}", ""), units: 1, left: `argocd/apps.yaml:10: ApplicationSet all: spec.generators: the generator pullRequest cannot be carried over: it asks a forge`},
		"forges":                      {tool: "argocd", files: set("scmProvider: {}", ""), units: 1, left: "the generator scmProvider cannot be carried over"},
		"decisions":                   {tool: "argocd", files: set("clusterDecisionResource: {}", ""), units: 1, left: "the generator clusterDecisionResource cannot be carried over"},
		"plugins":                     {tool: "argocd", files: set("plugin: {}", ""), units: 1, left: "the generator plugin cannot be carried over"},
		"merge":                       {tool: "argocd", files: set("merge: {}", ""), units: 1, left: "the generator merge cannot be carried over"},
		"clusters that are elsewhere": {tool: "argocd", files: set("clusters: {}", ""), units: 1, left: "the generator clusters: the clusters are in Secrets that are not in the repository: name them by --cluster"},
		"templatePatch":               {tool: "argocd", files: set("list: {elements: []}", "  templatePatch: x\n"), units: 1, left: "ApplicationSet all: spec.templatePatch: cannot be carried over"},
		"a template that is none": {tool: "argocd", files: strings.Replace(set("list: {elements: [{a: b}]}", "  goTemplate: true\n"), "name: x}, spec", `name: "{{ .a "}, spec`, 1), units: 1,
			left: "ApplicationSet all: spec.template: the template"},
		"a matrix without end": {tool: "argocd", files: set("matrix: {generators: [{list: {elements: ["+strings.Repeat("{a: b},", 400)+"]}}, {list: {elements: ["+strings.Repeat("{c: d},", 400)+"]}}]}", ""), units: 1,
			left: "the generator matrix: it makes more than 100000 Applications"},
		"names that are no labels":    {tool: "argocd", files: strings.ReplaceAll(argo(""), "name: prod,", `name: "Prod EU/1!",`), units: 1},
		"folders of these names":      {tool: "argocd", files: argo("-- fleet/x --\n-- data/x --\n-- kinds/x --\n-- units/x --\n"), units: 1},
		"no folder is left":           {tool: "argocd", files: argo("-- fleet/x --\n-- swell/fleet/x --\n"), err: "swell/fleet: there already"},
		"a Chart.yaml that is broken": {tool: "helm", clusters: []string{"prod"}, files: "-- charts/a/Chart.yaml --\n[\n-- charts/b/Chart.yaml --\nname: b\n", units: 2, left: "charts/a/Chart.yaml: chart charts/a: : its Chart.yaml cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := migrate.From(c.tool, config.Files(filesOf(c.files)), migrate.Options{Name: "shop", Clusters: c.clusters})
			if c.err != "" {
				if err == nil || !regexp.MustCompile(c.err).MatchString(err.Error()) {
					t.Fatalf("got %v, want an error like %s", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := report(p)
			if len(p.Units) != c.units || !regexp.MustCompile(c.left).MatchString(got) {
				t.Errorf("got %s\nwant %d units, and a line like %s", got, c.units, c.left)
			}
			if c.left == "" && len(p.NotCarried) > 0 {
				t.Errorf("got %s\nwant all carried over", got)
			}
			merged := filesOf(c.files)
			for _, f := range p.Files {
				merged[f.Name] = &fstest.MapFile{Data: f.Data}
			}
			if problems := config.Load(config.Files(merged), nil).Problems; len(problems) > 0 {
				t.Errorf("the proposal is refused: %s", problems)
			}
		})
	}
}

// TestManyApplications: ten thousand Applications are as many units, which a pattern names.
func TestManyApplications(t *testing.T) {
	const many = 10_000
	root := t.TempDir()
	write := func(name, text string) {
		file := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range many {
		name := fmt.Sprintf("app-%d", i)
		write("argocd/"+name+".yaml", fmt.Sprintf(argoOf, name, "apps/"+name, ""))
		write("apps/"+name+"/x.yaml", fmt.Sprintf(object, name))
	}
	p, err := migrate.From("argocd", config.Files(os.DirFS(root)), migrate.Options{Name: "shop"})
	if err != nil || len(p.Units) != many || len(p.NotCarried) > 0 {
		t.Fatalf("got %v, want %d units", err, many)
	}
	at := slices.IndexFunc(p.Files, func(f txtar.File) bool { return f.Name == "swell.yaml" })
	if text := string(p.Files[at].Data); !strings.Contains(text, "units:\n  - \"apps/*\"\n") {
		t.Errorf("got %.300s\nwant one pattern", text)
	}
}

// FuzzFrom: whatever stands in the documents of a tool, reading them ends, and what is
// proposed is no part of what is there.
func FuzzFrom(f *testing.F) {
	f.Add(fmt.Sprintf(fluxOf, "web", "./apps/web", ", postBuild: {substitute: {a: b}}, patches: [{patch: x}]"))
	f.Add(fmt.Sprintf(argoOf, "web", "apps/web", ", kustomize: {images: [a=b:c, '@']}"))
	f.Add("apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: x}\nspec: {generators: [{git: {directories: [{path: '*/['}]}}, {list: {elements: [1]}}], template: {metadata: 1}}\n")
	f.Add("apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: x}\nspec: {chart: 1, valuesFrom: [1], values: []}\n")
	f.Fuzz(func(t *testing.T, text string) {
		files := filesOf("-- apps/web/web.yaml --\n" + fmt.Sprintf(object, "web") + "-- charts/a/Chart.yaml --\nname: a\n")
		files["clusters/prod/x.yaml"] = &fstest.MapFile{Data: []byte(fmt.Sprintf(fluxOf, "root", "./apps/web", "") + fmt.Sprintf(argoOf, "root", "apps/web", "") + text)}
		files["apps/web/kustomization.yaml"] = &fstest.MapFile{Data: []byte("resources: [web.yaml]\n")}
		for _, tool := range migrate.Tools() {
			p, err := migrate.From(tool, config.Files(files), migrate.Options{Name: "shop", Clusters: []string{"prod"}})
			if err != nil {
				continue
			}
			for _, f := range p.Files {
				if files[f.Name] != nil {
					t.Errorf("%s: proposes %s, which is there", tool, f.Name)
				}
			}
		}
	})
}
