// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"path"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/swell-sh/swell/config/document"
)

// DefaultsAt is where a field of the Defaults above a unit is written, by its
// path in spec: tenant, or labels and the label. It is in the nearest swell.yaml
// that has it. The files are read again, since few ever ask.
func (r *Repository) DefaultsAt(unit UnitPath, field ...string) (at document.Position, ok bool) {
	for dir := string(unit); slices.ContainsFunc(r.layout.units, func(root string) bool { return Within(dir, root) }); dir = path.Dir(dir) {
		for _, doc := range r.Documents(path.Join(dir, SettingsFile)) {
			if n := lookupAll(document.Lookup(doc.Node, "spec"), field...); n != nil && n.Value != "" {
				return doc.At(n), true
			}
		}
	}
	return at, false
}

// TargetAt is where a label or a variable of a target is written, by its path:
// labels or variables, and the key; or cluster, or cell, for their names. What a
// cell says wins over the cluster's.
func (r *Repository) TargetAt(target *Target, field ...string) (at document.Position, ok bool) {
	for _, c := range r.Clusters {
		if c.Name != target.Cluster || len(field) == 0 {
			continue
		}
		for _, doc := range r.Documents(c.Position.File) {
			if doc.Position() != c.Position {
				continue
			}
			if n := targetNode(doc, target.Cell, field); n != nil {
				return doc.At(n), true
			}
		}
	}
	return at, false
}

func targetNode(doc *document.Document, cell string, field []string) *yaml.Node {
	metadata, spec := document.Lookup(doc.Node, "metadata"), document.Lookup(doc.Node, "spec")
	if field[0] == "name" {
		field = []string{"cluster"}
		if cell != "" {
			field = []string{"cell"}
		}
	}
	var own *yaml.Node
	if cells := document.Lookup(spec, "cells"); cells != nil {
		for _, n := range cells.Content {
			if cell != "" && document.TextAt(n, "name") == cell {
				own = n
			}
		}
	}
	switch field[0] {
	case "cluster":
		return document.Lookup(metadata, "name")
	case "cell":
		return document.Lookup(own, "name")
	}
	if n := lookupAll(own, field...); n != nil {
		return n
	}
	if field[0] == "labels" {
		return lookupAll(metadata, field...)
	}
	return lookupAll(spec, field...)
}

func lookupAll(n *yaml.Node, path ...string) *yaml.Node {
	for _, key := range path {
		n = document.Lookup(n, key)
	}
	return n
}

// Documents reads the documents of a file again; none of what cannot be read.
func (r *Repository) Documents(file string) []*document.Document {
	content, err := r.Tree.ReadFile(file)
	if err != nil {
		return nil
	}
	docs, _ := document.ReadValues(file, content)
	return docs
}
