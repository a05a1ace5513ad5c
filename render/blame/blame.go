// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package blame finds the source of each field of a rendered object: the lines of
// specs, templates, overrides, data and the fleet that decided it. The caller says
// how the object was rendered; this package reads the files again. It renders
// nothing, and shows no value of a Secret.
package blame

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/kind"
	"github.com/swell-sh/swell/render/override"
)

// Source says what sort of thing set a field.
type Source string

const (
	FromSpec      Source = "spec"      // a line of an easy spec
	FromFile      Source = "file"      // a file beside the spec, taken whole
	FromDefaults  Source = "defaults"  // the tenant or a label in a swell.yaml
	FromOverride  Source = "override"  // of a spec, or of a swell.yaml
	FromData      Source = "data"      // data/*.yaml
	FromFleet     Source = "fleet"     // a label, a variable or the name of a target
	FromTemplate  Source = "template"  // what a kind says
	FromDefault   Source = "default"   // what a kind or a chart says where the spec or the values say nothing
	FromUnset     Source = "unset"     // a field that no spec sets, where it is declared
	FromCollected Source = "collected" // a document of another unit
	FromUnit      Source = "unit"      // the folder of the unit
	FromDocument  Source = "document"  // a line of Kubernetes YAML
	FromKustomize Source = "kustomize" // a kustomization, or a patch or a base of it
	FromChart     Source = "chart"     // a template of a Helm chart
	FromValues    Source = "values"    // values of a Helm chart, in a HelmChart or a file of values
	FromSwell     Source = "swell"     // swell itself
)

// Role says what an origin has to do with a value.
type Role string

const (
	RoleValue     Role = "value"     // the value, or a part of it, is from here
	RoleTemplate  Role = "template"  // it was put into the object here
	RoleCondition Role = "condition" // it was asked whether to have this value
)

// Origin is a line that had a say in a field.
type Origin struct {
	Kind Source `json:"kind"`
	Role Role   `json:"role"`
	document.Position
	// Text is what was read, or the expression that read it. It holds no value.
	Text string `json:"text,omitempty"`
	// Whole is set when it is the file that counts and not its line.
	Whole bool `json:"whole,omitempty"`
}

// Field is a scalar of an object, or an empty mapping or list.
type Field struct {
	Path  []any // string keys and int indexes
	Value any   // as JSON has it, numbers as [json.Number]; [config.Redacted] in a Secret
	// Hidden is set when Value is not, or not all of, what the object has.
	Hidden bool
	// Origins begin with what decides the value; never empty.
	Origins []Origin
}

// Step is how one object, easy or hard, was made.
type Step struct {
	Doc      *document.Document // of the unit
	Spec     *kind.Spec         // that was rendered; nil for a document of Kubernetes
	Parent   *Step              // the object that Spec is, where a template made it
	Template *kind.Rendered     // nil for a document of Kubernetes
	Traced   kind.Traced
	Chart    *Chart         // that the object is from; nil for others
	Object   map[string]any // rendered, with overrides
	Touched  []override.Touched
	// Before leads from a path in Object to the path before the overrides; nil
	// without any.
	Before func(path []any) ([]any, bool)
}

// Reader reads again what a unit was rendered from on a target.
type Reader struct {
	Repository *config.Repository
	Unit       *config.Unit
	Target     *config.Target
	// Built lists the files that kustomize read for the unit.
	Built func() []string
	// Collected lists the places of the documents of a collection.
	Collected func(*kind.Collection) []document.Position

	files map[string][]*document.Document // read again
}

// Fields are the fields of a hard object, sorted by path, as it is written in
// canonical JSON; redactor knows its secrets.
func (r *Reader) Fields(step *Step, object []byte, redactor *config.Redactor) (fields []Field) {
	decoder := json.NewDecoder(bytes.NewReader(object))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		panic(err) // it is canonical JSON of our own
	}
	secret := config.MaySecretObject(step.Object)
	eachLeaf(value, nil, func(path []any, value any) {
		f := Field{Path: slices.Clone(path), Value: value}
		if f.Origins = marks(step, path, value); f.Origins == nil {
			f.Origins = r.origins(step, f.Path, value)
		}
		if shown := redactor.RedactField(lastKey(path), value); !equalScalar(shown, value) {
			f.Value, f.Hidden = shown, true
		}
		for i := range f.Origins {
			f.Origins[i].Text = redactor.Redact(f.Origins[i].Text)
		}
		if secret && hidden(path, value) {
			f.Value, f.Hidden = document.Redacted, true
			for i := range f.Origins {
				if k := f.Origins[i].Kind; k == FromTemplate || k == FromDefault { // an expression may hold a value
					f.Origins[i].Text = ""
				}
			}
		}
		fields = append(fields, f)
	})
	return fields
}

// native says whether the object was made by a kind in Go.
func (s *Step) native() bool { return s.Spec.Kind().Folder == "" }

// templateAt is where a path into the object stands in the kind.
func (s *Step) templateAt(path []any) document.Position {
	n := document.NodeAt(s.Template.Node, path)
	return document.Position{File: s.Template.At.File, Line: n.Line, Column: n.Column}
}

// lastKey is the field at the end of a path; empty for an item of a list.
func lastKey(path []any) string {
	key, _ := path[len(path)-1].(string)
	return key
}

// equalScalar compares scalars; mappings and lists among leaves are empty.
func equalScalar(a, b any) bool {
	switch a.(type) {
	case map[string]any, []any:
		return true
	}
	return a == b
}

// hidden says whether the value at a path of a Secret is not for showing.
func hidden(path []any, value any) bool {
	if len(path) > 2 && path[0] == "metadata" && path[1] == "annotations" {
		name, _ := path[2].(string)
		return config.HidesAnnotation(name, value)
	}
	return path[0] == "data" || path[0] == "stringData"
}

// eachLeaf calls do for the scalars of a value, and for mappings and lists
// without any, in the order of the paths.
func eachLeaf(value any, path []any, do func(path []any, value any)) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			eachLeaf(v[key], append(slices.Clip(path), key), do)
		}
		if len(v) > 0 {
			return
		}
	case []any:
		for i, item := range v {
			eachLeaf(item, append(slices.Clip(path), i), do)
		}
		if len(v) > 0 {
			return
		}
	}
	if len(path) > 0 {
		do(path, value)
	}
}
