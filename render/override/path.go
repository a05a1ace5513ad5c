// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package override

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/swell-sh/swell/config"
)

// step is one step of a path.
type step struct {
	kind  stepKind
	text  string // as written, for messages
	name  string // the field's, or the one that a filter looks at
	index int
	value string // that a filter wants
}

type stepKind int

const (
	byName stepKind = iota
	byIndex
	byFilter
)

var (
	namePart   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*`)
	quotedPart = regexp.MustCompile(`^"(?:[^"\\]|\\.)*"`)
	indexPart  = regexp.MustCompile(`^\[(-?[0-9]+)\]`)
	filterPart = regexp.MustCompile(`^\[\?\s*([A-Za-z_][A-Za-z0-9_-]*)\s*==\s*'([^']*)'\s*\]`)
)

func parsePath(text string) ([]step, error) {
	var steps []step
	rest := text
	for rest != "" {
		if len(steps) > 0 && rest[0] == '.' {
			rest = rest[1:]
		} else if len(steps) > 0 && rest[0] != '[' {
			return nil, fmt.Errorf("%q: want . or [ before %q", text, rest)
		}
		s, length, err := parseStep(rest)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", text, err)
		}
		steps = append(steps, s)
		rest = rest[length:]
	}
	if len(steps) == 0 {
		return nil, fmt.Errorf("empty: want a path like spec.replicas")
	}
	if steps[0].kind != byName {
		return nil, fmt.Errorf("%q: want a field's name first", text)
	}
	return steps, nil
}

func parseStep(rest string) (step, int, error) {
	if m := namePart.FindString(rest); m != "" {
		return step{kind: byName, text: m, name: m}, len(m), nil
	}
	if m := quotedPart.FindString(rest); m != "" {
		name, err := strconv.Unquote(m)
		if err == nil && name == "" {
			err = fmt.Errorf("want a name between the quotes at %q", rest)
		}
		return step{kind: byName, text: m, name: name}, len(m), err
	}
	if m := indexPart.FindStringSubmatch(rest); m != nil {
		i, err := strconv.Atoi(m[1])
		return step{kind: byIndex, text: m[0], index: i}, len(m[0]), err
	}
	if m := filterPart.FindStringSubmatch(rest); m != nil {
		return step{kind: byFilter, text: m[0], name: m[1], value: m[2]}, len(m[0]), nil
	}
	return step{}, 0, fmt.Errorf(`want a name, [index] or [?name=='value'] at %q`, rest)
}

// apply changes the object in place.
func (u *update) apply(object map[string]any) error {
	_, err := u.descend(object, 0)
	return err
}

// descend returns value with the update applied below it; the steps before
// depth have been taken.
func (u *update) descend(value any, depth int) (any, error) {
	if depth == len(u.path) {
		return merge(value, u.value), nil
	}
	s := u.path[depth]
	if s.kind == byName {
		return u.descendField(value, depth)
	}
	items, ok := value.([]any)
	if !ok {
		return nil, u.noMatch(depth, fmt.Sprintf("it is %s and no list", form(value)))
	}
	matched := false
	kept := make([]any, 0, len(items))
	for i, item := range items {
		if !s.picks(i, items) {
			kept = append(kept, item)
			continue
		}
		matched = true
		if u.removes(depth) {
			continue
		}
		changed, err := u.descend(item, depth+1)
		if err != nil {
			return nil, err
		}
		kept = append(kept, changed)
	}
	if !matched {
		return nil, u.noMatch(depth, fmt.Sprintf("the list there has %d items%s", len(items), u.itemNames(s, items)))
	}
	return kept, nil
}

// removes says whether the update takes away what the step at depth leads to.
func (u *update) removes(depth int) bool { return u.value == nil && depth == len(u.path)-1 }

func (u *update) descendField(value any, depth int) (any, error) {
	s := u.path[depth]
	m, ok := value.(map[string]any)
	if !ok {
		return nil, u.noMatch(depth, fmt.Sprintf("it is %s and no mapping", form(value)))
	}
	field, ok := m[s.name]
	if !ok && depth < len(u.path)-1 {
		return nil, u.noMatch(depth, "there is only "+strings.Join(slices.Sorted(maps.Keys(m)), ", ")+didYouMean(s.name, m))
	}
	if u.removes(depth) {
		delete(m, s.name)
		return m, nil
	}
	changed, err := u.descend(field, depth+1)
	if err != nil {
		return nil, err
	}
	m[s.name] = changed
	return m, nil
}

func didYouMean(name string, m map[string]any) string {
	if hint := config.DidYouMean(name, slices.Collect(maps.Keys(m))); strings.HasPrefix(hint, ", did you mean") {
		return hint
	}
	return ""
}

func (s step) picks(i int, items []any) bool {
	if s.kind == byIndex {
		return i == s.index || i == len(items)+s.index
	}
	m, ok := items[i].(map[string]any)
	return ok && m[s.name] == s.value
}

// itemNames lists the names that a filter could have picked. Other values are
// not shown: they may be a Secret's.
func (u *update) itemNames(s step, items []any) string {
	if s.kind != byFilter || s.name != "name" || u.path[0].name == "data" || u.path[0].name == "stringData" {
		return ""
	}
	var names []string
	for _, item := range items {
		if m, ok := item.(map[string]any); ok && m["name"] != nil {
			names = append(names, fmt.Sprint(m["name"]))
		}
	}
	return ", with name " + strings.Join(names, ", ")
}

// noMatch says how far the path led and what is there.
func (u *update) noMatch(depth int, what string) error {
	return fmt.Errorf("%q matches nothing: %s is there, but %s", pathText(u.path), orObject(pathText(u.path[:depth])), what)
}

func orObject(path string) string {
	if path == "" {
		return "the object"
	}
	return path
}

func pathText(path []step) string {
	var b strings.Builder
	for i, s := range path {
		if i > 0 && s.kind == byName {
			b.WriteByte('.')
		}
		b.WriteString(s.text)
	}
	return b.String()
}

// form says what a value is. It never shows it: it may be a Secret's.
func form(value any) string {
	switch value.(type) {
	case map[string]any:
		return "a mapping"
	case []any:
		return "a list"
	case nil:
		return "nothing"
	case string:
		return "a text"
	case bool:
		return "true or false"
	}
	return "a number"
}
