// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config/document"
)

// few is the number of items up to which each is compared with each; more are
// compared by their text.
const few = 16

// keyed finds items of a keyed list that share their keys, and such as lack
// one, which server-side apply refuses.
func (c *checker) keyed(t *Type, l []any) {
	var seen map[string]int
	if len(l) > few {
		seen = make(map[string]int, len(l))
	}
	for i, item := range l {
		m, ok := item.(map[string]any)
		if !ok || !c.hasKeys(t, i, m) {
			continue
		}
		first := -1
		if seen != nil {
			text := keyJSON(t, m)
			if j, ok := seen[text]; ok {
				first = j
			} else {
				seen[text] = i
			}
		} else {
			first = slices.IndexFunc(l[:i], func(other any) bool {
				o, ok := other.(map[string]any)
				return ok && sameKeys(t, o, m)
			})
		}
		if first >= 0 {
			c.violationBelow(step{index: i, isIndex: true}, document.CodeDuplicate, "same %s as item %d", keyText(t, m, !c.secret), first)
		}
	}
}

// hasKeys says whether an item has all of its keys, or defaults of them.
func (c *checker) hasKeys(t *Type, i int, m map[string]any) bool {
	for _, key := range t.Keys {
		if keyValue(t, m, key) != nil {
			continue
		}
		if !slices.Contains(t.Elem.Required, key) {
			c.violationBelow(step{index: i, isIndex: true}, document.CodeObject, "%s: missing, it tells the items of this list apart", key)
			c.found[len(c.found)-1].Missing = key
		}
		return false
	}
	return true
}

func keyValue(t *Type, m map[string]any, key string) any {
	if value := m[key]; value != nil {
		return value
	}
	if field := t.Elem.Fields[key]; field != nil {
		return field.Default
	}
	return nil
}

func sameKeys(t *Type, a, b map[string]any) bool {
	for _, key := range t.Keys {
		if x := keyValue(t, a, key); x == nil || !equal(x, keyValue(t, b, key)) {
			return false
		}
	}
	return true
}

func keyJSON(t *Type, m map[string]any) string {
	values := make([]any, len(t.Keys))
	for i, key := range t.Keys {
		values[i] = keyValue(t, m, key)
	}
	return string(AppendJSON(nil, values))
}

func keyText(t *Type, m map[string]any, values bool) string {
	parts := make([]string, len(t.Keys))
	for i, key := range t.Keys {
		if parts[i] = key; values {
			parts[i] += fmt.Sprintf(" %v", keyValue(t, m, key))
		}
	}
	return strings.Join(parts, ", ")
}

// ItemKey is what tells an item of a keyed list apart, as text: "name main".
// ok is false for an item without all of the keys.
func ItemKey(t *Type, item any) (key string, ok bool) {
	m, ok := item.(map[string]any)
	for _, key := range t.Keys {
		// A required field may have a default in Kubernetes' documents too,
		// which is the zero of Go and means nothing.
		ok = ok && keyValue(t, m, key) != nil && (m[key] != nil || !slices.Contains(t.Elem.Required, key))
	}
	if !ok {
		return "", false
	}
	return keyText(t, m, true), true
}

// unique finds items that are equal to an earlier one.
func (c *checker) unique(l []any) {
	if len(l) <= few {
		for i, item := range l {
			first := slices.IndexFunc(l[:i], func(other any) bool { return equal(item, other) })
			c.repeated(i, first)
		}
		return
	}
	seen := make(map[string]int, len(l))
	for i, item := range l {
		text := string(AppendJSON(nil, item))
		if first, ok := seen[text]; ok {
			c.repeated(i, first)
			continue
		}
		seen[text] = i
	}
}

func (c *checker) repeated(i, first int) {
	if first >= 0 {
		c.violationBelow(step{index: i, isIndex: true}, document.CodeDuplicate, "same as item %d", first)
	}
}

// equal compares as JSON does: 1 and 1.0 are the same number.
func equal(a, b any) bool {
	switch a := a.(type) {
	case string:
		b, ok := b.(string)
		return ok && a == b
	case bool:
		b, ok := b.(bool)
		return ok && a == b
	case nil:
		return b == nil
	case int64:
		switch b := b.(type) {
		case int64:
			return a == b
		case float64:
			return float64(a) == b
		}
	case float64:
		switch b := b.(type) {
		case int64:
			return a == float64(b)
		case float64:
			return a == b
		}
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, equal)
	}
	return false
}
