// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/override"
	"github.com/swell-sh/swell/render/schema"
)

// defaultOverrides remembers the overrides of Defaults once they are read:
// one in the root holds for every unit. The zero value is ready; it is for one
// commit, and safe for concurrent use.
type defaultOverrides struct{ known sync.Map } // *config.Override -> func() *defaultOverride

// defaultOverride is one override of Defaults.
type defaultOverride struct {
	from     *config.Override
	override *override.Override
	easy     bool // the kind is an easy one
	problems config.Problems
}

// of lists the overrides that hold for units with these defaults, in order.
func (d *defaultOverrides) of(r *config.Repository, kinds *kindSet, defaults *config.Defaults) []*defaultOverride {
	var all []*defaultOverride
	for _, from := range defaults.Overrides {
		known, _ := d.known.LoadOrStore(from, sync.OnceValue(func() *defaultOverride { return readDefault(r, kinds, from) }))
		all = append(all, known.(func() *defaultOverride)())
	}
	return all
}

func readDefault(r *config.Repository, kinds *kindSet, from *config.Override) *defaultOverride {
	d := &defaultOverride{from: from}
	d.override, d.problems = override.ReadDefault(from)
	problem := func(field string, code config.Code, format string, args ...any) {
		n := from.Node
		if at := config.Lookup(n, field); at != nil {
			n = at
		}
		d.problems = append(d.problems, from.Doc.Problem(n, code, "%s.%s: %s", from.Place, field, fmt.Sprintf(format, args...)))
	}
	if unknown := r.UnknownValues(from.Match); len(unknown) > 0 {
		problem("match", config.CodeReference, "no target of the fleet has %s", strings.Join(unknown, ", "))
	}
	ids, broken := kinds.objectsOf(from.Kind)
	d.easy = len(ids) > 0
	switch names := kinds.bareNames(r); {
	case broken, from.Kind == "": // has its problem already
	case d.easy && from.Object == "":
		problem("object", config.CodeReference, "missing, want the id of an object of the kind %s: %s", from.Kind, strings.Join(ids, ", "))
	case d.easy && !slices.Contains(ids, from.Object):
		problem("object", config.CodeReference, "%q: the kind %s has no object of this id%s", config.Shorten(from.Object), from.Kind, config.DidYouMean(from.Object, ids))
	case !d.easy && !slices.Contains(names, from.Kind):
		problem("kind", config.CodeReference, "%q: no such kind%s", config.Shorten(from.Kind), config.DidYouMean(from.Kind, names))
	}
	return d
}

// objectsOf lists the ids of the objects in the easy kinds of a name, in any
// group; none when there is no such kind. broken is set when there may be one
// that does not load.
func (s *kindSet) objectsOf(kindName string) (ids []string, broken bool) {
	for name, k := range s.byName {
		if _, bare, _ := strings.Cut(name, " "); bare == kindName {
			ids = append(ids, k.ObjectIDs()...)
		}
	}
	slices.Sort(ids)
	broken = len(s.unnamed) > 0
	for name := range s.broken {
		if _, bare, _ := strings.Cut(name, " "); bare == kindName {
			broken = true
		}
	}
	return slices.Compact(ids), broken
}

// bareNames are the names of all easy kinds and of the kinds of the fleet's
// Kubernetes versions, without groups.
func (s *kindSet) bareNames(r *config.Repository) []string {
	var names []string
	for name := range s.byName {
		names = append(names, name)
	}
	versions := map[string]bool{}
	for _, cluster := range r.Clusters {
		if hard, err := schema.Kubernetes(cluster.Kubernetes); err == nil && !versions[cluster.Kubernetes] {
			versions[cluster.Kubernetes] = true
			names = append(names, hard.Names()...)
		}
	}
	for i, name := range names {
		_, names[i], _ = strings.Cut(name, " ")
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// holdsFor says whether the override changes an object: of an easy spec its id
// is asked for, of one that is written out its name.
func (d *defaultOverride) holdsFor(target *config.Target, easy bool, kindName, object string) bool {
	return d.easy == easy && d.from.Kind == kindName && (d.from.Object == "" || d.from.Object == object) && d.from.Match.Matches(target.Labels)
}
