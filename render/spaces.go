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

	core "k8s.io/api/core/v1"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/kind"
	"github.com/swell-sh/swell/render/policy"
	"github.com/swell-sh/swell/render/schema"
)

// setting is an object by which others are judged that live in its namespace: the
// Namespace itself, a LimitRange or a ResourceQuota.
type setting struct {
	place                 int // index of the unit's placement
	kind, namespace, name string
	content               string // what matters of it, as JSON
}

var settingKinds = []string{"Namespace", "LimitRange", "ResourceQuota"}

// settingOf is what an object sets; ok is false for most.
func settingOf(place int, o *Object, content map[string]any) (s setting, ok bool) {
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
	hash     string
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

// sealed sorts the settings, once all are entered.
func (s spaces) sealed() spaces {
	for _, namespaces := range s {
		for _, known := range namespaces {
			slices.SortFunc(known.settings, func(a, b setting) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name)) })
			sum := sha256.New()
			for _, set := range known.settings {
				fmt.Fprintf(sum, "%s %q %s\n", set.kind, set.name, set.content)
			}
			known.hash = hex.EncodeToString(sum.Sum(nil)[:12])
		}
	}
	return s
}

// same says whether both set the same.
func (s spaces) same(other spaces) bool {
	return maps.EqualFunc(s, other, func(a, b map[string]*space) bool {
		return maps.EqualFunc(a, b, func(x, y *space) bool { return x.hash == y.hash })
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
		inSpace := false
		if p.entries[path] == e {
			r := e.result()
			settings = r.settings
			inSpace = slices.ContainsFunc(r.reads, func(r read) bool { return r.what == readSpace })
		}
		changed = changed || len(settings)+len(e.settings) > 0 // also where the same are in another place
		e.settings = settings
		set(p.settled, path, len(settings) > 0)
		set(p.inSpaces, path, inSpace)
	}
	if !changed {
		return false
	}
	found := p.gatherSpaces()
	if found.same(p.world.spaces) {
		return false
	}
	p.world.spaces = found
	p.world.namespaces.Clear()
	return true
}

// judgedOtherwise are the entries that were judged by other settings than there are.
func (p *pass) judgedOtherwise() (list []*entry) {
	for path := range p.inSpaces {
		e := p.entries[path]
		if slices.ContainsFunc(e.result().reads, func(r read) bool { return r.what == readSpace && p.world.hash(readSpace, r.name) != r.hash }) {
			list = append(list, e)
		}
	}
	return list
}

// namespace is what policies see of one.
func (w *world) namespace(cluster, name string) *policy.Namespace {
	key := spaceName(cluster, name)
	if known, ok := w.namespaces.Load(key); ok {
		return known.(*policy.Namespace)
	}
	found := &policy.Namespace{Labels: map[string]string{}, Annotations: map[string]string{}}
	facts, tree := w.factSpaces().of(cluster, name), w.spaces.of(cluster, name)
	if facts != nil {
		facts.without(tree).addTo(found)
	}
	if tree != nil {
		tree.addTo(found)
	}
	found.Labels["kubernetes.io/metadata.name"] = name
	w.namespaces.Store(key, found)
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
func (w *world) spaceHash(name string) (hash string) {
	cluster, namespace, _ := strings.Cut(name, " ")
	for _, from := range []*space{w.factSpaces().of(cluster, namespace), w.spaces.of(cluster, namespace)} {
		if from != nil {
			hash += from.hash
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

// factSpaces are the settings that clusters have by their facts.
func (w *world) factSpaces() spaces {
	w.inFacts.once.Do(func() { w.inFacts.spaces = spacesOf(w.repository.Facts) })
	return w.inFacts.spaces
}

func spacesOf(facts map[string]*config.Facts) spaces {
	found := spaces{}
	for cluster, f := range facts {
		for _, n := range f.Namespaces {
			content := string(schema.AppendJSON(nil, map[string]any{"labels": anyMap(n.Labels)}))
			found.add(cluster, setting{kind: "Namespace", namespace: n.Name, name: n.Name, content: content})
			for _, l := range n.LimitRanges {
				found.add(cluster, setting{kind: "LimitRange", namespace: n.Name, name: l.Name, content: string(schema.AppendJSON(nil, l.Spec))})
			}
			for _, q := range n.Quotas {
				found.add(cluster, setting{kind: "ResourceQuota", namespace: n.Name, name: q.Name, content: string(schema.AppendJSON(nil, q.Spec))})
			}
		}
	}
	return found.sealed()
}

func anyMap(m map[string]string) map[string]any {
	all := make(map[string]any, len(m))
	for key, value := range m {
		all[key] = value
	}
	return all
}
