// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package blame

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

// Kustomize does not tell what it took from where. So the value is looked for
// in the files that it read; these are the places, the likeliest last.
const (
	likelyNot      = iota
	likelyPart     // a part of it stands in a kustomization, as a prefix does
	likelyBase     // a part of it stands in the object's base, as a name does
	likelyText     // it stands in a kustomization or in a patch without a kind
	likelyPatch    // it stands in the same field of another document of the kind
	likelyDocument // it stands in the same field of the document that the object began as
)

// kustomized is where a field of an object that kustomize built is from. n is
// the node of it, with the position that kustomize's base has.
func (r *Reader) kustomized(doc *document.Document, at []any, n *yaml.Node, value any) found {
	best, fit, length := document.Position{}, likelyNot, 0
	better := func(likely int, doc *document.Document, n *yaml.Node) {
		if likely > fit || likely == likelyPart && likely == fit && len(n.Value) > length {
			best, fit, length = doc.At(n), likely, len(n.Value)
		}
	}
	whole := false
	for _, file := range r.Built() {
		if !isYAML(file) {
			content, err := r.Repository.Tree.ReadFile(file)
			if err == nil && fitOf(string(content), value) == fitEquals {
				whole, best, fit = true, document.Position{File: file, Line: 1}, likelyDocument
			}
			continue
		}
		for _, candidate := range r.reread(file) {
			r.likely(candidate, doc, at, value, better)
			for _, patch := range inlinePatches(candidate) {
				r.likely(patch, doc, at, value, better)
			}
		}
	}
	origins := []Origin{{Kind: FromKustomize, Role: RoleValue, Position: best, Whole: whole}}
	if fit == likelyNot {
		origins[0].Position = doc.At(n)
	}
	root := Origin{Kind: FromKustomize, Role: RoleTemplate, Position: document.Position{File: r.Unit.Kustomization, Line: 1}, Text: "kustomization", Whole: true}
	if origins[0].File != root.File {
		origins = append(origins, root)
	}
	if fit >= likelyText {
		return found{fitEquals, origins}
	}
	return found{fitSet, origins}
}

func isYAML(file string) bool {
	return config.IsYAML(file) || slices.Contains(config.KustomizationFiles, path.Base(file))
}

// likely says how likely it is that a document has a field of doc.
func (r *Reader) likely(candidate, doc *document.Document, at []any, value any, better func(int, *document.Document, *yaml.Node)) {
	if candidate.Kind == doc.Kind && candidate.APIVersion == doc.APIVersion {
		base := candidate.File == doc.File && strings.Contains(doc.Name, candidate.Name)
		n := descend(candidate.Node, at)
		switch fit := fitOf(scalarText(n), value); {
		case n == nil:
		case fit == fitEquals && base:
			better(likelyDocument, candidate, n)
		case fit == fitEquals:
			better(likelyPatch, candidate, n)
		case fit == fitPart && base:
			better(likelyBase, candidate, n)
		}
		if n == nil && !base {
			for _, s := range equalScalars(candidate.Node, value) { // a patch counts items in its own way
				if sameNames(s.path, at) {
					better(likelyPatch, candidate, s.node)
				}
			}
		}
		return
	}
	if candidate.Kind != "" && candidate.Kind != "Kustomization" && candidate.Kind != "Component" {
		return
	}
	inside := equalScalars(candidate.Node, value)
	if text, ok := value.(string); ok && len(inside) == 0 { // of a generator
		inside = equalScalars(candidate.Node, fmt.Sprint(at[len(at)-1])+"="+text)
	}
	if len(inside) > 0 {
		better(likelyText, candidate, inside[0].node)
		return
	}
	if tag := tagIn(candidate.Node, value); tag != nil {
		better(likelyBase, candidate, tag)
	} else if n := partOf(candidate.Node, value); n != nil {
		better(likelyPart, candidate, n)
	}
}

func scalarText(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.ScalarNode {
		return ""
	}
	return n.Value
}

// sameNames says whether two paths are the same but for indexes.
func sameNames(a, b []any) bool {
	names := func(path []any) (names []any) {
		for _, s := range path {
			if _, ok := s.(string); ok {
				names = append(names, s)
			}
		}
		return names
	}
	return slices.Equal(names(a), names(b))
}

// partOf is the longest scalar that is a part of a text; nil when there is none.
func partOf(n *yaml.Node, value any) (best *yaml.Node) {
	if n.Kind == yaml.ScalarNode && fitOf(n.Value, value) == fitPart {
		return n
	}
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			continue
		}
		if part := partOf(child, value); part != nil && (best == nil || len(part.Value) > len(best.Value)) {
			best = part
		}
	}
	return best
}

// tagIn is the tag or digest of an image in a kustomization that ends the text.
func tagIn(n *yaml.Node, value any) *yaml.Node {
	text, _ := value.(string)
	images := document.Lookup(n, "images")
	for i := 0; images != nil && i < len(images.Content); i++ {
		image := images.Content[i]
		for _, key := range []string{"newTag", "digest"} {
			tag, name := document.Lookup(image, key), scalarText(document.Lookup(image, "newName"))
			if name == "" {
				name = scalarText(document.Lookup(image, "name"))
			}
			if tag != nil && (text == name+":"+tag.Value || text == name+"@"+tag.Value) {
				return tag
			}
		}
	}
	return nil
}

// inlinePatches are the patches that are written out in a kustomization, with
// the lines of its file.
func inlinePatches(doc *document.Document) []*document.Document {
	var all []*document.Document
	var visit func(n *yaml.Node)
	visit = func(n *yaml.Node) {
		if n.Kind == yaml.ScalarNode && n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
			inner, _ := document.ReadValues(doc.File, []byte(n.Value))
			for _, patch := range inner {
				shift(patch.Node, n.Line)
				all = append(all, patch)
			}
		}
		for _, child := range n.Content {
			visit(child)
		}
	}
	if patches := document.Lookup(doc.Node, "patches"); patches != nil {
		visit(patches)
	}
	return all
}

// shift moves nodes down by some lines. Their columns are not known any more.
func shift(n *yaml.Node, lines int) {
	n.Line, n.Column = n.Line+lines, 0
	for _, child := range n.Content {
		shift(child, lines)
	}
}
