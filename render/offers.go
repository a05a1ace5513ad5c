// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/kind"
)

// offers are the documents that units hold of kinds that other units collect.
// They are decoded when somebody asks. It is safe for concurrent use.
type offers struct {
	units  map[string][]*offer // by kind, without the group; each by path
	hashes sync.Map            // by the name of a collection
}

// offer is the documents of one unit that can be collected.
type offer struct {
	source *config.Unit
	placed []place

	once    sync.Once
	docs    []offered
	unknown document.Problems // that may hide documents
}

// offered is one document.
type offered struct {
	name     string // "apiVersion kind"
	position document.Position
	hash     string          // of what was read, or of the problems
	item     *kind.Collected // nil when there are problems
	problems document.Problems
}

// collectedKinds are the kinds that some kind collects.
func collectedKinds(kinds *kind.Kinds) map[string]bool {
	collected := map[string]bool{}
	for _, k := range kinds.All() {
		for _, c := range k.Collections() {
			collected[c.Kind] = true
		}
	}
	return collected
}

// defineOffers finds the units that hold documents which are collected. Units
// that are as they were keep what was decoded.
func (w *world) defineOffers(p *pass) *offers {
	collected := collectedKinds(w.kinds)
	if p.before != nil && p.before.kinds == w.kinds && !p.replaced[anyKind] && !overlap(collected, p.replaced) {
		return p.before.offers
	}
	known := map[*config.Unit]*offer{}
	touched := map[*config.Unit]bool{} // its files may be others, of the same unit
	for _, e := range p.touched {
		touched[e.source] = true
	}
	if p.before != nil && p.before.kinds == w.kinds && p.before.places == w.places {
		for _, list := range p.before.offers.units {
			for _, o := range list {
				if !touched[o.source] {
					known[o.source] = o
				}
			}
		}
	}
	all := &offers{units: map[string][]*offer{}}
	for _, name := range slices.Sorted(maps.Keys(collected)) {
		for _, e := range p.holding(name) {
			o := known[e.source]
			if o == nil {
				o = &offer{source: e.source, placed: e.placed}
				known[e.source] = o
			}
			all.units[name] = append(all.units[name], o)
		}
	}
	return all
}

// load decodes the documents.
func (o *offer) load(w *world) []offered {
	o.once.Do(func() {
		u := unitRenderer{world: w, unit: o.source, reads: recorder{world: w}}
		docs, _, problems := w.documents(o.source, &u.reads)
		o.unknown = slices.Concat(o.source.Problems, o.source.Defaults.Problems, problems)
		for _, doc := range docs {
			if easy := w.kinds.ByName(doc.APIVersion, doc.Kind); easy != nil && !isLocal(doc) {
				o.docs = append(o.docs, u.offer(doc, easy))
			}
		}
	})
	return o.docs
}

func (u *unitRenderer) offer(doc *document.Document, easy *kind.Kind) offered {
	o := offered{name: doc.APIVersion + " " + doc.Kind, position: doc.Position()}
	spec, problems := easy.Decode(doc, u.file)
	if o.problems = append(problems, u.repeated(doc)...); len(o.problems) > 0 {
		o.hash = "broken " + o.problems.String()
		return o
	}
	content, err := proto.MarshalOptions{Deterministic: true}.Marshal(spec.Message().Interface())
	if err != nil {
		panic(err) // it was decoded a moment ago
	}
	sum := sha256.Sum256(content)
	o.hash, o.item = hex.EncodeToString(sum[:]), kind.NewCollected(spec, u.unit)
	return o
}

// collection is what one spec collects on one target.
type collection struct {
	name   string // "apiVersion kind" of the documents
	scope  kind.Scope
	tenant string
	target config.TargetName
}

// String is the name under which the read is noted.
func (c collection) String() string {
	return strings.Join([]string{c.name, string(c.scope), c.tenant, string(c.target)}, " ")
}

func parseCollection(text string) collection {
	parts := strings.Split(text, " ")
	return collection{parts[0] + " " + parts[1], kind.Scope(parts[2]), parts[3], config.TargetName(parts[4])}
}

// find lists the documents of a collection, by unit and then in the order of
// their files. Of a unit with problems that may hide documents it tells those:
// what is there is not known then. Where a unit goes that has broken Defaults
// is not known either, it may be everywhere; nor whose it is, if they do not say: it
// may be any tenant's.
func (o *offers) find(w *world, c collection, each func(*offer, *offered)) {
	_, kindName, _ := strings.Cut(c.name, " ")
	for _, offer := range o.units[kindName] {
		lost := len(offer.source.Defaults.Problems) > 0
		tenant := offer.source.Defaults.Tenant
		foreign := c.scope == kind.ScopeTenant && tenant != c.tenant && !(lost && tenant == "")
		if foreign || !lost && !offer.reaches(c.target) {
			continue
		}
		docs := offer.load(w)
		if p := offer.unknown; len(p) > 0 {
			each(offer, &offered{name: c.name, position: p[0].Position, hash: "unknown " + p.String(), problems: p})
		}
		if lost {
			continue
		}
		for i := range docs {
			if docs[i].name == c.name {
				each(offer, &docs[i])
			}
		}
	}
}

// reaches says whether the unit is placed on the target, on the whole cluster
// of it, or on a cell of it.
func (o *offer) reaches(target config.TargetName) bool {
	return slices.ContainsFunc(o.placed, func(p place) bool {
		mine := p.target.Name
		return mine == target || mine.Cluster() == target.Cluster() && (p.target.Cell == "" || string(target) == target.Cluster())
	})
}

// hash is the address of a collection. Many units may have the same one.
func (o *offers) hash(w *world, name string) string {
	known, ok := o.hashes.Load(name)
	if !ok {
		known, _ = o.hashes.LoadOrStore(name, sync.OnceValue(func() string { return o.hashOf(w, name) }))
	}
	return known.(func() string)()
}

func (o *offers) hashOf(w *world, name string) string {
	sum := sha256.New()
	o.find(w, parseCollection(name), func(offer *offer, doc *offered) {
		d := offer.source.Defaults
		fmt.Fprintf(sum, "%q %q %q %s\n", offer.source.Path, d.Tenant, doc.position, doc.hash)
		for _, key := range slices.Sorted(maps.Keys(d.Labels)) {
			fmt.Fprintf(sum, "%q: %q\n", key, d.Labels[key])
		}
	})
	return hex.EncodeToString(sum.Sum(nil))
}

// wanted is what one of the unit's specs collects on a target.
func (u *unitRenderer) wanted(c *kind.Collection, target config.TargetName) collection {
	want := collection{c.APIVersion + " " + c.Kind, c.Scope, "", target}
	if c.Scope == kind.ScopeTenant {
		want.tenant = u.unit.Defaults.Tenant
	}
	return want
}

// collect gathers the documents of other units for one of the unit's specs.
func (u *unitRenderer) collect(c *kind.Collection, target config.TargetName) ([]*kind.Collected, error) {
	want := u.wanted(c, target)
	u.reads.note(readCollection, want.String())
	if broken := u.kinds.Broken(c.APIVersion, c.Kind); broken != "" {
		return nil, document.Refusal(fmt.Sprintf("%s: the kind of what is collected does not load: %s", c.Kind, broken))
	}
	var items []*kind.Collected
	var invalid []string
	var unread document.Problems
	u.offers.find(u.world, want, func(_ *offer, doc *offered) {
		if doc.item != nil {
			if u.trial != nil && !u.trial.takes(c, doc.item) {
				return
			}
			items = append(items, doc.item)
			for _, text := range doc.item.Secrets() {
				if !slices.Contains(u.secrets, text) {
					u.secrets = append(u.secrets, text)
				}
			}
			return
		}
		if doc.problems.Retry() {
			unread = append(unread, doc.problems...)
			return
		}
		invalid = append(invalid, doc.problems[0].String())
		u.leaveOut(c, doc.position, doc.problems[0].String())
	})
	if len(unread) > 0 { // to leave it out would take it away from the fleet
		return nil, fmt.Errorf("%s: what is collected could not be read: %w", c.Kind, unread)
	}
	if len(invalid) > 0 && c.OnInvalid != kind.OnInvalidExclude {
		return nil, document.Refusal(fmt.Sprintf("%s: %d of what is collected have problems, first %s", c.Kind, len(invalid), invalid[0]))
	}
	return items, nil
}

// leaveOut notes a document that is left out of a collection.
func (u *unitRenderer) leaveOut(c *kind.Collection, at document.Position, why string) {
	note := document.Problem{Position: at, Code: document.CodeCollect, Message: fmt.Sprintf("left out of %s by %s: %s", c.Name, u.unit.Path, why)}
	u.note(note)
}

func overlap(a, b map[string]bool) bool {
	for key := range a {
		if b[key] {
			return true
		}
	}
	return false
}
