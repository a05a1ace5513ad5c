// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package sops decrypts files that sops (https://getsops.io) encrypted: YAML and JSON,
// with a data key that one of the daemon's age identities opens, or a program that the
// daemon's configuration names. Values are in memory while an object is applied, and
// nowhere else: no error and no log of this package has one.
//
// A file is read as sops reads it, because the code over all of it (the MAC) is made of
// the values in the order in which sops sees them, and is checked before any value is
// used. So a value cannot be taken from another file, or from another place.
package sops

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config/sops"
)

// File is an encrypted file.
type File struct {
	Name     string
	Metadata *sops.Metadata // of its first document, as sops has it
	roots    []branch
}

// branch is a mapping in the order of the file. Comments are items of their own.
type branch []item

type item struct {
	key   string
	value any // branch, []any, string, int, float64, bool, time.Time, comment or nil
}

// comment is the text of a comment behind its #. As an item it has no key.
type comment string

// Read takes a file apart, by what its name ends with.
func Read(name string, content []byte) (*File, error) {
	f := &File{Name: name}
	read := f.readYAML
	if path.Ext(name) == ".json" {
		read = f.readJSON
	}
	if err := read(content); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

func (f *File) readYAML(content []byte) error {
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	for first := true; ; first = false {
		var doc yaml.Node
		switch err := decoder.Decode(&doc); {
		case errors.Is(err, io.EOF):
			return f.mustHaveMetadata()
		case err != nil:
			return errors.New("is no YAML")
		}
		root, err := loadDocument(&doc)
		if err != nil {
			return err
		}
		if first && len(doc.Content) > 0 {
			if err := f.readMetadata(doc.Content[0]); err != nil {
				return err
			}
		}
		f.roots = append(f.roots, root.without(sops.Field))
	}
}

func (f *File) readMetadata(root *yaml.Node) (err error) {
	n := sops.MetadataIn(root)
	if n == nil {
		return f.mustHaveMetadata()
	}
	if f.Metadata, err = sops.ReadMetadata(n); err != nil {
		return fmt.Errorf("%s: %w", sops.Field, err)
	}
	return nil
}

func (f *File) mustHaveMetadata() error {
	if f.Metadata == nil {
		return errors.New("is not encrypted by sops")
	}
	return nil
}

func (f *File) readJSON(content []byte) error {
	var doc yaml.Node // read first, since it bounds how deep the file is
	if err := yaml.Unmarshal(content, &doc); err != nil || len(doc.Content) == 0 {
		return errors.New("is no JSON object")
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.UseNumber()
	value, err := loadJSON(decoder)
	root, ok := value.(branch)
	if errors.Is(err, errTwice) {
		return err
	}
	if err != nil || !ok {
		return errors.New("is no JSON object")
	}
	f.roots = []branch{root.without(sops.Field)}
	return f.readMetadata(doc.Content[0])
}

var errTwice = errors.New("has a key twice in one mapping")

func (b branch) without(key string) branch {
	kept := make(branch, 0, len(b))
	for _, i := range b {
		if _, isComment := i.value.(comment); isComment || i.key != key {
			kept = append(kept, i)
		}
	}
	return kept
}

// # YAML, with comments where sops has them

func loadDocument(doc *yaml.Node) (branch, error) {
	root := comments(nil, doc.HeadComment, doc.LineComment)
	for _, n := range doc.Content {
		switch {
		case n.Kind == yaml.MappingNode:
			b, err := loadMapping(n, false)
			if err != nil {
				return nil, err
			}
			root = append(root, b...)
		case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null":
			root = comments(root, n.HeadComment, n.LineComment)
		default:
			return nil, errors.New("has a document that is no mapping")
		}
	}
	return comments(root, doc.FootComment), nil
}

// loadMapping reads a mapping; handled is set where whoever asks has its comments.
func loadMapping(n *yaml.Node, handled bool) (b branch, err error) {
	if !handled {
		b = comments(b, n.HeadComment, n.LineComment)
	}
	names := make(map[string]bool, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		b = comments(b, key.HeadComment, key.LineComment)
		scalar := value.Kind == yaml.ScalarNode
		if scalar {
			b = comments(b, value.HeadComment, value.LineComment)
		}
		name, ok := scalarOf(key).(string)
		if key.Kind != yaml.ScalarNode || !ok {
			return nil, errors.New("has a key that is no text")
		}
		if names[name] {
			return nil, errTwice
		}
		names[name] = true
		v, err := loadNode(value, scalar)
		if err != nil {
			return nil, err
		}
		b = append(b, item{name, v})
		if scalar {
			b = comments(b, value.FootComment)
		}
		b = comments(b, key.FootComment)
	}
	if !handled {
		b = comments(b, n.FootComment)
	}
	return b, nil
}

func loadNode(n *yaml.Node, handled bool) (any, error) {
	switch n.Kind {
	case yaml.ScalarNode:
		return scalarOf(n), nil
	case yaml.MappingNode:
		return loadMapping(n, handled)
	case yaml.SequenceNode:
		return loadSequence(n, handled)
	}
	return nil, errors.New("has an alias (*), and sops writes none")
}

func loadSequence(n *yaml.Node, handled bool) (list []any, err error) {
	if !handled {
		list = asValues(list, comments(nil, n.HeadComment, n.LineComment))
	}
	for _, child := range n.Content {
		list = asValues(list, comments(nil, child.HeadComment, child.LineComment))
		v, err := loadNode(child, true)
		if err != nil {
			return nil, err
		}
		list = asValues(append(list, v), comments(nil, child.FootComment))
	}
	if !handled {
		list = asValues(list, comments(nil, n.FootComment))
	}
	return list, nil
}

// scalarOf is nil for what does not fit its tag, as it is for sops.
func scalarOf(n *yaml.Node) (value any) {
	if n.Decode(&value) != nil {
		return nil
	}
	return value
}

func comments(b branch, texts ...string) branch {
	for _, text := range texts {
		for line := range strings.SplitSeq(text, "\n") {
			if line != "" {
				b = append(b, item{value: comment(line[1:])})
			}
		}
	}
	return b
}

func asValues(list []any, b branch) []any {
	for _, i := range b {
		list = append(list, i.value)
	}
	return list
}

// # JSON

func loadJSON(decoder *json.Decoder) (any, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Number:
		return jsonNumber(token)
	case json.Delim:
		if token == '[' {
			return loadJSONList(decoder)
		}
		return loadJSONObject(decoder)
	}
	return token, nil
}

func loadJSONList(decoder *json.Decoder) (list []any, err error) {
	for decoder.More() {
		value, err := loadJSON(decoder)
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	_, err = decoder.Token()
	return list, err
}

func loadJSONObject(decoder *json.Decoder) (any, error) {
	b, names := branch{}, map[string]bool{}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		name := token.(string) // the decoder takes no other key
		value, err := loadJSON(decoder)
		if err != nil {
			return nil, err
		}
		if names[name] {
			return nil, errTwice
		}
		names[name] = true
		b = append(b, item{name, value})
	}
	_, err := decoder.Token()
	return b, err
}

func jsonNumber(n json.Number) (any, error) {
	if i, err := n.Int64(); err == nil {
		return int(i), nil
	}
	return n.Float64()
}
