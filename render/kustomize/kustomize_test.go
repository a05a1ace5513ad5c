// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

var update = flag.Bool("update", false, "rewrite the want files of testdata/build")

// dials counts attempts to open a connection. Kustomize's loader uses the
// default transport, which for these tests leads nowhere; git and all other
// programs are out of reach as there is no PATH.
var dials atomic.Int64

type noNetwork struct{}

func (noNetwork) RoundTrip(r *http.Request) (*http.Response, error) {
	dials.Add(1)
	return nil, errors.New("a test of kustomize wanted " + r.URL.Host)
}

func TestMain(m *testing.M) {
	flag.Parse()
	http.DefaultTransport = noNetwork{}
	code := m.Run()
	if n := dials.Load(); n > 0 {
		fmt.Fprintf(os.Stderr, "%d connections were tried\n", n)
		code = 1
	}
	os.Exit(code)
}

func treeOf(archive *txtar.Archive) fstest.MapFS {
	files := fstest.MapFS{}
	for _, f := range archive.Files {
		files[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	return files
}

func archives(t testing.TB) map[string]*txtar.Archive {
	t.Helper()
	names, err := filepath.Glob("testdata/build/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatal("no archives", err)
	}
	all := map[string]*txtar.Archive{}
	for _, name := range names {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = archive
	}
	return all
}

// text is the documents as JSON, one a line, each after its place.
func text(t testing.TB, docs []*document.Document) string {
	t.Helper()
	var b strings.Builder
	for _, doc := range docs {
		fmt.Fprintf(&b, "%s\n%s\n", doc.Position(), object(t, doc))
	}
	return b.String()
}

func object(t testing.TB, doc *document.Document) string {
	t.Helper()
	plain, problems := doc.Plain(doc.Node)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	line, err := json.Marshal(plain)
	if err != nil {
		t.Fatal(err)
	}
	return string(line)
}

// TestBuild holds each archive's folder "overlay" against what it wants, and
// against what kustomize itself builds of the same files on a real disk.
func TestBuild(t *testing.T) {
	for name, archive := range archives(t) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			result, problems := Build(config.Files(treeOf(archive)), "overlay", nil)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			got := text(t, result.Documents) + strings.Join(result.Reads, "\n") + "\n"
			at := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == "want" })
			if *update {
				if at < 0 {
					archive.Files = append(archive.Files, txtar.File{Name: "want"})
					at = len(archive.Files) - 1
				}
				archive.Files[at].Data = []byte(got)
				if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if at < 0 {
				t.Fatal("no want in the archive: run with -update")
			}
			if diff := cmp.Diff(string(archive.Files[at].Data), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			var lines []string
			for _, doc := range result.Documents {
				lines = append(lines, object(t, doc))
			}
			if diff := cmp.Diff(onDisk(t, archive), lines); diff != "" {
				t.Errorf("(-kustomize +got):\n%s", diff)
			}
		})
	}
}

// onDisk is what kustomize builds, as JSON.
func onDisk(t *testing.T, archive *txtar.Archive) []string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, treeOf(archive)); err != nil {
		t.Fatal(err)
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(dir, "overlay"))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, resource := range built.Resources() {
		written, err := resource.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		docs, problems := document.ReadDocuments("built", written)
		if len(problems) > 0 || len(docs) != 1 {
			// The words that its YAML leaves bare and config refuses are not the point here.
			text, err := resource.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			docs, problems = document.ReadDocuments("built", text)
			if len(problems) > 0 || len(docs) != 1 {
				t.Fatal(problems)
			}
		}
		lines = append(lines, object(t, docs[0]))
	}
	return lines
}

// TestLastLine: files whose last line has no end build to what kustomize itself
// makes of them.
func TestLastLine(t *testing.T) {
	const head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n  "
	for _, block := range []string{"a: |\n    b", "a: >\n    b", "a: |+\n    b", "a: |-\n    b", "a: |\n    b\n", "a: |\r\n    b", "a: b"} {
		indented := strings.ReplaceAll("\n"+head+block, "\n", "\n  ")
		for _, files := range [][]txtar.File{
			{{Name: "kustomization.yaml", Data: []byte("resources: [x.yaml]\n")}, {Name: "x.yaml", Data: []byte(head + block)}},
			{{Name: "kustomization.yaml", Data: []byte("resources: [x.yaml]\npatches: [{path: p.yaml}]\n")}, {Name: "p.yaml", Data: []byte(head + block)}},
			{{Name: "kustomization.yaml", Data: []byte("resources: [x.yaml]\npatchesStrategicMerge:\n- |" + indented)}},
			{{Name: "kustomization.yaml", Data: []byte("resources: [x.yaml]\npatches:\n- patch: |" + strings.ReplaceAll(indented, "\n", "\n  "))}},
			{{Name: "kustomization.yaml", Data: []byte("resources: [x.yaml]\ncommonAnnotations:\n  " + block)}},
		} {
			archive := &txtar.Archive{Files: []txtar.File{{Name: "overlay/x.yaml", Data: []byte(head + "c: d\n")}}}
			for _, f := range files {
				archive.Files = append(archive.Files, txtar.File{Name: "overlay/" + f.Name, Data: f.Data})
			}
			result, problems := Build(config.Files(treeOf(archive)), "overlay", nil)
			if len(problems) > 0 {
				t.Fatal(block, problems)
			}
			var lines []string
			for _, doc := range result.Documents {
				lines = append(lines, object(t, doc))
			}
			if diff := cmp.Diff(onDisk(t, archive), lines); diff != "" {
				t.Errorf("%q (-kustomize +got):\n%s", files, diff)
			}
		}
	}
}

// TestConcurrent builds all archives many times at once.
func TestConcurrent(t *testing.T) {
	var group errgroup.Group
	for name, archive := range archives(t) {
		tree := config.Files(treeOf(archive))
		first, problems := Build(tree, "overlay", nil)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		want := text(t, first.Documents)
		for range 8 {
			group.Go(func() error {
				again, problems := Build(tree, "overlay", nil)
				if got := text(t, again.Documents); len(problems) > 0 || got != want {
					return fmt.Errorf("%s: %v\n%s", name, problems, cmp.Diff(want, got))
				}
				return nil
			})
		}
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

// TestNothingElseIsReached: what kustomize would take for a URL, a repository
// or a program is a problem before it runs, in every field that holds paths and
// however it is disguised.
func TestNothingElseIsReached(t *testing.T) {
	t.Setenv("PATH", "")
	before := dials.Load()
	texts := []string{
		"https://example.invalid/x", "HTTP://example.invalid/x", "http:example.invalid", "git::https://example.invalid/x/y",
		"git@example.invalid:org/repo", "git@example.invalid/org/repo", "github.com/org/repo", "GitHub.com:org/repo",
		"ssh://example.invalid/org/repo", "file:///tmp", "file://tmp/repo", " https://example.invalid/x",
		// U+2028 ends a line in YAML, but not in a URL.
		"https://example.invalid/x?a: b\u2028apiVersion: v1\u2028kind: X\u2028metadata: {name: x}\u2028spec: {}",
		"x@example.invalid/repo: 1\u2028apiVersion: builtin\u2028kind: LabelTransformer\u2028metadata: {name: x}",
	}
	for _, field := range []string{"resources: [%s]", "bases: [%s]", "components: [%s]", "configurations: [%s]", "generators: [%s]", "transformers: [%s]", "validators: [%s]",
		"patchesStrategicMerge: [%s]", "patches: [{path: %s}]", "patchesJson6902: [{target: {kind: X}, path: %s}]", "replacements: [{path: %s}]",
		"configMapGenerator: [{name: x, files: [%s]}]", "configMapGenerator: [{name: x, env: %s}]", "secretGenerator: [{name: x, envs: [%s]}]",
		"crds: [%s]", "openapi: {path: %s}", "helmCharts: [{name: x, repo: %s}]"} {
		for _, text := range texts {
			quoted, err := json.Marshal(text)
			if err != nil {
				t.Fatal(err)
			}
			content := fmt.Sprintf(field, bytes.ReplaceAll(quoted, []byte("\u2028"), []byte(`\u2028`)))
			_, problems := Build(config.Files(fstest.MapFS{"a/b/kustomization.yaml": {Data: []byte(content)}}), "a/b", nil)
			if len(problems) == 0 || problems[0].Line == 0 {
				t.Errorf("%s: got %v, want a problem at its line", content, problems)
			}
			for _, p := range problems {
				if strings.Contains(p.Message, "kustomize: ") {
					t.Errorf("%s: kustomize ran: %s", content, p)
				}
			}
		}
	}
	if n := dials.Load() - before; n > 0 {
		t.Errorf("%d connections were tried", n)
	}
}

// TestLimits: a few folders that use each other twice stand for a tree without
// end, which kustomize would build.
func TestLimits(t *testing.T) {
	files := fstest.MapFS{"f30/kustomization.yaml": {Data: []byte("configMapGenerator: [{name: x}]")}}
	for i := range 30 {
		for _, half := range []string{"a", "b"} {
			files[fmt.Sprintf("f%d%s/kustomization.yaml", i, half)] = &fstest.MapFile{Data: fmt.Appendf(nil, "namePrefix: %s-\nresources: [../f%d]", half, i+1)}
		}
		files[fmt.Sprintf("f%d/kustomization.yaml", i)] = &fstest.MapFile{Data: fmt.Appendf(nil, "resources: [../f%da, ../f%db]", i, i)}
	}
	_, problems := Build(config.Files(files), "f0", nil)
	if len(problems) != 1 || !strings.Contains(problems[0].Message, "want at most 1000 kustomizations") {
		t.Errorf("got %v, want one problem of its size", problems)
	}
	many := fstest.MapFS{"a/kustomization.yaml": {Data: []byte("resources: [0.yaml, 1.yaml, 2.yaml, 3.yaml, 4.yaml, 5.yaml]")}}
	for i := range maxDocuments + 1000 { // 1,000 in a file, fewer than one may hold
		name := fmt.Sprintf("a/%d.yaml", i/1000)
		if many[name] == nil {
			many[name] = &fstest.MapFile{}
		}
		many[name].Data = fmt.Appendf(many[name].Data, "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: c%d}}\n", i)
	}
	_, problems = Build(config.Files(many), "a", nil)
	if len(problems) != 1 || !strings.Contains(problems[0].Message, "5000 documents") {
		t.Errorf("got %v, want one problem of its documents", problems)
	}
}

// TestLinks: a link is not followed, whatever it leads to.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"a/kustomization.yaml":         "resources: [x.yaml, base]",
		"base/kustomization.yaml":      "resources: [y.yaml]",
		"base/y.yaml":                  "{apiVersion: v1, kind: ConfigMap, metadata: {name: z}}",
		"elsewhere.yaml":               "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}",
		"linked/data/kustomization.md": "",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink("../elsewhere.yaml", filepath.Join(dir, "a/x.yaml")), os.Symlink("../base", filepath.Join(dir, "a/base"))); err != nil {
		t.Fatal(err)
	}
	_, problems := Build(config.Files(os.DirFS(dir)), "a", nil)
	if len(problems) != 2 || strings.Count(problems.String(), "a symbolic link: only plain files and folders are read") != 2 {
		t.Errorf("got %v, want two problems of links", problems)
	}
}

// TestReadsOfAProblem: what was missing is among the reads.
func TestReadsOfAProblem(t *testing.T) {
	result, problems := Build(config.Files(fstest.MapFS{"a/kustomization.yaml": {Data: []byte("resources: [../base]")}}), "a", nil)
	if len(problems) != 1 || !slices.Contains(result.Reads, "base") {
		t.Errorf("got %v after %v: want base among the reads, as the problem goes away with it", result.Reads, problems)
	}
}

// flaky cannot read one file.
type flaky struct {
	config.Tree
	file string
}

func (f flaky) Open(name string) (fs.File, error) {
	if name == f.file {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("the disk is away")}
	}
	return f.Tree.Open(name)
}

func (f flaky) ReadFile(name string) ([]byte, error) {
	if name == f.file {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("the disk is away")}
	}
	return f.Tree.ReadFile(name)
}

// TestRetry: a file that cannot be read now may be read another time.
func TestRetry(t *testing.T) {
	tree := config.Files(fstest.MapFS{
		"a/kustomization.yaml":    {Data: []byte("resources: [../base, x.yaml]\nconfigMapGenerator: [{name: v, files: [data]}]")},
		"a/data":                  {Data: []byte("x")},
		"a/x.yaml":                {Data: []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}")},
		"base/kustomization.yaml": {Data: []byte("resources: [y.yaml]")},
		"base/y.yaml":             {Data: []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: z}}")},
	})
	if _, problems := Build(tree, "a", nil); len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, file := range []string{"a/kustomization.yaml", "a/data", "a/x.yaml", "base/kustomization.yaml", "base/y.yaml"} {
		_, problems := Build(flaky{tree, file}, "a", nil)
		if len(problems) != 1 || !problems.Retry() || !strings.Contains(problems[0].Message, "the disk is away") {
			t.Errorf("%s: got %v, want one problem that may pass", file, problems)
		}
	}
}

// many is one folder of n objects, over a base.
func many(n int) fstest.MapFS {
	files := fstest.MapFS{"overlay/kustomization.yaml": {Data: []byte("namespace: shop\nresources: [../base]\nimages: [{name: web, newTag: '2'}]\nlabels: [{pairs: {team: shop}}]\n")}}
	var list strings.Builder
	list.WriteString("resources:\n")
	for i := range n {
		fmt.Fprintf(&list, "- d%d.yaml\n", i)
		files[fmt.Sprintf("base/d%d.yaml", i)] = &fstest.MapFile{Data: fmt.Appendf(nil, `apiVersion: apps/v1
kind: Deployment
metadata: {name: web%d}
spec:
  selector: {matchLabels: {app: web%d}}
  template:
    metadata: {labels: {app: web%d}}
    spec:
      containers:
      - {name: main, image: web, ports: [{containerPort: 80}]}
`, i, i, i)}
	}
	files["base/kustomization.yaml"] = &fstest.MapFile{Data: []byte(list.String())}
	return files
}

func BenchmarkBuild50(b *testing.B) {
	tree := config.Files(many(50))
	b.ReportAllocs()
	for b.Loop() {
		result, problems := Build(tree, "overlay", nil)
		if len(problems) > 0 || len(result.Documents) != 50 {
			b.Fatal(problems)
		}
	}
}

// BenchmarkKustomize50 is kustomize alone on the same files, to compare.
func BenchmarkKustomize50(b *testing.B) {
	disk := filesys.MakeFsInMemory()
	for name, file := range many(50) {
		if err := disk.WriteFile("/"+name, file.Data); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := run(disk, "overlay", false, nil, func() {}); err != nil {
			b.Fatal(err)
		}
	}
}

// FuzzKustomization: any text gives documents or problems, the same each time,
// and reaches nothing but the tree.
func FuzzKustomization(f *testing.F) {
	f.Setenv("PATH", "")
	for _, archive := range archives(f) {
		for _, file := range archive.Files {
			if strings.Contains(strings.ToLower(file.Name), "kustomization") {
				f.Add(string(file.Data), "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}")
			}
		}
	}
	f.Add("patches: [{target: {kind: ConfigMap}, patch: '[{op: remove, path: /data}]'}]\nresources: [x.yaml]", "apiVersion: v1\nkind: List\nitems: []")
	f.Fuzz(func(t *testing.T, kustomization, resource string) {
		if len(kustomization)+len(resource) > 4096 {
			return
		}
		tree := config.Files(fstest.MapFS{"a/kustomization.yaml": {Data: []byte(kustomization)}, "a/x.yaml": {Data: []byte(resource)}, "base/kustomization.yaml": {Data: []byte("namePrefix: x")}})
		result, problems := Build(tree, "a", nil)
		again, more := Build(tree, "a", nil)
		if got, want := text(t, again.Documents)+more.String(), text(t, result.Documents)+problems.String(); got != want {
			t.Errorf("differs from the first time:\n%s", cmp.Diff(want, got))
		}
		if n := dials.Load(); n > 0 {
			t.Fatalf("%d connections were tried", n)
		}
	})
}
