// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// scope is the names bound while a spec is rendered.
type scope struct {
	self   ref.Val
	place  *Place
	names  []string // of let and each, as far as they are known by now
	values []ref.Val
}

var _ cel.Activation = (*scope)(nil)

func (s *scope) ResolveName(name string) (any, bool) {
	switch name {
	case "self":
		return s.self, true
	case "target":
		return s.place.target, true
	case "unit":
		return s.place.unit, true
	}
	for i, bound := range s.names {
		if bound == name {
			return s.values[i], true
		}
	}
	return nil, false
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
