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

// idleTenants are the kinds that Tenants name in vain: no kind of any cluster has the name, so
// nothing is admitted or denied by it.
func (w *world) idleTenants() (idle []config.IdleReference) {
	if len(w.repository.Tenants) == 0 || w.hard.troubled() {
		return nil
	}
	namespaced, clusterWide := w.scopedKinds()
	for _, name := range slices.Sorted(maps.Keys(w.repository.Tenants)) {
		t := w.repository.Tenants[name]
		for i, pattern := range t.Kinds {
			kind := strings.TrimPrefix(pattern, "!")
			if !config.AnyLike(kind, namespaced) {
				const elsewhere = ": it lives in no namespace, so only clusterKinds are about it"
				idle = append(idle, t.Idle("kinds", i, unknownKind(kind), hintOfKind(kind, namespaced, clusterWide, elsewhere)))
			}
		}
		for i, pattern := range t.ClusterKinds {
			kind, _, _ := strings.Cut(pattern, "/")
			if !config.AnyLike(kind, clusterWide) {
				const elsewhere = ": it lives in namespaces, so only kinds are about it"
				idle = append(idle, t.Idle("clusterKinds", i, unknownKind(kind), hintOfKind(kind, clusterWide, namespaced, elsewhere)))
			}
		}
	}
	return idle
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
