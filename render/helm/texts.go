// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"archive/tar"
	"bytes"
	"io"
	"path"
	"strings"
)

// maxTexts is how much of a chart's files is kept as texts, in bytes.
const maxTexts = maxBytes

// Texts are the contents of the chart's files by their paths. Those in an archive have a
// path through it: charts/db-1.2.3.tgz/templates/x.yaml. What cannot be read is left out:
// who renders the chart says what is wrong with it.
func (c Chart) Texts() map[string]string {
	t := texts{files: map[string]string{}}
	for _, f := range c.Files {
		t.add(f.Name, f.Content, c.Archive, 0)
	}
	return t.files
}

type texts struct {
	files map[string]string
	size  int
}

// deepest is how many archives in each other are looked into.
const deepest = 8

func (t *texts) add(name string, content []byte, archive bool, depth int) {
	if archive || strings.HasSuffix(name, ".tgz") && depth < deepest {
		t.unpack(name, content, depth+1)
		return
	}
	if t.size += len(content); t.size <= maxTexts {
		t.files[name] = string(content)
	}
}

// unpack takes up the files of an archive. They stand in a folder, which has the chart's name.
func (t *texts) unpack(at string, content []byte, depth int) {
	in := tar.NewReader(bytes.NewReader(unzipped(content)))
	for {
		head, err := in.Next()
		if err != nil {
			return
		}
		_, inside, ok := strings.Cut(strings.ReplaceAll(head.Name, `\`, "/"), "/")
		if !ok || head.Typeflag != tar.TypeReg {
			continue
		}
		file, err := io.ReadAll(in)
		if err != nil {
			return
		}
		t.add(path.Join(at, inside), file, false, depth)
	}
}
