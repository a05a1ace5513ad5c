// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package blame

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/kind"
	"github.com/swell-sh/swell/render/override"
)

// Object tells why there is an object: its document, its templates, and what was
// asked whether to have it.
func (r *Reader) Object(s *Step) []Origin {
	doc := s.Doc
	origins := []Origin{{Kind: r.documentKind(s), Role: RoleValue, Position: doc.Position(), Text: doc.Kind + " " + doc.Name}}
	if s.Chart != nil {
		return append(origins, Origin{Kind: FromChart, Role: RoleTemplate, Position: s.Chart.At(nil)})
	}
	var chain []*Step
	for at := s; at != nil && at.Template != nil; at = at.Parent {
		chain = append([]*Step{at}, chain...)
	}
	for _, at := range chain {
		if at.native() {
			continue // Go code
		}
		origins = append(origins, Origin{Kind: FromTemplate, Role: RoleTemplate, Position: at.Template.At, Text: at.Spec.Kind().Name + " " + at.Template.ID})
		for _, read := range at.Traced.Origin.Reads {
			for _, f := range r.read(at, read, nil) {
				origins = append(origins, asked(f.origins[0]))
			}
		}
	}
	return distinct(origins)
}

func (r *Reader) documentKind(s *Step) Source {
	switch {
	case r.Unit.Kustomization != "":
		return FromKustomize
	case s.Spec != nil:
		return FromSpec
	}
	return FromDocument
}

func asked(o Origin) Origin {
	o.Role = RoleCondition
	return o
}

// marks are the origins of what swell adds to every object; nil for all else.
func marks(s *Step, path []any, value any) []Origin {
	if len(path) != 3 || path[0] != "metadata" {
		return nil
	}
	name, _ := path[2].(string)
	switch {
	case path[1] == "labels" && slices.Contains(config.LabelsSet, name), path[1] == "annotations" && name == config.AnnotationUnit:
	case path[1] == "labels" && name == config.LabelManagedBy && value == config.ManagedBy: // Git may give it another value
	default:
		return nil
	}
	return []Origin{{Kind: FromSwell, Role: RoleValue, Position: s.Doc.Position(), Text: "swell sets it on everything that it applies"}}
}

// origins tells where the value at a path of an object comes from. It is never
// empty.
func (r *Reader) origins(s *Step, path []any, value any) []Origin {
	if at, ok := override.Origin(s.Touched, path); ok {
		return []Origin{r.overrideOrigin(s, at, path, value)}
	}
	if s.Before != nil {
		if before, ok := s.Before(path); ok {
			path = before
		}
	}
	if s.Chart != nil {
		return r.charted(s, path, value)
	}
	if s.Template == nil {
		return r.written(s, path, value)
	}
	leaf := s.Traced.Leaf(path)
	switch {
	case leaf != nil:
		return r.leafOrigins(s, leaf, path, value)
	case s.native():
		return []Origin{{Kind: FromSpec, Role: RoleValue, Position: s.Doc.Position(), Text: s.Spec.Kind().Name + " as a whole"}}
	}
	return []Origin{{Kind: FromTemplate, Role: RoleValue, Position: s.templateAt(path)}}
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
func (r *Reader) leafOrigins(s *Step, leaf *kind.Leaf, path []any, value any) []Origin {
	o := leaf.Below(path[len(leaf.Path):])
	template := Origin{Kind: FromTemplate, Role: RoleTemplate, Position: o.At, Text: strings.Join(o.Expressions, " ")}
	native := s.native()
	if len(o.Expressions) == 0 && !native {
		template.Role = RoleValue
		return []Origin{template}
	}
	var all []found
	for _, read := range o.Decides {
		all = append(all, r.read(s, read, value)...)
	}
	all = append(all, r.constants(s, o, value)...)
	slices.SortStableFunc(all, func(x, y found) int { return y.fit - x.fit })
	var origins []Origin
	if len(all) == 0 || all[0].fit == fitUnset {
		origin := template
		origin.Kind, origin.Role = FromDefault, RoleValue
		origins = append(origins, origin)
	}
	for _, f := range all {
		origins = append(origins, f.origins...)
	}
	if !native {
		origins = append(origins, template)
	}
	for _, read := range o.Asks {
		for _, f := range r.read(s, read, value) {
			origins = append(origins, asked(f.origins[0]))
		}
	}
	return distinct(origins)
}

// constants are the values written out in expressions that the value is. They
// are defaults when something that nobody set was asked for.
func (r *Reader) constants(s *Step, o kind.Origin, value any) []found {
	var all []found
	origin := Origin{Kind: FromTemplate, Role: RoleValue}
	for _, read := range o.Asks {
		if r.read(s, read, value)[0].fit == fitUnset {
			origin.Kind = FromDefault
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
		same := func(k Origin) bool { return k.Position == o.Position && (k.Kind == o.Kind || o.Kind == FromTemplate) }
		if !slices.ContainsFunc(kept, same) {
			kept = append(kept, o)
		}
	}
	return kept
}

// overrideOrigin is the line of an override that has the value.
func (r *Reader) overrideOrigin(s *Step, at document.Position, path []any, value any) Origin {
	o := Origin{Kind: FromOverride, Role: RoleValue, Position: at}
	doc := s.Doc
	for _, from := range r.Unit.Defaults.Overrides {
		if doc.File != at.File && from.Doc.File == at.File {
			doc = from.Doc
		}
	}
	operation := holderOf(doc.Node, at)
	if operation == nil {
		return o
	}
	if text := document.Lookup(operation, "path"); text != nil && !config.MaySecretObject(s.Object) { // a filter may hold a value
		o.Text = text.Value
	}
	written := document.Lookup(operation, "value")
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
func holderOf(n *yaml.Node, at document.Position) *yaml.Node {
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
				n = document.Lookup(n, fmt.Sprint(s)) // a key that is a number
			} else if s < len(n.Content) {
				n = n.Content[s]
			} else {
				return nil
			}
		case string:
			n = document.Lookup(n, s)
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
