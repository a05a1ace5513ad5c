// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/swell-sh/swell/config/document"
)

// longestValue is in bytes: a longer one is cut in a line that has two values.
const longestValue = 120

// changedFields are the fields that two values do not have alike, each as "path: before -> now";
// nil stands for a value that is not there. Lists of mappings that all have a name are compared by
// it, and have one field more where those in both stand in another order; those as long as each
// other item by item, others as a whole.
func changedFields(before, now any) (fields []string) {
	compareFields("", before, now, func(path string, before, now any) {
		if path != "" {
			path += ": "
		}
		fields = append(fields, path+fieldText(before, now)+" -> "+fieldText(now, before))
	})
	return fields
}

func compareFields(path string, before, now any, differ func(path string, before, now any)) {
	if reflect.DeepEqual(before, now) {
		return
	}
	a, b := membersOf(before), membersOf(now)
	if items, others, isAlike := alikeLists(before, now); isAlike && a == nil && b == nil {
		for i := range items {
			compareFields(fmt.Sprintf("%s[%d]", path, i), items[i], others[i], differ)
		}
		return
	}
	if a == nil && b == nil || before != nil && a == nil || now != nil && b == nil || path != "" && (before == nil || now == nil) {
		differ(path, before, now)
		return
	}
	if order, newOrder := commonNames(before, b), commonNames(now, a); !reflect.DeepEqual(order, newOrder) {
		differ(path, order, newOrder)
	}
	_, isMapping := before.(map[string]any)
	if before == nil {
		_, isMapping = now.(map[string]any)
	}
	for _, key := range slices.Sorted(maps.Keys(merged(a, b))) {
		compareFields(fieldPath(path, key, isMapping), a[key], b[key], differ)
	}
}

// alikeLists are two lists of mappings, one as long as the other.
func alikeLists(before, now any) (items, others []any, isAlike bool) {
	items, isList := before.([]any)
	others, isOther := now.([]any)
	isNoMapping := func(item any) bool {
		_, isMapping := item.(map[string]any)
		return !isMapping
	}
	return items, others, isList && isOther && len(items) == len(others) && !slices.ContainsFunc(slices.Concat(items, others), isNoMapping)
}

// membersOf are the values of a mapping, or the items of a list by their names; nil for
// another value.
func membersOf(value any) map[string]any {
	list, isList := value.([]any)
	if !isList {
		mapping, _ := value.(map[string]any)
		return mapping
	}
	members := map[string]any{}
	for _, item := range list {
		mapping, _ := item.(map[string]any)
		name, _ := mapping["name"].(string)
		if members[name] != nil || name == "" {
			return nil
		}
		members[name] = item
	}
	return members
}

// commonNames are the names of the items of a list, in its order, that are among others; nil where
// the value is no list.
func commonNames(value any, others map[string]any) (names []any) {
	list, _ := value.([]any)
	for _, item := range list {
		mapping, _ := item.(map[string]any)
		if name, _ := mapping["name"].(string); others[name] != nil {
			names = append(names, name)
		}
	}
	return names
}

func fieldPath(path, key string, isMapping bool) string {
	key = document.Printable(document.Shorten(key))
	switch {
	case path == "": // of a mapping, since no document is a list
		return key
	case isMapping && !strings.ContainsAny(key, "./[]"):
		return path + "." + key
	}
	return path + "[" + key + "]"
}

// fieldText is a value in a line. Of a long list, what it begins and ends with as the other one does
// is left out.
func fieldText(value, other any) string {
	switch v := value.(type) {
	case nil:
		return "not set"
	case string:
		return document.Cut(document.Printable(v), longestValue)
	case []any:
		if text := jsonText(v); len(text) > longestValue/2 {
			value = withoutCommon(v, other)
		}
	}
	return document.Cut(jsonText(value), longestValue)
}

func withoutCommon(list []any, other any) []any {
	items, _ := other.([]any)
	first, last := 0, 0
	for first < min(len(list), len(items)) && reflect.DeepEqual(list[first], items[first]) {
		first++
	}
	for last < min(len(list), len(items))-first && reflect.DeepEqual(list[len(list)-1-last], items[len(items)-1-last]) {
		last++
	}
	short := slices.Clone(list[first : len(list)-last])
	if first > 0 {
		short = slices.Insert(short, 0, any("..."))
	}
	if last > 0 {
		short = append(short, "...")
	}
	return short
}

func jsonText(value any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Sprint(value)
	}
	return document.Printable(strings.TrimSuffix(b.String(), "\n"))
}

// plainOf is what a document has at a path, with what may be a secret hidden; nil where it has
// nothing, or is nil.
func plainOf(doc *document.Document, path ...string) any {
	if doc == nil {
		return nil
	}
	if node := lookupAll(doc.Node, path...); node != nil {
		return plainNode(doc, node)
	}
	return nil
}

// plainNode is a value of a document, with what may be a secret hidden.
func plainNode(doc *document.Document, node *yaml.Node) any {
	value, _ := doc.Plain(node) // whose problems were told
	var redactor Redactor
	redactor.AddPlaces(SecretPlaces(doc.Node, nil))
	return redactor.RedactValue(value)
}

// anyList is a list as documents have it.
func anyList(texts []string) any {
	if len(texts) == 0 {
		return nil
	}
	list := make([]any, len(texts))
	for i, text := range texts {
		list[i] = text
	}
	return list
}

// settings is the document Repository; nil where there is none.
func (r *Repository) settings() *document.Document {
	docs := r.Documents(SettingsFile)
	if len(docs) == 0 {
		return nil
	}
	return docs[0]
}

// policyDocuments are the documents of the folder of policies, by kind, namespace and name.
func (r *Repository) policyDocuments() map[string]any {
	all := map[string]any{}
	_ = fs.WalkDir(r.Tree, r.layout.policies, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !IsYAML(name) {
			return nil // what cannot be read is a problem of the snapshot
		}
		content, err := r.Tree.ReadFile(name)
		if err != nil {
			return nil
		}
		docs, _ := document.ReadDialect(name, content, document.Kubectl)
		for _, doc := range docs {
			value := plainNode(doc, doc.Node)
			root, _ := value.(map[string]any)
			metadata, _ := root["metadata"].(map[string]any)
			namespace, _ := metadata["namespace"].(string)
			all[doc.Kind+" "+document.Shorten(path.Join(namespace, doc.Name))] = value
		}
		return nil
	})
	return all
}

// rolloutDocument is that of a Rollout; nil where there is none.
func (r *Repository) rolloutDocument(name string) *document.Document {
	if i := slices.IndexFunc(r.rollouts, func(doc *document.Document) bool { return doc.Name == name }); i >= 0 {
		return r.rollouts[i]
	}
	return nil
}

func checkerDocument(checkers []*Checker, name string) *document.Document {
	if i := slices.IndexFunc(checkers, func(c *Checker) bool { return c.Name == name }); i >= 0 {
		return checkers[i].doc
	}
	return nil
}

// document is that of the tenant; nil for none.
func (t *Tenant) document() *document.Document {
	if t == nil {
		return nil
	}
	return t.doc
}

func (m *Mask) name() string { return m.Name }

// document is that of the mask; nil for none.
func (m *Mask) document() *document.Document {
	if m == nil {
		return nil
	}
	return m.doc
}

// where names the targets that are masked; nil for no mask.
func (m *Mask) where() *Where {
	if m == nil {
		return nil
	}
	return &m.Where
}

func (w *Window) name() string { return w.Name }

// document is that of the window; nil for none.
func (w *Window) document() *document.Document {
	if w == nil {
		return nil
	}
	return w.doc
}

// where names the targets that the window is about; nil for no window.
func (w *Window) where() *Where {
	if w == nil {
		return nil
	}
	return &w.Where
}
