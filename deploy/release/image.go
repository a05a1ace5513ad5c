// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"debug/buildinfo"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is who the daemon runs as in the image: nobody that a machine has.
const user = 65532

// file is one file or folder of the image.
type file struct {
	name    string
	mode    fs.FileMode
	owner   int
	content []byte // nil: a folder
}

// writeImage writes the image of a binary, and says its digest.
func writeImage(stdout io.Writer, version, binary, out, root string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("%s: %w", binary, err)
	}
	system, arch := setting(info, "GOOS"), setting(info, "GOARCH")
	if system != "linux" || setting(info, "CGO_ENABLED") != "0" {
		return fmt.Errorf("%s: want a binary that was built with GOOS=linux CGO_ENABLED=0", binary)
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	files := filesOf(content)
	if root != "" {
		if err := writeRoot(root, files); err != nil {
			return err
		}
	}
	image, err := imageOf(files, arch, version)
	if err != nil {
		return err
	}
	tag, err := name.NewTag("swell:" + version)
	if err != nil {
		return err
	}
	if err := tarball.WriteToFile(out, tag, image); err != nil {
		return err
	}
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s: image swell:%s for linux/%s, %s\n", out, version, arch, digest)
	return err
}

// filesOf are all files of the image, folders before what is in them.
func filesOf(binary []byte) []file {
	return []file{
		{"etc", 0o755, 0, nil},
		{"etc/group", 0o644, 0, fmt.Appendf(nil, "root:x:0:\nswell:x:%d:\n", user)},
		{"etc/passwd", 0o644, 0, fmt.Appendf(nil, "root:x:0:0:root:/:/sbin/nologin\nswell:x:%d:%d:swell:/var/lib/swell:/sbin/nologin\n", user, user)},
		{"etc/ssl", 0o755, 0, nil},
		{"etc/ssl/certs", 0o755, 0, nil},
		{"etc/ssl/certs/ca-certificates.crt", 0o644, 0, authorities()},
		{"etc/swell", 0o755, 0, nil},
		{"tmp", fs.ModeSticky | 0o777, 0, nil},
		{"usr", 0o755, 0, nil},
		{"usr/bin", 0o755, 0, nil},
		{"usr/bin/swell", 0o755, 0, binary},
		{"var", 0o755, 0, nil},
		{"var/lib", 0o755, 0, nil},
		{"var/lib/swell", 0o700, user, nil},
	}
}

// authorities are the certificates that Mozilla trusts, of a version that go.sum fixes.
// Those with constraints that a file cannot hold are left out.
func authorities() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // to memory
		}
	}
	return b.Bytes()
}

// imageOf is the image, with one layer.
func imageOf(files []file, arch, version string) (v1.Image, error) {
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Mode: int64(f.mode.Perm()), Uid: f.owner, Gid: f.owner, Size: int64(len(f.content)), Typeflag: tar.TypeReg, ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}
		if f.mode&fs.ModeSticky != 0 {
			header.Mode |= 0o1000
		}
		if f.content == nil {
			header.Typeflag, header.Name = tar.TypeDir, f.name+"/"
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	of, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer.Bytes())), nil })
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(empty.Image, of)
	if err != nil {
		return nil, err
	}
	return mutate.ConfigFile(image, &v1.ConfigFile{
		Architecture: arch, OS: "linux", RootFS: rootFS(image),
		Config: v1.Config{
			User: fmt.Sprintf("%d:%d", user, user), WorkingDir: "/etc/swell", Entrypoint: []string{"/usr/bin/swell"},
			Cmd: []string{"run", "--config", "/etc/swell/daemon.yaml"}, Env: []string{"PATH=/usr/bin"},
			Labels: map[string]string{"org.opencontainers.image.title": "swell", "org.opencontainers.image.version": version, "org.opencontainers.image.licenses": "Apache-2.0"},
		},
	})
}

// rootFS is what the configuration says of the layers.
func rootFS(image v1.Image) v1.RootFS {
	c, err := image.ConfigFile()
	if err != nil {
		return v1.RootFS{} // no layer was added
	}
	return c.RootFS
}

// writeRoot writes the files of the image, for builders with a base of their own.
func writeRoot(root string, files []file) error {
	for _, f := range files {
		name := filepath.Join(root, filepath.FromSlash(f.name))
		if f.content == nil {
			if err := os.MkdirAll(name, 0o755); err != nil {
				return err
			}
			continue
		}
		if err := os.WriteFile(name, f.content, f.mode.Perm()); err != nil {
			return err
		}
	}
	return nil
}
