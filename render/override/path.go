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

// step is one step of a path: a name, an index or a filter.
type step struct {
	text   string // as written, for messages
	name   string
	index  *int
	filter *filter
}

type filter struct{ name, value string }

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
	if steps[0].name == "" {
		return nil, fmt.Errorf("%q: want a field's name first", text)
	}
	return steps, nil
}

func parseStep(rest string) (step, int, error) {
	if m := namePart.FindString(rest); m != "" {
		return step{text: m, name: m}, len(m), nil
	}
	if m := quotedPart.FindString(rest); m != "" {
		name, err := strconv.Unquote(m)
		return step{text: m, name: name}, len(m), err
	}
	if m := indexPart.FindStringSubmatch(rest); m != nil {
		i, err := strconv.Atoi(m[1])
		return step{text: m[0], index: &i}, len(m[0]), err
	}
	if m := filterPart.FindStringSubmatch(rest); m != nil {
		return step{text: m[0], filter: &filter{m[1], m[2]}}, len(m[0]), nil
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
	if s.name != "" {
		return u.descendField(value, depth)
	}
	items, ok := value.([]any)
	if !ok {
		return nil, u.noMatch(depth, fmt.Sprintf("it is %s and no list", form(value)))
	}
	matched := false
	for i := range items {
		if !s.picks(i, items) {
			continue
		}
		matched = true
		changed, err := u.descend(items[i], depth+1)
		if err != nil {
			return nil, err
		}
		items[i] = changed
	}
	if !matched {
		return nil, u.noMatch(depth, fmt.Sprintf("the list there has %d items%s", len(items), u.itemNames(s, items)))
	}
	return items, nil
}

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
	if u.value == nil && depth == len(u.path)-1 {
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
	if s.index != nil {
		return i == *s.index || i == len(items)+*s.index
	}
	m, ok := items[i].(map[string]any)
	return ok && m[s.filter.name] == s.filter.value
}

// itemNames lists what a filter could have picked.
func (u *update) itemNames(s step, items []any) string {
	if s.filter == nil {
		return ""
	}
	var names []string
	for _, item := range items {
		if m, ok := item.(map[string]any); ok && m[s.filter.name] != nil {
			names = append(names, fmt.Sprint(m[s.filter.name]))
		}
	}
	return fmt.Sprintf(", with %s %s", s.filter.name, strings.Join(names, ", "))
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
		if i > 0 && s.name != "" {
			b.WriteByte('.')
		}
		b.WriteString(s.text)
	}
	return b.String()
}

func form(value any) string {
	switch value.(type) {
	case map[string]any:
		return "a mapping"
	case []any:
		return "a list"
	case nil:
		return "nothing"
	}
	return fmt.Sprintf("%v", value)
}
