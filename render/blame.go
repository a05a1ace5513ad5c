// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/kind"
	"github.com/swell-sh/swell/render/override"
)

// OriginKind says what sort of thing set a field.
type OriginKind string

const (
	OriginSpec      OriginKind = "spec"      // a line of an easy spec
	OriginFile      OriginKind = "file"      // a file beside the spec, taken whole
	OriginDefaults  OriginKind = "defaults"  // the tenant or a label in a swell.yaml
	OriginOverride  OriginKind = "override"  // of a spec, or of a swell.yaml
	OriginData      OriginKind = "data"      // data/*.yaml
	OriginFleet     OriginKind = "fleet"     // a label, a variable or the name of a target
	OriginTemplate  OriginKind = "template"  // what a kind says
	OriginDefault   OriginKind = "default"   // what a kind says where the spec says nothing
	OriginUnset     OriginKind = "unset"     // a field that no spec sets, where it is declared
	OriginCollected OriginKind = "collected" // a document of another unit
	OriginUnit      OriginKind = "unit"      // the folder of the unit
	OriginDocument  OriginKind = "document"  // a line of Kubernetes YAML
	OriginKustomize OriginKind = "kustomize" // a kustomization, or a patch or a base of it
	OriginSwell     OriginKind = "swell"     // swell itself
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
	Kind OriginKind `json:"kind"`
	Role Role       `json:"role"`
	config.Position
	// Text is what was read, or the expression that read it. It holds no value.
	Text string `json:"text,omitempty"`
	// Whole is set when it is the file that counts and not its line.
	Whole bool `json:"whole,omitempty"`
}

// Masked stands for the values of Secrets.
const Masked = config.Redacted

// BlamedField is a scalar of an object, or an empty mapping or list.
type BlamedField struct {
	Path  []any // string keys and int indexes
	Value any   // as JSON has it, numbers as [json.Number]; [Masked] in a Secret
	// Hidden is set when Value is not, or not all of, what the object has.
	Hidden bool
	// Origins begin with what decides the value; never empty.
	Origins []Origin
}

// Blamed is an object and where it comes from.
type Blamed struct {
	Object *Object
	// Origins are of the object itself: its document, its template, and what
	// was asked whether to have it.
	Origins []Origin
	Fields  []BlamedField // sorted by path, as the object is written
}

// Blame tells where the fields of a unit's objects on a target come from, in
// the order of the bundle. It renders the unit again, slowly. There is nothing
// where the unit is not placed; the error is its problems, or that there is no
// such unit.
func (s *Snapshot) Blame(path config.UnitPath, target config.TargetName) ([]Blamed, error) {
	unit := s.Units.Get(path)
	if unit == nil {
		return nil, fmt.Errorf("unit %q: no such unit", path)
	}
	if len(unit.Problems) > 0 {
		return nil, unit.Problems
	}
	for _, p := range s.world.placed(unit.source.Defaults).places {
		if p.target.Name == target {
			return s.world.blame(unit.source, p)
		}
	}
	return nil, nil
}

func (w *world) blame(unit *config.Unit, p place) ([]Blamed, error) {
	u := &unitRenderer{world: w, unit: unit, reads: recorder{world: w}}
	u.defaults = w.defaults.of(w, &u.reads, unit.Defaults)
	docs, problems := u.documents(unit, &u.reads)
	u.problems = problems
	for _, doc := range docs {
		u.readDocument(doc)
	}
	b := &blamer{expansion: u.expansion(p), made: map[*Object]*made{}, files: map[string][]*config.Document{}}
	for _, src := range u.sources {
		if src.spec == nil {
			b.take(&made{src: src, rendered: src.hard}, src.doc.Name)
		} else {
			b.expand(src, nil)
		}
	}
	if problems := slices.Concat(u.problems, u.found.problems); len(problems) > 0 {
		return nil, fmt.Errorf("unit %s: could not be rendered again: %w", unit.Path, problems)
	}
	sortObjects(b.objects)
	blamed := make([]Blamed, len(b.objects))
	for i, o := range b.objects {
		blamed[i] = b.blame(o, b.made[o])
	}
	return blamed, nil
}

// blamer renders as expansion does, and keeps what came from what.
type blamer struct {
	expansion
	made  map[*Object]*made
	files map[string][]*config.Document // read again
}

// made is an object, hard or easy, and what it was made from.
type made struct {
	src      source
	parent   *made // the easy spec that src is, when a template made it
	rendered map[string]any
	template *kind.Rendered // nil for a document of Kubernetes
	traced   kind.Traced
	object   map[string]any // rendered, with overrides
	touched  []override.Touched
	before   func(path []any) ([]any, bool) // nil without overrides
}

// expand renders a spec and what comes of it; parent is the object that the
// spec is, nil for one that somebody wrote.
func (b *blamer) expand(src source, parent *made) {
	rendered, problems := src.spec.Render(b.templates)
	traced, more := src.spec.Trace(b.templates)
	b.found.add(problems...)
	b.found.add(more...)
	for i := range rendered {
		if i < len(traced) {
			b.take(&made{src: src, parent: parent, rendered: rendered[i].Object, template: &rendered[i], traced: traced[i]}, rendered[i].ID)
		}
	}
}

// take applies overrides, and expands the object when it is an easy spec.
func (b *blamer) take(m *made, id string) {
	overrides, hard := b.overridesOf(m.src, id), b.typeOf(m.rendered)
	var problems config.Problems
	m.object, m.touched, problems = override.Trace(m.rendered, hard, overrides...)
	b.found.add(problems...)
	if len(problems) > 0 {
		return
	}
	if len(overrides) > 0 {
		m.before = override.Before(m.rendered, hard, overrides...)
	}
	d := &draft{repository: b.repository.Name, unit: b.unit, doc: m.src.doc, object: m.object, hard: b.hard, kinds: b.kinds}
	if m.src.spec != nil {
		d.secrets = slices.Concat(m.src.secrets, m.src.spec.Secrets(), b.secrets)
	}
	if m.template != nil {
		d.template, d.templateAt = m.template.Node, m.template.At
		apiVersion, _ := m.object["apiVersion"].(string)
		kindName, _ := m.object["kind"].(string)
		if nested := b.kinds.ByName(apiVersion, kindName); nested != nil {
			at := func(path []any) config.Position { return m.templateAt(path) }
			chain := m.chain()
			if len(chain) > maxDepth {
				return // rendering has said so
			}
			spec, problems := nested.DecodeValue(m.object, at, m.src.doc, chain, b.file)
			b.found.add(problems...)
			if spec != nil {
				inner := source{doc: m.src.doc, spec: spec, secrets: d.secrets}
				inner.overrides, problems = readOverrides(spec.Written(), nested)
				b.found.add(problems...)
				b.expand(inner, m)
			}
			return
		}
	}
	if b.seal(d); len(b.objects) > len(b.made) {
		b.made[b.objects[len(b.objects)-1]] = m
	}
}

// chain is where the templates stand that led to the object, outermost first.
func (m *made) chain() []config.Position {
	var chain []config.Position
	for ; m != nil && m.template != nil; m = m.parent {
		chain = append(chain, m.template.At)
	}
	slices.Reverse(chain)
	return chain
}

// templateAt is where a path into the object stands in the kind.
func (m *made) templateAt(path []any) config.Position {
	n := nodeAt(m.template.Node, path)
	return config.Position{File: m.template.At.File, Line: n.Line, Column: n.Column}
}

func (b *blamer) blame(o *Object, m *made) Blamed {
	blamed := Blamed{Object: o, Origins: b.objectOrigins(m)}
	redactor := o.Redactor()
	decoder := json.NewDecoder(bytes.NewReader(o.JSON))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		panic(err) // it is canonical JSON of our own
	}
	eachLeaf(value, nil, func(path []any, value any) {
		f := BlamedField{Path: slices.Clone(path), Value: value}
		if f.Origins = b.marks(m, path); f.Origins == nil {
			f.Origins = b.origins(m, f.Path, value)
		}
		if shown := redactor.RedactValue(value); !equalScalar(shown, value) {
			f.Value, f.Hidden = shown, true
		}
		for i := range f.Origins {
			f.Origins[i].Text = redactor.Redact(f.Origins[i].Text)
		}
		if config.MaySecret(o.ID.Kind) && hidden(path) {
			f.Value, f.Hidden = Masked, true
			for i := range f.Origins {
				if k := f.Origins[i].Kind; k == OriginTemplate || k == OriginDefault { // an expression may hold a value
					f.Origins[i].Text = ""
				}
			}
		}
		blamed.Fields = append(blamed.Fields, f)
	})
	return blamed
}

// equalScalar compares scalars; mappings and lists among leaves are empty.
func equalScalar(a, b any) bool {
	switch a.(type) {
	case map[string]any, []any:
		return true
	}
	return a == b
}

// hidden says whether the value at a path of a Secret is not for showing. A
// copy of the whole object is what kubectl apply keeps.
func hidden(path []any) bool {
	return path[0] == "data" || path[0] == "stringData" || len(path) > 2 && path[2] == "kubectl.kubernetes.io/last-applied-configuration"
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
