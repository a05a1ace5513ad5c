// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package easy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/schema"
)

// CheckKeys finds, in a document and the message that was decoded from it, what
// an API server refuses in lists whose items are told apart by keys: an item
// without one, and two items with the same. Values are not in the problems,
// since they may be secret.
func (e *Schema) CheckKeys(doc *document.Document, message protoreflect.Message) document.Problems {
	if !e.keyed {
		return nil
	}
	c := keyCheck{easy: e, doc: doc}
	c.message(doc.Node, message)
	return c.problems.Sorted()
}

type keyCheck struct {
	easy     *Schema
	doc      *document.Document
	fields   []string // the path, without indexes and keys of maps
	path     []any    // with them
	problems document.Problems
}

func (c *keyCheck) problem(n *yaml.Node, code document.Code, format string, args ...any) {
	if len(c.problems) < document.MaxProblems {
		c.problems = append(c.problems, c.doc.Problem(n, code, "%s: %s", schema.PathText(c.path), fmt.Sprintf(format, args...)))
	}
}

// below runs a function one step further down.
func (c *keyCheck) below(step any, f func()) {
	c.path = append(c.path, step)
	f()
	c.path = c.path[:len(c.path)-1]
}

func (c *keyCheck) message(n *yaml.Node, m protoreflect.Message) {
	if n == nil || isWellKnown(m.Descriptor()) {
		return
	}
	for i := range m.Descriptor().Fields().Len() {
		f := m.Descriptor().Fields().Get(i)
		at := document.Lookup(n, string(f.Name()))
		if f.Message() == nil || at == nil || !m.Has(f) {
			continue
		}
		c.fields = append(c.fields, string(f.Name()))
		c.below(string(f.Name()), func() { c.field(at, f, m.Get(f)) })
		c.fields = c.fields[:len(c.fields)-1]
	}
}

func (c *keyCheck) field(n *yaml.Node, f protoreflect.FieldDescriptor, value protoreflect.Value) {
	switch {
	case f.IsMap() && f.MapValue().Message() != nil:
		var keys []protoreflect.MapKey
		value.Map().Range(func(key protoreflect.MapKey, _ protoreflect.Value) bool {
			keys = append(keys, key)
			return true
		})
		slices.SortFunc(keys, func(a, b protoreflect.MapKey) int { return strings.Compare(a.String(), b.String()) })
		for _, key := range keys {
			c.below(key.String(), func() { c.message(entry(n, key), value.Map().Get(key).Message()) })
		}
	case f.IsList():
		merge := c.easy.mergeAt(strings.Join(c.fields, "."), f, fieldOptionsOf(f), func(int) {})
		c.list(n, merge.keys, value.List())
	case !f.IsMap():
		c.message(n, value.Message())
	}
}

// entry is the value of a key in a mapping, where numbers may be written in
// other ways.
func entry(n *yaml.Node, key protoreflect.MapKey) *yaml.Node {
	if found := document.Lookup(n, key.String()); found != nil || n.Kind != yaml.MappingNode {
		return found
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if v, err := strconv.ParseInt(n.Content[i].Value, 0, 64); err == nil && strconv.FormatInt(v, 10) == key.String() {
			return n.Content[i+1]
		}
	}
	return nil
}

func (c *keyCheck) list(n *yaml.Node, keys []string, items protoreflect.List) {
	first := map[string]int{} // by the values of the keys
	for i := range min(items.Len(), len(n.Content)) {
		c.below(i, func() {
			item := items.Get(i).Message()
			if len(keys) > 0 && c.complete(n.Content[i], keys, item) {
				identity := identityOf(item, keys)
				if j, taken := first[identity]; taken {
					c.problem(n.Content[i], document.CodeDuplicate, "%s as in %s: each item of the list has its own", strings.Join(keys, " and "), schema.PathText(append(c.path[:len(c.path)-1:len(c.path)-1], j)))
				} else {
					first[identity] = i
				}
			}
			c.message(n.Content[i], item)
		})
	}
}

// complete says whether an item has all its keys, and reports those that it has
// not. An empty text is as good as none.
func (c *keyCheck) complete(n *yaml.Node, keys []string, item protoreflect.Message) bool {
	complete := true
	for _, key := range keys {
		at := document.Lookup(n, key)
		f := item.Descriptor().Fields().ByName(protoreflect.Name(key))
		switch {
		case f == nil: // a problem of the kind
		case at == nil || at.Tag == "!!null":
			if at == nil {
				at = n
			}
			c.below(key, func() { c.problem(at, document.CodeRule, "missing: the items of the list are told apart by it") })
			complete = false
		case itemKey(item, f) == "":
			c.below(key, func() {
				c.problem(at, document.CodeRule, "want a string that is not empty: the items of the list are told apart by it")
			})
			complete = false
		}
	}
	return complete
}

// identityOf is the same text for items with the same keys.
func identityOf(item protoreflect.Message, keys []string) string {
	var b strings.Builder
	for _, key := range keys {
		if f := item.Descriptor().Fields().ByName(protoreflect.Name(key)); f != nil {
			fmt.Fprintf(&b, "%q ", fmt.Sprint(itemKey(item, f)))
		}
	}
	return b.String()
}

// itemKey is the value of a key, or that in a wrapper.
func itemKey(item protoreflect.Message, f protoreflect.FieldDescriptor) any {
	value := item.Get(f)
	if inner := wrapped(f); inner != f {
		value = value.Message().Get(value.Message().Descriptor().Fields().ByName("value"))
	}
	return value.Interface()
}

// keyed adds to the schema of a list's items that they have their keys, where
// those are the same wherever the message is used.
func (w *jsonWriter) keyed(f protoreflect.FieldDescriptor, items map[string]any) map[string]any {
	if w.kind == nil {
		return items
	}
	options := fieldOptionsOf(f)
	dependsOnPath := slices.ContainsFunc(w.kind.names.patches, func(p fieldPatch) bool { return p.path != "" })
	if len(options.keys) == 0 && dependsOnPath {
		return items
	}
	keys := w.kind.mergeAt("", f, options, func(int) {}).keys
	if len(keys) == 0 {
		return items
	}
	properties := map[string]any{}
	for _, key := range keys {
		if field := f.Message().Fields().ByName(protoreflect.Name(key)); field != nil && form(field) == "text" {
			properties[key] = map[string]any{"minLength": uint64(1)}
		}
	}
	all := map[string]any{"allOf": []any{items}, "required": anyTexts(keys)}
	if len(properties) > 0 {
		all["properties"] = properties
	}
	return all
}
