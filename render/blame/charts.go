// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package blame

import (
	"slices"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config/document"
)

// Chart is how an object of a Helm chart was made, as well as it can be told: Helm does not
// say which line of a template gave what, nor which values it took.
type Chart struct {
	// At is the line of the template that the value at a path is from.
	At func(path []any) document.Position
	// Has says whether the template gave a value at a path. Namespace is where the namespace
	// of the release stands, which objects get that have none.
	Has       func(path []any) bool
	Namespace document.Position
	// Reads are the values that a line of a template asks for, the likeliest first, each
	// with the places where it may be written, of which the first one counts.
	Reads func(at document.Position) []Value
}

// Value is a value that a template of a chart asks for.
type Value struct {
	Name   string // auth.password
	Places []ValuePlace
}

// ValuePlace is where a value is written.
type ValuePlace struct {
	File string
	Node *yaml.Node
	// Default is set in the values.yaml of a chart, and unset in a HelmChart and in files of
	// values.
	Default bool
}

// charted tells where a value of an object of a chart is from.
func (r *Reader) charted(s *Step, path []any, value any) []Origin {
	if slices.Equal(path, []any{"metadata", "namespace"}) && !s.Chart.Has(path) {
		return []Origin{{Kind: FromDocument, Role: RoleValue, Position: s.Chart.Namespace, Text: "the namespace of the release"}}
	}
	template := Origin{Kind: FromChart, Role: RoleTemplate, Position: s.Chart.At(path)}
	var all []found
	for _, v := range s.Chart.Reads(template.Position) {
		if len(v.Places) > 0 {
			all = append(all, placed(v, path, value))
		}
	}
	slices.SortStableFunc(all, func(a, b found) int { return b.fit - a.fit })
	if len(all) > 0 && all[0].fit >= fitPart { // what is a part of it has a say, all else was asked on the way
		all = slices.DeleteFunc(all, func(f found) bool { return f.fit < fitPart })
	}
	if len(all) == 0 {
		template.Role = RoleValue
		return []Origin{template}
	}
	var origins []Origin
	for _, f := range all {
		origins = append(origins, f.origins...)
	}
	return distinct(append(origins, template))
}

// placed is where a value is written that may have given another one.
func placed(v Value, path []any, value any) found {
	from := v.Places[0]
	o := Origin{Kind: FromValues, Role: RoleValue, Text: v.Name}
	if from.Default {
		o.Kind = FromDefault
	}
	for _, p := range v.Places { // values are merged: a mapping may be written in several places
		if fit, n := within(p.Node, path, value); fit == fitEquals {
			if p.Default != from.Default {
				o.Kind = FromDefault
			}
			o.Position = document.Position{File: p.File, Line: n.Line, Column: n.Column}
			return found{fit, []Origin{o}}
		}
		if p.Node.Kind == yaml.ScalarNode {
			break // it wins over all that follow, whatever the template makes of it
		}
	}
	fit, n := within(from.Node, path, value)
	o.Position = document.Position{File: from.File, Line: n.Line, Column: n.Column}
	return found{fit, []Origin{o}}
}

// within is the scalar of a value that is the one at the path of an object, or else the
// value as a whole. A mapping is put into an object as it is, at any depth.
func within(n *yaml.Node, path []any, value any) (fit int, at *yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		return fitOf(n.Value, value), n
	}
	for i := 1; i < len(path); i++ {
		if below := descend(n, path[i:]); below != nil && below.Kind == yaml.ScalarNode && fitOf(below.Value, value) == fitEquals {
			return fitEquals, below
		}
	}
	if inside := equalScalars(n, value); len(inside) > 0 {
		return fitEquals, inside[0].node
	}
	return fitSet, n
}
