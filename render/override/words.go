// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package override

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/schema"
)

// noMatch says how far the path led and what is there.
func (w *walk) noMatch() error {
	p := w.op.path
	return fmt.Errorf("%q matches nothing: %s is there, but %s", p.text(w.secret), orObject(p[:w.miss.depth].text(w.secret)), w.miss.what)
}

func orObject(path string) string {
	if path == "" {
		return "the object"
	}
	return path
}

// noField says what a mapping has instead of a field.
func (w *walk) noField(name string, m map[string]any, t *schema.Type, depth int) string {
	if t != nil && t.Fields[name] != nil && w.op.verb != verbRemove && w.op.value != nil {
		return fmt.Sprintf("it has no %s yet: update %s with a value of {%s: ...}", name, orObject(w.op.path[:depth].text(w.secret)), name)
	}
	return onlyThese(name, m)
}

func onlyThese(name string, m map[string]any) string {
	names := present(m)
	if len(names) == 0 {
		return "it is empty"
	}
	text := "there is only " + few(names)
	if hint := document.DidYouMean(name, names); strings.HasPrefix(hint, ", did you mean") {
		text += hint
	}
	return text
}

// present are the names of the fields that are there, sorted.
func present(m map[string]any) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(m)), func(name string) bool { return m[name] == nil })
}

// few is a list of names of which only the first are shown when they are many.
func few(names []string) string {
	const most = 12
	shown := make([]string, len(names))
	for i, name := range names {
		shown[i] = document.Shorten(name)
	}
	return document.Some(shown, most)
}

// itemNames lists what tells the items of a list apart: their first key, or
// their names. For a Secret it is empty.
func (w *walk) itemNames(items []any, t *schema.Type) string {
	if w.secret {
		return ""
	}
	key := "name"
	if t != nil && len(t.Keys) > 0 {
		key = t.Keys[0]
	}
	var names []string
	for _, item := range items {
		if m, ok := item.(map[string]any); ok && m[key] != nil {
			names = append(names, fmt.Sprint(m[key]))
		}
	}
	if names == nil {
		return ""
	}
	return ", with " + key + " " + few(names)
}

// form says what a value is. It never shows it: it may be a Secret's.
func form(value any) string {
	switch value.(type) {
	case map[string]any:
		return "a map"
	case []any:
		return "a list"
	case nil:
		return "nothing"
	case string:
		return "a string"
	case bool:
		return "true or false"
	}
	return "a number"
}
