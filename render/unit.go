// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/kind"
	"github.com/swell-sh/swell/render/override"
	"github.com/swell-sh/swell/render/schema"
)

// places are the targets that units may be placed on, in both topologies.
type places struct{ cells, clusters []place }

type place struct {
	target  config.Target
	cluster *config.Cluster
	hard    *schema.Set
}

func newPlaces(r *config.Repository) *places {
	list := func(whole bool) (all []place) {
		for _, cluster := range r.Clusters {
			hard, err := schema.Kubernetes(cluster.Kubernetes)
			if err != nil {
				panic(err) // checkVersions has been here
			}
			for _, target := range cluster.Targets(whole) {
				all = append(all, place{target, cluster, hard})
			}
		}
		return all
	}
	return &places{cells: list(false), clusters: list(true)}
}

// of lists where a unit with these defaults goes.
func (p *places) of(d *config.Defaults) []place {
	all := p.cells
	if d.Placement.WholeClusters {
		all = p.clusters
	}
	var picked []place
	for _, place := range all {
		if place.cluster.Allows(d.Tenant) && d.Placement.Match.Matches(place.target.Labels) {
			picked = append(picked, place)
		}
	}
	return picked
}

// unitRenderer renders one unit for all of its targets.
type unitRenderer struct {
	tree     config.Tree
	kinds    *kindSet
	unit     *config.Unit
	sources  []source
	problems config.Problems
	found    targetProblems
}

// source is one document of a unit that objects come from: an easy spec, or
// a hard object.
type source struct {
	doc       *config.Document
	spec      *kind.Spec // nil for a hard object
	overrides override.Overrides
	hard      map[string]any
}

func renderUnit(r *config.Repository, kinds *kindSet, unit *config.Unit, all *places) *Unit {
	u := unitRenderer{tree: r.Tree, kinds: kinds, unit: unit, problems: slices.Clone(unit.Problems)}
	out := &Unit{Path: unit.Path, Tenant: unit.Defaults.Tenant, Rollout: unit.Defaults.Rollout}
	u.problems = append(u.problems, unit.Defaults.Problems...)
	u.render(r, all, out)
	for i := range u.problems {
		u.problems[i].Unit = unit.Path
	}
	if out.Problems = u.problems.Sorted(); len(out.Problems) > 0 {
		out.Bundles = nil
	}
	return out
}

// render fills in the unit's targets and bundles.
func (u *unitRenderer) render(r *config.Repository, all *places, out *Unit) {
	unit := u.unit
	defer config.Recover(string(unit.Path), &u.problems)
	places := u.place(r, all)
	for _, p := range places {
		out.Targets = append(out.Targets, p.target)
	}
	for _, file := range unit.Files {
		u.read(file)
	}
	if len(u.problems) == 0 {
		out.Bundles = make(map[config.TargetName]*Bundle, len(places))
		for _, place := range places {
			u.found.target = place.target.Name
			if objects := u.objects(place); len(objects) > 0 {
				out.Bundles[place.target.Name] = newBundle(unit.Path, place.target.Name, objects)
			}
		}
		u.problems = append(u.problems, u.found.all(len(places))...)
	}
	if len(u.problems) == 0 && len(out.Bundles) == 0 {
		u.problems = append(u.problems, config.Problem{Position: config.Position{File: string(unit.Path)}, Code: config.CodeEmpty,
			Message: fmt.Sprintf("the unit renders to nothing on all of its %d targets; remove the folder to remove the unit", len(places))})
	}
}

// place finds the unit's targets and checks what its defaults name.
func (u *unitRenderer) place(r *config.Repository, all *places) []place {
	d := u.unit.Defaults
	if len(d.Problems) > 0 {
		return nil // the defaults are not known
	}
	if r.Rollouts[d.Rollout] == nil {
		at := d.RolloutAt
		if at.File == "" {
			at.File = string(u.unit.Path)
		}
		names := make([]string, 0, len(r.Rollouts))
		for name := range r.Rollouts {
			names = append(names, name)
		}
		u.problem(at, config.CodeReference, "rollout %q: no such Rollout in the fleet%s", d.Rollout, config.DidYouMean(d.Rollout, names))
	}
	if d.Placement == nil {
		u.problem(config.Position{File: string(u.unit.Path)}, config.CodeReference, "no placement: say in a swell.yaml here or further up which targets the unit goes to")
		return nil
	}
	unknown := r.UnknownValues(d.Placement.Match)
	if len(unknown) > 0 {
		u.problem(d.PlacementAt, config.CodeReference, "spec.placement.match: no target of the fleet has %s", strings.Join(unknown, ", "))
	}
	places := all.of(d)
	if len(places) == 0 && len(unknown) == 0 {
		u.problem(d.PlacementAt, config.CodeEmpty, "spec.placement: picks no target of the fleet")
	}
	if rollout := r.Rollouts[d.Rollout]; rollout != nil {
		for _, p := range places {
			if rollout.WaveOf(&p.target) < 0 {
				u.problem(rollout.Position, config.CodeFleet, "rollout %q: no wave takes target %s, which unit %s is placed on: add a wave without match at the end", rollout.Name, p.target.Name, u.unit.Path)
				break
			}
		}
	}
	return places
}

func (u *unitRenderer) problem(at config.Position, code config.Code, format string, args ...any) {
	u.problems = append(u.problems, config.Problem{Position: at, Code: code, Message: fmt.Sprintf(format, args...)})
}

func (u *unitRenderer) read(file string) {
	content, err := u.tree.ReadFile(file)
	if err != nil {
		u.problems = append(u.problems, config.FileProblem(file, err))
		return
	}
	docs, problems := config.ReadDocuments(file, content)
	u.problems = append(u.problems, problems...)
	for _, doc := range docs {
		u.readDocument(doc)
	}
}

func cause(err error) error {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return pathError.Err
	}
	return err
}

func (u *unitRenderer) readDocument(doc *config.Document) {
	name := doc.APIVersion + " " + doc.Kind
	easy := u.kinds.byName[name]
	switch {
	case isLocal(doc):
	case u.kinds.broken[name] != "":
		p := doc.Problem(doc.Node, config.CodeKind, "%s %s: its kind does not load", doc.Kind, doc.Name)
		p.Via = []config.Position{{File: u.kinds.broken[name]}}
		u.problems = append(u.problems, p)
	case easy != nil:
		u.readSpec(doc, easy)
	case strings.HasPrefix(doc.APIVersion, config.Group+"/"):
		u.problems = append(u.problems, doc.Problem(doc.Node, config.CodeDocument, "%s %s: does not belong in a unit; clusters and rollouts stand in the fleet's folder, Defaults in %s", doc.APIVersion, doc.Kind, "swell.yaml"))
	default:
		plain, problems := doc.Plain(doc.Node)
		u.problems = append(u.problems, problems...)
		if object, ok := plain.(map[string]any); ok && len(problems) == 0 {
			u.sources = append(u.sources, source{doc: doc, hard: object})
		}
	}
}

// isLocal says whether the document is for tools only, as kustomize and kpt
// have it: config.kubernetes.io/local-config: "true".
func isLocal(doc *config.Document) bool {
	annotations := config.Lookup(config.Lookup(doc.Node, "metadata"), "annotations")
	local := config.Lookup(annotations, "config.kubernetes.io/local-config")
	return local != nil && local.Value == "true"
}

func (u *unitRenderer) readSpec(doc *config.Document, easy *kind.Kind) {
	spec, problems := easy.Decode(doc, u.file)
	overrides, more := override.Read(doc, config.Lookup(config.Lookup(doc.Node, "spec"), kind.OverrideField))
	problems = append(problems, more...)
	problems = append(problems, overrides.Unused(easy.ObjectIDs())...)
	u.problems = append(u.problems, problems...)
	if spec != nil {
		u.sources = append(u.sources, source{doc: doc, spec: spec, overrides: overrides})
	}
}

// file reads a file that a spec names: in the unit's folder or below it.
func (u *unitRenderer) file(name string) ([]byte, error) {
	if !fs.ValidPath(name) || name == "." {
		return nil, config.Refusal(fmt.Sprintf("%q: want the path of a file in the unit's folder or below it", name))
	}
	content, err := u.tree.ReadFile(path.Join(string(u.unit.Path), name))
	if err != nil {
		return nil, fmt.Errorf("%q: %w", name, cause(err))
	}
	return content, nil
}

// objects renders the unit for one target.
func (u *unitRenderer) objects(p place) []*Object {
	templates := kind.NewPlace(u.unit, &p.target)
	var objects []*Object
	seen := map[ObjectID]*Object{}
	for _, src := range u.sources {
		for _, o := range u.sourceObjects(src, templates, p) {
			if other := seen[o.ID]; other != nil {
				u.found.add(config.Problem{Position: o.Spec, Code: config.CodeDuplicate, Via: via(o.Template),
					Message: fmt.Sprintf("%s: wanted twice in this unit, first at %s", o.ID, other.Spec)})
				continue
			}
			seen[o.ID] = o
			objects = append(objects, o)
		}
	}
	return objects
}

func via(template config.Position) []config.Position {
	if template.File == "" {
		return nil
	}
	return []config.Position{template}
}

func (u *unitRenderer) sourceObjects(src source, templates *kind.Place, p place) []*Object {
	if src.spec == nil {
		d := draft{unit: u.unit, doc: src.doc, object: src.hard, hard: p.hard, kinds: u.kinds}
		return u.seal(nil, &d)
	}
	rendered, problems := src.spec.Render(templates)
	u.found.add(problems...)
	var objects []*Object
	for _, r := range rendered {
		object, problems := src.overrides.Apply(r.ID, r.Object)
		if len(problems) > 0 {
			u.found.add(problems...)
			continue
		}
		objects = u.seal(objects, &draft{unit: u.unit, doc: src.doc, object: object, hard: p.hard, template: r.Node, templateAt: r.At, kinds: u.kinds})
	}
	return objects
}

func (u *unitRenderer) seal(objects []*Object, d *draft) []*Object {
	o := d.seal()
	if len(d.problems) > 0 {
		u.found.add(d.problems...)
		return objects
	}
	return append(objects, o)
}

// targetProblems gathers what is wrong on single targets, so that a problem on
// a hundred targets is one line.
type targetProblems struct {
	target   config.TargetName
	problems config.Problems
	targets  map[string][]config.TargetName // by the problem's text
}

func (t *targetProblems) add(problems ...config.Problem) {
	if t.targets == nil && len(problems) > 0 {
		t.targets = map[string][]config.TargetName{}
	}
	for _, p := range problems {
		key := p.String()
		if t.targets[key] == nil {
			t.problems = append(t.problems, p)
		}
		if targets := t.targets[key]; !slices.Contains(targets, t.target) {
			t.targets[key] = append(targets, t.target)
		}
	}
}

// all returns the problems, with the targets named where it is not all of
// them.
func (t *targetProblems) all(targets int) config.Problems {
	for i := range t.problems {
		if on := t.targets[t.problems[i].String()]; len(on) < targets {
			t.problems[i].Targets = on
		}
	}
	return t.problems
}
