// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/config/sops"
	"github.com/swell-sh/swell/render/blame"
	"github.com/swell-sh/swell/render/checker"
	"github.com/swell-sh/swell/render/kind"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/render/override"
	"github.com/swell-sh/swell/render/schema"
)

// unitRenderer renders one unit for all of its targets.
type unitRenderer struct {
	*world
	unit        *config.Unit
	reads       recorder
	sources     []source
	defaults    []*defaultOverride // in order; mostly none
	silent      bool               // the unit holds documents that render to nothing by themselves, or none
	foreign     []string           // its files without documents
	problems    document.Problems
	notes       document.Problems
	blames      document.Problems          // of units that items were collected from
	answers     map[string]checker.Verdict // of programs, by [question.key]
	trial       *trial                     // of the place that is rendered
	noted       map[string]bool            // the messages of notes
	values      []uniqueValue
	sharedNames []sharedName
	sharedAt    map[sharedKey]int // their indexes
	secrets     []string          // of specs that were collected
	found       targetProblems
	settings    []setting
	uses        useCounts
	judged      map[judgedBy]int // the objects that policies are about; nil: nobody asks
	placed      []place
	on          string // the clusters of these places, see [places.clustersOf]
	// rendered are the ids of the objects that specs gave on any target.
	rendered map[*document.Document][]string
	easy     map[easyID]document.Position // of the easy documents so far
	charted  []string                     // folders of Helm charts that it names
	sealed   map[string]sealedFile        // that were looked into, see [unitRenderer.sealedIn]
	sealings map[sealingKey]*sealing
}

// easyID is what tells the easy documents of a unit apart.
type easyID struct{ apiVersion, kind, namespace, name string }

// repeated is the problem of an easy document with the kind and the name of an earlier
// one of the unit; nil when there is none. Collectors know documents by their names.
func (u *unitRenderer) repeated(doc *document.Document) document.Problems {
	id := easyID{apiVersion: doc.APIVersion, kind: doc.Kind, name: doc.Name}
	if namespace := document.Lookup(document.Lookup(doc.Node, "metadata"), "namespace"); namespace != nil {
		id.namespace = namespace.Value
	}
	if first, found := u.easy[id]; found {
		return document.Problems{doc.Problem(doc.Node, document.CodeDuplicate, "%s %s: stands twice in this unit, first at %s: give one of them another name", doc.Kind, document.Shorten(doc.Name), first)}
	}
	if u.easy == nil {
		u.easy = map[easyID]document.Position{}
	}
	u.easy[id] = doc.Position()
	return nil
}

// source is one document of a unit that objects come from: an easy spec, or
// a hard object.
type source struct {
	doc       *document.Document
	spec      *kind.Spec // nil for a hard object
	chart     *chart     // of a HelmChart
	rendered  *rendered  // an object of a chart
	overrides override.Overrides
	hard      map[string]any // nil where the document is packed
	secrets   []string       // of the specs that this one was rendered from
	step      *blame.Step    // the easy object that spec is; nil for a written one, or when nobody asks
}

// object is the written object.
func (s *source) object() map[string]any {
	if s.hard == nil && s.doc.Packed != nil {
		return schema.Decode(s.doc.Packed)
	}
	return s.hard
}

// kindName is the kind of the document that the objects come from.
func (s *source) kindName() string {
	switch {
	case s.spec != nil:
		return s.spec.Kind().Name
	case s.rendered != nil:
		return s.rendered.kind
	}
	return s.doc.Kind
}

// renderUnit renders a unit for its places.
func (w *world) renderUnit(unit *config.Unit, placed []place) *result {
	u := unitRenderer{world: w, unit: unit, reads: recorder{world: w}}
	out := &result{heads: make([]head, len(placed))}
	if w.policies == nil {
		u.reads.note(readUnjudged, "")
	}
	u.render(placed, out)
	u.redact()
	out.values, out.sharedNames = u.values, u.sharedNames
	out.settings, out.foreign, out.uses = u.settings, u.foreign, u.uses.sealed()
	out.reads, out.problems, out.notes, out.blames = u.reads.reads(), u.problems.Sorted(), u.notes.Sorted(), u.blames.Sorted()
	if len(out.problems) > 0 {
		out.bundles, out.values, out.sharedNames = nil, nil, nil
		clear(out.heads)
	}
	return out
}

// render fills in the heads and bundles.
func (u *unitRenderer) render(placed []place, out *result) {
	defer document.Recover(string(u.unit.Path), &u.problems)
	u.placed, u.on = placed, u.places.clustersOf(placed)
	out.holds = u.read()
	if len(u.problems)+len(u.unit.Problems)+len(u.unit.Defaults.Problems) > 0 {
		return
	}
	expansions := u.expand(placed)
	u.consult(placed, expansions)
	for i, place := range placed {
		if objects := expansions[i].objects; len(objects) > 0 {
			bundle := object.NewBundle(u.unit.Path, place.target.Name, objects)
			out.bundles, out.heads[i] = append(out.bundles, bundle), u.headOf(bundle, place)
			u.noteShared(i, expansions[i].sharedNames, bundle)
		}
	}
	for i, e := range expansions {
		e.found.placement = i
		e.judgeAll()
	}
	u.problems = append(u.problems, u.found.all(placed)...)
	if len(u.problems) > 0 || len(placed) == 0 {
		return
	}
	u.problems = u.idleOverrides()
	if len(out.bundles) == 0 && !u.silent {
		where := "its 1 target"
		if len(placed) > 1 {
			where = fmt.Sprintf("all of its %d targets", len(placed))
		}
		u.problems = append(u.problems, document.Problem{Position: document.Position{File: string(u.unit.Path)}, Code: document.CodeEmpty,
			Message: fmt.Sprintf("the unit renders to nothing on %s; remove the folder to remove the unit", where)})
	}
}

// read reads the Defaults' overrides and the documents of the unit. holds lists the
// kinds that are, or may be, in it.
func (u *unitRenderer) read() (holds []string) {
	u.defaults = u.world.defaults.of(u.world, &u.reads, u.unit.Defaults)
	for _, d := range u.defaults {
		u.problems = append(u.problems, d.problems...)
	}
	docs, foreign, problems := u.documents(u.unit, &u.reads)
	u.foreign, u.silent = foreign, len(docs) == 0 && len(foreign) > 0
	u.problems = append(u.problems, problems...)
	if len(problems)+len(u.unit.Problems) > 0 { // what stands behind a mistake is not in docs
		holds = u.scan(u.unit)
	}
	for _, doc := range docs {
		if !slices.Contains(holds, doc.Kind) {
			holds = append(holds, shared(doc.Kind))
		}
		u.readDocument(doc)
	}
	return holds
}

// idleOverrides are those of specs that change an object which no target has:
// they would silently have no effect. Those of Defaults are for many units,
// of which one may do without the object.
func (u *unitRenderer) idleOverrides() (problems document.Problems) {
	for _, src := range u.sources {
		if src.spec != nil {
			problems = append(problems, src.overrides.Idle(slices.Sorted(slices.Values(u.rendered[src.doc])))...)
		}
	}
	return problems
}

// noteRendered notes that a spec of the unit gives an object of this id.
func (u *unitRenderer) noteRendered(doc *document.Document, id string) {
	if u.rendered == nil {
		u.rendered = map[*document.Document][]string{}
	}
	if ids := u.rendered[doc]; !slices.Contains(ids, id) {
		u.rendered[doc] = append(ids, id)
	}
}

// headOf is what the compiler remembers of a bundle.
func (u *unitRenderer) headOf(b *object.Bundle, p place) head {
	h := head{digest: b.Digest, ids: make([]uint64, len(b.Objects))}
	need := func(id object.ID) {
		if !slices.Contains(h.needs, id) {
			h.needs = append(h.needs, id)
		}
	}
	for i, o := range b.Objects {
		h.ids[i] = o.ID.Hash()
		h.brings = h.brings || o.ID.IsContainer()
		if o.ID.Namespace != "" {
			need(object.ID{Kind: "Namespace", Name: o.ID.Namespace})
		}
		if name := u.hard.ofCluster(p.cluster).Kind(o.APIVersion(), o.ID.Kind).Definition(); name != "" {
			need(object.ID{Group: "apiextensions.k8s.io", Kind: definitionKind, Name: name})
		}
	}
	slices.SortFunc(h.needs, object.ID.Compare)
	return h
}

// noteClaim finds a definition that has the names of an easy kind.
func (u *unitRenderer) noteClaim(doc *document.Document) {
	object, ok := plain(doc)
	if doc.Kind != definitionKind || !ok {
		return
	}
	claim := schema.ClaimOf(object)
	if strings.ContainsAny(claim.Group+claim.Kind+claim.Plural, " \n") {
		return // no easy kind has such names
	}
	u.reads.note(readClaim, claim.Group+" "+claim.Kind+" "+claim.Plural)
	if p := u.world.claimed(doc); p != nil {
		u.problems = append(u.problems, *p)
	}
}

func (u *unitRenderer) readDocument(doc *document.Document) {
	if isLocal(doc) {
		return
	}
	if n := localConfig(doc); n != nil && n.Value != "false" {
		u.problems = append(u.problems, doc.Problem(n, document.CodeType, "metadata.annotations[%q]: want \"true\", for a document that is not applied, or no annotation", annotationLocal))
	}
	u.reads.note(readKind, doc.APIVersion+" "+doc.Kind)
	easy, broken := u.kinds.ByName(doc.APIVersion, doc.Kind), u.kinds.Broken(doc.APIVersion, doc.Kind)
	switch {
	case broken != "":
		p := doc.Problem(doc.Node, document.CodeKind, "%s %s: its kind does not load", doc.Kind, doc.Name)
		p.Via = []document.Position{{File: broken}}
		u.problems = append(u.problems, p)
	case easy != nil:
		u.readSpec(doc, easy)
	case config.IsHelmChart(doc):
		u.readChart(doc)
	case strings.HasPrefix(doc.APIVersion, config.Group+"/"):
		u.problems = append(u.problems, doc.Problem(doc.Node, document.CodeDocument, "%s %s: does not belong in a unit; clusters and rollouts stand in the fleet's folder, Defaults in %s", doc.APIVersion, doc.Kind, "swell.yaml"))
	default:
		u.noteClaim(doc)
		if doc.Packed != nil {
			u.sources = append(u.sources, source{doc: doc})
			return
		}
		plain, problems := doc.Plain(doc.Node)
		u.problems = append(u.problems, problems...)
		if object, ok := plain.(map[string]any); ok && len(problems) == 0 {
			u.readSealed(doc, object)
			u.sources = append(u.sources, source{doc: doc, hard: object})
		}
	}
}

// annotationLocal with the value "true" marks a document that is for tools only,
// as kustomize and kpt have it.
const annotationLocal = "config.kubernetes.io/local-config"

func isLocal(doc *document.Document) bool {
	n := localConfig(doc)
	return n != nil && n.Value == "true"
}

// localConfig is the value of that annotation; nil where there is none.
func localConfig(doc *document.Document) *yaml.Node {
	return document.Lookup(document.Lookup(document.Lookup(doc.Node, "metadata"), "annotations"), annotationLocal)
}

func (u *unitRenderer) readSpec(doc *document.Document, easy *kind.Kind) {
	if n := sops.MetadataIn(doc.Node); n != nil {
		key := document.NodeAt(doc.Node, []any{sops.Field})
		u.problems = append(u.problems, doc.Problem(key, document.CodeSecret, "%s: a spec of an easy kind cannot be encrypted: encrypt a Secret, and have the spec name it", sops.Field))
		return
	}
	spec, problems := easy.Decode(doc, u.file)
	overrides, more := readOverrides(doc, easy)
	problems = slices.Concat(problems, more, u.repeated(doc), ownMarks(doc, easy))
	u.problems = append(u.problems, problems...)
	u.silent = u.silent || len(easy.ObjectIDs()) == 0 // others collect it
	if spec != nil {
		u.sources = append(u.sources, source{doc: doc, spec: spec, overrides: overrides})
	}
}

// readOverrides reads the overrides in a document of an easy kind.
func readOverrides(doc *document.Document, easy *kind.Kind) (override.Overrides, document.Problems) {
	if !easy.Overridable() {
		return override.Overrides{}, nil
	}
	overrides, problems := override.Read(doc, document.Lookup(document.Lookup(doc.Node, "spec"), kind.OverrideField))
	return overrides, append(problems, overrides.Unused(easy.ObjectIDs())...)
}

// inputs are what templates may read besides the spec, on one target.
func (u *unitRenderer) inputs(target config.TargetName) kind.Inputs {
	return kind.Inputs{
		File:     u.file,
		Files:    u.files,
		Data:     u.reads.noteData,
		DataFile: func(file string) { u.reads.note(readFile, file) },
		Collect:  func(c *kind.Collection) ([]*kind.Collected, error) { return u.collect(c, target) },
		LeftOut:  func(c *kind.Collection, item *kind.Collected, why string) { u.leaveOut(c, item.Position(), why) },
		Unique:   func(found kind.Unique) { u.noteUnique(target, found) },
		Secrets:  func() []string { return u.secrets },
	}
}

// file reads a file that a spec names: in the unit's folder or below it.
func (u *unitRenderer) file(name string) ([]byte, error) {
	full, err := u.beside(name)
	if err != nil {
		return nil, err
	}
	u.reads.note(readFile, full)
	content, err := u.repository.Tree.ReadFile(full)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", name, document.Cause(err))
	}
	return content, nil
}

// maxPath is how long the path of a file beside a spec may be, in bytes.
const maxPath = 1000

func (u *unitRenderer) beside(name string) (string, error) {
	if !fs.ValidPath(name) || name == "." || strings.IndexByte(name, 0) >= 0 || len(name) > maxPath {
		return "", document.Refusal(fmt.Sprintf("%q: want the path of a file in the unit's folder or below it", document.Shorten(name)))
	}
	return path.Join(string(u.unit.Path), name), nil
}

// files lists the files in a folder beside the spec and below it, as paths
// from that folder, sorted.
func (u *unitRenderer) files(folder string) ([]string, error) {
	root, err := u.beside(folder)
	if err != nil {
		return nil, err
	}
	u.reads.note(readFolder, root)
	var names []string
	err = fs.WalkDir(u.repository.Tree, root, func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("%q: %w", folder, document.Cause(err))
		case e.IsDir():
			return nil
		case !e.Type().IsRegular() && !config.LinksToFile(u.repository.Tree, name, e):
			return document.Refusal(fmt.Sprintf("%q: only plain files and folders may be in it", strings.TrimPrefix(name, string(u.unit.Path)+"/")))
		}
		names = append(names, strings.TrimPrefix(name, root+"/"))
		return nil
	})
	slices.Sort(names)
	return names, err
}

// maxUnitProblems is how many problems a unit has when no more are looked for.
const maxUnitProblems = 1000

func (u *unitRenderer) expansion(p place) expansion {
	return expansion{unitRenderer: u, target: p.target, templates: kind.NewPlace(u.unit, p.target, u.inputs(p.target.Name)), hard: u.hard.ofCluster(p.cluster),
		on: u.on, cluster: p.cluster, tenants: u.tenantsOf(u.unit), seen: map[object.ID]*object.Object{}}
}

// expand renders the unit for its targets.
func (u *unitRenderer) expand(placed []place) []*expansion {
	all := make([]*expansion, len(placed))
	for i, place := range placed {
		u.found.placement = i
		all[i] = u.expandAt(place, nil)
	}
	return all
}

// expandAt renders the unit for one target, without some of what it collects.
func (u *unitRenderer) expandAt(p place, without leftOut) *expansion {
	e := u.expansion(p)
	e.space = u.namespaceFor(e.templates)
	u.trial = &trial{without: without, items: map[*document.Document][]item{}}
	e.trial = u.trial
	e.expandAll()
	return &e
}

// targetProblems gathers problems of single targets, so that one on a hundred targets is one
// line.
type targetProblems struct {
	placement int // index of the placement that is looked at
	problems  document.Problems
	places    map[string][]int // by the problem's text, indexes of placements, sorted
}

func (t *targetProblems) add(problems ...document.Problem) {
	if t.places == nil && len(problems) > 0 {
		t.places = map[string][]int{}
	}
	for _, p := range problems {
		key := p.String()
		known := t.places[key]
		if known == nil {
			t.problems = append(t.problems, p)
		}
		if i, found := slices.BinarySearch(known, t.placement); !found {
			t.places[key] = slices.Insert(known, i, t.placement)
		}
	}
}

// all returns the problems, with the targets named where it is not all of them.
func (t *targetProblems) all(placed []place) document.Problems {
	for i := range t.problems {
		indexes := t.places[t.problems[i].String()]
		if len(indexes) == len(placed) {
			continue
		}
		for _, n := range indexes {
			t.problems[i].Targets = append(t.problems[i].Targets, string(placed[n].target.Name))
		}
	}
	return t.problems
}
