// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/kind"
	"github.com/swell-sh/swell/render/kustomize"
	"github.com/swell-sh/swell/render/schema"
)

const (
	definitionKind    = "CustomResourceDefinition"
	definitionVersion = "apiextensions.k8s.io/v1"
)

// isDefinition says whether a document defines a custom resource. Kubernetes has
// no other version since 1.22.
func isDefinition(doc *document.Document) bool {
	return doc.Kind == definitionKind && doc.APIVersion == definitionVersion
}

// define completes the world of a commit. What is as it was in the commit
// before is taken over from it, as the same pointer.
func (w *world) define(p *pass) {
	w.defineKinds(p)
	w.offers = w.defineOffers(p)
}

// defineKinds completes it up to the easy kinds.
func (w *world) defineKinds(p *pass) {
	r := w.repository
	if b := p.before; b != nil && b.repository.DataHash == r.DataHash && b.repository.Data == r.Data && !b.problems.Retry() {
		w.data, w.problems = b.data, b.problems
	} else {
		w.data, w.problems = kind.LoadData(r.Tree, r.Data)
	}
	w.hard = w.defineHard(p)
	if b := p.before; b != nil && b.repository.KindsHash == r.KindsHash && slices.Equal(b.repository.Kinds, r.Kinds) && b.hard == w.hard && b.data == w.data && !b.kinds.Problems.Retry() {
		w.kinds = b.kinds
	} else {
		w.kinds = kind.LoadAll(r.Tree, r.Kinds, w.hard.all(), w.data, r.ProtoPath...)
	}
	for _, d := range w.hard.definitions {
		if d.unit != "" || w.kinds.Claimed(d.claim) == "" {
			continue
		}
		if doc := w.again.at(r.Tree, d.place); doc != nil {
			w.claims = append(w.claims, *w.claimed(doc))
		}
	}
}

// claimed is the problem of a definition that has the names of an easy kind:
// nobody could tell which one a document is of.
func (w *world) claimed(doc *document.Document) *document.Problem {
	object, ok := plain(doc)
	if !ok {
		return nil
	}
	claim := schema.ClaimOf(object)
	by := w.kinds.Claimed(claim)
	if by == "" {
		return nil
	}
	whole, names := doc.Place([]any{"spec", "names"})
	p := whole.Problem(names, document.CodeDuplicate,
		"spec.names: %s or %s of group %s is the easy kind declared in %s: choose another group, kind or plural",
		document.Shorten(claim.Kind), document.Shorten(claim.Plural), document.Shorten(claim.Group), by)
	return &p
}

func plain(doc *document.Document) (map[string]any, bool) {
	if doc.Packed != nil {
		return schema.Decode(doc.Packed), true
	}
	value, problems := doc.Plain(doc.Node)
	object, ok := value.(map[string]any)
	return object, ok && len(problems) == 0
}

// holding lists the entries that may hold a document of one of the kinds, by path.
func (p *pass) holding(kinds ...string) []*entry {
	var list []*entry
	for _, e := range p.entries {
		if slices.ContainsFunc(e.holds, func(kind string) bool { return kind == anyKind || slices.Contains(kinds, kind) }) {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b *entry) int { return strings.Compare(string(a.source.Path), string(b.source.Path)) })
	return list
}

// documents reads the documents of a unit. foreign are its files that hold none, mostly
// because they are for other programs. One that looks as if it had held some is a problem.
func (w *world) documents(unit *config.Unit, reads *recorder) (all []*document.Document, foreign []string, problems document.Problems) {
	if unit.Kustomization != "" {
		b := w.build(unit)
		for _, name := range b.result.Reads {
			reads.note(readFile, name)
		}
		if w.kinds != nil { // their schemas say how patches merge
			for _, name := range b.result.Kinds {
				reads.note(readKind, name)
			}
		}
		return b.result.Documents, nil, slices.Concat(b.problems, w.ambiguous(b.result.Ambiguous, reads))
	}
	var bare []string // they hold only comments, or an empty list
	for _, file := range unit.Files {
		content, err := w.repository.Tree.ReadFile(file)
		if err != nil {
			problems = append(problems, document.FileProblem(file, err))
			continue
		}
		docs, found := document.ReadDialect(file, content, document.Kubectl)
		w.pack(docs)
		if len(docs) == 0 {
			if why := document.Damage(content); why != "" {
				found = document.Problems{{Position: document.Position{File: file}, Code: document.CodeDocument, Message: why}}
			} else if document.IsForeign(content) {
				foreign = append(foreign, file)
				continue
			} else if len(found) == 0 {
				bare = append(bare, file)
			}
		}
		all, problems = append(all, docs...), append(problems, found...)
	}
	if len(all)+len(foreign) > 0 { // else the unit renders to nothing, and says so
		foreign = slices.Sorted(slices.Values(append(foreign, bare...)))
	}
	if taken := takenBy(unit, all); len(taken) > 0 {
		all = slices.DeleteFunc(all, func(doc *document.Document) bool { return taken[doc.File] })
		foreign = slices.DeleteFunc(foreign, func(file string) bool { return taken[file] })
		problems = slices.DeleteFunc(problems, func(p document.Problem) bool { return taken[p.File] })
	}
	return all, foreign, append(problems, w.ambiguous(all, reads)...)
}

// build is what kustomize makes of one unit.
type build struct {
	once     sync.Once
	result   kustomize.Result
	problems document.Problems
	// easy is the same once the kinds are known, when it may differ.
	easy *build
}

// build has kustomize make a unit's documents, once for a commit. Those of easy
// kinds are made again when the kinds are known, so that the lists of patches
// merge by their keys. Which kinds there are in a unit does not depend on that.
func (w *world) build(unit *config.Unit) *build {
	known, _ := w.builds.LoadOrStore(unit.Path, &build{easy: &build{}})
	b := known.(*build)
	b.once.Do(func() { b.result, b.problems = kustomize.Build(w.repository.Tree, string(unit.Path), nil) })
	if w.kinds == nil || len(b.problems) == 0 && !slices.ContainsFunc(b.result.Documents, w.isEasy) {
		return b
	}
	b.easy.once.Do(func() {
		b.easy.result, b.easy.problems = kustomize.Build(w.repository.Tree, string(unit.Path), w.mergeSchema)
	})
	return b.easy
}

func (w *world) isEasy(doc *document.Document) bool {
	return w.kinds.ByName(doc.APIVersion, doc.Kind) != nil
}

// mergeSchema is what kustomize is to know of an easy kind; nil for others.
func (w *world) mergeSchema(apiVersion, kindName string) []byte {
	if k := w.kinds.ByName(apiVersion, kindName); k != nil {
		return k.Schema().MergeSchema()
	}
	return nil
}

// checkPlacement finds what is wrong with where the unit is placed.
func (w *world) checkPlacement(unit *config.Unit, placed []place) document.Problems {
	r, d := w.repository, unit.Defaults
	if len(d.Problems) > 0 {
		return nil // the defaults are not known
	}
	var problems document.Problems
	problem := func(at document.Position, code document.Code, format string, args ...any) {
		problems = append(problems, document.Problem{Position: at, Code: code, Message: fmt.Sprintf(format, args...)})
	}
	rollout := r.Rollouts[d.Rollout]
	if rollout == nil {
		at := d.RolloutAt
		if at.File == "" {
			at.File = string(unit.Path)
		}
		problem(at, document.CodeReference, "rollout %q: no such Rollout in the fleet%s", d.Rollout, document.DidYouMean(d.Rollout, slices.Collect(maps.Keys(r.Rollouts))))
	}
	problems = append(problems, w.checkTenant(unit, placed)...)
	if d.Placement == nil {
		problem(document.Position{File: string(unit.Path)}, document.CodeReference, "no placement: say in a swell.yaml here or further up which targets the unit goes to")
		return problems
	}
	switch found := w.placed(d); {
	case found.why != "":
		problem(d.PlacementAt, document.CodeReference, "spec.placement.match: %s", found.why)
	case len(placed) == 0 && found.closed != "":
		problem(d.PlacementAt, document.CodeEmpty, "spec.placement: picks no target that takes tenant %q: it is not among the tenants of cluster %s", d.Tenant, found.closed)
	case len(placed) == 0:
		problem(d.PlacementAt, document.CodeEmpty, "spec.placement: picks no target of the fleet")
	}
	problems = append(problems, w.checkReferences(d.References)...)
	if name := untaken(rollout, placed); name != "" {
		problem(rollout.Position, document.CodeFleet, "rollout %q: no wave takes target %s, which unit %s is placed on: add a wave without match at the end", rollout.Name, name, unit.Path)
	}
	return problems
}

// untaken is the first target that no wave takes; empty when there is none.
func untaken(rollout *config.Rollout, placed []place) config.TargetName {
	if rollout == nil {
		return ""
	}
	var waves map[config.TargetName]int
	if rollout.IsRelative() {
		labels := make(map[config.TargetName]map[string]string, len(placed))
		names := make([]config.TargetName, len(placed))
		for i, p := range placed {
			names[i], labels[p.target.Name] = p.target.Name, p.target.Labels
		}
		waves = rollout.WavesOf(names, func(name config.TargetName) map[string]string { return labels[name] })
	}
	for _, p := range placed {
		wave, taken := waves[p.target.Name]
		if waves == nil {
			wave, taken = rollout.WaveOf(p.target.Name, p.target.Labels), true
		}
		if !taken || wave < 0 {
			return p.target.Name
		}
	}
	return ""
}

// checkReferences finds what Defaults name and nothing has.
func (w *world) checkReferences(references []config.Reference) (problems document.Problems) {
	for _, r := range references {
		if r.Object != "" || r.Field != "" { // see [Snapshot.IdleRules]
			continue
		}
		if why := w.whyNothing(r); why != "" {
			problems = append(problems, document.Problem{Position: r.At, Code: document.CodeReference, Message: r.Place + ": " + why})
		}
	}
	return problems
}

// whyNothing says why a reference picks nothing; empty when it picks something. One in
// the root holds for every unit, and is looked up once.
func (w *world) whyNothing(r config.Reference) string {
	find, _ := w.unmatched.LoadOrStore(r.At, sync.OnceValue(func() string {
		if r.Kind != "" {
			return w.whyNoKind(r.Kind)
		}
		return w.repository.WhyNoTarget(r.Match)
	}))
	return find.(func() string)()
}

// whyNoKind says why no hard object can be of a kind; empty when one can. One that
// is near to none may be defined in a cluster and not in Git.
func (w *world) whyNoKind(name string) string {
	names := w.hardNames()
	if slices.Contains(names, name) || w.hard.troubled() {
		return ""
	}
	if slices.Contains(w.easyNames(), name) {
		return fmt.Sprintf("%q is an easy kind: want the kind of the objects that it stands for", document.Shorten(name))
	}
	if meant := document.Misspelt(name, names); meant != "" {
		return fmt.Sprintf("%q: no such kind, did you mean %q?", document.Shorten(name), meant)
	}
	return ""
}
