// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/store"
)

// Ignored are the rules that hold for the object of an entry. A nil Ignored is
// no rules.
type Ignored func(store.Entry) []config.IgnoreRule

func (i Ignored) of(entry store.Entry) []pointer {
	if i == nil {
		return nil
	}
	return pointersFor(i(entry), entry.ID)
}

// pointer is a JSON pointer (RFC 6901), cut into its segments and unescaped. On
// a list a segment is an index, or "name=main", which stands for all items whose
// field "name" is "main".
type pointer []string

// pointersFor are the pointers of the rules that hold for the object.
func pointersFor(rules []config.IgnoreRule, id object.ID) []pointer {
	var pointers []pointer
	for _, rule := range rules {
		if rule.Kind != id.Kind || rule.Object != "" && rule.Object != id.Name {
			continue
		}
		for _, field := range rule.Fields {
			pointers = append(pointers, config.PointerSegments(field))
		}
	}
	return pointers
}

// below narrows pointers down to those whose first segment is the wanted one.
// whole is set when one of them ends there.
func below(pointers []pointer, wanted func(segment string) bool) (rest []pointer, whole bool) {
	for _, p := range pointers {
		switch {
		case !wanted(p[0]):
		case len(p) == 1:
			whole = true
		default:
			rest = append(rest, p[1:])
		}
	}
	return rest, whole
}

// without is decoded JSON less what the pointers lead to. It changes nothing: what
// stays as it is is shared with value.
func without(value any, pointers []pointer) any {
	if len(pointers) == 0 {
		return value
	}
	switch value := value.(type) {
	case map[string]any:
		kept := make(map[string]any, len(value))
		for key, child := range value {
			rest, whole := below(pointers, func(segment string) bool { return segment == key })
			if !whole {
				kept[key] = without(child, rest)
			}
		}
		return kept
	case []any:
		kept := make([]any, 0, len(value))
		for i, item := range value {
			rest, whole := below(pointers, func(segment string) bool { return segment == strconv.Itoa(i) || isItem(segment, item) })
			if !whole {
				kept = append(kept, without(item, rest))
			}
		}
		return kept
	}
	return value
}

// leave takes what the pointers lead to out of a live object.
func leave(live *unstructured.Unstructured, pointers []pointer) {
	live.Object = without(live.Object, pointers).(map[string]any)
}

// isItem says whether a segment like "name=main" means the item of a list.
func isItem(segment string, item any) bool {
	key, want, ok := strings.Cut(segment, "=")
	fields, isMap := item.(map[string]any)
	if !ok || !isMap || fields[key] == nil {
		return false
	}
	return fmt.Sprint(fields[key]) == want
}

// covers says whether a path of managed fields is what one of the pointers
// leads to, or lies below. value is the decoded object that the path belongs
// to; where it is nil, an index of a list means nothing.
func covers(pointers []pointer, path fieldpath.Path, value any) bool {
	for _, element := range path {
		index, child := childOf(value, element)
		rest, whole := below(pointers, func(segment string) bool {
			switch {
			case element.FieldName != nil:
				return segment == *element.FieldName
			case index >= 0 && segment == strconv.Itoa(index):
				return true
			}
			return isItem(segment, keyOf(element))
		})
		if whole {
			return true
		}
		if len(rest) == 0 {
			return false
		}
		pointers, value = rest, child
	}
	return false
}

// childOf is what a path element means in a decoded object, nil when it is not
// there, and its index, or -1 when it is no item of a list.
func childOf(value any, element fieldpath.PathElement) (int, any) {
	if element.FieldName != nil {
		fields, _ := value.(map[string]any)
		return -1, fields[*element.FieldName]
	}
	items, _ := value.([]any)
	index := slices.IndexFunc(items, func(item any) bool { return means(element, item) })
	if index < 0 {
		return -1, nil
	}
	return index, items[index]
}

// means says whether an item of a list is the one of the path element. A key
// that the item lacks was put there by the server's defaults.
func means(element fieldpath.PathElement, item any) bool {
	switch {
	case element.Value != nil:
		return fmt.Sprint((*element.Value).Unstructured()) == fmt.Sprint(item)
	case element.Key != nil:
		fields, ok := item.(map[string]any)
		if !ok {
			return false
		}
		for _, key := range *element.Key {
			if v, ok := fields[key.Name]; ok && fmt.Sprint(v) != fmt.Sprint(key.Value.Unstructured()) {
				return false
			}
		}
		return true
	}
	return false
}

// keyOf is the key of a list's item as decoded JSON.
func keyOf(element fieldpath.PathElement) any {
	if element.Key == nil {
		return nil
	}
	fields := map[string]any{}
	for _, key := range *element.Key {
		fields[key.Name] = key.Value.Unstructured()
	}
	return fields
}

// subset are the paths of a set that pick wants.
func subset(set *fieldpath.Set, pick func(fieldpath.Path) bool) *fieldpath.Set {
	found := fieldpath.NewSet()
	set.Iterate(func(path fieldpath.Path) {
		if pick(path) {
			found.Insert(path.Copy())
		}
	})
	return found
}

// scaledPointers lead to the fields that somebody holds through the scale
// subresource.
func scaledPointers(live *metav1.PartialObjectMetadata) (pointers []pointer) {
	for _, m := range otherManagers(live) {
		if m.Subresource != scaleSubresource {
			continue
		}
		m.fields.Leaves().Iterate(func(path fieldpath.Path) {
			p := make(pointer, 0, len(path))
			for _, element := range path {
				if element.FieldName == nil {
					return // the subresource has no lists
				}
				p = append(p, *element.FieldName)
			}
			pointers = append(pointers, p)
		})
	}
	return pointers
}
