// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"fmt"
	"reflect"
	"slices"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/swell-sh/swell/config/bounds"
)

// facts is a mapping of `data` as CEL sees it. What is read of it is noted:
// single values one by one, mappings in it as being there, and the mapping as a
// whole by whatever looks at all of it.
type facts struct {
	*fact
	note func(path []string, there bool) // see [Inputs.Data]
}

var (
	_ traits.Mapper = (*facts)(nil)
	_ bounds.Plain  = (*facts)(nil)
)

// valueOf is a fact as a value of CEL. Lists are noted as a whole.
func (m *facts) valueOf(f *fact) ref.Val {
	if f.below != nil {
		if m.note != nil {
			m.note(f.path, true)
		}
		return &facts{f, m.note}
	}
	m.noted(f.path)
	return types.DefaultTypeAdapter.NativeToValue(f.value)
}

func (m *facts) noted(path []string) {
	if m.note != nil {
		m.note(path, false)
	}
}

// Plain is the whole mapping as plain values, which must not be changed.
func (m *facts) Plain() map[string]any {
	m.noted(m.path)
	mapping, _ := m.value.(map[string]any)
	return mapping
}

// Find implements [traits.Mapper].
func (m *facts) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return nil, false // every key is a text
	}
	f := m.below[string(name)]
	if f == nil {
		m.noted(append(slices.Clip(m.path), string(name))) // its absence was read
		return nil, false
	}
	return m.valueOf(f), true
}

// Get implements [traits.Indexer].
func (m *facts) Get(key ref.Val) ref.Val {
	value, ok := m.Find(key)
	if !ok {
		return types.NewErr("no such key: %v", key.Value())
	}
	return value
}

// Contains implements [traits.Container].
func (m *facts) Contains(key ref.Val) ref.Val {
	_, ok := m.Find(key)
	return types.Bool(ok)
}

// Size implements [traits.Sizer].
func (m *facts) Size() ref.Val {
	m.noted(m.path)
	return types.Int(len(m.keys))
}

// Iterator implements [traits.Iterable]. It goes over the keys in order.
func (m *facts) Iterator() traits.Iterator {
	m.noted(m.path)
	return types.DefaultTypeAdapter.NativeToValue(m.keys).(traits.Lister).Iterator()
}

// Equal implements [ref.Val].
func (m *facts) Equal(other ref.Val) ref.Val { return types.Equal(m.copied(), other) }

// copied is the mapping as CEL's own, noted as a whole.
func (m *facts) copied() ref.Val { return types.DefaultTypeAdapter.NativeToValue(m.Plain()) }

// ConvertToNative implements [ref.Val].
func (m *facts) ConvertToNative(to reflect.Type) (any, error) { return m.copied().ConvertToNative(to) }

// ConvertToType implements [ref.Val].
func (m *facts) ConvertToType(to ref.Type) ref.Val { return m.copied().ConvertToType(to) }

// Type implements [ref.Val].
func (m *facts) Type() ref.Type { return types.MapType }

// Value implements [ref.Val].
func (m *facts) Value() any { return m.Plain() }

func (m *facts) String() string { return fmt.Sprintf("data%v", m.path) }
