// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/swell-sh/swell/config/document"
)

// fieldStep is one step of a path into an object as a person writes it.
type fieldStep struct {
	text    string // as written
	name    string // of a field
	list    bool
	index   int // of an item, when key is empty
	keys    []itemKey
	value   string // of an item that is itself a value
	isValue bool
}

// itemKey is a field by which an item of a list is known, and its value.
type itemKey struct{ name, value string }

var (
	fieldName  = regexp.MustCompile(`^[^.\["]+`)
	fieldQuote = regexp.MustCompile(`^"(?:[^"\\]|\\.)*"`)
	itemFilter = regexp.MustCompile(`^\?\s*([A-Za-z_][A-Za-z0-9_]*)\s*==\s*(?:'([^']*)'|"([^"]*)"|` + "`([^`]*)`" + `)\s*$`)
	itemField  = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*)=("(?:[^"\\]|\\.)*"|[^,]*)(?:,|$)`)
	itemValue  = regexp.MustCompile(`^=("(?:[^"\\]|\\.)*"|.*)$`)
)

// parseField reads a path in one of the forms that swell prints or takes
// elsewhere: spec.containers[name=main].image as diff has it, [0] as check,
// [?name=='main'] as an override, /spec/containers/0/image as JSON Patch, and
// .spec.ports[port=80,protocol="TCP"].name or .metadata.finalizers[="x"] as drift
// and history have it from the server's managed fields.
func parseField(text string) ([]fieldStep, error) {
	if strings.HasPrefix(text, "/") {
		return parsePointer(text), nil
	}
	text = strings.TrimPrefix(text, ".")
	var steps []fieldStep
	for rest := text; rest != ""; {
		s, length, err := parseFieldStep(rest)
		if err != nil {
			return nil, fmt.Errorf("field %q: %w", document.Shorten(text), err)
		}
		s.text = rest[:length]
		steps = append(steps, s)
		rest = rest[length:]
		if after, dotted := strings.CutPrefix(rest, "."); dotted && after == "" {
			return nil, fmt.Errorf("field %q: nothing after the last dot", document.Shorten(text))
		} else if dotted {
			rest = after
		}
	}
	if len(steps) == 0 {
		return nil, fmt.Errorf("field %q: want a path like spec.replicas", text)
	}
	return steps, nil
}

func parsePointer(text string) []fieldStep {
	var steps []fieldStep
	for part := range strings.SplitSeq(text[1:], "/") {
		s := fieldStep{text: part, name: strings.NewReplacer("~1", "/", "~0", "~").Replace(part)}
		if i, err := strconv.Atoi(part); err == nil {
			s.index = i
		} else {
			s.index = -1
		}
		steps = append(steps, s)
	}
	return steps
}

func parseFieldStep(rest string) (fieldStep, int, error) {
	if m := fieldName.FindString(rest); m != "" {
		return fieldStep{name: m, index: -1}, len(m), nil
	}
	if m := fieldQuote.FindString(rest); m != "" {
		s := fieldStep{index: -1}
		return s, len(m), json.Unmarshal([]byte(m), &s.name)
	}
	if rest[0] != '[' {
		return fieldStep{}, 0, fmt.Errorf("want a name or [ at %q", document.Shorten(rest))
	}
	end := closing(rest)
	if end < 0 {
		return fieldStep{}, 0, fmt.Errorf("the [ is never closed at %q", document.Shorten(rest))
	}
	inner := rest[1:end]
	if i, err := strconv.Atoi(inner); err == nil {
		return fieldStep{list: true, index: i}, end + 1, nil
	}
	if m := fieldQuote.FindString(inner); m != "" && m == inner {
		s := fieldStep{index: -1}
		return s, end + 1, json.Unmarshal([]byte(m), &s.name)
	}
	if m := itemFilter.FindStringSubmatch(inner); m != nil {
		return fieldStep{list: true, keys: []itemKey{{m[1], m[2] + m[3] + m[4]}}}, end + 1, nil
	}
	if m := itemValue.FindStringSubmatch(inner); m != nil {
		return fieldStep{list: true, isValue: true, value: unquoted(m[1])}, end + 1, nil
	}
	if keys := itemKeys(inner); keys != nil {
		return fieldStep{list: true, keys: keys}, end + 1, nil
	}
	if inner == "" || inner == "*" || inner[0] == '?' {
		return fieldStep{}, 0, fmt.Errorf("[%s]: want [0], [name=main] or [?name=='main']", inner)
	}
	return fieldStep{name: inner, index: -1}, end + 1, nil
}

// itemKeys reads name="main", or port=80,protocol=TCP; nil where the text is none.
func itemKeys(text string) []itemKey {
	var keys []itemKey
	for text != "" {
		m := itemField.FindStringSubmatch(text)
		if m == nil {
			return nil
		}
		keys = append(keys, itemKey{m[1], unquoted(m[2])})
		text = text[len(m[0]):]
	}
	return keys
}

// unquoted is a JSON string's value, or the text as it is.
func unquoted(text string) string {
	var value string
	if strings.HasPrefix(text, `"`) && json.Unmarshal([]byte(text), &value) == nil {
		return value
	}
	return text
}

// closing is the ] that ends the [ at the start, past quotes; -1 when none does.
func closing(text string) int {
	var quote byte
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0 && c == '\\':
			i++
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\'' || c == '`'):
			quote = c
		case quote == 0 && c == ']':
			return i
		}
	}
	return -1
}

// findField finds what the steps lead to in an object. The error tells what is
// there instead.
func findField(object any, steps []fieldStep) (path []any, err error) {
	for len(steps) > 0 {
		s := steps[0]
		steps = steps[1:]
		switch v := object.(type) {
		case map[string]any:
			name, more := dottedName(v, s, steps)
			below, ok := v[name]
			if s.list || !ok {
				return nil, noField(path, s, slices.Collect(maps.Keys(v)))
			}
			path, object, steps = append(path, name), below, steps[more:]
		case []any:
			j := s.item(v)
			if j < 0 || j >= len(v) {
				return nil, noField(path, s, itemNames(v))
			}
			path, object = append(path, j), v[j]
		default:
			return nil, fmt.Errorf("%s: no such field, %s holds no fields", plainPath(append(slices.Clip(path), s.text)), plainPath(path))
		}
	}
	return path, nil
}

// dottedName is the field that a step and the ones after it name together, and
// how many of those it takes: managed fields write .metadata.labels.example.com/x.
func dottedName(object map[string]any, s fieldStep, after []fieldStep) (name string, more int) {
	name = s.name
	for more = 0; ; more++ {
		if _, ok := object[name]; ok {
			return name, more
		}
		if more == len(after) || after[more].list {
			return s.name, 0
		}
		name += "." + after[more].name
	}
}

func noField(path []any, s fieldStep, known []string) error {
	name, what := s.name, "field"
	at := plainPath(append(slices.Clip(path), s.name))
	if s.list || s.name == "" {
		name, what, at = s.text, "item", plainPath(path)+s.text
		switch {
		case s.isValue:
			name = s.value
		case len(s.keys) == 1:
			name = s.keys[0].value
		}
	}
	return fmt.Errorf("%s: no such %s%s", at, what, document.DidYouMean(name, known))
}

// item is the index of the item that a step means; -1 when there is none.
func (s *fieldStep) item(items []any) int {
	switch {
	case s.isValue:
		return slices.IndexFunc(items, func(item any) bool { return fmt.Sprint(item) == s.value })
	case len(s.keys) == 0 && s.index < 0 && s.list:
		return s.index + len(items)
	case len(s.keys) == 0:
		return s.index
	}
	return slices.IndexFunc(items, func(item any) bool {
		m, _ := item.(map[string]any)
		return !slices.ContainsFunc(s.keys, func(key itemKey) bool {
			value, ok := m[key.name]
			return !ok && !isDefaultKey(key) || ok && fmt.Sprint(value) != key.value
		})
	})
}

// isDefaultKey says whether the server sets a key of an item that does not say it:
// it names items by that, and the object in Git does not have it.
func isDefaultKey(key itemKey) bool { return key.name == "protocol" && key.value == "TCP" }

func itemNames(items []any) []string {
	var names []string
	for i, item := range items {
		m, _ := item.(map[string]any)
		if name, ok := m["name"].(string); ok {
			names = append(names, name)
		} else {
			names = append(names, strconv.Itoa(i))
		}
	}
	return names
}

// fieldText is a path as diff writes it: items by their name where all have
// one of their own, else by index.
func fieldText(object any, path []any) string {
	var b strings.Builder
	for i, s := range path {
		switch v := object.(type) {
		case map[string]any:
			writeName(&b, s, i == 0)
			object = v[fmt.Sprint(s)]
		case []any:
			j, _ := s.(int)
			if names, ok := distinctNames(v); ok {
				fmt.Fprintf(&b, "[name=%s]", names[j])
			} else {
				fmt.Fprintf(&b, "[%d]", j)
			}
			object = v[j]
		}
	}
	return b.String()
}

func plainPath(path []any) string {
	var b strings.Builder
	for i, s := range path {
		if j, ok := s.(int); ok {
			fmt.Fprintf(&b, "[%d]", j)
		} else {
			writeName(&b, s, i == 0)
		}
	}
	return b.String()
}

func writeName(b *strings.Builder, s any, first bool) {
	name := fmt.Sprint(s)
	switch {
	case strings.ContainsAny(name, `./[]"`):
		fmt.Fprintf(b, "[%q]", name)
	case first:
		b.WriteString(name)
	default:
		b.WriteString("." + name)
	}
}

func distinctNames(items []any) ([]string, bool) {
	names := make([]string, len(items))
	for i, item := range items {
		m, _ := item.(map[string]any)
		name, ok := m["name"].(string)
		if !ok || slices.Contains(names[:i], name) {
			return nil, false
		}
		names[i] = name
	}
	return names, true
}
