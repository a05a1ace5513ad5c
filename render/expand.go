// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/blame"
	"github.com/swell-sh/swell/render/kind"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/render/override"
	"github.com/swell-sh/swell/render/schema"
)

// maxDepth is how deep easy kinds may stand for other easy kinds.
const maxDepth = 8

// expansion gathers the objects of a unit on one target.
type expansion struct {
	space string // of written objects that name no namespace
	*unitRenderer
	target      *config.Target
	templates   *kind.Place
	hard        *schema.Set
	on          string // the clusters of the unit, see [places.clustersOf]
	cluster     *config.Cluster
	tenants     []ruling
	objects     []*object.Object
	sharedNames []sharedName // of the objects
	seen        map[object.ID]*object.Object
	budget      *kind.Budget                   // of the written spec that is being expanded
	steps       map[*object.Object]*blame.Step // how each object was made; nil when nobody asks
	questions   []question                     // about the objects
	unjudged    []unjudged                     // until all that the unit sets is known
	trial       *trial
}

// unjudged is an object that no policy was asked about yet.
type unjudged struct {
	draft  *draft
	object *object.Object
}

// expandAll renders all of the unit.
func (e *expansion) expandAll() {
	for _, src := range e.sources {
		if len(e.found.problems) > maxUnitProblems {
			break
		}
		if src.spec != nil {
			e.budget = new(kind.Budget)
			if e.trial != nil { // blame tries nothing out
				e.trial.doc = src.doc
			}
			e.questionSpec(src)
			e.expand(src, nil)
			continue
		}
		if src.chart != nil {
			e.expandChart(src)
			continue
		}
		key := sealingKey{src.doc, e.hard, e.space}
		if known := e.sealedBefore(src, src.doc.Name, key); known != nil {
			e.takeUp(src, known)
			continue
		}
		hard := src.object()
		if object, touched, ok := e.override(src, src.doc.Name, hard); ok {
			d := &draft{repository: e.repository.Name, unit: e.unit, doc: src.doc, object: object, touched: touched, hard: e.hard, noKind: e.noKind, tenants: e.tenants, space: e.space, anywhere: e.unit.Kustomization != ""}
			if e.steps != nil {
				d.step = e.stepOf(d, src, hard, nil)
			}
			e.sealOnce(src, d, key)
		}
	}
}

// expand renders a spec. What it renders may be easy specs again; chain is
// where the templates stand that led to this one, outermost first.
func (e *expansion) expand(src source, chain []document.Position) {
	rendered, problems := src.spec.RenderWithin(e.budget, e.templates)
	e.found.add(problems...)
	traced := sync.OnceValue(func() []kind.Traced {
		traced, _ := src.spec.Trace(e.templates) // its problems are those of rendering
		return traced
	})
	secrets := slices.Concat(src.secrets, src.spec.Secrets(), e.secrets)
	for i, r := range rendered {
		if e.budget.Over() || len(e.found.problems) > maxUnitProblems {
			return // it was said
		}
		if len(chain) == 0 {
			e.noteRendered(src.doc, r.ID)
		}
		object, touched, ok := e.override(src, r.ID, r.Object)
		if !ok {
			continue
		}
		apiVersion, _ := object["apiVersion"].(string)
		kindName, _ := object["kind"].(string)
		d := &draft{repository: e.repository.Name, unit: e.unit, doc: src.doc, object: object, touched: touched, hard: e.hard, template: r.Node, templateAt: r.At, chain: chain, noKind: e.noKind, tenants: e.tenants, secrets: secrets}
		if len(chain) == 0 {
			d.written = func(path []any) (document.Position, bool) { return writtenAt(src.doc, traced(), i, path) }
		}
		d.fromData = func(path []any) string {
			value, ok := kind.ValueAt(object, path)
			if !ok { // it is missing, so it was taken from nowhere
				return ""
			}
			o, _ := originOf(traced(), i, path)
			return src.spec.DataOf(e.templates, o, value)
		}
		if e.unit.Defaults.Tenant == "" {
			d.readsTenant = func(path []any) bool { return readsTenant(traced(), i, path) }
		}
		if e.steps != nil {
			d.step = e.stepOf(d, src, r.Object, &rendered[i])
			if i < len(traced()) {
				d.step.Traced = traced()[i]
			}
		}
		if nested := e.kinds.ByName(apiVersion, kindName); nested != nil {
			e.nest(nested, src, d)
			continue
		}
		e.seal(src, d)
	}
}

// originOf is the origin of the value at a path of the i-th object; ok is false when
// it is not known.
func originOf(traced []kind.Traced, i int, path []any) (o kind.Origin, ok bool) {
	if i >= len(traced) {
		return o, false
	}
	leaf := traced[i].Leaf(path)
	if leaf == nil {
		return o, false
	}
	return leaf.Below(path[len(leaf.Path):]), true
}

// writtenAt is where in a spec the value at a path of its i-th object was
// written; ok is false when it was not, or not in one place.
func writtenAt(doc *document.Document, traced []kind.Traced, i int, path []any) (at document.Position, ok bool) {
	o, ok := originOf(traced, i, path)
	if !ok || len(o.Decides) != 1 || o.Decides[0].From != "self" {
		return at, false
	}
	n, found := nodeOf(doc.Node, o.Decides[0].Path)
	return doc.At(n), found
}

// nodeOf is the node at a path, the key where there is one; ok is false when it
// does not exist.
func nodeOf(n *yaml.Node, path []any) (at *yaml.Node, ok bool) {
	at = n
	for i := range path {
		next := document.NodeAt(n, path[:i+1])
		if next == at {
			return at, false
		}
		at = next
	}
	return at, len(path) > 0
}

// readsTenant says whether the value at a path of the i-th object was computed
// from the unit's tenant.
func readsTenant(traced []kind.Traced, i int, path []any) bool {
	o, _ := originOf(traced, i, path)
	return slices.ContainsFunc(o.Reads, func(r kind.Read) bool {
		return r.From == "unit" && len(r.Path) == 1 && r.Path[0] == "tenant"
	})
}

// override applies the overrides of the Defaults and then the spec's own to an
// object; most objects have none. id is the object's in its easy kind, or its
// name when it is written out in the unit. touched tells what they changed, nil
// when there are none; ok is false after a problem.
func (e *expansion) override(src source, id string, object map[string]any) (changed map[string]any, touched func() []override.Touched, ok bool) {
	overrides := e.overridesOf(src, id)
	if len(overrides) == 0 {
		return object, nil, true
	}
	hard := e.typeOf(object)
	changed, problems := override.Apply(object, hard, overrides...)
	for i := range problems {
		if problems[i].File != src.doc.File { // of Defaults: say which document it does not fit
			problems[i].Via = []document.Position{src.doc.Position()}
		}
	}
	e.found.add(problems...)
	touched = sync.OnceValue(func() []override.Touched {
		_, touched, _ := override.Trace(object, hard, overrides...)
		return touched
	})
	return changed, touched, len(problems) == 0
}

// overridesOf are the overrides that hold for an object, in order.
func (e *expansion) overridesOf(src source, id string) (overrides []*override.Override) {
	for _, d := range e.defaults {
		if d.holdsFor(e.target, src.spec != nil, src.kindName(), id) {
			overrides = append(overrides, d.override)
		}
	}
	if own := src.overrides.Of(id); own != nil {
		overrides = append(overrides, own)
	}
	return overrides
}

// typeOf is the type that an object should have; nil when it is not known.
func (e *expansion) typeOf(object map[string]any) *schema.Type {
	apiVersion, _ := object["apiVersion"].(string)
	kindName, _ := object["kind"].(string)
	if k := e.hard.Kind(apiVersion, kindName); k != nil {
		return k.Type()
	}
	if k := e.kinds.ByName(apiVersion, kindName); k != nil {
		return k.Schema().MergeType()
	}
	return nil
}

// nest expands a rendered easy spec.
func (e *expansion) nest(nested *kind.Kind, src source, d *draft) {
	chain := append(slices.Clip(d.chain), d.templateAt)
	if len(chain) > maxDepth {
		d.problem(document.CodeRender, nil, "easy kinds stand for easy kinds more than %d deep", maxDepth)
		e.found.add(d.problems...)
		return
	}
	if len(nested.ObjectIDs()) == 0 { // it would be gone without a word
		d.problem(document.CodeRender, nil, "stands for no object, and only documents that are written in a unit are collected: write it there")
		e.found.add(d.problems...)
		return
	}
	values := map[document.Position][][]any{} // what stands there: several where an expression gave a map or a list
	at := func(path []any) document.Position {
		n := document.NodeAt(d.template, path)
		at := document.Position{File: d.templateAt.File, Line: n.Line, Column: n.Column}
		values[at] = append(values[at], path)
		return at
	}
	spec, problems := nested.DecodeValue(d.object, at, src.doc, chain, e.file)
	inner := source{doc: src.doc, spec: spec, secrets: d.secrets, step: d.step}
	if spec != nil {
		inner.overrides, problems = readOverrides(spec.Written(), nested)
	}
	for _, p := range problems {
		q := src.doc.Problem(src.doc.Node, p.Code, "%s %s: %s: %s%s", src.doc.Kind, src.doc.Name, d.what(), p.Message, d.fromOneOf(values[p.Position]))
		q.Via = append(slices.Clip(d.chain), p.Position)
		e.found.add(q)
	}
	if len(problems) == 0 {
		e.expand(inner, chain)
	}
}

// noteKind notes that the schema of the object's kind was read, unless it is
// one that the program brings.
func (e *expansion) noteKind(d *draft) {
	apiVersion, _ := d.object["apiVersion"].(string)
	kindName, _ := d.object["kind"].(string)
	if k := e.hard.Kind(apiVersion, kindName); k == nil || k.Definition() != "" {
		e.reads.note(readHard, hardName(e.on, apiVersion, kindName))
	}
}

// hardName is how a hard kind is noted: for all clusters of the unit together, which are
// too many for a note each.
func hardName(on, apiVersion, kindName string) string {
	return strings.Join([]string{on, apiVersion, kindName}, " ")
}

func (e *expansion) noKind(apiVersion, kindName string) noKind {
	return e.world.noKind(e.hard, apiVersion, kindName)
}

func via(template document.Position) []document.Position {
	if template.File == "" {
		return nil
	}
	return []document.Position{template}
}
