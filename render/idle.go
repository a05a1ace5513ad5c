// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/render/policy"
	"github.com/swell-sh/swell/render/schema"
)

// IdleRules are notes on rules in Defaults, in a folder or below it, that have no effect:
// a rule for an object that no unit below the Defaults has on any target, or for a field
// that no object of the kind can have; and on gates of Rollouts whose Job no unit has. Each
// has one note, at its line. Notes hold nothing back, because an object may be removed before its rule. While a unit below has a
// problem, its objects are not known, and the rule has no note. It reads the objects of
// units from the cache, all of them where a rule has no effect.
func (s *Snapshot) IdleRules(folder string) document.Problems {
	if s.Held {
		return nil
	}
	notes, byUnit := s.rulesFor(folder)
	for unit, rules := range byUnit {
		for _, r := range rules {
			r.units++
			r.unknown = r.unknown || len(unit.Problems) > 0
		}
	}
	for _, unit := range s.Units.Sorted() {
		open := slices.DeleteFunc(slices.Clone(byUnit[unit]), func(r *idleRule) bool { return r.found || r.unknown })
		if len(open) == 0 {
			continue
		}
		bundles, err := s.Bundles(unit)
		for _, r := range open {
			r.unknown = err != nil
			r.look(bundles)
		}
	}
	told := map[*idleRule]bool{}
	for _, rules := range byUnit {
		for _, r := range rules {
			if !r.found && !r.unknown && !told[r] {
				told[r] = true
				notes = append(notes, r.note())
			}
		}
	}
	return notes.Sorted()
}

// idleRule is a rule for an object, as long as no unit is known that has it.
type idleRule struct {
	config.Reference
	gate    bool            // it is about a Job that a gate runs
	units   int             // below the Defaults, or with the Rollout
	names   map[string]bool // of objects of the kind
	found   bool
	unknown bool // a unit has a problem
}

// rulesFor are the rules for objects by the units below their Defaults, and the notes of
// fields that no object can have. The Defaults are those of the commit: of a unit that is
// as it was, their lines may have moved.
func (s *Snapshot) rulesFor(folder string) (notes document.Problems, byUnit map[*Unit][]*idleRule) {
	w := s.world
	byUnit = map[*Unit][]*idleRule{}
	type written struct {
		at    document.Position
		place string // what an alias stands for is in several
	}
	rules := map[written]*idleRule{} // nil: no rule for an object
	for source := range s.Repository.Units() {
		unit := s.Units.Get(source.Path)
		for _, r := range source.Defaults.References {
			key := written{r.At, r.Place}
			rule, known := rules[key]
			if !known && config.Within(path.Dir(r.At.File), folder) {
				switch {
				case r.Field != "":
					notes = append(notes, w.noField(r)...)
				case r.Object != "" && !w.isEasyKind(r.Kind): // ids in easy kinds are checked where overrides are read
					rule = &idleRule{Reference: r, names: map[string]bool{}}
				}
			}
			rules[key] = rule
			if rule != nil {
				byUnit[unit] = append(byUnit[unit], rule)
			}
		}
	}
	for _, job := range s.Repository.GateJobs() {
		rule := &idleRule{Reference: job.Reference, gate: true, names: map[string]bool{}}
		for _, unit := range s.Units.Sorted() {
			if unit.Rollout == job.Rollout && config.Within(string(unit.Path), folder) {
				byUnit[unit] = append(byUnit[unit], rule)
			}
		}
	}
	return notes, byUnit
}

// isEasyKind says whether there is, or may be, an easy kind of the name.
func (w *world) isEasyKind(name string) bool {
	ids, broken := objectsOf(w.kinds, name)
	return len(ids) > 0 || broken
}

// look looks for the object.
func (r *idleRule) look(bundles []*object.Bundle) {
	for _, b := range bundles {
		for _, o := range b.Objects {
			if o.ID.Kind == r.Kind && (!r.gate || o.Hook() == object.HookGate) {
				r.names[o.ID.Name] = true
				r.found = r.found || o.ID.Name == r.Object
			}
		}
	}
}

func (r *idleRule) note() document.Problem {
	who := "the unit has no"
	switch {
	case r.gate:
		const text = "%s: %q: none of the units with this Rollout (%d) has a Job of this name with the annotation %s: gate, " +
			"so the gate lets all through%s"
		hint := document.DidYouMean(r.Object, slices.Sorted(maps.Keys(r.names)))
		message := fmt.Sprintf(text, r.Place, document.Shorten(r.Object), r.units, config.AnnotationHook, hint)
		return document.Problem{Position: r.At, Code: document.CodeReference, Message: message}
	case r.units > 1:
		who = fmt.Sprintf("none of the %d units below has a", r.units)
	}
	return document.Problem{Position: r.At, Code: document.CodeReference,
		Message: fmt.Sprintf("%s: %q: %s %s of this name on any target%s", r.Place, document.Shorten(r.Object), who, document.Shorten(r.Kind), document.DidYouMean(r.Object, slices.Sorted(maps.Keys(r.names))))}
}

// noField is a note when no kind of the name has the field of a reference: neither in
// Kubernetes nor in the definitions of the monorepo.
func (w *world) noField(r config.Reference) document.Problems {
	types := w.typesOf(r.Kind)
	if len(types) == 0 || w.hard.troubled() {
		return nil
	}
	hint, ok := reach(types, config.PointerSegments(r.Field))
	if ok {
		return nil
	}
	return document.Problems{{Position: r.At, Code: document.CodeReference,
		Message: fmt.Sprintf("%s: %q: no %s can have this field%s", r.Place, document.Shorten(r.Field), document.Shorten(r.Kind), hint)}}
}

// idleCheckers are what Checkers name in vain: there is no such kind, no kind of that name
// has such a field, or no object of any unit has the name, the labels or the key. While a unit
// has a problem, its objects are not known.
func (p *pass) idleCheckers() (idle []config.IdleReference) {
	w := p.world
	if len(w.repository.Checkers) == 0 || w.hard.troubled() {
		return nil
	}
	groups := w.groupsOfKinds()
	for _, c := range w.repository.Checkers {
		for i := range c.From {
			if c.From[i].Optional {
				continue
			}
			found := w.idleTexts(c, i, groups)
			if len(found) == 0 && len(p.troubled) == 0 {
				found = p.uses.unusedChecker(c, i)
			}
			idle = append(idle, found...)
		}
	}
	return idle
}

// idleTexts are the kind, the group or the field of an item of a Checker that there is not.
func (w *world) idleTexts(c *config.Checker, item int, groups map[string][]string) []config.IdleReference {
	texts := &c.From[item]
	known := groups[texts.Kind]
	if len(known) == 0 {
		why := fmt.Sprintf("%q: no such kind, so nothing is judged", document.Shorten(texts.Kind))
		hint := document.DidYouMean(texts.Kind, slices.Collect(maps.Keys(groups)))
		return []config.IdleReference{c.Idle(item, "kind", why, hint)}
	}
	if texts.Group != "" && !slices.Contains(known, texts.Group) {
		const text = "%q: no kind %s is in this group, so nothing is judged"
		why := fmt.Sprintf(text, document.Shorten(texts.Group), texts.Kind)
		return []config.IdleReference{c.Idle(item, "group", why, document.DidYouMean(texts.Group, known))}
	}
	if len(texts.Path) == 0 || slices.Contains(w.easyNames(), texts.Kind) {
		return nil
	}
	hint, ok := reach(w.typesOf(texts.Kind), anyItem(texts.Path))
	if ok {
		return nil
	}
	const text = "%q: no %s can have this field, so nothing is judged"
	why := fmt.Sprintf(text, document.Shorten(strings.Join(texts.Path, ".")), texts.Kind)
	return []config.IdleReference{c.Idle(item, "path", why, hint)}
}

// groupsOfKinds are the groups of all kinds by their names, of Kubernetes' own, of custom
// resources and of easy kinds.
func (w *world) groupsOfKinds() map[string][]string {
	groups := map[string][]string{}
	add := func(apiVersion, kindName string) {
		if group := policy.GroupOf(apiVersion); !slices.Contains(groups[kindName], group) {
			groups[kindName] = append(groups[kindName], group)
		}
	}
	for _, set := range w.hard.distinct() {
		for _, name := range set.Names() {
			apiVersion, kindName, _ := strings.Cut(name, " ")
			add(apiVersion, kindName)
		}
	}
	for _, k := range w.kinds.Declared() {
		add(k.APIVersion(), k.Name)
	}
	return groups
}

// easyNames are the kinds of easy specs.
func (w *world) easyNames() (names []string) {
	for _, k := range w.kinds.Declared() {
		names = append(names, k.Name)
	}
	return names
}

// anyItem is the path of a Checker with an item in place of each *: lists have a first
// one, and maps any.
func anyItem(path []string) []string {
	segments := slices.Clone(path)
	for i, step := range segments {
		if step == "*" {
			segments[i] = "0"
		}
	}
	return segments
}

// reach says whether one of the types can have what the segments of a pointer lead to.
// hint is the end of a message when none has.
func reach(types []*schema.Type, segments []string) (hint string, ok bool) {
	for _, t := range types {
		instead, ok := t.Reach(segments)
		if ok {
			return "", true
		}
		hint = cmp.Or(hint, instead)
	}
	return hint, false
}

// typesOf are the types of the kinds of a name in the clusters of the fleet, in any group
// and version, in a fixed order.
func (w *world) typesOf(kindName string) (types []*schema.Type) {
	for _, set := range w.hard.distinct() {
		for _, name := range slices.Sorted(slices.Values(set.Names())) {
			if apiVersion, known, _ := strings.Cut(name, " "); known == kindName {
				if k := set.Kind(apiVersion, known); k != nil {
					types = append(types, k.Type())
				}
			}
		}
	}
	return types
}

// past is what a commit changes: the commits before, where it is known how the branch came to it,
// or else what the change goes to.
func (c *Compiler) past() config.Past {
	switch {
	case c.Base != nil && c.Between == nil:
		return config.Past{Taken: c.Base.Tree}
	case c.world != nil:
		return config.Past{Taken: c.world.repository.Tree, Since: c.Between}
	}
	return config.Past{Taken: c.Before, Since: c.Between}
}

// IdleAnew are those of [Snapshot.Idle] that base does not have, a line each: the change takes
// away what they matched.
func (s *Snapshot) IdleAnew(base *Snapshot) (anew []string) {
	before := map[string]bool{}
	for _, p := range base.Idle {
		before[p.File+": "+p.Message] = true
	}
	for _, p := range s.Idle {
		if !before[p.File+": "+p.Message] {
			anew = append(anew, p.String())
		}
	}
	return anew
}
