// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package document

import "go.yaml.in/yaml/v3"

// Lookup finds the value of a key in a mapping; nil when there is none or n is
// no mapping.
func Lookup(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	return lookupContent(n.Content, key)
}

func lookupContent(content []*yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(content); i += 2 {
		if content[i].Value == key {
			return content[i+1]
		}
	}
	return nil
}

// TextAt is the text under a key; empty where there is none, or a value of another
// type.
func TextAt(n *yaml.Node, key string) string {
	if v := Lookup(n, key); v != nil && v.Kind == yaml.ScalarNode && v.Tag == "!!str" {
		return v.Value
	}
	return ""
}

// NodeAt is the deepest node on the path that exists; the key where there is
// one, since that is what people look for.
func NodeAt(n *yaml.Node, path []any) *yaml.Node {
	at := n
	for _, s := range path {
		var next, key *yaml.Node
		switch s := s.(type) {
		case string:
			for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
				if n.Content[i].Value == s {
					key, next = n.Content[i], n.Content[i+1]
				}
			}
		case int:
			if n.Kind == yaml.SequenceNode && s < len(n.Content) {
				next = n.Content[s]
				key = next
			}
		}
		if next == nil {
			return at
		}
		n, at = next, key
	}
	return at
}

// Deepest is the deepest node on the path that exists.
func (d *Document) Deepest(path ...any) *yaml.Node {
	n := d.Node
	for _, s := range path {
		var next *yaml.Node
		switch s := s.(type) {
		case string:
			next = Lookup(n, s)
		case int:
			if n.Kind == yaml.SequenceNode && s < len(n.Content) {
				next = n.Content[s]
			}
		}
		if next == nil {
			return n
		}
		n = next
	}
	return n
}

// PathOf is a path as people read it: spec.waves[0].match.
func PathOf(path ...any) string {
	steps := make([]step, len(path))
	for i, s := range path {
		if index, ok := s.(int); ok {
			steps[i] = step{index: index, item: true}
		} else {
			steps[i] = step{key: s.(string)}
		}
	}
	return pathText(steps)
}

// PositionOf is where the deepest node on the path that exists stands.
func (d *Document) PositionOf(path ...any) Position { return d.At(d.Deepest(path...)) }

// Resolved is what an alias stands for.
func Resolved(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}
