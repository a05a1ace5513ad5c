// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// CEL leaves open in which order map(), filter() and the like visit the keys
// of a map, and cel-go visits them at random. Rendering must not: every macro
// goes over the sorted keys instead.

const orderedKeys = "@orderedKeys"

// orderedMacros are CEL's standard macros, which visit keys in order.
func orderedMacros() []cel.EnvOption {
	macros := make([]cel.Macro, len(cel.StandardMacros))
	for i, m := range cel.StandardMacros {
		if macros[i] = m; !m.IsReceiverStyle() {
			continue // has()
		}
		expand := m.Expander()
		macros[i] = cel.ReceiverMacro(m.Function(), m.ArgCount(), func(eh cel.MacroExprFactory, target ast.Expr, args []ast.Expr) (ast.Expr, *cel.Error) {
			return expand(eh, eh.NewCall(orderedKeys, target), args)
		})
	}
	k, v := cel.TypeParamType("K"), cel.TypeParamType("V")
	return []cel.EnvOption{
		cel.ClearMacros(),
		cel.Macros(macros...),
		cel.Function(orderedKeys,
			cel.Overload("ordered_keys_map", []*cel.Type{cel.MapType(k, v)}, cel.ListType(k)),
			cel.Overload("ordered_keys_list", []*cel.Type{cel.ListType(v)}, cel.ListType(v)),
			cel.SingletonUnaryBinding(orderKeys)),
	}
}

func orderKeys(v ref.Val) ref.Val {
	m, ok := v.(traits.Mapper)
	if !ok {
		return v // a list is in order
	}
	return types.NewRefValList(types.DefaultTypeAdapter, sortedKeys(m))
}

func sortedKeys(m traits.Mapper) []ref.Val {
	size, _ := m.Size().(types.Int)
	keys := make([]ref.Val, 0, int(size))
	for it := m.Iterator(); it.HasNext() == types.True; {
		keys = append(keys, it.Next())
	}
	sortKeys(keys)
	return keys
}

// sortKeys sorts the keys of a map by type and, within one, by value.
func sortKeys(keys []ref.Val) {
	slices.SortFunc(keys, func(a, b ref.Val) int {
		if byType := strings.Compare(a.Type().TypeName(), b.Type().TypeName()); byType != 0 {
			return byType
		}
		if comparer, ok := a.(traits.Comparer); ok {
			if order, ok := comparer.Compare(b).(types.Int); ok {
				return int(order)
			}
		}
		return strings.Compare(keyText(a), keyText(b))
	})
}

// keyText is a key of a map as it stands in JSON.
func keyText(key ref.Val) string {
	if text, ok := key.(types.String); ok {
		return string(text)
	}
	return fmt.Sprint(key.Value())
}
