// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

const metadataFile = "Chart.yaml"

// Bounds of one chart in the tree.
const (
	maxFiles = 10_000
	maxBytes = 64 << 20
)

// Read reads a chart of the tree. The error says what is wrong with it in one line. It is a
// [document.Refusal] where the tree has to change.
func Read(tree config.Tree, name string) (Chart, error) {
	hash, err := tree.Hash(name)
	if err != nil {
		return Chart{}, missing(err)
	}
	c := Chart{Hash: hash}
	if info, err := fs.Stat(tree, name); err != nil {
		return Chart{}, missing(err)
	} else if !info.IsDir() {
		return c.readArchive(tree, name)
	}
	size := 0
	err = fs.WalkDir(tree, name, func(file string, e fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if e.IsDir() {
			return nil
		}
		content, err := tree.ReadFile(file)
		if err != nil {
			return fmt.Errorf("%s: %w", file, document.Cause(err))
		}
		inside := file
		if name != "." {
			inside = strings.TrimPrefix(file, name+"/")
		}
		c.Files = append(c.Files, File{inside, content})
		if size += len(content); size > maxBytes || len(c.Files) > maxFiles {
			return document.Refusal(fmt.Sprintf("the chart has more than %d files or %d MiB", maxFiles, maxBytes>>20))
		}
		return nil
	})
	if err != nil {
		return Chart{}, err
	}
	return c, c.lacksMetadata()
}

// lacksMetadata says that a folder is no chart, and which ones in it are.
func (c Chart) lacksMetadata() error {
	var below []string
	for _, f := range c.Files {
		if f.Name == metadataFile {
			return nil
		}
		folder, name := path.Split(f.Name)
		inOther := slices.ContainsFunc(below, func(chart string) bool { return strings.HasPrefix(folder, chart+"/charts/") })
		if name == metadataFile && !inOther {
			below = append(below, path.Clean(folder))
		}
	}
	const most = 5
	switch {
	case len(below) == 0:
		return document.Refusal("no chart: the folder has no " + metadataFile)
	case len(below) > most:
		return document.Refusal(fmt.Sprintf("no chart: the folder has no %s, and holds %d charts: name one", metadataFile, len(below)))
	}
	return document.Refusal(fmt.Sprintf("no chart: the folder has no %s; did you mean the chart in %s?", metadataFile, strings.Join(below, " or ")))
}

func (c Chart) readArchive(tree config.Tree, name string) (Chart, error) {
	if !strings.HasSuffix(name, ".tgz") && !strings.HasSuffix(name, ".tar.gz") {
		return Chart{}, document.Refusal("want a folder with a Chart.yaml, or a .tgz")
	}
	content, err := tree.ReadFile(name)
	if err != nil {
		return Chart{}, document.Cause(err)
	}
	c.Archive, c.Files = true, []File{{"", content}}
	return c, nil
}

func missing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return document.Refusal("no such folder or archive in this tree; `swell vendor chart` says how to bring a chart into it")
	}
	return document.Cause(err)
}

// MayDefine says whether the chart may have definitions of custom resources.
func (c Chart) MayDefine() bool {
	const definition = "CustomResourceDefinition"
	for _, f := range c.Files {
		content := f.Content
		if c.Archive || strings.HasSuffix(f.Name, ".tgz") {
			content = unzipped(f.Content)
		}
		if bytes.Contains(content, []byte(definition)) || bytes.Contains(content, []byte(".tgz")) {
			return true
		}
	}
	return false
}

// unzipped is what an archive holds, as far as it can be read.
func unzipped(content []byte) []byte {
	in, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil
	}
	text, _ := io.ReadAll(io.LimitReader(in, maxBytes)) // what was read counts
	return text
}
