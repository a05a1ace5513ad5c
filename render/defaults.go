// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/kind"
	"github.com/swell-sh/swell/render/override"
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
	problems document.Problems
}

// of lists the overrides that hold for units with these defaults, in order.
func (d *defaultOverrides) of(w *world, reads *recorder, defaults *config.Defaults) []*defaultOverride {
	var all []*defaultOverride
	for _, from := range defaults.Overrides {
		reads.note(readNamed, from.Kind)
		known, _ := d.known.LoadOrStore(from, sync.OnceValue(func() *defaultOverride { return readDefault(w, from) }))
		all = append(all, known.(func() *defaultOverride)())
	}
	return all
}

func readDefault(w *world, from *config.Override) *defaultOverride {
	d := &defaultOverride{from: from}
	d.override, d.problems = override.ReadDefault(from)
	problem := func(field string, code document.Code, format string, args ...any) {
		n := from.Node
		if at := document.Lookup(n, field); at != nil {
			n = at
		}
		d.problems = append(d.problems, from.Doc.Problem(n, code, "%s.%s: %s", from.Place, field, fmt.Sprintf(format, args...)))
	}
	ids, broken := objectsOf(w.kinds, from.Kind)
	d.easy = len(ids) > 0
	switch names := w.bareNames(); {
	case broken, from.Kind == "": // has its problem already
	case d.easy && from.Object == "":
		problem("object", document.CodeReference, "missing, want the id of an object of the kind %s: %s", from.Kind, strings.Join(ids, ", "))
	case d.easy && !slices.Contains(ids, from.Object):
		problem("object", document.CodeReference, "%q: the kind %s has no object of this id%s", document.Shorten(from.Object), from.Kind, document.DidYouMean(from.Object, ids))
	case !d.easy && !slices.Contains(names, from.Kind):
		problem("kind", document.CodeReference, "%q: no such kind%s", document.Shorten(from.Kind), document.DidYouMean(from.Kind, names))
	}
	return d
}

// objectsOf lists the ids of the objects in the easy kinds of a name, in any
// group; none when there is no such kind. broken is set when there may be one
// that does not load.
func objectsOf(kinds *kind.Kinds, kindName string) (ids []string, broken bool) {
	for _, k := range kinds.All() {
		if k.Name == kindName {
			ids = append(ids, k.ObjectIDs()...)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), len(kinds.Unnamed()) > 0 || slices.Contains(kinds.BrokenNames(), kindName)
}

// bareNames are the names of all easy kinds and of the kinds of the fleet's
// Kubernetes versions, without groups.
func (w *world) bareNames() []string {
	names := w.hardNames()
	for _, name := range w.kinds.Names() {
		_, name, _ = strings.Cut(name, " ")
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// hardNames are the names of the kinds of hard objects, without groups.
func (w *world) hardNames() (names []string) {
	for _, set := range w.hard.distinct() {
		names = append(names, set.Names()...)
	}
	for i, name := range names {
		_, names[i], _ = strings.Cut(name, " ")
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// named is the address of what overrides of Defaults find under a kind's name.
func (w *world) named(kindName string) string {
	find, _ := w.names.LoadOrStore(kindName, sync.OnceValue(func() string {
		ids, broken := objectsOf(w.kinds, kindName)
		names := w.bareNames()
		instead := "" // what the message about it says
		if _, known := slices.BinarySearch(names, kindName); !known {
			instead = "none" + document.DidYouMean(kindName, names)
		}
		return fmt.Sprintf("%q %t %s", ids, broken, instead)
	}))
	return find.(func() string)()
}

// holdsFor says whether the override changes an object: of an easy spec its id
// is asked for, of one that is written out its name.
func (d *defaultOverride) holdsFor(target *config.Target, easy bool, kindName, object string) bool {
	return d.easy == easy && d.from.Kind == kindName && (d.from.Object == "" || d.from.Object == object) && d.from.Match.Matches(target.Labels)
}
