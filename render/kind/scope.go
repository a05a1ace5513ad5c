// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"errors"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/swell-sh/swell/config/bounds"
)

// scope is the names bound while a spec is rendered, and what rendering it has
// taken.
type scope struct {
	self  ref.Val
	place *Place
	data  *Data
	bound []binding // by collect, let and each, as far as they are known by now
	*Budget
}

type binding struct {
	name  string
	value ref.Val
	// plain is the value converted, once it was asked for. The objects that
	// ask for it share it.
	plain     any
	converted bool
	size      conversion // what each of them adds to the spec's objects
}

var _ cel.Activation = (*scope)(nil)

func (s *scope) bind(name string, value ref.Val) {
	s.bound = append(s.bound, binding{name: name, value: value})
}

func (s *scope) ResolveName(name string) (any, bool) {
	switch name {
	case "self":
		return s.self, true
	case "target":
		return s.place.target, true
	case "unit":
		return s.place.unit, true
	case "data":
		return &facts{s.data.facts(), s.place.inputs.Data}, true
	case placeName:
		return s.place, true
	}
	for i := range s.bound {
		if s.bound[i].name == name {
			return s.bound[i].value, true
		}
	}
	return nil, false
}

// convert makes a plain value that goes into an object. All values of a spec
// on a target share one budget.
func (s *scope) convert(v ref.Val) (value any, present bool, err error) {
	value, present, err = s.made.plain(v)
	if errors.Is(err, bounds.ErrTooLarge) {
		err = errObjects
	}
	return value, present, err
}

// charge adds parts that objects share: each has them written out.
func (s *scope) charge(size conversion) error {
	if s.made.add(size); s.made.over() {
		return errObjects
	}
	return nil
}

// plain is what a name stands for, as plain values.
func (s *scope) plain(name string) (value any, present bool, err error) {
	for i := range s.bound {
		b := &s.bound[i]
		if b.name != name {
			continue
		}
		if b.converted {
			return b.plain, true, s.charge(b.size)
		}
		before := s.made
		value, present, err = s.convert(b.value)
		if present && err == nil {
			b.plain, b.converted = value, true
			b.size = conversion{nodes: s.made.nodes - before.nodes, bytes: s.made.bytes - before.bytes}
		}
		return value, present, err
	}
	value, _ = s.ResolveName(name)
	return s.convert(value.(ref.Val))
}

func (s *scope) Parent() cel.Activation { return nil }

// boundAdapter makes values of what swell binds itself.
var boundAdapter = sync.OnceValue(func() types.Adapter {
	registry, err := types.NewRegistry()
	if err == nil {
		err = registry.RegisterDescriptor(boundFile())
	}
	if err != nil {
		panic(err) // the file is part of the program
	}
	return registry
})
