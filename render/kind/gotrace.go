// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"path"
	"strings"

	"github.com/swell-sh/swell/config/document"
)

// traceGo is Trace for a kind in Go. What its code does not tell of, the spec
// as a whole decides.
func (s *Spec) traceGo(place *Place) ([]Traced, document.Problems) {
	rendered, problems := s.renderGo(new(Budget), place)
	traced := make([]Traced, len(rendered))
	for i, r := range rendered {
		traced[i] = Traced{ID: r.ID, Origin: Origin{At: r.At}}
		if s.kind.native.Reads == nil {
			continue
		}
		for _, l := range s.kind.native.Reads(s.goInput(place), r.Object) {
			l.At, l.Reads = r.At, l.Decides
			traced[i].Leaves = append(traced[i].Leaves, l)
		}
	}
	return traced, problems
}

// readsOfConfigFolder tells what the fields of its ConfigMap are made of.
func readsOfConfigFolder(in GoInput, object map[string]any) []Leaf {
	self := func(steps ...any) Read { return Read{From: "self", Path: steps} }
	leaf := func(at []any, decides ...Read) Leaf { return Leaf{Path: at, Origin: Origin{Decides: decides}} }
	folder := field(in.Spec, "folder").String()
	leaves := []Leaf{
		leaf([]any{"metadata", "name"}, self("metadata", "name")),
		leaf([]any{"metadata", "namespace"}, namespaceReads(in, self)...),
		leaf([]any{"immutable"}, self("spec", "hashSuffix")),
	}
	metadata, _ := object["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	for key := range labels {
		leaves = append(leaves, leaf([]any{"metadata", "labels", key}, self("spec", "labels", key)))
	}
	names, _ := in.Files(folder) // it was listed a moment ago
	for _, name := range names {
		key := strings.ReplaceAll(name, "/", "__")
		for _, part := range []string{"data", "binaryData"} {
			if files, _ := object[part].(map[string]any); files[key] != nil {
				leaves = append(leaves, leaf([]any{part, key}, Read{From: "file", Path: []any{path.Join(folder, name)}}, self("spec", "folder")))
			}
		}
	}
	return leaves
}

func namespaceReads(in GoInput, self func(...any) Read) []Read {
	reads := []Read{self("spec", "namespace")}
	text := field(in.Spec, "namespace").String()
	if text == "" {
		text = "{tenant}"
	}
	for _, part := range []struct {
		word string
		read Read
	}{
		{"{tenant}", Read{"unit", []any{"tenant"}}}, {"{unit}", Read{"unit", []any{"name"}}},
		{"{cluster}", Read{"target", []any{"cluster"}}}, {"{cell}", Read{"target", []any{"cell"}}},
	} {
		if strings.Contains(text, part.word) {
			reads = append(reads, part.read)
		}
	}
	return reads
}
