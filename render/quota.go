// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	core "k8s.io/api/core/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/render/policy"
)

// demand is what a unit takes of the quotas of a namespace, by their names.
type demand struct {
	quotas map[string]core.ResourceList
	first  document.Position // of an object that takes some
}

// demands are those of units in namespaces with quotas, by the names of spaces. They are kept from commit to
// commit.
type demands map[config.UnitPath]map[string]demand

// quotaSpace is a namespace of a cluster with quotas.
type quotaSpace struct {
	*policy.Namespace
	hash string // see [world.spaceHash]
}

// overdraft is a resource of a quota of which the units of a namespace want more than there is.
type overdraft struct {
	space, quota string
	resource     core.ResourceName
	hard, all    quantity.Quantity
}

// quotaProblems are those of units that want more than before of a quota that all units of its namespace
// together exceed. Where nobody wants more, or nobody knows what units had, it is a note.
func (p *pass) quotaProblems() (problems map[config.UnitPath]document.Problems, notes document.Problems) {
	problems = map[config.UnitPath]document.Problems{}
	p.takeDemands(p.takeQuotas())
	for _, excess := range p.overdrafts() {
		if !p.blameForQuota(excess, problems) {
			notes = append(notes, p.overdraftNote(excess))
		}
	}
	return problems, notes
}

// takeQuotas finds the namespaces with quotas that are not about some pods only, and says whether they are others
// than for the commit before.
func (p *pass) takeQuotas() (changed bool) {
	if p.quotas != nil && p.before != nil && !p.respaced && p.before.repository.FactsHash == p.world.repository.FactsHash {
		return false
	}
	found := map[string]quotaSpace{}
	for _, all := range []spaces{p.world.spaces, p.world.factSpaces(false)} {
		for cluster, namespaces := range all {
			for name, known := range namespaces {
				if !slices.ContainsFunc(known.settings, func(s setting) bool { return s.kind == policy.ResourceQuota }) {
					continue
				}
				n := p.world.namespace(namespaceKey{cluster: cluster, name: name}, own{})
				if slices.ContainsFunc(n.Quotas, func(q policy.Quota) bool { return !q.IsScoped() }) {
					space := spaceName(cluster, name)
					found[space] = quotaSpace{n, p.world.spaceHash(space, own{})}
				}
			}
		}
	}
	before := p.quotas
	p.quotas = found
	return !maps.EqualFunc(before, found, func(a, b quotaSpace) bool { return a.hash == b.hash })
}

// takeDemands brings what units take up to date: of those that were touched, or where the quotas are others, of all.
func (p *pass) takeDemands(all bool) {
	entries := p.touched
	if all || !p.taken {
		p.demands, entries = demands{}, slices.Collect(maps.Values(p.entries))
	}
	p.taken = true
	for _, e := range p.gone {
		delete(p.demands, e.source.Path)
	}
	for _, e := range entries {
		path := e.source.Path
		delete(p.demands, path)
		spaces := slices.DeleteFunc(slices.Clone(e.spaces), func(name string) bool { return p.quotas[name].Namespace == nil })
		if len(spaces) == 0 || len(e.unit.Problems) > 0 {
			continue
		}
		bundles, err := p.world.bundles(e.unit)
		if err != nil { // it is a problem of the unit
			p.taken = false
			continue
		}
		p.demands[path] = demandsOf(bundles, spaces, p.quotas)
	}
}

// demandsOf are what bundles take in some spaces.
func demandsOf(bundles []*object.Bundle, spaces []string, quotas map[string]quotaSpace) map[string]demand {
	found := map[string]demand{}
	consumers := map[object.Digest]policy.Consumer{} // most objects are the same on all targets
	for _, b := range bundles {
		for _, o := range b.Objects {
			space := spaceName(b.Target.Cluster(), o.ID.Namespace)
			n := quotas[space].Namespace
			if n == nil || o.Hook() != "" || !slices.Contains(spaces, space) {
				continue
			}
			consumer, ok := consumers[o.Digest]
			if !ok {
				consumer = policy.NewConsumer(schema.GroupVersionKind{Group: o.ID.Group, Version: o.Version, Kind: o.ID.Kind}, o.JSON)
				consumers[o.Digest] = consumer
			}
			for i := range n.Quotas {
				takes := consumer.Demand(n, &n.Quotas[i])
				if len(takes) == 0 {
					continue
				}
				d := found[space]
				if d.quotas == nil {
					d = demand{map[string]core.ResourceList{}, o.Spec}
				}
				d.quotas[n.Quotas[i].Name] = policy.Sum(d.quotas[n.Quotas[i].Name], takes)
				found[space] = d
			}
		}
	}
	return found
}

// overdrafts are the resources of which the units of namespaces want more than their quotas have.
func (p *pass) overdrafts() (list []overdraft) {
	sums := map[string]map[string]core.ResourceList{} // by space and quota
	for _, unit := range p.demands {
		for space, d := range unit {
			if sums[space] == nil {
				sums[space] = map[string]core.ResourceList{}
			}
			for quota, amounts := range d.quotas {
				sums[space][quota] = policy.Sum(sums[space][quota], amounts)
			}
		}
	}
	for _, space := range slices.Sorted(maps.Keys(sums)) {
		for _, q := range p.quotas[space].Quotas {
			all := sums[space][q.Name]
			for _, name := range slices.Sorted(maps.Keys(all)) {
				if hard, want := q.Spec.Hard[name], all[name]; want.Cmp(hard) > 0 {
					list = append(list, overdraft{space, q.Name, name, hard, want})
				}
			}
		}
	}
	return list
}

// blameForQuota gives a problem to each unit that wants more of a quota than it had.
func (p *pass) blameForQuota(excess overdraft, problems map[config.UnitPath]document.Problems) (blamed bool) {
	if p.Releases == nil && p.world.base == nil {
		return false
	}
	for _, path := range slices.Sorted(maps.Keys(p.demands)) {
		d := p.demands[path][excess.space]
		wants := d.quotas[excess.quota][excess.resource]
		if wants.IsZero() {
			continue
		}
		had, known := p.demandBefore(path, excess)
		if known == isGone || known == isKnown && wants.Cmp(had) <= 0 {
			continue
		}
		more := wants.DeepCopy()
		more.Sub(had)
		message := fmt.Sprintf("%s; this one wants %s, which is %s more than before", excess.text(), &wants, &more)
		if known == isLate {
			message = fmt.Sprintf("%s; this one wants %s, and it is not known yet how much it had", excess.text(), &wants)
		}
		problem := document.Problem{Position: d.first, Code: document.CodePolicy, Message: message, Unit: string(path)}
		problem.Retry = known == isLate
		problems[path] = append(problems[path], problem)
		blamed = true
	}
	return blamed
}

// knowledge is how well something is known.
type knowledge int

const (
	isKnown knowledge = iota
	isLate            // it may be known later
	isGone            // nobody will know it any more
)

// demandKey is a namespace, as it is, of a unit in an earlier commit.
type demandKey struct {
	pastKey
	space, hash string
}

// demandBefore is what a unit took of a resource before.
func (p *pass) demandBefore(path config.UnitPath, excess overdraft) (had quantity.Quantity, known knowledge) {
	key := demandKey{space: excess.space, hash: p.quotas[excess.space].hash}
	if p.Releases != nil {
		release := p.Releases.Newest(path)
		if release.brings(p.entries[path].unit) {
			return p.demands[path][excess.space].quotas[excess.quota][excess.resource], isKnown
		}
		if release.Commit == "" {
			return had, isKnown // it was never released
		}
		key.pastKey = pastKey{release.Commit, path}
	}
	d, remembered := p.demanded[key]
	if !remembered {
		f := p.formerOf(path)
		var bundles []*object.Bundle
		if f.unit != nil {
			var err error
			bundles, err = f.commit.bundlesOf(f.unit)
			f.late = f.late || err != nil
		}
		switch {
		case f.late:
			return had, isLate
		case f.commit == nil && p.Releases != nil:
			return had, isGone
		}
		d = demandsOf(bundles, []string{excess.space}, p.quotas)[excess.space]
		if key.commit != "" {
			remember(&p.demanded, key, d)
		}
	}
	return d.quotas[excess.quota][excess.resource], isKnown
}

func (o *overdraft) text() string {
	cluster, namespace, _ := strings.Cut(o.space, " ")
	return fmt.Sprintf("namespace %s in cluster %s: quota %q has %s of %s, and the units there want %s in all",
		namespace, cluster, o.quota, &o.hard, o.resource, &o.all)
}

// overdraftNote is a note at the unit that wants most.
func (p *pass) overdraftNote(excess overdraft) document.Problem {
	var most quantity.Quantity
	note := document.Problem{Code: document.CodePolicy, Message: excess.text()}
	for _, path := range slices.Sorted(maps.Keys(p.demands)) {
		d := p.demands[path][excess.space]
		if wants := d.quotas[excess.quota][excess.resource]; wants.Cmp(most) > 0 {
			most, note.Position, note.Unit = wants, d.first, string(path)
		}
	}
	return note
}
