// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package override

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/schema"
)

// pointer is the tokens of an RFC 6901 pointer. The empty pointer is the
// object itself.
type pointer []string

func parsePointer(text string) (pointer, error) {
	switch {
	case text == "":
		return nil, nil
	case len(text) > maxPath:
		return nil, fmt.Errorf("%d bytes, want at most %d", len(text), maxPath)
	case text[0] != '/':
		return nil, fmt.Errorf("%q: want a JSON pointer like /spec/replicas (RFC 6901)", text)
	}
	if plain := strings.NewReplacer("~0", "", "~1", "").Replace(text); strings.Contains(plain, "~") {
		return nil, fmt.Errorf("%q: want ~0 for ~ and ~1 for / in a name (RFC 6901)", text)
	}
	return config.PointerSegments(text), nil
}

func (p pointer) String() string {
	var b strings.Builder
	for _, token := range p {
		b.WriteString("/" + config.PointerSegment(token))
	}
	return b.String()
}

// patch does one operation of RFC 6902.
func (a *applier) patch(op *operation) error {
	var err error
	switch op.op {
	case "test":
		err = a.test(op)
	case "add":
		err = a.add(op.into, op.value)
	case "remove":
		_, err = a.take(op.into)
	case "replace":
		_, err = a.at(op.into, func(holder any, token string) (any, error) { return a.replace(holder, token, op.into, op.value) })
	case "move":
		var moved any
		if moved, err = a.take(op.from); err == nil {
			err = a.add(op.into, moved)
		}
	case "copy":
		var found any
		if found, err = a.find(op.from); err == nil {
			err = a.add(op.into, found)
		}
	}
	if err == nil {
		return nil
	}
	places := op.into.String()
	if op.from != nil {
		places = op.from.String() + " to " + places
	}
	return fmt.Errorf("patch[%d]: %s %s: %w", op.index, op.op, places, err)
}

// find is the value at a pointer.
func (a *applier) find(p pointer) (any, error) {
	var value any = a.object
	for i, token := range p {
		next, err := a.child(value, token, p[:i])
		if err != nil {
			return nil, err
		}
		value = next
	}
	return value, nil
}

// child is one step down; above is the pointer to the holder.
func (a *applier) child(holder any, token string, above pointer) (any, error) {
	a.spend(perValue)
	switch h := holder.(type) {
	case map[string]any:
		if h[token] == nil {
			return nil, nothingAt(above, onlyThese(token, h))
		}
		return h[token], nil
	case []any:
		i, err := position(token, len(h)-1, above)
		if err != nil {
			return nil, err
		}
		return h[i], nil
	}
	return nil, nothingAt(above, fmt.Sprintf("it is %s and has nothing below it", form(holder)))
}

func nothingAt(above pointer, what string) error {
	return fmt.Errorf("%s is there, but %s", orObject(above.String()), what)
}

// position reads an index from 0 to last.
func position(token string, last int, above pointer) (int, error) {
	i, err := strconv.Atoi(token)
	if err != nil || strconv.Itoa(i) != token || i < 0 || i > last {
		if last < 0 {
			return 0, nothingAt(above, "the list there is empty")
		}
		return 0, nothingAt(above, fmt.Sprintf("it is a list and takes an index from 0 to %d there", last))
	}
	return i, nil
}

// at calls do with what holds the place that a pointer leads to, and puts what
// it returns, the holder changed or made anew, in the holder's place. The path
// of the applier leads to the holder meanwhile. It returns the holder.
func (a *applier) at(p pointer, do func(holder any, token string) (any, error)) (any, error) {
	var descend func(value any, depth int) (any, error)
	descend = func(value any, depth int) (any, error) {
		if depth == len(p)-1 {
			return do(value, p[depth])
		}
		below, err := a.child(value, p[depth], p[:depth])
		if err != nil {
			return nil, err
		}
		a.path = append(a.path, stepOf(value, p[depth]))
		changed, err := descend(below, depth+1)
		if err != nil {
			return nil, err
		}
		a.path = a.path[:len(a.path)-1]
		put(value, p[depth], changed)
		return value, nil
	}
	return descend(a.object, 0)
}

// stepOf is a token as an element of a path.
func stepOf(holder any, token string) any {
	if _, ok := holder.([]any); ok {
		i, _ := strconv.Atoi(token)
		return i
	}
	return token
}

// put sets a place that is there.
func put(holder any, token string, value any) {
	switch h := holder.(type) {
	case map[string]any:
		h[token] = value
	case []any:
		i, _ := strconv.Atoi(token)
		h[i] = value
	}
}

func (a *applier) replace(holder any, token string, p pointer, value any) (any, error) {
	if _, err := a.child(holder, token, p[:len(p)-1]); err != nil {
		return nil, err
	}
	put(holder, token, a.copy(value))
	a.trace.set(append(a.path, stepOf(holder, token)))
	return holder, nil
}

// add puts a copy of the value at a place: a field that may be there, or
// before an item of a list, or behind the last one.
func (a *applier) add(p pointer, value any) error {
	a.path = a.path[:0]
	_, err := a.at(p, func(holder any, token string) (any, error) {
		above := p[:len(p)-1]
		switch h := holder.(type) {
		case map[string]any:
			h[token] = a.copy(value)
			a.trace.set(append(a.path, token))
			return h, nil
		case []any:
			i := len(h)
			if token != "-" {
				var err error
				if i, err = position(token, len(h), above); err != nil {
					return nil, err
				}
			}
			a.spend(perValue * len(h))
			a.trace.inserted(a.path, i)
			a.trace.set(append(a.path, i))
			return slices.Insert(h, i, a.copy(value)), nil
		}
		return nil, nothingAt(above, fmt.Sprintf("it is %s and has nothing below it", form(holder)))
	})
	return err
}

// take removes a place and returns what was there.
func (a *applier) take(p pointer) (any, error) {
	var taken any
	_, err := a.at(p, func(holder any, token string) (any, error) {
		var err error
		if taken, err = a.child(holder, token, p[:len(p)-1]); err != nil {
			return nil, err
		}
		if h, ok := holder.([]any); ok {
			i := stepOf(h, token).(int)
			a.trace.deleted(a.path, []int{i})
			a.spend(perValue * len(h))
			return slices.Delete(h, i, i+1), nil
		}
		delete(holder.(map[string]any), token)
		a.trace.removed(append(a.path, token))
		return holder, nil
	})
	return taken, err
}

func (a *applier) test(op *operation) error {
	got, err := a.find(op.into)
	if err != nil {
		return err
	}
	want, is := schema.Describe(op.value), schema.Describe(got)
	switch {
	case same(got, op.value):
		return nil
	case a.secret:
		return errors.New("what is there is not what the test wants")
	case want == is: // two mappings or two lists
		return fmt.Errorf("%s is there, but with other content", is)
	}
	return fmt.Errorf("want %s, got %s", want, is)
}

// same says whether two values are the same JSON: numbers by their value.
func same(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok {
			return false
		}
		for key := range a {
			if !same(a[key], b[key]) {
				return false
			}
		}
		for key := range b {
			if a[key] == nil && b[key] != nil {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, same)
	case int64:
		if f, ok := b.(float64); ok {
			return sameNumber(a, f)
		}
	case float64:
		if i, ok := b.(int64); ok {
			return sameNumber(i, a)
		}
	}
	return a == b
}

// sameNumber compares without a loss of digits.
func sameNumber(i int64, f float64) bool {
	return f >= -1<<63 && f < 1<<63 && int64(f) == i && float64(int64(f)) == f
}
