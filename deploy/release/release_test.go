// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// binary builds this program as make image builds swell.
func binary(t *testing.T, env ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "program")
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X=main.version=v1.2.3 -X=main.commit=abc", "-o", out, ".")
	cmd.Env = append(os.Environ(), append([]string{"CGO_ENABLED=0"}, env...)...)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return out
}

// TestImage: two builds of a commit give the same bytes, nothing in the image runs as root,
// and the authorities of the public web are there.
func TestImage(t *testing.T) {
	var images [][]byte
	var said []string
	dir := t.TempDir()
	for range 2 {
		var stdout bytes.Buffer
		out := filepath.Join(dir, "image.tar")
		if err := run([]string{"image", "-root", filepath.Join(dir, "root"), "v1.2.3", binary(t, "GOOS=linux", "GOARCH=arm64"), out}, &stdout); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		images, said = append(images, content), append(said, stdout.String())
	}
	if !bytes.Equal(images[0], images[1]) || said[0] != said[1] {
		t.Errorf("two builds differ: %s %s", said[0], said[1])
	}
	if !strings.Contains(said[0], "image swell:v1.2.3 for linux/arm64, sha256:") {
		t.Errorf("it says %q", said[0])
	}
	image, err := tarball.ImageFromPath(filepath.Join(dir, "image.tar"), nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Architecture != "arm64" || config.OS != "linux" || config.Config.User != "65532:65532" || !slices.Equal(config.Config.Entrypoint, []string{"/usr/bin/swell"}) {
		t.Errorf("configuration %+v", config)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v", len(layers), err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]*tar.Header{}
	authorities := 0
	for r := tar.NewReader(content); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = h
		if strings.HasSuffix(h.Name, "ca-certificates.crt") {
			text, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			authorities = bytes.Count(text, []byte("BEGIN CERTIFICATE"))
		}
	}
	if authorities < 50 {
		t.Errorf("%d authorities", authorities)
	}
	if h := files["usr/bin/swell"]; h == nil || h.Mode != 0o755 || h.Uid != 0 {
		t.Errorf("the program is %+v", h)
	}
	if h := files["var/lib/swell/"]; h == nil || h.Mode != 0o700 || h.Uid != user {
		t.Errorf("the folder of the state is %+v", h)
	}
	if h := files["tmp/"]; h == nil || h.Mode != 0o1777 {
		t.Errorf("the folder for temporary files is %+v", h)
	}
	for name := range files {
		if _, err := os.Stat(filepath.Join(dir, "root", name)); err != nil {
			t.Errorf("in the image, and not in the folder for builders: %v", err)
		}
	}
}

// TestNoImage: what does not run in an image is refused.
func TestNoImage(t *testing.T) {
	notGo := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(notGo, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ binary, want string }{
		{binary(t, "GOOS=darwin"), "want a binary that was built with GOOS=linux CGO_ENABLED=0"},
		{notGo, notGo},
	} {
		out := filepath.Join(t.TempDir(), "image.tar")
		if err := run([]string{"image", "v1.2.3", c.binary, out}, io.Discard); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
		if _, err := os.Stat(out); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("something was written: %v", err)
		}
	}
	if err := run([]string{"image"}, io.Discard); err == nil || !strings.HasPrefix(err.Error(), "usage:") {
		t.Errorf("without arguments: %v", err)
	}
}

// TestSBOM: the bill of materials names each module with its version and its hash, and is
// the same each time.
func TestSBOM(t *testing.T) {
	program := binary(t)
	var first, second bytes.Buffer
	if err := errors.Join(run([]string{"sbom", "v1.2.3", program}, &first), run([]string{"sbom", "v1.2.3", program}, &second)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two bills of a binary differ")
	}
	var bom cyclonedx.BOM
	if err := json.Unmarshal(first.Bytes(), &bom); err != nil {
		t.Fatal(err)
	}
	if bom.Metadata.Component.Version != "v1.2.3" {
		t.Errorf("the program's version is %q", bom.Metadata.Component.Version)
	}
	for _, want := range []string{"github.com/CycloneDX/cyclonedx-go", "github.com/google/go-containerregistry", "std"} {
		i := slices.IndexFunc(*bom.Components, func(c cyclonedx.Component) bool { return c.Name == want })
		if i < 0 {
			t.Errorf("%s is missing", want)
			continue
		}
		if c := (*bom.Components)[i]; c.Version == "" || !strings.HasPrefix(c.PackageURL, "pkg:golang/") || want != "std" && c.Hashes == nil {
			t.Errorf("%s: %+v", want, c)
		}
	}
}
