// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/swell-sh/swell/render/helm"
)

const (
	someChart  = "{apiVersion: v2, name: some, version: 1.0.0}"
	someObject = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: some}\n"
)

// someFiles are a chart, and what else is to be in it: names and contents in turn.
func someFiles(more ...string) (files []txtar.File) {
	for pair := range slices.Chunk(append([]string{"Chart.yaml", someChart, "templates/x.yaml", someObject}, more...), 2) {
		files = append(files, txtar.File{Name: pair[0], Data: []byte(pair[1])})
	}
	return files
}

// entries are an archive of files by their whole names, and of what else there may be.
func entries(t *testing.T, heads ...*tar.Header) []byte {
	t.Helper()
	content := func(i int) []byte {
		switch {
		case heads[i].Typeflag != tar.TypeReg && heads[i].Typeflag != 0:
			return nil
		case strings.HasSuffix(heads[i].Name, "Chart.yaml"):
			return []byte(someChart)
		}
		return []byte(someObject)
	}
	for i, h := range heads {
		h.Mode, h.Size = 0o644, int64(len(content(i)))
	}
	return archiveOf(t, heads, content)
}

func filesNamed(names ...string) (heads []*tar.Header) {
	for _, name := range names {
		heads = append(heads, &tar.Header{Name: name})
	}
	return heads
}

// bomb is an archive of a chart with a file of zeros of that size, in bytes, whole MiB. Equal
// pieces are zipped once: a zipped file may consist of several.
func bomb(t *testing.T, folder string, size int64) []byte {
	t.Helper()
	const mebi = 1 << 20
	var archive bytes.Buffer
	out := tar.NewWriter(&archive)
	for _, f := range someFiles() {
		if err := out.WriteHeader(&tar.Header{Name: folder + "/" + f.Name, Mode: 0o644, Size: int64(len(f.Data))}); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Write(f.Data); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.WriteHeader(&tar.Header{Name: folder + "/zeros", Mode: 0o644, Size: size}); err != nil {
		t.Fatal(err)
	}
	const end = 1024 // bytes, of an archive
	return slices.Concat(zippedText(t, archive.String()), bytes.Repeat(zippedText(t, string(make([]byte, mebi))), int(size/mebi)),
		zippedText(t, string(make([]byte, end))))
}

// TestArchives renders archives of all forms. Each has its objects, or one problem.
func TestArchives(t *testing.T) {
	good := pack(t, "some", someFiles())
	nested := good
	for range 9 {
		nested = pack(t, "some", someFiles("charts/some-1.0.0.tgz", string(nested)))
	}
	many := someFiles()
	for i := range 10_000 {
		many = append(many, txtar.File{Name: fmt.Sprintf("files/%d", i)})
	}
	var bombs []string
	for i := range 4 {
		bombs = append(bombs, fmt.Sprintf("charts/b%d-1.0.0.tgz", i), string(bomb(t, "some", 30<<20)))
	}
	changed := slices.Clone(good)
	changed[len(changed)-8] ^= 1 // of the checksum
	for _, test := range []struct {
		name    string
		archive []byte
		want    string // what is said; empty: it has its object
	}{
		{"good", good, ""},
		{"folder of another name", pack(t, "other", someFiles()), ""},
		{"folders named, as tar does", entries(t, &tar.Header{Name: "some/", Typeflag: tar.TypeDir}, &tar.Header{Name: "some/Chart.yaml"}, &tar.Header{Name: "some/templates/", Typeflag: tar.TypeDir}, &tar.Header{Name: "some/templates/x.yaml"}), ""},
		{"byte order mark", pack(t, "some", []txtar.File{{Name: "Chart.yaml", Data: []byte("\ufeff" + someChart)}, {Name: "templates/x.yaml", Data: []byte("\ufeff" + someObject)}}), ""},
		{"made on Windows", entries(t, filesNamed(`some\Chart.yaml`, `some\templates\x.yaml`)...), ""},
		{"no folder", entries(t, filesNamed("Chart.yaml", "templates/x.yaml")...), "Chart.yaml stands in no folder: want the chart in a folder of the archive, as `helm package` makes it"},
		{"this folder", entries(t, filesNamed("./Chart.yaml", "./templates/x.yaml")...), ""},
		{"symbolic link", entries(t, append(filesNamed("some/Chart.yaml"), &tar.Header{Name: "some/values.yaml", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"})...), "some/values.yaml is a link to /etc/passwd: want plain files only"},
		{"hard link", entries(t, append(filesNamed("some/Chart.yaml"), &tar.Header{Name: "some/values.yaml", Typeflag: tar.TypeLink, Linkname: "some/Chart.yaml"})...), "some/values.yaml is a link to some/Chart.yaml"},
		{"device", entries(t, append(filesNamed("some/Chart.yaml"), &tar.Header{Name: "some/values.yaml", Typeflag: tar.TypeFifo})...), "some/values.yaml is a device or a pipe"},
		{"up", entries(t, filesNamed("some/Chart.yaml", "some/../../etc/passwd")...), "some/../../etc/passwd leads out of the archive"},
		{"up from the chart", entries(t, filesNamed("some/Chart.yaml", "some/../x")...), "some/../x leads out of the archive"},
		{"up at once", entries(t, filesNamed("../some/Chart.yaml")...), "../some/Chart.yaml leads out of the archive"},
		{"absolute", entries(t, filesNamed("/some/Chart.yaml")...), "/some/Chart.yaml: an absolute name"},
		{"absolute in the folder", entries(t, filesNamed("some//etc/passwd")...), "some//etc/passwd: an absolute name"},
		{"a drive", entries(t, filesNamed("some/Chart.yaml", `some/c:/x`)...), "illegally named files"},
		{"two metadata", entries(t, filesNamed("some/Chart.yaml", "some/Chart.yaml")...), "Chart.yaml stands twice in the archive, as some/Chart.yaml and some/Chart.yaml"},
		{"two charts", entries(t, filesNamed("a/Chart.yaml", "b/Chart.yaml")...), "Chart.yaml stands twice in the archive, as a/Chart.yaml and b/Chart.yaml"},
		{"no metadata", entries(t, filesNamed("some/templates/x.yaml")...), "Chart.yaml"},
		{"nothing", archiveOf(t, nil, nil), "has no files"},
		{"large metadata", pack(t, "some", append(someFiles()[1:], txtar.File{Name: "Chart.yaml", Data: []byte(someChart + "\n#" + strings.Repeat("x", 1<<20))})), "Chart.yaml is larger than 1 MiB"},
		{"cut short", good[:len(good)-20], "the archive is cut short"},
		{"cut in the checksum", good[:len(good)-3], "the archive is cut short"},
		{"another checksum", changed, "the archive is damaged: its checksum is another one"},
		{"no gzip", []byte("not an archive at all"), "no .tgz: it is not compressed with gzip"},
		{"empty", nil, "no .tgz: the archive is cut short"},
		{"no tar", zippedText(t, strings.Repeat("text ", 1000)), "the archive is damaged, or holds no tar"},
		{"bomb", bomb(t, "some", 2<<30), "unpacks to more than 64 MiB"},
		{"many files", pack(t, "some", many), "has more than 10000 files"},
		{"bombs in it", pack(t, "some", someFiles(bombs...)), "charts/b2-1.0.0.tgz: unpacks to more than 64 MiB"},
		{"archives in each other", nested, "stands in more than 8 archives in each other"},
		{"link in an archive in it", pack(t, "some", someFiles("charts/x-1.0.0.tgz", string(entries(t, append(filesNamed("x/Chart.yaml"), &tar.Header{Name: "x/y", Typeflag: tar.TypeSymlink, Linkname: "z"})...)))), "charts/x-1.0.0.tgz: x/y is a link to z"},
		{"damaged archive in it", pack(t, "some", someFiles("charts/x-1.0.0.tgz", "text")), "charts/x-1.0.0.tgz: no .tgz: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			answer := shared.Render(helm.Request{Release: release, Namespace: namespace, Kubernetes: "1.36",
				Chart: helm.Chart{Hash: test.name, Archive: true, Files: []helm.File{{Content: test.archive}}}})
			if test.want == "" {
				if len(answer.Problems) > 0 || len(answer.Objects) != 1 {
					t.Fatalf("%d objects, %s", len(answer.Objects), problemsOf(answer))
				}
				return
			}
			if len(answer.Problems) != 1 || !strings.Contains(answer.Problems[0].Text, test.want) || answer.Retry() {
				t.Fatalf("got %q, want %q", problemsOf(answer), test.want)
			}
		})
	}
}

// TestArchiveInAFolder: an archive in charts of a folder is held to the same bounds.
func TestArchiveInAFolder(t *testing.T) {
	t.Parallel()
	r := request("archive in a folder", map[string]string{"Chart.yaml": someChart, "templates/x.yaml": someObject, "charts/b-1.0.0.tgz": string(bomb(t, "some", 2<<30))})
	if got := problemsOf(shared.Render(r)); got != "charts/b-1.0.0.tgz: unpacks to more than 64 MiB" {
		t.Errorf("got %q", got)
	}
}

func zippedText(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// FuzzTexts: the texts of an archive are within bounds, whatever it is.
func FuzzTexts(f *testing.F) {
	f.Add(pack(f, "some", someFiles("charts/x-1.0.0.tgz", string(pack(f, "x", someFiles())))))
	f.Add([]byte("no archive"))
	f.Fuzz(func(t *testing.T, content []byte) {
		size := 0
		for _, text := range (helm.Chart{Archive: true, Files: []helm.File{{Content: content}}}).Texts() {
			size += len(text)
		}
		if size > 64<<20 {
			t.Errorf("%d bytes", size)
		}
	})
}
