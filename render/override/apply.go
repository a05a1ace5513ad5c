// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package override

import (
	"fmt"
	"reflect"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/schema"
)

// maxWork is how many bytes, roughly as JSON, the overrides of one object may
// look at and write together: 16 objects of the size that an API server takes
// at most. It stops a patch that doubles the object with each copy, and [*] in
// [*] in [*].
const maxWork = 16 << 20

// Apply returns the object with the overrides, one after another. The object
// that came in is not changed, and is returned as it is when there are none.
// hard is the type of the object, for the keys of its lists; nil when it is
// not known. The result is nil when there is a problem.
func Apply(object map[string]any, hard *schema.Type, overrides ...*Override) (map[string]any, document.Problems) {
	if len(overrides) == 0 {
		return object, nil
	}
	a := newApplier(object, hard)
	a.applyAll(overrides)
	return a.result(), a.problems
}

// Trace is Apply that says as well which places of the result are from the
// overrides, sorted by path.
func Trace(object map[string]any, hard *schema.Type, overrides ...*Override) (map[string]any, []Touched, document.Problems) {
	if len(overrides) == 0 {
		return object, nil, nil
	}
	a := newApplier(object, hard)
	a.trace = &tracer{}
	a.applyAll(overrides)
	return a.result(), a.trace.sorted(), a.problems
}

// applier applies overrides to one object.
type applier struct {
	object   map[string]any // the changed copy
	hard     *schema.Type
	secret   bool // a Secret, whose values are in no message
	work     int  // bytes that may still be looked at or written
	path     []any
	trace    *tracer // nil when nobody wants to know
	problems document.Problems
}

func newApplier(object map[string]any, hard *schema.Type) *applier {
	a := &applier{hard: hard, secret: config.MaySecretObject(object), work: maxWork}
	a.object = deepCopy(object).(map[string]any)
	return a
}

func (a *applier) result() map[string]any {
	if len(a.problems) > 0 {
		return nil
	}
	return a.object
}

func (a *applier) applyAll(overrides []*Override) {
	for _, o := range overrides {
		if o == nil {
			continue
		}
		if !a.apply(o) {
			return
		}
	}
}

// apply reports false when there is no use in going on.
func (a *applier) apply(o *Override) bool {
	before := a.fixed()
	patching := true
	for i := range o.operations {
		op := &o.operations[i]
		if op.verb == verbPatch && !patching {
			continue // the operations of a patch stand or fall together
		}
		a.path = a.path[:0]
		a.trace.begin(o.doc.At(op.at))
		err := a.operation(op)
		if a.work < 0 {
			a.problem(o, op, fmt.Errorf("the overrides of this object look at and write more than %d MiB", maxWork>>20))
			return false
		}
		if err != nil {
			patching = patching && op.verb != verbPatch
			a.problem(o, op, err)
			continue
		}
		now := a.fixed()
		for j, was := range before {
			if !reflect.DeepEqual(was, now[j]) {
				a.problem(o, op, errFixed(config.FixedFields[j]))
			}
		}
		before = now
	}
	return true
}

func (a *applier) problem(o *Override, op *operation, err error) {
	a.problems = append(a.problems, o.doc.Problem(op.at, document.CodeOverride, "%s: %s", o.place, err))
}

// errFixed is the message about a change of one of [config.FixedFields].
func errFixed(f config.Fixed) error {
	path := make([]any, len(f.Path))
	for i, name := range f.Path {
		path[i] = name
	}
	why := "an override cannot change which object it is"
	if f.Mark {
		why = "swell sets it on everything that it applies: an override cannot"
	}
	return fmt.Errorf("%s: %s", schema.PathText(path), why)
}

// fixed are the values of [config.FixedFields].
func (a *applier) fixed() []any {
	values := make([]any, len(config.FixedFields))
	for i, field := range config.FixedFields {
		var at any = a.object
		for _, name := range field.Path {
			m, _ := at.(map[string]any)
			at = m[name]
		}
		values[i] = at
	}
	return values
}

func (a *applier) operation(op *operation) error {
	if op.verb == verbPatch {
		return a.patch(op)
	}
	w := walk{applier: a, op: op}
	changed := w.descend(a.object, a.hard, 0)
	if w.err == nil && w.matched == 0 {
		return w.noMatch()
	}
	if w.err == nil {
		a.object = changed.(map[string]any)
	}
	return w.err
}

// spend takes from the work that may be done.
func (a *applier) spend(bytes int) bool {
	a.work -= bytes
	return a.work >= 0
}

// perValue is what one value costs besides its text, in bytes: about what a
// field with its name takes.
const perValue = 32

// copy is a deep copy of a value that is written into the object; nil when
// that is too much work.
func (a *applier) copy(value any) any {
	text, _ := value.(string)
	if !a.spend(perValue + len(text)) {
		return nil
	}
	switch v := value.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, item := range v {
			a.spend(len(key))
			m[key] = a.copy(item)
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, item := range v {
			l[i] = a.copy(item)
		}
		return l
	}
	return value
}

// exact is up to where a float64 holds every integer.
const exact = 1<<53 - 1

// view is a value as JMESPath sees it: all numbers are float64, but for integers
// that would lose digits.
func (a *applier) view(value any) any {
	text, _ := value.(string)
	if !a.spend(perValue + len(text)) {
		return nil
	}
	switch v := value.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, item := range v {
			m[key] = a.view(item)
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, item := range v {
			l[i] = a.view(item)
		}
		return l
	case int64:
		if v > exact || v < -exact {
			return v // equal to itself alone
		}
		return float64(v)
	}
	return value
}

func deepCopy(value any) any {
	switch v := value.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, item := range v {
			m[key] = deepCopy(item)
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, item := range v {
			l[i] = deepCopy(item)
		}
		return l
	}
	return value
}
