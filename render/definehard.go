// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/schema"
)

// defineHard gathers the definitions of custom resources that stand in units,
// and those in the folder of schemas, which are not applied.
func (w *world) defineHard(p *pass) *hardKinds {
	r := w.repository
	versions, open := versionsOf(r), r.Checks.UnknownKinds == config.Warn || r.Checks.UnknownKinds == config.Pass
	before := p.before
	if before != nil && (!slices.Equal(before.hard.versions, versions) || before.hard.open != open || !sameVersions(before.hard.clusters, r.Clusters)) {
		before = nil
	}
	if b := before; b != nil && b.repository.FleetHash == r.FleetHash && !p.replaced[definitionKind] && !p.replaced[config.HelmChartKind] && !p.replaced[anyKind] && b.repository.SchemasHash == r.SchemasHash && sameDefinitions(b.repository, r) && !b.hard.shared.Retry() {
		return b.hard
	}
	hard := &hardKinds{clusters: r.Clusters, facts: r.Facts, versions: versions, open: open, problems: map[config.UnitPath]document.Problems{},
		live: map[string][]crdText{}, sets: map[string]*schema.Set{}, within: map[string]*schema.Set{}, published: map[*definition]*Definition{}}
	if p.before != nil {
		p.before.hard.mu.Lock()
		for _, f := range r.Facts {
			if known, ok := p.before.hard.live[f.DefinitionsHash]; ok {
				hard.live[f.DefinitionsHash] = known
			}
		}
		p.before.hard.mu.Unlock()
	}
	for _, e := range p.holding(definitionKind, config.HelmChartKind) {
		w.defineUnit(hard, e)
		w.defineCharts(hard, e)
	}
	w.readSchemas(hard)
	sum := sha256.New()
	for _, d := range hard.definitions {
		fmt.Fprintf(sum, "%q %s %s %t %q\n", d.unit, d.place, d.hash, d.lost, slices.Sorted(maps.Keys(d.on)))
	}
	hard.hash = hex.EncodeToString(sum.Sum(nil))
	hard.texts = map[document.Position][]byte{}
	for _, d := range hard.definitions {
		if d.unit != "" {
			hard.texts[d.place] = d.text
		}
	}
	w.checkDefinitions(hard)
	if b := before; b != nil && b.hard.hash == hard.hash && sameDefinitions(b.repository, r) && !hard.troubled() && !b.hard.troubled() {
		return b.hard
	}
	return hard
}

// defineUnit gathers the definitions that stand in a unit.
func (w *world) defineUnit(hard *hardKinds, e *entry) {
	on := map[string]bool{}
	for _, p := range e.placed {
		on[p.cluster.Name] = true
	}
	lost := len(on) == 0 && (len(e.source.Defaults.Problems) > 0 || e.source.Defaults.Placement == nil)
	take := func(list []*definition) {
		for _, d := range list {
			d.unit, d.on, d.lost = e.source.Path, on, lost
		}
		hard.definitions = append(hard.definitions, list...)
	}
	if e.source.Kustomization != "" {
		docs, _, problems := w.documents(e.source, &recorder{world: w})
		hard.unread = hard.unread || problems.Retry()
		take(definitionsAmong(docs))
		return
	}
	for _, file := range e.source.Files { // one at a time: they may be large
		found, known := w.knownDefinitions(file)
		if !known {
			content, err := w.repository.Tree.ReadFile(file)
			if err != nil {
				hard.unread = hard.unread || document.MayPass(err)
				continue
			}
			if !bytes.Contains(content, []byte(definitionKind)) && !bytes.ContainsAny(content, `\&`) { // nor written in another way
				continue
			}
			docs, problems := document.ReadDialect(file, content, document.Kubectl)
			found.list = definitionsAmong(docs)
			found.only = len(problems) == 0 && len(found.list) == len(docs)
			w.keepDefinitions(file, found)
		}
		take(found.list)
	}
}

// definitionsAmong are those of the documents that define custom resources.
func definitionsAmong(docs []*document.Document) (list []*definition) {
	for _, doc := range docs {
		if !isDefinition(doc) {
			continue
		}
		if object, ok := plain(doc); ok {
			list = append(list, newDefinition(doc.Position(), object))
		}
	}
	return list
}

// sameDefinitions says whether the facts of two commits have the same definitions.
func sameDefinitions(a, b *config.Repository) bool {
	return maps.EqualFunc(a.Facts, b.Facts, func(x, y *config.Facts) bool { return x.DefinitionsHash == y.DefinitionsHash })
}

// sameVersions says whether a fleet has the clusters of another, each with its Kubernetes
// version, in the same order. Where units are placed is in the hash of the definitions.
func sameVersions(a, b []*config.Cluster) bool {
	return slices.EqualFunc(a, b, func(x, y *config.Cluster) bool { return x.Name == y.Name && x.Kubernetes == y.Kubernetes })
}

// versionsOf are the Kubernetes versions of the fleet, sorted; the newest where there is none.
func versionsOf(r *config.Repository) []string {
	versions := []string{}
	for _, cluster := range r.Clusters {
		version := cmp.Or(cluster.Kubernetes, schema.Versions()[0])
		if i, known := slices.BinarySearch(versions, version); !known {
			versions = slices.Insert(versions, i, version)
		}
	}
	if len(versions) == 0 {
		versions = schema.Versions()[:1]
	}
	return versions
}

// checkDefinitions finds what the API servers of the fleet would refuse in the
// definitions. A problem that only some of their versions have says which.
func (w *world) checkDefinitions(h *hardKinds) {
	found := make([][]document.Problem, len(h.definitions))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, d := range h.definitions {
		group.Go(func() error {
			found[i] = w.checkDefinition(h, d)
			return nil
		})
	}
	_ = group.Wait() // the functions return no errors
	add := func(d *definition, problems ...document.Problem) {
		if d.unit == "" {
			h.shared = append(h.shared, problems...)
		} else if len(problems) > 0 {
			h.problems[d.unit] = append(h.problems[d.unit], problems...)
		}
	}
	for i, d := range h.definitions {
		add(d, found[i]...)
	}
	for d, owner := range h.rivals() {
		add(d, w.problemOf(d, schema.Violation{Path: []any{"spec", "names"}, Code: document.CodeDuplicate, Message: schema.DefinedBy(d.claim, owner.place.String())}, ""))
	}
}

func (w *world) checkDefinition(h *hardKinds, d *definition) (problems []document.Problem) {
	versions := h.versionsOf(d)
	on := map[string][]string{}
	of := func(v schema.Violation) string { return schema.PathText(v.Path) + "\n" + v.Message }
	var all []schema.Violation
	for _, version := range versions {
		set, err := schema.Kubernetes(version)
		if err != nil || w.isSound(d, version) {
			continue // a problem of the cluster, or none
		}
		found := set.Define(d.place.String(), d.text, false).Violations()
		if len(found) == 0 {
			w.keepSound(d, version)
		}
		for _, v := range found {
			if on[of(v)] == nil {
				all = append(all, v)
			}
			on[of(v)] = append(on[of(v)], version)
		}
	}
	for _, v := range all {
		where := ""
		if those := on[of(v)]; len(those) < len(versions) {
			where = fmt.Sprintf(" (in Kubernetes %s)", strings.Join(those, ", "))
		}
		problems = append(problems, w.problemOf(d, v, where))
	}
	return problems
}

// versionsOf are the Kubernetes versions of the clusters that may have a definition.
func (h *hardKinds) versionsOf(d *definition) (versions []string) {
	if len(d.on) == 0 {
		return h.versions
	}
	for _, c := range h.clusters {
		version := cmp.Or(c.Kubernetes, schema.Versions()[0])
		if d.on[c.Name] && !slices.Contains(versions, version) {
			versions = append(versions, version)
		}
	}
	slices.Sort(versions)
	return versions
}

// problemOf is the problem of a definition, whose file is read again for it.
func (w *world) problemOf(d *definition, v schema.Violation, where string) document.Problem {
	message := v.Message + where
	if len(v.Path) > 0 {
		message = schema.PathText(v.Path) + ": " + message
	}
	doc := w.documentOf(d)
	if doc == nil {
		return document.Problem{Position: d.place, Code: v.Code, Message: message, Basis: document.Exact}
	}
	problem := doc.Problem(document.NodeAt(doc.Node, v.Path), v.Code, "%s", message)
	problem.Basis = document.Exact
	return problem
}

// documentOf is the document of a definition; nil where it cannot be read any more.
func (w *world) documentOf(d *definition) *document.Document {
	known, built := w.builds.Load(d.unit)
	if !built {
		return w.again.at(w.repository.Tree, d.place)
	}
	for _, doc := range known.(*build).result.Documents {
		if doc.Position() == d.place {
			return doc
		}
	}
	return nil
}

// rivals are the definitions of a kind that another one has too, under another name of
// their own, and that other one: in a cluster, or in the folder of schemas. Units that
// bring the same definition want an object twice, which is said of all such objects.
func (h *hardKinds) rivals() map[*definition]*definition {
	rivals := map[*definition]*definition{}
	first := map[schema.Claim][]*definition{}
	for _, d := range h.definitions {
		of := groupKind(d.claim)
		if of.Kind == "" {
			continue
		}
		for _, other := range first[of] {
			switch together := slices.ContainsFunc(slices.Collect(maps.Keys(d.on)), func(cluster string) bool { return other.on[cluster] }); {
			case rivals[d] != nil:
			case d.unit == "" && other.unit == "", together && d.claim != other.claim:
				rivals[d] = other
			}
		}
		first[of] = append(first[of], d)
	}
	return rivals
}

// troubled says whether there are problems, whose lines may move while the
// definitions stay the same.
func (h *hardKinds) troubled() bool { return h.unread || len(h.shared)+len(h.problems) > 0 }

// readSchemas reads the folder of schemas.
func (w *world) readSchemas(hard *hardKinds) {
	r := w.repository
	if r.SchemasHash == "" {
		return
	}
	known := map[string]bool{}
	for _, d := range hard.definitions {
		known[d.hash] = known[d.hash] || len(d.on) == len(r.Clusters)
	}
	take := func(list []*definition) {
		for _, d := range list {
			if !known[d.hash] { // in a unit too, or in two files
				known[d.hash] = true
				hard.definitions = append(hard.definitions, d)
			}
		}
	}
	err := fs.WalkDir(r.Tree, r.Schemas, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !config.IsYAML(name) {
			return err
		}
		found, again := w.knownDefinitions(name)
		if again && found.only {
			take(found.list)
			return nil
		}
		content, err := r.Tree.ReadFile(name)
		if err != nil {
			hard.shared = append(hard.shared, document.FileProblem(name, err))
			return nil
		}
		docs, problems := document.ReadDialect(name, content, document.Kubectl)
		found.list = definitionsAmong(docs)
		found.only = len(problems) == 0 && len(found.list) == len(docs)
		if !again {
			w.keepDefinitions(name, found)
		}
		take(found.list)
		hard.shared = append(hard.shared, problems...)
		for _, doc := range docs {
			if doc.Kind == definitionKind && !isDefinition(doc) {
				hard.shared = append(hard.shared, doc.Problem(doc.Node, document.CodeDocument, "%s %s: want %s", document.Shorten(doc.APIVersion), definitionKind, definitionVersion))
				continue
			}
			if doc.Kind != definitionKind {
				hard.shared = append(hard.shared, doc.Problem(doc.Node, document.CodeDocument, "%s %s: want definitions of custom resources only in the folder of schemas", doc.APIVersion, doc.Kind))
			}
		}
		return nil
	})
	if err != nil {
		hard.shared = append(hard.shared, document.FileProblem(r.Schemas, err))
	}
}
