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

	"github.com/swell-sh/swell/config"
)

// maxDataFile is the size in bytes of the largest file of facts. They are held
// in memory as a whole, for as long as the kinds are.
const maxDataFile = 1 << 20

// Data is the facts that expressions read under the name `data`: what the
// files data/*.yaml hold, one plain value each, under the file's base name. A
// nil *Data has no files. It is safe for concurrent use.
type Data struct {
	root *fact
	// broken are the files and folders with a problem, sorted. No kind that
	// reads data loads then: what is absent may only be unreadable.
	broken []string
	names  []string // of all files, those with a problem too
}

// fact is one value of the facts.
type fact struct {
	value any      // plain
	path  []string // from the root
	keys  []string // of a mapping, sorted
	below map[string]*fact
	size  conversion // written out
}

var dataName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// LoadData reads the files *.yaml directly in a folder of the tree. A folder
// that is not there holds no facts. While a file has a problem, kinds that read
// data do not load.
func LoadData(tree config.Tree, folder string) (*Data, config.Problems) {
	var problems config.Problems
	values := map[string]any{}
	entries, err := tree.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		problems = append(problems, config.FileProblem(folder, err))
	}
	for _, e := range entries {
		file := path.Join(folder, e.Name())
		if !config.IsYAML(file) && e.Type().IsRegular() {
			continue // a README
		}
		name := strings.TrimSuffix(e.Name(), path.Ext(file))
		switch _, taken := values[name]; {
		case !e.Type().IsRegular():
			problems = append(problems, config.Problem{Position: config.Position{File: file}, Code: config.CodeFile, Message: "want plain files only in the folder of data"})
			continue
		case !dataName.MatchString(name):
			problems = append(problems, config.Problem{Position: config.Position{File: file}, Code: config.CodeFile,
				Message: fmt.Sprintf("%q: want a name of letters, digits, - and _, since expressions read the file as data.%s", config.Shorten(name), "name")})
			continue
		case taken:
			problems = append(problems, config.Problem{Position: config.Position{File: file}, Code: config.CodeDuplicate, Message: fmt.Sprintf("data.%s: there is another file of that name", name)})
			continue
		}
		value, found := readData(tree, file)
		problems = append(problems, found...)
		if len(found) == 0 {
			values[name] = value
		}
	}
	data := &Data{root: newFact(nil, values)}
	problems = problems.Sorted()
	for _, p := range problems {
		data.broken = append(data.broken, p.File)
		data.names = append(data.names, strings.TrimSuffix(path.Base(p.File), path.Ext(p.File)))
	}
	data.broken = slices.Compact(data.broken)
	data.names = slices.Compact(slices.Sorted(slices.Values(append(data.names, data.root.keys...))))
	return data, problems
}

func readData(tree config.Tree, file string) (any, config.Problems) {
	content, err := tree.ReadFile(file)
	if err == nil && len(content) > maxDataFile {
		err = config.Refusal(fmt.Sprintf("%d bytes: want at most %d KiB of facts in one file", len(content), maxDataFile>>10))
	}
	if err != nil {
		return nil, config.Problems{config.FileProblem(file, err)}
	}
	docs, problems := config.ReadValues(file, content)
	switch {
	case len(problems) > 0:
		return nil, problems
	case len(docs) == 0:
		return nil, config.Problems{{Position: config.Position{File: file}, Code: config.CodeDocument, Message: "want one YAML document, got none"}}
	case len(docs) > 1:
		return nil, config.Problems{docs[1].Problem(docs[1].Node, config.CodeDocument, "want one YAML document, got another one")}
	}
	return docs[0].Plain(docs[0].Node)
}

func newFact(at []string, value any) *fact {
	f := &fact{value: value, path: at, size: conversion{nodes: 1}}
	mapping, ok := value.(map[string]any)
	if !ok {
		f.size = sizeOf(value)
		return f
	}
	f.below = make(map[string]*fact, len(mapping))
	for key, value := range mapping {
		f.keys = append(f.keys, key)
		f.below[key] = newFact(append(slices.Clip(at), key), value)
		f.size.add(f.below[key].size)
		f.size.bytes += len(key)
	}
	slices.Sort(f.keys)
	return f
}

// facts is the root of all facts.
func (d *Data) facts() *fact {
	if d == nil {
		return newFact(nil, map[string]any{})
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
