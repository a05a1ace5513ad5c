// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/swell-sh/swell/render/helm"
)

// TestAgainstHelm renders charts with swell and with `helm template`: the objects are
// equal. Each archive of testdata/charts is a chart. A folder of it whose name ends in .tgz
// is packed. The file given.yaml has values, api-versions one of the cluster's API
// versions a line; refused and refused-by-helm are patterns of what is said instead.
func TestAgainstHelm(t *testing.T) {
	archives, err := filepath.Glob("testdata/charts/*.txtar")
	if err != nil || len(archives) < 10 {
		t.Fatal("too few archives", err)
	}
	r := &Renderer{}
	t.Cleanup(r.Close)
	for _, name := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			against(t, r, archive)
		})
	}
}

func against(t *testing.T, r *Renderer, archive *txtar.Archive) {
	dir := t.TempDir()
	g := given{chart: filepath.Join(dir, "chart"), kubernetes: "1.36"}
	var files []txtar.File
	refused, byHelm := "", ""
	for _, f := range archive.Files {
		text := strings.TrimSpace(string(f.Data))
		switch f.Name {
		case "given.yaml":
			g.values = []string{filepath.Join(dir, f.Name)}
			write(t, g.values[0], string(f.Data))
		case "api-versions":
			g.apiVersions = strings.Fields(text)
		case "refused":
			refused = text
		case "refused-by-helm":
			byHelm = text
		default:
			files = append(files, f)
		}
	}
	unpacked := packInside(t, files)
	for _, f := range unpacked {
		write(t, filepath.Join(g.chart, f.Name), string(f.Data))
	}
	output, _, err := g.template(t)
	if byHelm == "" && err != nil || byHelm != "" && (err == nil || !regexp.MustCompile(byHelm).MatchString(err.Error())) {
		t.Fatalf("helm template says %v, want %q", err, byHelm)
	}
	answer := r.Render(g.request(t))
	said := problemsOf(answer)
	if refused == "" && said != "" || refused != "" && !regexp.MustCompile(refused).MatchString(said) {
		t.Fatalf("swell says %q, want %q", said, refused)
	}
	packed := given{chart: filepath.Join(dir, "chart.tgz"), values: g.values, kubernetes: g.kubernetes, apiVersions: g.apiVersions}
	write(t, packed.chart, string(pack(t, "chart", unpacked)))
	same := r.Render(packed.request(t))
	if problemsOf(same) != said {
		t.Errorf("of an archive swell says %q, of the folder %q", problemsOf(same), said)
	}
	if refused != "" || byHelm != "" {
		return
	}
	want := objectsOf(t, output)
	if diff := cmp.Diff(want, of(t, answer)); diff != "" || len(want) == 0 {
		t.Errorf("%d objects (-helm +swell):\n%s", len(want), diff)
	}
	if diff := cmp.Diff(want, of(t, same)); diff != "" {
		t.Errorf("of an archive (-helm +swell):\n%s", diff)
	}
	existing(t, g, answer)
}

// TestSameVersion: the program is of the version that swell is built with.
func TestSameVersion(t *testing.T) {
	required := regexp.MustCompile(`(?m)^\s*(?:require )?(helm\.sh/helm/v4 v\S+)`)
	var versions []string
	for _, file := range []string{"../../go.mod", "../../deploy/helm/go.mod"} {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		versions = append(versions, required.FindString(string(content)))
	}
	if strings.Fields(versions[0])[1] != strings.Fields(versions[1])[1] {
		t.Errorf("go.mod has %s, and deploy/helm %s", versions[0], versions[1])
	}
}

// packInside packs the folders whose names end in .tgz, innermost first.
func packInside(t testing.TB, files []txtar.File) []txtar.File {
	t.Helper()
	folders := map[string][]txtar.File{}
	var kept []txtar.File
	for _, f := range files {
		folder, inside, ok := strings.Cut(f.Name, ".tgz/")
		if !ok {
			kept = append(kept, f)
			continue
		}
		folders[folder] = append(folders[folder], txtar.File{Name: inside, Data: f.Data})
	}
	for folder, inside := range folders {
		name := path.Base(folder)
		kept = append(kept, txtar.File{Name: folder + ".tgz", Data: pack(t, name[:strings.LastIndex(name, "-")], packInside(t, inside))})
	}
	return kept
}

// pack is an archive of a folder.
func pack(t testing.TB, folder string, files []txtar.File) []byte {
	t.Helper()
	var all []*tar.Header
	for _, f := range files {
		all = append(all, &tar.Header{Name: path.Join(folder, f.Name), Mode: 0o644, Size: int64(len(f.Data))})
	}
	return archiveOf(t, all, func(i int) []byte { return files[i].Data })
}

// archiveOf is an archive with these headers, and the content of each.
func archiveOf(t testing.TB, heads []*tar.Header, content func(i int) []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	out := tar.NewWriter(zipped)
	for i, head := range heads {
		if err := out.WriteHeader(head); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Write(content(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// request asks for a chart of these files.
func request(hash string, files map[string]string) helm.Request {
	r := helm.Request{Release: release, Namespace: namespace, Kubernetes: "1.36", APIVersions: []string{"v1"}, Chart: helm.Chart{Hash: hash}}
	for name, content := range files {
		r.Chart.Files = append(r.Chart.Files, helm.File{Name: name, Content: []byte(content)})
	}
	return r
}
