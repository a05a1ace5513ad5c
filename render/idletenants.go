// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/policy"
)

// idleKind is a kind that a Tenant names in vain.
type idleKind struct {
	config.IdleReference
	tenant string
	denies bool // it is to keep objects away, and keeps none
}

// idleTenants are the kinds that Tenants name in vain: no kind of any cluster has the name, so
// nothing is admitted or denied by it. Where objects of kinds pass that are not known, only names
// that are surely mistyped count.
func (w *world) idleTenants() (idle []idleKind) {
	if len(w.repository.Tenants) == 0 || w.hard.troubled() {
		return nil
	}
	namespaced, clusterWide := w.scopedKinds()
	for _, name := range slices.Sorted(maps.Keys(w.repository.Tenants)) {
		t := w.repository.Tenants[name]
		if t.Optional {
			continue
		}
		add := func(field string, i int, kind, hint string, denies bool) {
			if !w.hard.open || isSureHint(hint) {
				idle = append(idle, idleKind{t.Idle(field, i, unknownKind(kind), hint), name, denies})
			}
		}
		for i, pattern := range t.Kinds {
			kind, denies := strings.CutPrefix(pattern, "!")
			if !config.AnyLike(kind, namespaced) {
				const elsewhere = ": it lives in no namespace, so only clusterKinds are about it"
				add("kinds", i, kind, hintOfKind(kind, namespaced, clusterWide, elsewhere), denies)
			}
		}
		for i, pattern := range t.ClusterKinds {
			kind, _, _ := strings.Cut(pattern, "/")
			if !config.AnyLike(kind, clusterWide) {
				const elsewhere = ": it lives in namespaces, so only kinds are about it"
				add("clusterKinds", i, kind, hintOfKind(kind, clusterWide, namespaced, elsewhere), false)
			}
		}
	}
	return idle
}

// isSureHint says whether the end of a message tells what was meant.
func isSureHint(hint string) bool {
	return strings.HasPrefix(hint, ", did you mean") || strings.HasPrefix(hint, ": it lives in")
}

// denial is a mistyped denial of a Tenant.
type denial struct {
	document.Problem
	tenant  string
	isTaken bool // by a unit as its problem
}

// judgeTenants judges what Tenants name in vain. Mistyped denials are for [pass.holdUndenied].
func (p *pass) judgeTenants(taken config.Tree) (mistyped, gone document.Problems) {
	for _, kind := range p.world.idleTenants() {
		problems, stood := config.JudgeIdle([]config.IdleReference{kind.IdleReference}, taken)
		gone = append(gone, stood...)
		for _, problem := range problems {
			if kind.denies {
				p.denials = append(p.denials, &denial{Problem: problem, tenant: kind.tenant})
			} else {
				mistyped = append(mistyped, problem)
			}
		}
	}
	return mistyped, gone
}

// holdUndenied adds, to the problems of units that others cause, the mistyped denials of their
// Tenants: what these would refuse must not pass.
func (p *pass) holdUndenied(problems map[config.UnitPath]document.Problems) {
	if len(p.denials) == 0 {
		return
	}
	for path, e := range p.entries {
		for _, d := range p.denials {
			if d.tenant == e.unit.Tenant {
				problem := d.Problem
				problem.Unit, d.isTaken = string(path), true
				problems[path] = append(problems[path], problem)
			}
		}
	}
}

// untakenDenials are the mistyped denials of Tenants without units.
func (p *pass) untakenDenials() (problems document.Problems) {
	for _, d := range p.denials {
		if !d.isTaken {
			problems = append(problems, d.Problem)
		}
	}
	return problems
}

// scopedKinds are the names of the kinds that live in namespaces, and of those that do not, in any
// cluster, see [config.KindName].
func (w *world) scopedKinds() (namespaced, clusterWide []string) {
	for name, k := range w.hard.served() {
		list := &clusterWide
		if k.Namespaced {
			list = &namespaced
		}
		*list = append(*list, config.KindName(policy.GroupOf(name.apiVersion), name.kind))
	}
	slices.Sort(namespaced)
	slices.Sort(clusterWide)
	return slices.Compact(namespaced), slices.Compact(clusterWide)
}

func unknownKind(kind string) string {
	return fmt.Sprintf("%q: no cluster has such a kind, so this says nothing", document.Shorten(kind))
}

// hintOfKind is what somebody may have meant who wrote a kind in lower case, in the plural, or
// without its group, as kubectl takes it.
func hintOfKind(kind string, here, elsewhere []string, where string) string {
	if slices.Contains(elsewhere, kind) {
		return where
	}
	var meant []string
	for _, name := range here {
		if spoken(kind) == spoken(name) {
			meant = append(meant, name)
		}
	}
	if len(meant) == 0 {
		return document.DidYouMean(kind, here)
	}
	return ", did you mean " + document.Some(meant, 3) + "?"
}

// spoken is a kind without its group, as people say it: in lower case and in the singular.
func spoken(kind string) string {
	kind, _, _ = strings.Cut(strings.ToLower(kind), ".")
	if rest, ok := strings.CutSuffix(kind, "ies"); ok {
		return rest + "y"
	}
	if rest, ok := strings.CutSuffix(kind, "sses"); ok {
		return rest + "ss"
	}
	if strings.HasSuffix(kind, "ss") { // Ingress
		return kind
	}
	return strings.TrimSuffix(kind, "s")
}
