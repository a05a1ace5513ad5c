// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

// maxDataFile is the size in bytes of the largest file of facts. They are held
// in memory as a whole, for as long as the kinds are.
const maxDataFile = 1 << 20

// Data is the facts that expressions read under the name `data`: what the
// files data/*.yaml hold, one plain value each, under the file's base name. A
// nil *Data has no files. It is safe for concurrent use.
type Data struct {
	root *fact
	// problems are the files with a problem, and the names that expressions have for
	// them; the folder has none. No kind that reads one loads: what is absent may
	// only be unreadable.
	problems map[string]string
	names    []string // of all files, those with a problem too
}

// fact is one value of the facts.
type fact struct {
	value any      // plain
	path  []string // from the root
	at    document.Position
	keys  []string // of a mapping, sorted
	below map[string]*fact
	size  conversion // written out
}

var dataName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// LoadData reads the files *.yaml directly in a folder of the tree. A folder
// that is not there holds no facts. While a file has a problem, kinds that read
// it do not load.
func LoadData(tree config.Tree, folder string) (*Data, document.Problems) {
	var problems document.Problems
	root := newFact(nil, map[string]any{}, nil, nil)
	entries, err := tree.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		problems = append(problems, document.FileProblem(folder, err))
	}
	for _, e := range entries {
		file := path.Join(folder, e.Name())
		if !config.IsYAML(file) && e.Type().IsRegular() {
			continue // a README
		}
		name := strings.TrimSuffix(e.Name(), path.Ext(file))
		switch taken := root.below[name] != nil; {
		case !e.Type().IsRegular():
			problems = append(problems, document.Problem{Position: document.Position{File: file}, Code: document.CodeFile, Message: "want plain files only in the folder of data"})
			continue
		case !dataName.MatchString(name):
			problems = append(problems, document.Problem{Position: document.Position{File: file}, Code: document.CodeFile,
				Message: fmt.Sprintf("%q: want a name of letters, digits, - and _, since expressions read the file as data.%s", document.Shorten(name), "name")})
			continue
		case taken:
			problems = append(problems, document.Problem{Position: document.Position{File: file}, Code: document.CodeDuplicate, Message: fmt.Sprintf("data.%s: there is another file of that name", name)})
			continue
		}
		f, found := readData(tree, file, name)
		problems = append(problems, found...)
		if len(found) == 0 {
			root.put(name, f)
		}
	}
	slices.Sort(root.keys)
	data := &Data{root: root, problems: map[string]string{}, names: slices.Clone(root.keys)}
	problems = problems.Sorted()
	for _, p := range problems {
		if p.File == folder {
			data.problems[folder] = ""
			continue
		}
		data.problems[p.File] = strings.TrimSuffix(path.Base(p.File), path.Ext(p.File))
		data.names = append(data.names, data.problems[p.File])
	}
	data.names = slices.Compact(slices.Sorted(slices.Values(data.names)))
	return data, problems
}

func readData(tree config.Tree, file, name string) (*fact, document.Problems) {
	content, err := tree.ReadFile(file)
	if err == nil && len(content) > maxDataFile {
		err = document.Refusal(fmt.Sprintf("%d bytes: want at most %d KiB of facts in one file", len(content), maxDataFile>>10))
	}
	if err != nil {
		return nil, document.Problems{document.FileProblem(file, err)}
	}
	docs, problems := document.ReadValues(file, content)
	switch {
	case len(problems) > 0:
		return nil, problems
	case len(docs) == 0:
		return nil, document.Problems{{Position: document.Position{File: file}, Code: document.CodeDocument, Message: "want one YAML document, got none"}}
	case len(docs) > 1:
		return nil, document.Problems{docs[1].Problem(docs[1].Node, document.CodeDocument, "want one YAML document, got another one")}
	}
	value, problems := docs[0].Plain(docs[0].Node)
	if len(problems) > 0 {
		return nil, problems
	}
	return newFact([]string{name}, value, docs[0], docs[0].Node), nil
}

// newFact is the value that a node of a document holds. Without them, its
// position is not known.
func newFact(path []string, value any, doc *document.Document, n *yaml.Node) *fact {
	f := &fact{value: value, path: path, size: conversion{nodes: 1}}
	if n != nil {
		f.at = doc.At(n)
	}
	mapping, ok := value.(map[string]any)
	if !ok {
		f.size = sizeOf(value)
		return f
	}
	f.below = make(map[string]*fact, len(mapping))
	nodes := make(map[string]*yaml.Node, len(mapping))
	for i := 0; n != nil && i+1 < len(n.Content); i += 2 {
		nodes[n.Content[i].Value] = n.Content[i+1]
	}
	for key, value := range mapping {
		f.put(key, newFact(append(slices.Clip(path), key), value, doc, nodes[key]))
	}
	slices.Sort(f.keys)
	return f
}

// put adds a value to a mapping, whose keys are to be sorted after that.
func (f *fact) put(key string, below *fact) {
	f.value.(map[string]any)[key] = below.value
	f.keys = append(f.keys, key)
	f.below[key] = below
	f.size.add(below.size)
	f.size.bytes += len(key)
}

// facts is the root of all facts.
func (d *Data) facts() *fact {
	if d == nil {
		return newFact(nil, map[string]any{}, nil, nil)
	}
	return d.root
}

// Files are the names of the files under which expressions read them, sorted.
// Files with a problem are among them.
func (d *Data) Files() []string {
	if d == nil {
		return nil
	}
	return d.names
}

// Hash is the address of the value at a path: [file, key, ...]. Nothing is
// there for a path that ends nowhere, which has an address too. The empty path
// is all facts.
func (d *Data) Hash(at []string) string {
	if d == nil {
		return "absent"
	}
	f := d.at(at)
	if f == nil {
		return "absent"
	}
	sum := sha256.Sum256(appendJSON(nil, f.value))
	return hex.EncodeToString(sum[:])
}

// IsMapping says whether a mapping is at a path, which is one of [Data.Hash].
func (d *Data) IsMapping(at []string) bool {
	if d == nil {
		return len(at) == 0
	}
	f := d.at(at)
	return f != nil && f.below != nil
}

// at is nil where nothing is.
func (d *Data) at(path []string) *fact {
	f := d.root
	for _, key := range path {
		if f = f.below[key]; f == nil {
			return nil
		}
	}
	return f
}
