// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package override

import (
	"cmp"
	"slices"

	"github.com/swell-sh/swell/config"
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
	At      config.Position // of the operation's path
}

// tracer follows the operations on one object. A nil tracer does nothing.
type tracer struct {
	at      config.Position
	touched []Touched
}

func (t *tracer) begin(at config.Position) {
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
	t.touched = slices.DeleteFunc(t.touched, func(old Touched) bool { return isBelow(old.Path, path) })
	if above := t.above(path); above == nil || above.Removed || removed || above.At != t.at {
		t.touched = append(t.touched, Touched{Path: slices.Clone(path), Removed: removed, At: t.at})
	}
}

// above is the nearest place above a path that was touched; nil when there is
// none.
func (t *tracer) above(path []any) *Touched {
	var nearest *Touched
	for i := range t.touched {
		if one := &t.touched[i]; isBelow(path, one.Path) && (nearest == nil || len(one.Path) > len(nearest.Path)) {
			nearest = one
		}
	}
	return nearest
}

// shift notes that the item at an index of a list was removed (by is -1), or
// that one was put there (1).
func (t *tracer) shift(list []any, index, by int) {
	if t == nil {
		return
	}
	depth := len(list)
	t.touched = slices.DeleteFunc(t.touched, func(old Touched) bool {
		return by < 0 && len(old.Path) > depth && isBelow(old.Path, list) && old.Path[depth] == any(index)
	})
	for _, old := range t.touched {
		if len(old.Path) <= depth || !isBelow(old.Path, list) {
			continue
		}
		if i, ok := old.Path[depth].(int); ok && i >= index {
			old.Path[depth] = i + by
		}
	}
}

// isBelow says whether path is the one above, or leads through it.
func isBelow(path, above []any) bool {
	return len(path) >= len(above) && slices.Equal(path[:len(above)], above)
}

func (t *tracer) sorted() []Touched {
	slices.SortFunc(t.touched, func(a, b Touched) int { return slices.CompareFunc(a.Path, b.Path, compareSteps) })
	return t.touched
}

func compareSteps(a, b any) int {
	i, isIndex := a.(int)
	j, alsoIndex := b.(int)
	if isIndex && alsoIndex {
		return cmp.Compare(i, j)
	}
	s, _ := a.(string)
	u, _ := b.(string)
	return cmp.Compare(s, u)
}

// Origin is the operation that the value at a path is from; ok is false when it
// is from none.
func Origin(touched []Touched, path []any) (at config.Position, ok bool) {
	t := tracer{touched: touched}
	above := t.above(path)
	if above == nil || above.Removed {
		return config.Position{}, false
	}
	return above.At, true
}
