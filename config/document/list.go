// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// listSuffix ends the kinds of Kubernetes' lists: List, ConfigMapList and all
// others.
const listSuffix = "List"

var listFields = []string{"apiVersion", "items", "kind", "metadata"}

// IsList says whether a document stands for the objects in its items, as
// `kubectl get -o yaml` writes them. A kind that merely ends in "List" has no
// items of its own at the top.
func IsList(root *yaml.Node) bool {
	kind := TextAt(root, "kind")
	return kind == listSuffix || strings.HasSuffix(kind, listSuffix) && Lookup(root, "items") != nil
}

// listItems are the objects of a list, each with its own lines. What the
// list's metadata says is for API clients and is left out. A list in a list is
// a problem: no API server writes one.
func listItems(file string, root *yaml.Node) ([]*Document, Problems) {
	list := identified(file, root)
	items := Lookup(root, "items")
	switch {
	case items == nil:
		return nil, Problems{list.Problem(root, CodeDocument, "items: missing, a %s is made of objects", list.Kind)}
	case IsNull(items):
		return nil, nil
	case items.Kind != yaml.SequenceNode:
		return nil, Problems{list.Problem(items, CodeType, "items: want a list of objects")}
	}
	var docs []*Document
	var problems Problems
	for i := 0; i+1 < len(root.Content); i += 2 {
		if key := root.Content[i]; !slices.Contains(listFields, key.Value) {
			problems = append(problems, list.Problem(key, CodeUnknown, "%s: unknown field%s", Shorten(key.Value), DidYouMean(key.Value, listFields)))
		}
	}
	for _, item := range items.Content {
		if IsList(item) {
			problems = append(problems, list.Problem(item, CodeDocument, "a %s in a %s: write its items into the outer one", TextAt(item, "kind"), list.Kind))
			continue
		}
		if item.Kind != yaml.MappingNode {
			problems = append(problems, list.Problem(item, CodeDocument, "items: want an object with apiVersion and kind"))
			continue
		}
		doc, found := newDocument(file, item)
		problems = append(problems, found...)
		if doc != nil {
			docs = append(docs, doc)
		}
	}
	return docs, problems
}
