// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

// useKey is a part of a Checker that picks objects or texts of units.
type useKey struct {
	part usePart
	name string // of the Checker
	more string // a name that is near to the one that is written
	item int    // of the Checker's from
}

// usePart is how far an object came in what an item of a Checker asks for.
type usePart byte

const (
	usedName  usePart = iota + 1 // the object has the kind and the name of an item of a Checker
	usedMatch                    // and its labels
	usedText                     // the text is one of the item
	nearName                     // more is almost the name
	nearLabel                    // more is almost the value of a label
	nearKey                      // more is almost the key
)

// use is how many objects, or texts, one unit has of a part on all of its targets.
type use struct {
	useKey
	count int
}

// uses are sorted; never changed once they are made.
type uses []use

// useCounts are the sums over units.
type useCounts map[useKey]int

func (c useCounts) add(list uses, sign int) {
	for _, u := range list {
		if c[u.useKey] += sign * u.count; c[u.useKey] == 0 {
			delete(c, u.useKey)
		}
	}
}

// sealed are the counts in a fixed order.
func (c useCounts) sealed() (list uses) {
	for key, count := range c {
		list = append(list, use{key, count})
	}
	slices.SortFunc(list, func(a, b use) int {
		return cmp.Or(cmp.Compare(a.part, b.part), cmp.Compare(a.name, b.name), cmp.Compare(a.item, b.item), cmp.Compare(a.more, b.more))
	})
	return list
}

// noteUse counts an object or a text of the unit.
func (u *unitRenderer) noteUse(key useKey) {
	if u.uses == nil {
		u.uses = useCounts{}
	}
	u.uses[key]++
}

// takes says whether an item of a Checker takes an object, and counts how far the object came.
func (u *unitRenderer) takes(c check, group, kind, name string, labels map[string]string) bool {
	t := c.texts
	part := func(part usePart, more string) {
		if !c.base {
			u.noteUse(useKey{part, c.Name, more, c.item})
		}
	}
	switch {
	case !t.OfKind(group, kind):
		return false
	case !t.Named(name):
		if document.IsNear(name, t.Name) {
			part(nearName, name)
		}
		return false
	}
	part(usedName, "")
	if !t.Match.Matches(labels) {
		for key, values := range t.Match.Labels {
			if value := labels[key]; !slices.Contains(values, value) && document.Misspelt(value, values) != "" {
				part(nearLabel, value)
			}
		}
		return false
	}
	part(usedMatch, "")
	return true
}

// noteTexts counts the texts that an item of a Checker takes in an object.
func (u *unitRenderer) noteTexts(c check, texts int, object map[string]any) {
	if c.base {
		return
	}
	for range texts {
		u.noteUse(useKey{usedText, c.Name, "", c.item})
	}
	if texts > 0 || c.texts.Key == "" {
		return
	}
	data, _ := object["data"].(map[string]any)
	for key := range data {
		if document.IsNear(key, c.texts.Key) {
			u.noteUse(useKey{nearKey, c.Name, key, c.item})
		}
	}
}

// unusedChecker is a name, labels or a key of an item of a Checker that no object of any unit has.
func (c useCounts) unusedChecker(checker *config.Checker, item int) (idle []config.IdleReference) {
	texts := &checker.From[item]
	found := func(part usePart) bool { return c[useKey{part, checker.Name, "", item}] > 0 }
	add := func(field string, near usePart, got, why string) {
		var names []string
		for _, key := range slices.SortedFunc(maps.Keys(c), func(a, b useKey) int { return cmp.Compare(a.more, b.more) }) {
			if key.part == near && key.name == checker.Name && key.item == item {
				names = append(names, key.more)
			}
		}
		hint := ""
		if len(names) > 0 {
			hint = document.DidYouMean(got, names)
		}
		idle = append(idle, checker.Idle(item, field, why+", so nothing is judged", hint))
	}
	switch {
	case texts.Name != "" && !found(usedName):
		add("name", nearName, texts.Name, fmt.Sprintf("%q: no unit has a %s of this name", document.Shorten(texts.Name), texts.Kind))
	case len(texts.Match.Labels) > 0 && !found(usedMatch):
		label, value := texts.Match.First()
		add("match", nearLabel, value, fmt.Sprintf("%s: no %s of any unit that it is about has these labels", label, texts.Kind))
	case texts.Key != "" && !found(usedText):
		add("key", nearKey, texts.Key, fmt.Sprintf("%q: no %s of any unit that it is about has such a key", document.Shorten(texts.Key),
			texts.Kind))
	}
	return idle
}
