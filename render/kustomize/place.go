// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config/document"
)

// node is a value of JSON as YAML, with the keys in order. Texts are quoted,
// so that no reader takes one for a number.
func node(value any) *yaml.Node {
	scalar := func(tag, text string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: text} }
	switch value := value.(type) {
	case map[string]any:
		n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			n.Content = append(n.Content, node(key), node(value[key]))
		}
		return n
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for _, item := range value {
			n.Content = append(n.Content, node(item))
		}
		return n
	case string:
		n := scalar("!!str", value)
		n.Style = yaml.DoubleQuotedStyle
		return n
	case json.Number:
		if strings.ContainsAny(value.String(), ".eE") {
			return scalar("!!float", value.String())
		}
		return scalar("!!int", value.String())
	case bool:
		return scalar("!!bool", strconv.FormatBool(value))
	}
	return scalar("!!null", "null")
}

// origin is the document that an object of the output began as: of the same
// kind, with its name or the longest part of it, as kustomize puts prefixes,
// suffixes and hashes around names. It is the kustomization when there is none
// or more than one such document.
func (c *closure) origin(doc *document.Document, root *kustomization) *document.Document {
	best, several := root.doc, false
	length := 0
	for _, candidate := range c.origins {
		if candidate.APIVersion != doc.APIVersion || candidate.Kind != doc.Kind || !strings.Contains(doc.Name, candidate.Name) {
			continue
		}
		switch n := len(candidate.Name); {
		case n > length:
			best, several, length = candidate, false, n
		case n == length && n > 0:
			several = true
		}
	}
	if several {
		return root.doc
	}
	return best
}

// place gives a node the lines of the same fields in another one; a field that
// is not there has those of the nearest one around it.
func place(n, at *yaml.Node) {
	n.Line, n.Column = at.Line, at.Column
	for i, child := range n.Content {
		switch {
		case n.Kind == yaml.SequenceNode && at.Kind == yaml.SequenceNode && i < len(at.Content):
			place(child, at.Content[i])
		case n.Kind == yaml.MappingNode && i%2 == 1:
			key, value := field(at, n.Content[i-1].Value)
			place(n.Content[i-1], key)
			place(child, value)
		case n.Kind == yaml.SequenceNode:
			place(child, &yaml.Node{Line: at.Line, Column: at.Column})
		}
	}
}

// field is a key of a mapping and its value; both stand for the mapping itself
// where it is not there.
func field(n *yaml.Node, name string) (key, value *yaml.Node) {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i], n.Content[i+1]
		}
	}
	around := &yaml.Node{Line: n.Line, Column: n.Column}
	return around, around
}
