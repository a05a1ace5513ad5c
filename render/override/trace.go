// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package override

import (
	"cmp"
	"maps"
	"slices"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/schema"
)

// Touched is a place of an object that an override made what it is.
type Touched struct {
	// Path leads to the place in the final object; its elements are string
	// keys and int indexes. Everything below it is from At too, but for what
	// has a longer path of its own.
	Path []any
	// Removed is set for a field that was taken away. Items of lists that were
	// taken away are nowhere.
	Removed bool
	At      document.Position // of the operation's path
}

// tracer follows the operations on one object. A nil tracer does nothing.
type tracer struct {
	at    document.Position // of the operation
	root  spot
	moves []move // in order
}

// move is a list whose items were renumbered.
type move struct {
	list []any
	to   func(int) int // -1 for an item that was taken away
}

// spot is a place in the object that was touched, or that leads to such.
type spot struct {
	touched, removed bool
	at               document.Position
	below            map[any]*spot // by string key or int index
}

func (t *tracer) begin(at document.Position) {
	if t != nil {
		t.at = at
	}
}

// set notes that the value at the path is a new one.
func (t *tracer) set(path []any) {
	if t != nil {
		t.note(path, false)
	}
}

// removed notes that a field is no more.
func (t *tracer) removed(path []any) {
	if t != nil {
		t.note(path, true)
	}
}

func (t *tracer) note(path []any, removed bool) {
	s := &t.root
	var above *spot // the nearest that was touched
	for _, step := range path {
		if s.touched {
			above = s
		}
		next := s.below[step]
		if next == nil {
			next = &spot{}
			if s.below == nil {
				s.below = map[any]*spot{}
			}
			s.below[step] = next
		}
		s = next
	}
	*s = spot{touched: true, removed: removed, at: t.at}
	if above != nil && !above.removed && !removed && above.at == t.at {
		s.touched = false // the one above says it
	}
}

// inserted notes that an item was put into a list.
func (t *tracer) inserted(list []any, index int) {
	t.renumber(list, func(i int) int {
		if i >= index {
			return i + 1
		}
		return i
	})
}

// deleted notes that items of a list, by ascending index, were taken away.
func (t *tracer) deleted(list []any, indexes []int) {
	if len(indexes) == 0 {
		return
	}
	t.renumber(list, func(i int) int {
		before, deleted := slices.BinarySearch(indexes, i)
		if deleted {
			return -1
		}
		return i - before
	})
}

// renumber moves the items of a list; those that move to -1 are no more.
func (t *tracer) renumber(list []any, to func(int) int) {
	if t == nil {
		return
	}
	t.moves = append(t.moves, move{slices.Clone(list), to})
	s := &t.root
	for _, step := range list {
		if s = s.below[step]; s == nil {
			return
		}
	}
	moved := make(map[any]*spot, len(s.below))
	for step, item := range s.below {
		if i, ok := step.(int); !ok {
			moved[step] = item
		} else if j := to(i); j >= 0 {
			moved[j] = item
		}
	}
	s.below = moved
}

func (t *tracer) sorted() []Touched { return t.root.appendTo(nil, nil) }

func (s *spot) appendTo(all []Touched, path []any) []Touched {
	if s.touched {
		all = append(all, Touched{Path: slices.Clone(path), Removed: s.removed, At: s.at})
	}
	for _, step := range slices.SortedFunc(maps.Keys(s.below), compareSteps) {
		all = s.below[step].appendTo(all, append(path, step))
	}
	return all
}

// compareSteps puts indexes before names.
func compareSteps(a, b any) int {
	i, isIndex := a.(int)
	j, alsoIndex := b.(int)
	switch {
	case isIndex && alsoIndex:
		return cmp.Compare(i, j)
	case isIndex:
		return -1
	case alsoIndex:
		return 1
	}
	return cmp.Compare(a.(string), b.(string))
}

// Origin is the operation that the value at a path is from, of what [Trace]
// found; ok is false when it is from none.
func Origin(touched []Touched, path []any) (at document.Position, ok bool) {
	for depth := len(path); depth >= 0; depth-- {
		i, found := slices.BinarySearchFunc(touched, path[:depth], func(one Touched, path []any) int {
			return slices.CompareFunc(one.Path, path, compareSteps)
		})
		if found {
			return touched[i].At, !touched[i].Removed
		}
	}
	return document.Position{}, false
}

// Before renders the way back: the place in the object that came in of a place
// in the result that no operation touched. ok is false where an item was put
// into a list.
func Before(object map[string]any, hard *schema.Type, overrides ...*Override) func(path []any) (before []any, ok bool) {
	a := newApplier(object, hard)
	a.trace = &tracer{}
	a.applyAll(overrides)
	return a.trace.before
}

func (t *tracer) before(path []any) ([]any, bool) {
	path = slices.Clone(path)
	for _, m := range slices.Backward(t.moves) {
		depth := len(m.list)
		if len(path) <= depth || !slices.Equal(path[:depth], m.list) {
			continue
		}
		now, ok := path[depth].(int)
		if !ok {
			continue
		}
		was := 0
		for ; m.to(was) != now; was++ {
			if m.to(was) > now { // items keep their order, so this one was put in
				return nil, false
			}
		}
		path[depth] = was
	}
	return path, true
}
