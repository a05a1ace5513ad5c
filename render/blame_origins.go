// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/kind"
	"github.com/swell-sh/swell/render/override"
)

// objectOrigins tell why there is an object.
func (b *blamer) objectOrigins(m *made) []Origin {
	doc := m.src.doc
	origins := []Origin{{Kind: b.documentKind(m), Role: RoleValue, Position: doc.Position(), Text: doc.Kind + " " + doc.Name}}
	var chain []*made
	for at := m; at != nil && at.template != nil; at = at.parent {
		chain = append([]*made{at}, chain...)
	}
	for _, at := range chain {
		if at.src.spec.Kind().Folder == "" {
			continue // Go code
		}
		origins = append(origins, Origin{Kind: OriginTemplate, Role: RoleTemplate, Position: at.template.At, Text: at.src.spec.Kind().Name + " " + at.template.ID})
		for _, read := range at.traced.Origin.Reads {
			for _, f := range b.read(at, read, nil) {
				origins = append(origins, asked(f.origins[0]))
			}
		}
	}
	return distinct(origins)
}

func (b *blamer) documentKind(m *made) OriginKind {
	switch {
	case b.unit.Kustomization != "":
		return OriginKustomize
	case m.src.spec != nil:
		return OriginSpec
	}
	return OriginDocument
}

func asked(o Origin) Origin {
	o.Role = RoleCondition
	return o
}

// marks are the origins of what swell adds to every object; nil for all else.
func (b *blamer) marks(m *made, path []any) []Origin {
	if len(path) != 3 || path[0] != "metadata" {
		return nil
	}
	name, _ := path[2].(string)
	mark := path[1] == "labels" && slices.Contains(config.LabelsSet, name) || path[1] == "annotations" && path[2] == config.AnnotationUnit
	if !mark {
		return nil
	}
	return []Origin{{Kind: OriginSwell, Role: RoleValue, Position: m.src.doc.Position(), Text: "swell sets it on everything that it applies"}}
}

// origins tells where the value at a path of an object comes from. It is never
// empty.
func (b *blamer) origins(m *made, path []any, value any) []Origin {
	if at, ok := override.Origin(m.touched, path); ok {
		return []Origin{b.overrideOrigin(m, at, path, value)}
	}
	if m.before != nil {
		if before, ok := m.before(path); ok {
			path = before
		}
	}
	if m.template == nil {
		return b.written(m, path, value)
	}
	leaf := leafAt(m.traced.Leaves, path)
	switch {
	case leaf != nil:
		return b.leafOrigins(m, leaf, path, value)
	case m.src.spec.Kind().Folder == "":
		return []Origin{{Kind: OriginSpec, Role: RoleValue, Position: m.src.doc.Position(), Text: m.src.spec.Kind().Name + " as a whole"}}
	}
	return []Origin{{Kind: OriginTemplate, Role: RoleValue, Position: m.templateAt(path)}}
}

// leafAt is the leaf at a path or above it; nil when there is none.
func leafAt(leaves []kind.Leaf, path []any) *kind.Leaf {
	var best *kind.Leaf
	for i := range leaves {
		at := leaves[i].Path
		if len(at) <= len(path) && slices.Equal(at, path[:len(at)]) && (best == nil || len(at) > len(best.Path)) {
			best = &leaves[i]
		}
	}
	return best
}

// How much a place that was read has to do with a value.
const (
	fitUnset  = iota // nothing is written there
	fitSet           // the value was computed from it
	fitPart          // it is a part of the value
	fitEquals        // it is the value
)

// found is a place that was read, and how it came to its value.
type found struct {
	fit     int
	origins []Origin
}

// leafOrigins are those of a value that a template gives.
func (b *blamer) leafOrigins(m *made, leaf *kind.Leaf, path []any, value any) []Origin {
	o := leaf.Below(path[len(leaf.Path):])
	template := Origin{Kind: OriginTemplate, Role: RoleTemplate, Position: o.At, Text: strings.Join(o.Expressions, " ")}
	native := m.src.spec.Kind().Folder == ""
	if len(o.Expressions) == 0 && !native {
		template.Role = RoleValue
		return []Origin{template}
	}
	var all []found
	for _, read := range o.Decides {
		all = append(all, b.read(m, read, value)...)
	}
	all = append(all, b.constants(m, o, value)...)
	slices.SortStableFunc(all, func(x, y found) int { return y.fit - x.fit })
	var origins []Origin
	if len(all) == 0 || all[0].fit == fitUnset {
		origin := template
		origin.Kind, origin.Role = OriginDefault, RoleValue
		origins = append(origins, origin)
	}
	for _, f := range all {
		origins = append(origins, f.origins...)
	}
	if !native {
		origins = append(origins, template)
	}
	for _, read := range o.Asks {
		for _, f := range b.read(m, read, value) {
			origins = append(origins, asked(f.origins[0]))
		}
	}
	return distinct(origins)
}

// constants are the values written out in expressions that the value is. They
// are defaults when something that nobody set was asked for.
func (b *blamer) constants(m *made, o kind.Origin, value any) []found {
	var all []found
	origin := Origin{Kind: OriginTemplate, Role: RoleValue}
	for _, read := range o.Asks {
		if b.read(m, read, value)[0].fit == fitUnset {
			origin.Kind = OriginDefault
		}
	}
	for _, c := range o.Constants {
		fit := fitOf(textOf(c.Value), value)
		if fit == fitEquals || fit == fitPart && len(o.Decides) == 0 || len(o.Constants) == 1 && len(o.Decides) == 0 {
			origin.Position, origin.Text = c.At, c.Expression
			all = append(all, found{max(fit, fitSet), []Origin{origin}})
		}
	}
	return all
}

// distinct leaves out what is there already, in any role.
func distinct(origins []Origin) []Origin {
	var kept []Origin
	for _, o := range origins {
		same := func(k Origin) bool { return k.Position == o.Position && (k.Kind == o.Kind || o.Kind == OriginTemplate) }
		if !slices.ContainsFunc(kept, same) {
			kept = append(kept, o)
		}
	}
	return kept
}

// overrideOrigin is the line of an override that has the value.
func (b *blamer) overrideOrigin(m *made, at config.Position, path []any, value any) Origin {
	o := Origin{Kind: OriginOverride, Role: RoleValue, Position: at}
	doc := m.src.doc
	for _, d := range b.defaults {
		if doc.File != at.File && d.from.Doc.File == at.File {
			doc = d.from.Doc
		}
	}
	operation := holderOf(doc.Node, at)
	if operation == nil {
		return o
	}
	if text := config.Lookup(operation, "path"); text != nil && !mayBeSecret(m.object) { // a filter may hold a value
		o.Text = text.Value
	}
	written := config.Lookup(operation, "value")
	if written == nil {
		return o
	}
	o.Position = doc.At(written)
	for i := range path {
		if n := descend(written, path[i:]); n != nil && n.Kind == yaml.ScalarNode && fitOf(n.Value, value) == fitEquals {
			o.Position = doc.At(n)
			return o
		}
	}
	if inside := equalScalars(written, value); len(inside) > 0 {
		o.Position = doc.At(inside[0].node)
	}
	return o
}

// holderOf is the mapping whose value stands at a position; nil when there is
// none.
func holderOf(n *yaml.Node, at config.Position) *yaml.Node {
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 && child.Kind == yaml.ScalarNode && child.Line == at.Line && child.Column == at.Column {
			return n
		}
		if n := holderOf(child, at); n != nil {
			return n
		}
	}
	return nil
}

// descend is the node at the end of a path; nil when it ends early.
func descend(n *yaml.Node, path []any) *yaml.Node {
	for _, s := range path {
		switch s := s.(type) {
		case int:
			if n.Kind != yaml.SequenceNode {
				n = config.Lookup(n, fmt.Sprint(s)) // a key that is a number
			} else if s < len(n.Content) {
				n = n.Content[s]
			} else {
				return nil
			}
		case string:
			n = config.Lookup(n, s)
		}
		if n == nil {
			return nil
		}
	}
	return n
}

// scalar is a scalar below a node; a key counts as one.
type scalar struct {
	node *yaml.Node
	path []any // of the value, or of the value of the key
}

// equalScalars are the scalars below a node that are the value, values first.
func equalScalars(n *yaml.Node, value any) []scalar {
	return scalarsOf(n, func(text string) bool { return fitOf(text, value) == fitEquals })
}

// scalarsOf are the scalars below a node that are wanted, values first.
func scalarsOf(n *yaml.Node, wanted func(text string) bool) []scalar {
	var values, keys []scalar
	var visit func(n *yaml.Node, path []any)
	visit = func(n *yaml.Node, path []any) {
		switch n.Kind {
		case yaml.MappingNode:
			for i := 0; i+1 < len(n.Content); i += 2 {
				below := append(slices.Clip(path), n.Content[i].Value)
				if wanted(n.Content[i].Value) {
					keys = append(keys, scalar{n.Content[i], below})
				}
				visit(n.Content[i+1], below)
			}
		case yaml.SequenceNode:
			for i, item := range n.Content {
				visit(item, append(slices.Clip(path), i))
			}
		case yaml.ScalarNode:
			if wanted(n.Value) {
				values = append(values, scalar{n, path})
			}
		}
	}
	visit(n, nil)
	return append(values, keys...)
}

const shortest = 2 // bytes of a text that may count as a part of another one

// fitOf compares what is written with a value. No value is equal to nothing.
func fitOf(text string, value any) int {
	switch value := value.(type) {
	case nil, map[string]any, []any:
	case string:
		switch {
		case text == value:
			return fitEquals
		case len(text) >= shortest && strings.Contains(value, text):
			return fitPart
		}
	default:
		if text == textOf(value) {
			return fitEquals
		}
	}
	return fitSet
}

// textOf is a scalar as YAML has it, without quotes.
func textOf(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return fmt.Sprint(value)
}
