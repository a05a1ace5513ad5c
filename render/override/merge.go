// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package override

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/swell-sh/swell/render/schema"
)

// merge lays value over base, which it may change. Mappings are merged, and nil
// in them removes a field. Lists are merged when their type has keys. The
// path of the applier leads to base.
func (a *applier) merge(base, value any, t *schema.Type) (any, error) {
	if !a.spend(perValue) {
		return base, nil
	}
	switch overlay := value.(type) {
	case map[string]any:
		return a.mergeMapping(base, overlay, t)
	case []any:
		if t != nil && t.Form == schema.List && len(t.Keys) > 0 {
			return a.mergeList(base, overlay, t)
		}
	}
	a.trace.set(a.path)
	return a.copy(value), nil
}

func (a *applier) mergeMapping(base any, overlay map[string]any, t *schema.Type) (any, error) {
	into, ok := base.(map[string]any)
	if !ok {
		into = make(map[string]any, len(overlay))
		a.trace.set(a.path)
	}
	var first error
	for _, key := range slices.Sorted(maps.Keys(overlay)) {
		if !a.spend(len(key)) {
			break
		}
		a.path = append(a.path, key)
		switch {
		case overlay[key] != nil:
			merged, err := a.merge(into[key], overlay[key], t.Field(key))
			into[key] = merged
			if first == nil {
				first = err
			}
		case into[key] != nil:
			a.trace.removed(a.path)
			fallthrough
		default:
			delete(into, key)
		}
		a.path = a.path[:len(a.path)-1]
	}
	return into, first
}

// mergeList merges items that have the same keys, and appends the others.
func (a *applier) mergeList(base any, overlay []any, t *schema.Type) (any, error) {
	items, ok := base.([]any)
	if !ok {
		a.trace.set(a.path)
	}
	index := make(map[string]int, len(items))
	for i, item := range items {
		a.spend(perValue)
		if key, ok := schema.ItemKey(t, item); ok {
			if _, seen := index[key]; !seen {
				index[key] = i
			}
		}
	}
	from := make(map[string]int, len(overlay))
	for j, item := range overlay {
		key, ok := schema.ItemKey(t, item)
		if !ok {
			return items, fmt.Errorf("value: item %d of %s has no %s, which tells the items of this list apart: use set to replace the list",
				j, schema.PathText(a.path), strings.Join(t.Keys, " and "))
		}
		if other, seen := from[key]; seen {
			return items, fmt.Errorf("value: items %d and %d of %s have the same %s", other, j, schema.PathText(a.path), strings.Join(t.Keys, " and "))
		}
		from[key] = j
		i, there := index[key]
		if !there {
			i = len(items)
			items = append(items, nil)
		}
		a.path = append(a.path, i)
		merged, err := a.merge(items[i], item, t.Elem)
		items[i] = merged
		a.path = a.path[:len(a.path)-1]
		if err != nil {
			return items, err
		}
	}
	if items == nil {
		items = []any{}
	}
	return items, nil
}
