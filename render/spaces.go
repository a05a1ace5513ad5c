// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	core "k8s.io/api/core/v1"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/kind"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/render/policy"
	"github.com/swell-sh/swell/render/schema"
)

// setting is an object by which others are judged that live in its namespace: the
// Namespace itself, a LimitRange or a ResourceQuota.
type setting struct {
	unit                  config.UnitPath // in tables
	place                 int             // index of the unit's placement
	kind, namespace, name string
	content               string // what matters of it, as JSON
}

var settingKinds = []string{"Namespace", "LimitRange", "ResourceQuota"}

// settingOf is what an object sets; ok is false for most.
func settingOf(place int, o *object.Object, content map[string]any) (s setting, ok bool) {
	if o.ID.Group != "" || !slices.Contains(settingKinds, o.ID.Kind) {
		return s, false
	}
	s = setting{place: place, kind: o.ID.Kind, namespace: o.ID.Namespace, name: o.ID.Name}
	if o.ID.IsNamespace() {
		s.namespace = o.ID.Name
		metadata, _ := content["metadata"].(map[string]any)
		s.content = string(schema.AppendJSON(nil, map[string]any{"labels": metadata["labels"], "annotations": metadata["annotations"]}))
	} else {
		s.content = string(schema.AppendJSON(nil, content["spec"]))
	}
	return s, true
}

// spaces are the settings of namespaces, by cluster and namespace. They are never
// changed.
type spaces map[string]map[string]*space

// space is what a tree, or the facts of a cluster, set for one namespace.
type space struct {
	settings []setting // sorted
	hash     string    // of all
	limits   string    // of what matters without policies that look at namespaces; empty: nothing
}

// own are the settings of a unit as a result has them: those that the tables have of
// the unit may be older.
type own struct {
	unit     config.UnitPath
	placed   []place
	settings []setting
}

// of is nil where nothing is set.
func (s spaces) of(cluster, namespace string) *space { return s[cluster][namespace] }

// add enters a setting.
func (s spaces) add(cluster string, set setting) {
	if s[cluster] == nil {
		s[cluster] = map[string]*space{}
	}
	if s[cluster][set.namespace] == nil {
		s[cluster][set.namespace] = &space{}
	}
	known := s[cluster][set.namespace]
	known.settings = append(known.settings, set)
}

// sealed is the table once all settings are entered.
func (s spaces) sealed() spaces {
	for _, namespaces := range s {
		for _, known := range namespaces {
			known.seal()
		}
	}
	return s
}

// seal sorts the settings: several units may want the same object.
func (s *space) seal() {
	slices.SortFunc(s.settings, func(a, b setting) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name), cmp.Compare(a.content, b.content), cmp.Compare(a.unit, b.unit))
	})
	all, limits, some := sha256.New(), sha256.New(), false
	for _, set := range s.settings {
		fmt.Fprintf(all, "%s %q %s\n", set.kind, set.name, set.content)
		content := set.content
		if set.kind == "Namespace" {
			content = levelsIn(content)
		}
		if content != "" {
			fmt.Fprintf(limits, "%s %q %s\n", set.kind, set.name, content)
			some = true
		}
	}
	s.hash = hex.EncodeToString(all.Sum(nil)[:12])
	if some {
		s.limits = hex.EncodeToString(limits.Sum(nil)[:12])
	}
}

// levelsIn are the labels of Pod Security in the content of a Namespace.
func levelsIn(content string) (text string) {
	var n policy.Namespace
	mustDecode(content, &n)
	for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
		if strings.HasPrefix(key, "pod-security.kubernetes.io/") {
			text += fmt.Sprintf("%q: %q\n", key, n.Labels[key])
		}
	}
	return text
}

// treeSpace is what the tree sets for a namespace, where a unit sets what own says.
func (w *world) treeSpace(cluster, namespace string, o own) *space {
	known := w.spaces.of(cluster, namespace)
	var settings []setting
	for _, set := range o.settings {
		if set.namespace == namespace && set.place < len(o.placed) && o.placed[set.place].cluster.Name == cluster {
			settings = append(settings, set)
		}
	}
	if len(settings) == 0 && (known == nil || !slices.ContainsFunc(known.settings, func(s setting) bool { return s.unit == o.unit })) {
		return known
	}
	if known != nil {
		for _, set := range known.settings {
			if set.unit != o.unit {
				settings = append(settings, set)
			}
		}
	}
	if len(settings) == 0 {
		return nil
	}
	merged := &space{settings: settings}
	merged.seal()
	return merged
}

// same says whether the same units set the same.
func (s spaces) same(other spaces) bool {
	ofSame := func(a, b setting) bool { return a.unit == b.unit }
	return maps.EqualFunc(s, other, func(a, b map[string]*space) bool {
		return maps.EqualFunc(a, b, func(x, y *space) bool { return x.hash == y.hash && slices.EqualFunc(x.settings, y.settings, ofSame) })
	})
}

// gatherSpaces finds the settings of all units anew.
func (c *Compiler) gatherSpaces() spaces {
	found := spaces{}
	for path := range c.settled {
		e := c.entries[path]
		for _, set := range e.settings {
			if set.place >= len(e.placed) { // of the fleet before, and not rendered yet
				continue
			}
			set.unit = path
			found.add(e.placed[set.place].cluster.Name, set)
		}
	}
	return found.sealed()
}

// judgedFirst splits entries into those that may set something for others, which are
// judged by that, and the rest.
func (p *pass) judgedFirst(entries []*entry) (first, rest []*entry) {
	kinds := p.world.settling()
	for _, e := range entries {
		if slices.ContainsFunc(e.holds, func(name string) bool { return name == anyKind || kinds[name] }) {
			first = append(first, e)
		} else {
			rest = append(rest, e)
		}
	}
	return first, rest
}

// settling are the names of kinds whose documents may set something: Kubernetes' own,
// and easy kinds that stand for such.
func (w *world) settling() map[string]bool {
	names := map[string]bool{}
	for _, name := range settingKinds {
		names[name] = true
	}
	gives := func(o kind.Object) bool { return names[o.Kind] || strings.Contains(o.Kind, "${") }
	for again := true; again; {
		again = false
		for _, k := range w.kinds.Declared() {
			if !names[k.Name] && (k.IsGo() || slices.ContainsFunc(k.Objects(), gives)) {
				names[k.Name], again = true, true
			}
		}
	}
	return names
}

// maxJudgements is how often units are judged again, because what was set has changed
// meanwhile. What is set does not depend on judgements: once is enough.
const maxJudgements = 3

// refreshAll brings the touched entries up to date, those first that set something for
// others. When one that was not expected to sets something, those that it concerns are
// judged again, and so are entries that nothing else has touched.
func (p *pass) refreshAll() {
	if p.before != nil {
		p.world.spaces = p.before.spaces
	}
	first, rest := p.judgedFirst(p.touched)
	parallel(first, p.refresh)
	moved := p.takeSpaces(slices.Concat(first, p.gone)) // other facts touch all entries
	parallel(rest, p.refresh)
	moved = p.takeSpaces(rest) || moved
	for range maxJudgements {
		if !moved {
			return
		}
		again := p.judgedOtherwise()
		parallel(again, p.refresh)
		moved = p.takeSpaces(again)
		for _, e := range again {
			if !slices.Contains(p.touched, e) {
				p.touched = append(p.touched, e)
			}
		}
	}
}

// takeSpaces notes what entries set, and whether they were judged by such. It returns
// whether what is set has changed.
func (p *pass) takeSpaces(entries []*entry) bool {
	changed := false
	for _, e := range entries {
		path := e.source.Path
		var settings []setting
		e.spaces = nil
		if p.entries[path] == e {
			r := e.result()
			settings = r.settings
			for _, read := range r.reads {
				if read.what == readSpace {
					e.spaces = append(e.spaces, shared(read.name))
				}
			}
		}
		changed = changed || len(settings)+len(e.settings) > 0 // also where the same are in another place
		e.settings = settings
		set(p.settled, path, len(settings) > 0)
		set(p.inSpaces, path, len(e.spaces) > 0)
	}
	if !changed {
		return false
	}
	found := p.gatherSpaces()
	if found.same(p.world.spaces) {
		return false
	}
	p.world.spaces, p.respaced = found, true
	p.world.namespaces.Clear()
	return true
}

// judgedOtherwise are the entries that were judged by other settings than there are.
func (p *pass) judgedOtherwise() (list []*entry) {
	for path := range p.inSpaces {
		if e := p.entries[path]; !p.world.judgedSo(e, e.result()) {
			list = append(list, e)
		}
	}
	return list
}

// judgedSo says whether the result of an entry was judged by the settings that there
// are, with its own.
func (w *world) judgedSo(e *entry, r *result) bool {
	o := own{e.source.Path, e.placed, r.settings}
	return w.policies == nil || !slices.ContainsFunc(r.reads, func(r read) bool { return r.what == readSpace && w.spaceHash(r.name, o) != r.hash })
}

// namespaceKey is a namespace as policies see it.
type namespaceKey struct {
	cluster, name string
	base          bool // by the facts of the base
}

// namespace is what policies see of one.
func (w *world) namespace(key namespaceKey, o own) *policy.Namespace {
	tree := w.treeSpace(key.cluster, key.name, o)
	shared := tree == w.spaces.of(key.cluster, key.name)
	if known, ok := w.namespaces.Load(key); ok && shared {
		return known.(*policy.Namespace)
	}
	found := &policy.Namespace{Labels: map[string]string{}, Annotations: map[string]string{}}
	if facts := w.factSpaces(key.base).of(key.cluster, key.name); facts != nil {
		facts.without(tree).addTo(found)
	}
	if tree != nil {
		tree.addTo(found)
	}
	found.Labels["kubernetes.io/metadata.name"] = key.name
	if shared {
		w.namespaces.Store(key, found)
	}
	return found
}

// addTo adds what is set to a namespace.
func (s *space) addTo(n *policy.Namespace) {
	for _, set := range s.settings {
		switch set.kind {
		case "Namespace":
			mustDecode(set.content, n) // into the maps that are there
			n.Known = true
		case "LimitRange":
			var spec core.LimitRangeSpec
			mustDecode(set.content, &spec)
			n.Limits = append(n.Limits, spec.Limits...)
		case "ResourceQuota":
			var spec core.ResourceQuotaSpec
			mustDecode(set.content, &spec)
			n.Quotas = append(n.Quotas, policy.Quota{Name: set.name, Spec: spec})
		}
	}
}

// mustDecode reads JSON that swell has made of an object whose schema it has checked.
func mustDecode(content string, into any) {
	if err := json.Unmarshal([]byte(content), into); err != nil {
		panic(err)
	}
}

// spaceName is how a namespace of a cluster is noted.
func spaceName(cluster, namespace string) string { return cluster + " " + namespace }

// spaceHash is the address of what judges the objects of a namespace.
func (w *world) spaceHash(name string, o own) (hash string) {
	cluster, namespace, _ := strings.Cut(name, " ")
	sources := []*space{w.factSpaces(false).of(cluster, namespace), w.treeSpace(cluster, namespace, o)}
	if w.basePolicies != nil {
		sources = append(sources, w.factSpaces(true).of(cluster, namespace))
	}
	for i, from := range sources {
		switch {
		case from == nil:
		case w.policies.of(cluster).SeeNamespaces() || w.basePolicies != nil && w.basePolicies.of(cluster).SeeNamespaces():
			hash += fmt.Sprintf(" %d %s", i, from.hash)
		case from.limits != "":
			hash += fmt.Sprintf(" %d %s", i, from.limits)
		}
	}
	return hash
}

// without leaves out the LimitRanges and quotas that the other one has too.
func (s *space) without(other *space) *space {
	if other == nil {
		return s
	}
	left := &space{}
	for _, set := range s.settings {
		if set.kind == "Namespace" || !slices.ContainsFunc(other.settings, func(o setting) bool { return o.kind == set.kind && o.name == set.name }) {
			left.settings = append(left.settings, set)
		}
	}
	return left
}

// factSpaces are the settings that clusters have by their facts, or by those of the base.
func (w *world) factSpaces(base bool) spaces {
	if base {
		return w.inBase.of(w.base.Facts)
	}
	return w.inFacts.of(w.repository.Facts)
}

// lazySpaces are made when they are asked for.
type lazySpaces struct {
	once  sync.Once
	found spaces
}

func (l *lazySpaces) of(facts map[string]*config.Facts) spaces {
	l.once.Do(func() { l.found = spacesOf(facts) })
	return l.found
}

func spacesOf(facts map[string]*config.Facts) spaces {
	found := spaces{}
	for cluster, f := range facts {
		for _, n := range f.Namespaces {
			content := string(schema.AppendJSON(nil, map[string]any{"labels": anyMap(n.Labels)}))
			found.add(cluster, setting{kind: "Namespace", namespace: n.Name, name: n.Name, content: content})
			for _, set := range limitsIn(n) {
				if set.broken() == nil { // else it is a problem of the facts
					found.add(cluster, set)
				}
			}
		}
	}
	return found.sealed()
}

// limitsIn are the LimitRanges and quotas of a namespace in facts.
func limitsIn(n config.NamespaceFacts) (list []setting) {
	for _, l := range n.LimitRanges {
		list = append(list, setting{kind: "LimitRange", namespace: n.Name, name: l.Name, content: string(schema.AppendJSON(nil, l.Spec))})
	}
	for _, q := range n.Quotas {
		list = append(list, setting{kind: "ResourceQuota", namespace: n.Name, name: q.Name, content: string(schema.AppendJSON(nil, q.Spec))})
	}
	return list
}

// broken says why a LimitRange or a quota cannot be read. Those of units are checked by
// their schemas.
func (s *setting) broken() error {
	if s.kind == "LimitRange" {
		return json.Unmarshal([]byte(s.content), new(core.LimitRangeSpec))
	}
	return json.Unmarshal([]byte(s.content), new(core.ResourceQuotaSpec))
}

// checkFacts finds what is in facts and was never in a cluster. Facts that are as they
// were are not looked at again.
func (c *Compiler) checkFacts(r *config.Repository) (problems document.Problems) {
	known := c.checked
	c.checked = map[*config.Facts]document.Problems{}
	for _, name := range slices.Sorted(maps.Keys(r.Facts)) {
		f := r.Facts[name]
		found, ok := known[f]
		if !ok {
			found = brokenLimits(f)
		}
		c.checked[f] = found
		problems = append(problems, found...)
	}
	return problems
}

func brokenLimits(f *config.Facts) (problems document.Problems) {
	for _, n := range f.Namespaces {
		for _, set := range limitsIn(n) {
			if err := set.broken(); err != nil {
				problems.Add(document.Problem{Position: f.Position, Code: document.CodeObject,
					Message: document.Printable(fmt.Sprintf("spec.namespaces: %s/%s: no %s of a cluster: %s: let swell facts pull %s write the file anew", document.Shorten(n.Name), document.Shorten(set.name), set.kind, err, f.Cluster))})
			}
		}
	}
	return problems
}

func anyMap(m map[string]string) map[string]any {
	all := make(map[string]any, len(m))
	for key, value := range m {
		all[key] = value
	}
	return all
}
