// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package override

import (
	"errors"
	"fmt"
	"slices"

	"github.com/jmespath-community/go-jmespath/pkg/util"

	"github.com/swell-sh/swell/render/schema"
)

// walk is one operation on its way through the object.
type walk struct {
	*applier
	op      *operation
	matched int // places found
	miss    miss
	missed  bool
	err     error // the first thing that is wrong at a place
}

// miss is how far a path led, and why no further.
type miss struct {
	depth int
	what  string
}

// gone is what takes the place of a value that is removed.
type gone struct{}

// descend returns value with the operation done below it; the steps before
// depth have been taken. The result is [gone] when the value is to be removed.
func (w *walk) descend(value any, t *schema.Type, depth int) any {
	if w.err != nil || !w.spend(perValue) {
		return value
	}
	if depth == len(w.op.path) {
		w.matched++
		return w.at(value, t)
	}
	switch s := &w.op.path[depth]; s.kind {
	case byName:
		m, ok := value.(map[string]any)
		if !ok {
			w.misses(depth, fmt.Sprintf("it is %s and no map", form(value)))
			return value
		}
		if m[s.name] == nil && (depth < len(w.op.path)-1 || w.op.verb == verbRemove || w.op.verb == verbUpdate && w.op.value == nil) {
			w.misses(depth, w.noField(s.name, m, t, depth))
			return value
		}
		w.field(m, s.name, t, depth)
	case byValue:
		m, ok := value.(map[string]any)
		if !ok {
			w.misses(depth, fmt.Sprintf("it is %s and no map", form(value)))
			return value
		}
		names := present(m)
		if len(names) == 0 {
			w.misses(depth, "it is empty")
		}
		for _, name := range names {
			w.field(m, name, t, depth)
		}
	default:
		items, ok := value.([]any)
		if !ok {
			w.misses(depth, fmt.Sprintf("it is %s and no list", form(value)))
			return value
		}
		return w.list(items, t, depth)
	}
	return value
}

func (w *walk) misses(depth int, what string) {
	if !w.missed || depth > w.miss.depth {
		w.missed, w.miss = true, miss{depth, what}
	}
}

func (w *walk) field(m map[string]any, name string, t *schema.Type, depth int) {
	w.path = append(w.path, name)
	changed := w.descend(m[name], t.Field(name), depth+1)
	if changed == (any)(gone{}) {
		delete(m, name)
		w.trace.removed(w.path)
	} else if changed != nil {
		m[name] = changed
	}
	w.path = w.path[:len(w.path)-1]
}

func (w *walk) list(items []any, t *schema.Type, depth int) any {
	picked := w.picks(&w.op.path[depth], items, depth)
	if w.err != nil {
		return items
	}
	if len(picked) == 0 {
		count := "1 item"
		if len(items) != 1 {
			count = fmt.Sprintf("%d items", len(items))
		}
		w.misses(depth, fmt.Sprintf("the list there has %s%s", count, w.itemNames(items, t)))
	}
	elem := t.Item()
	for _, i := range picked {
		w.path = append(w.path, i)
		items[i] = w.descend(items[i], elem, depth+1)
		w.path = w.path[:len(w.path)-1]
	}
	picked = slices.DeleteFunc(picked, func(i int) bool { return items[i] != (any)(gone{}) })
	w.trace.deleted(w.path, picked)
	return slices.DeleteFunc(items, func(item any) bool { return item == (any)(gone{}) })
}

// picks are the indexes of the items that a step picks, ascending.
func (w *walk) picks(s *step, items []any, depth int) []int {
	var picked []int
	switch s.kind {
	case byIndex:
		i := s.index
		if i < 0 {
			i += len(items)
		}
		if i >= 0 && i < len(items) {
			picked = []int{i}
		}
	case byItem:
		for i := range items {
			picked = append(picked, i)
		}
	case bySlice:
		indexes := make([]any, len(items))
		for i := range items {
			indexes[i] = i
		}
		kept, err := util.Slice(indexes, s.slice)
		if err != nil {
			w.err = err
		}
		for _, i := range kept {
			picked = append(picked, i.(int))
		}
	case byFilter:
		for i, item := range items {
			ok, err := s.filter.picks(w.view(item))
			if err != nil && w.work >= 0 { // the library's own text may show a value
				w.err = fmt.Errorf("%q: the filter cannot be computed for item %d of %s: a function got what it does not take; test the field first, like name && starts_with(name, 'x')",
					w.op.path.text(w.secret), i, orObject(w.op.path[:depth].text(w.secret)))
				return nil
			}
			if ok {
				picked = append(picked, i)
			}
		}
	}
	w.spend(perValue * len(items))
	return picked
}

// at does the operation at one place; value is nil when nothing is there.
func (w *walk) at(value any, t *schema.Type) any {
	switch op := w.op; op.verb {
	case verbRemove:
		return gone{}
	case verbSet:
		w.trace.set(w.path)
		return w.copy(op.value)
	case verbAppend:
		return w.appendTo(value, t)
	default:
		if op.value == nil {
			return gone{}
		}
		merged, err := w.merge(value, op.value, t)
		w.fail(err)
		return merged
	}
}

func (w *walk) fail(err error) {
	if err != nil && w.err == nil {
		w.err = fmt.Errorf("%q: %w", w.op.path.text(w.secret), err)
	}
}

func (w *walk) appendTo(value any, t *schema.Type) any {
	items, ok := value.([]any)
	if !ok && value != nil {
		w.fail(fmt.Errorf("cannot append: %s is %s and no list", schema.PathText(w.path), form(value)))
		return value
	}
	if _, list := w.op.value.([]any); list && !holdsLists(items, t.Item()) {
		w.fail(errors.New("cannot append: append puts one item into the list, and the value is a list: write the item itself, and an append for each"))
		return value
	}
	if t != nil && len(t.Keys) > 0 {
		if key, ok := schema.ItemKey(t, w.op.value); ok {
			for _, item := range items {
				if other, ok := schema.ItemKey(t, item); ok && other == key {
					w.fail(w.taken(key))
					return value
				}
			}
		}
	}
	w.spend(perValue * len(items))
	w.trace.set(append(w.path, len(items)))
	return append(items, w.copy(w.op.value))
}

// holdsLists says whether a list's items may be lists: as its type says, or
// where that is not known, those that are there.
func holdsLists(items []any, elem *schema.Type) bool {
	if elem != nil && elem.Form != schema.Any {
		return elem.Form == schema.List
	}
	for _, item := range items {
		if _, list := item.([]any); !list {
			return false
		}
	}
	return true
}

func (w *walk) taken(key string) error {
	if w.secret {
		return errors.New("cannot append: the list has an item with the same keys already, use update to change it")
	}
	return fmt.Errorf("cannot append: the list has an item with %s already, use update to change it", key)
}
