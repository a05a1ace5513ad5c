// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/swell-sh/swell/config"
)

// fieldStep is one step of a path into an object as a person writes it.
type fieldStep struct {
	text       string // as written
	name       string // of a field
	list       bool
	index      int    // of an item, when key is empty
	key, value string // of an item that has it
}

var (
	fieldName  = regexp.MustCompile(`^[^.\["]+`)
	fieldQuote = regexp.MustCompile(`^"(?:[^"\\]|\\.)*"`)
	itemFilter = regexp.MustCompile(`^\?\s*([A-Za-z_][A-Za-z0-9_]*)\s*==\s*(?:'([^']*)'|"([^"]*)"|` + "`([^`]*)`" + `)\s*$`)
	itemKey    = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*)=(.*)$`)
)

// parseField reads a path in one of the forms that swell prints or takes
// elsewhere: spec.containers[name=main].image as diff has it, [0] as check,
// [?name=='main'] as an override, /spec/containers/0/image as JSON Patch.
func parseField(text string) ([]fieldStep, error) {
	if strings.HasPrefix(text, "/") {
		return parsePointer(text), nil
	}
	var steps []fieldStep
	for rest := text; rest != ""; {
		s, length, err := parseFieldStep(rest)
		if err != nil {
			return nil, fmt.Errorf("field %q: %w", config.Shorten(text), err)
		}
		s.text = rest[:length]
		steps = append(steps, s)
		rest = rest[length:]
		if after, dotted := strings.CutPrefix(rest, "."); dotted && after == "" {
			return nil, fmt.Errorf("field %q: nothing after the last dot", config.Shorten(text))
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
		return fieldStep{}, 0, fmt.Errorf("want a name or [ at %q", config.Shorten(rest))
	}
	end := closing(rest)
	if end < 0 {
		return fieldStep{}, 0, fmt.Errorf("the [ is never closed at %q", config.Shorten(rest))
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
		return fieldStep{list: true, key: m[1], value: m[2] + m[3] + m[4]}, end + 1, nil
	}
	if m := itemKey.FindStringSubmatch(inner); m != nil {
		return fieldStep{list: true, key: m[1], value: m[2]}, end + 1, nil
	}
	if inner == "" || inner == "*" || inner[0] == '?' {
		return fieldStep{}, 0, fmt.Errorf("[%s]: want [0], [name=main] or [?name=='main']", inner)
	}
	return fieldStep{name: inner, index: -1}, end + 1, nil
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
	for _, s := range steps {
		switch v := object.(type) {
		case map[string]any:
			below, ok := v[s.name]
			if s.list || !ok {
				return nil, noField(path, s, slices.Collect(maps.Keys(v)))
			}
			path, object = append(path, s.name), below
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

func noField(path []any, s fieldStep, known []string) error {
	name, what := s.name, "field"
	at := plainPath(append(slices.Clip(path), s.name))
	if s.list || s.name == "" {
		name, what, at = cmp.Or(s.value, s.text), "item", plainPath(path)+s.text
	}
	return fmt.Errorf("%s: no such %s%s", at, what, config.DidYouMean(name, known))
}

// item is the index of the item that a step means; -1 when there is none.
func (s *fieldStep) item(items []any) int {
	switch {
	case s.key == "" && s.index < 0 && s.list:
		return s.index + len(items)
	case s.key == "":
		return s.index
	}
	return slices.IndexFunc(items, func(item any) bool {
		m, _ := item.(map[string]any)
		value, ok := m[s.key]
		return ok && fmt.Sprint(value) == s.value
	})
}

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
