// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/swell-sh/swell/render/object"
)

// Paths are those of [Fields], without the values.
func Paths(old, obj *object.Object) (paths []string) {
	if old.Version != obj.Version {
		paths = append(paths, "apiVersion")
	}
	c := comparer{func(path string, _, _ []byte) { paths = append(paths, path) }}
	c.compare("", old.JSON, obj.JSON)
	if redactor := old.Redactor(obj); !redactor.Empty() {
		for i, path := range paths {
			paths[i] = redactor.Redact(path)
		}
	}
	return paths
}

// comparer compares canonical JSON: no space, and keys of mappings in order. What is equal
// on both sides is passed over and not decoded.
type comparer struct {
	// differs takes a path and what each side has there; nothing where it has none.
	differs func(path string, from, to []byte)
}

func (c *comparer) compare(path string, from, to []byte) {
	switch {
	case bytes.Equal(from, to), isNull(from) && isNull(to):
	case kindOf(from) == '{' && kindOf(to) == '{':
		c.mappings(path, members(from), members(to))
	case kindOf(from) == '[' && kindOf(to) == '[':
		c.lists(path, items(from), items(to))
	default:
		c.differs(path, from, to)
	}
}

// isNull says whether there is no value.
func isNull(value []byte) bool { return len(value) == 0 || string(value) == "null" }

// kindOf is the first byte of a value; 0 for none.
func kindOf(value []byte) byte {
	if len(value) == 0 {
		return 0
	}
	return value[0]
}

func (c *comparer) mappings(path string, from, to []member) {
	for len(from)+len(to) > 0 {
		order := 0
		switch {
		case len(from) == 0:
			order = 1
		case len(to) == 0:
			order = -1
		default:
			order = strings.Compare(from[0].key, to[0].key)
		}
		var was, is []byte
		key := ""
		if order <= 0 {
			key, was, from = from[0].key, from[0].value, from[1:]
		}
		if order >= 0 {
			key, is, to = to[0].key, to[0].value, to[1:]
		}
		if !bytes.Equal(was, is) {
			c.compare(below(path, key), was, is)
		}
	}
}

// lists compares items by their name where all have one, else by index.
func (c *comparer) lists(path string, from, to [][]byte) {
	fromNames, ok1 := rawNames(from)
	toNames, ok2 := rawNames(to)
	item := func(items [][]byte, i int) []byte {
		if i < 0 || i >= len(items) {
			return nil
		}
		return items[i]
	}
	if !ok1 || !ok2 {
		for i := range max(len(from), len(to)) {
			c.compare(fmt.Sprintf("%s[%d]", path, i), item(from, i), item(to, i))
		}
		return
	}
	order := slices.Clone(fromNames)
	for _, name := range toNames {
		if !slices.Contains(order, name) {
			order = append(order, name)
		}
	}
	for _, name := range order {
		c.compare(fmt.Sprintf("%s[name=%s]", path, name), item(from, slices.Index(fromNames, name)), item(to, slices.Index(toNames, name)))
	}
}

// rawNames are the names of items; ok is false where one has none, or that of another.
func rawNames(items [][]byte) (names []string, ok bool) {
	for _, item := range items {
		if kindOf(item) != '{' {
			return nil, false
		}
		all := members(item)
		i := slices.IndexFunc(all, func(m member) bool { return m.key == "name" })
		if i < 0 || kindOf(all[i].value) != '"' {
			return nil, false
		}
		name := unquote(all[i].value)
		if slices.Contains(names, name) {
			return nil, false
		}
		names = append(names, name)
	}
	return names, true
}

// member is a key with its value as it is written.
type member struct {
	key   string
	value []byte
}

func members(mapping []byte) (all []member) {
	for rest := mapping[1:]; rest[0] == '"'; {
		n := valueEnd(rest)
		key := unquote(rest[:n])
		rest = rest[n+1:] // the colon
		n = valueEnd(rest)
		all = append(all, member{key, rest[:n]})
		if rest = rest[n:]; rest[0] == ',' {
			rest = rest[1:]
		}
	}
	return all
}

func items(list []byte) (all [][]byte) {
	for rest := list[1:]; rest[0] != ']'; {
		n := valueEnd(rest)
		all = append(all, rest[:n])
		if rest = rest[n:]; rest[0] == ',' {
			rest = rest[1:]
		}
	}
	return all
}

// valueEnd is the length of the value that text begins with.
func valueEnd(text []byte) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 { // after a number or a word
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ':':
			if depth == 0 {
				return i
			}
		}
	}
	return len(text)
}

func unquote(text []byte) string {
	if bytes.IndexByte(text, '\\') < 0 {
		return string(text[1 : len(text)-1])
	}
	var value string
	if err := json.Unmarshal(text, &value); err != nil {
		panic(err) // it is canonical JSON of our own
	}
	return value
}
