// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"net/url"
	"slices"
	"strings"
	gotemplate "text/template"

	"github.com/swell-sh/swell/config/bounds"
)

// meters are the functions that [meter] puts in.
func (r *templateRun) meters() gotemplate.FuncMap {
	return gotemplate.FuncMap{
		stepFunction:  func() (string, error) { return "", r.step(1) },
		enterFunction: r.enter,
		leaveFunction: func() string { r.depth--; return "" },
	}
}

// functions are what template files may call besides and, or, not, index,
// slice and len of Go. There is no clock, environment or chance among them.
// Those of Go that make or compare texts are replaced: each takes steps.
func (r *templateRun) functions() gotemplate.FuncMap {
	texts := func(f func(string) string) func(string) (string, error) {
		return func(s string) (string, error) { return r.made(f(s)) }
	}
	return gotemplate.FuncMap{
		"json":     func(x any) (string, error) { return r.made(string(appendJSON(nil, x))) },
		"yaml":     func(x any) (string, error) { return r.made(strings.TrimSuffix(string(appendYAML(nil, x)), "\n")) },
		"indent":   r.indent,
		"join":     r.join,
		"keys":     r.keys,
		"quote":    texts(func(s string) string { return string(appendQuoted(nil, s)) }),
		"lower":    texts(strings.ToLower),
		"upper":    texts(strings.ToUpper),
		"trim":     texts(strings.TrimSpace),
		"replace":  r.replace,
		"printf":   r.printf,
		"print":    r.printed(fmt.Sprint),
		"println":  r.printed(fmt.Sprintln),
		"html":     texts(gotemplate.HTMLEscapeString),
		"js":       texts(gotemplate.JSEscapeString),
		"urlquery": texts(url.QueryEscape),
		"eq":       r.equal,
		"ne":       func(a, b any) (bool, error) { same, err := r.equal(a, b); return !same, err },
		"lt":       func(a, b any) (bool, error) { order, err := r.compare(a, b); return order < 0, err },
		"le":       func(a, b any) (bool, error) { order, err := r.compare(a, b); return order <= 0, err },
		"gt":       func(a, b any) (bool, error) { order, err := r.compare(a, b); return order > 0, err },
		"ge":       func(a, b any) (bool, error) { order, err := r.compare(a, b); return order >= 0, err },
	}
}

// made is a text that a function made: long ones take steps.
func (r *templateRun) made(text string) (string, error) {
	if len(text) > bounds.Text {
		return "", bounds.ErrTooLarge
	}
	return text, r.step(len(text) >> 10)
}

func (r *templateRun) replace(old, by, text string) (string, error) {
	if len(text)+strings.Count(text, old)*(len(by)-len(old)) > bounds.Text {
		return "", bounds.ErrTooLarge
	}
	return r.made(strings.ReplaceAll(text, old, by))
}

func (r *templateRun) indent(spaces int, text string) (string, error) {
	if spaces < 0 || spaces > 100 {
		return "", fmt.Errorf("indent: want 0 to 100 spaces, got %d", spaces)
	}
	if len(text)+strings.Count(text, "\n")*spaces > bounds.Text {
		return "", bounds.ErrTooLarge
	}
	padding := strings.Repeat(" ", spaces)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = padding + line
		}
	}
	return r.made(strings.Join(lines, "\n"))
}

func (r *templateRun) join(separator string, list any) (string, error) {
	items, ok := list.([]any)
	if !ok {
		return "", fmt.Errorf("join: want a list, got %s", describe(list))
	}
	texts := make([]string, len(items))
	total := 0
	for i, item := range items {
		var err error
		if texts[i], err = text(item); err != nil {
			return "", fmt.Errorf("join: %w", err)
		}
		if total += len(texts[i]) + len(separator); total > bounds.Text {
			return "", bounds.ErrTooLarge
		}
	}
	return r.made(strings.Join(texts, separator))
}

func describe(value any) string {
	switch value.(type) {
	case map[string]any:
		return "a map"
	case nil:
		return "nothing"
	case string:
		return "a string"
	case []any:
		return "a list"
	case bool:
		return "a boolean"
	}
	return "a number"
}

// equal says whether the first value is one of the others.
func (r *templateRun) equal(a any, others ...any) (bool, error) {
	if len(others) == 0 {
		return false, errors.New("eq: want two values or more")
	}
	for _, b := range others {
		if a == nil || b == nil {
			if a == nil && b == nil {
				return true, nil
			}
			continue
		}
		if x, ok := a.(bool); ok {
			if y, ok := b.(bool); ok && x == y {
				return true, nil
			} else if ok {
				continue
			}
		}
		order, err := r.compare(a, b)
		if order == 0 || err != nil {
			return err == nil, err
		}
	}
	return false, nil
}

// compare orders two texts or two numbers.
func (r *templateRun) compare(a, b any) (int, error) {
	if x, ok := a.(string); ok {
		if y, ok := b.(string); ok {
			return strings.Compare(x, y), r.step(min(len(x), len(y)) >> 10)
		}
	}
	x, isNumber := number(a)
	y, areNumbers := number(b)
	if !isNumber || !areNumbers {
		return 0, fmt.Errorf("want two strings or two numbers to compare, got %s and %s", describe(a), describe(b))
	}
	return x.Cmp(y), nil
}

func number(value any) (*big.Float, bool) {
	switch v := value.(type) {
	case int:
		return big.NewFloat(0).SetInt64(int64(v)), true
	case int64:
		return big.NewFloat(0).SetInt64(v), true
	case float64:
		return big.NewFloat(v), !math.IsNaN(v)
	}
	return nil, false
}

func (r *templateRun) keys(mapping map[string]any) ([]any, error) {
	keys := make([]any, 0, len(mapping))
	for key := range mapping {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
	return keys, r.step(len(keys) / 64)
}
