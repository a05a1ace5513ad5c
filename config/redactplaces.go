// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/config/sops"
)

// AddPlaces adds the texts of places that may be secrets. Values that are
// hidden only because their kind is unknown are left out, but for credentials in them. So are
// values in the place of a path: only one message is about them, and it does not show them.
func (r *Redactor) AddPlaces(places []SecretPlace) {
	for _, p := range places {
		if p.Key != nil {
			r.AddText(p.Key.Value)
		}
		r.addCredentialsBelow(p.Node, 0)
		switch p.why {
		case secretObject:
			r.addObject(p.Node)
		case secretText:
			r.addText(p.Node.Value)
		case secretField:
			r.addBelow(p.Node, 0)
		case secretMap:
			r.addBelow(p.Node, 0)
			for _, key := range p.OwnKeys() {
				r.addOwnKey(key.Value)
			}
		case secretValues:
			r.addNamed(p.Node, 0)
		case secretOverride:
			r.addChanges(p.Node, 0)
		case secretSource:
			r.addSources(p.Node)
		}
	}
}

// KnowNames takes what a document names for words of messages: its keys outside of the places that
// may be secrets, its kind, and the object's name and namespace.
func (r *Redactor) KnowNames(root *yaml.Node, places []SecretPlace) {
	hidden := map[*yaml.Node]bool{}
	for _, p := range places {
		hidden[p.Node] = true
	}
	metadata := document.Lookup(root, "metadata")
	for _, n := range []*yaml.Node{document.Lookup(root, "apiVersion"), document.Lookup(root, "kind"), document.Lookup(metadata,
		"name"), document.Lookup(metadata, "namespace")} {
		r.knowName(textOf(n))
	}
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		if hidden[n] {
			return
		}
		for i, child := range n.Content {
			if n.Kind != yaml.MappingNode || i%2 == 1 {
				walk(child)
			} else if !hidden[document.Resolved(n.Content[i+1])] {
				r.knowName(child.Value)
			}
		}
	}
	walk(root)
}

// knowName knows a name that is no value in the wrong place.
func (r *Redactor) knowName(name string) {
	if !slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return !document.PlainKey(part) }) {
		r.Know(name)
	}
}

// addObject adds what a Secret holds, or the value of an operation.
func (r *Redactor) addObject(n *yaml.Node) {
	metadata := sops.MetadataIn(n)
	for i := 0; i+1 < len(n.Content); i += 2 {
		if metadata != nil && n.Content[i+1] == metadata {
			continue
		}
		switch key, value := n.Content[i].Value, document.Resolved(n.Content[i+1]); key {
		case "apiVersion", "kind", "type", "immutable", "op", "path", "from":
		case "metadata":
			r.addBelow(document.Lookup(value, "annotations"), 0)
		default:
			r.addKey(n.Content[i], value)
			r.addBelow(value, 0)
		}
	}
}

// secretFields are the fields of a Secret.
var secretFields = []string{"apiVersion", "kind", "metadata", "type", "immutable", "data", "stringData"}

// UnknownInSecret says whether a key at the root of a Secret is no field of it, and not nearly one: it may
// be a value in the wrong place.
func UnknownInSecret(key string) bool {
	return !slices.ContainsFunc(secretFields, func(field string) bool { return key == field || document.IsNear(key, field) })
}

// addOwnKey adds a key that somebody made up, where it tells more than a word does: `user`
// stands in every message.
func (r *Redactor) addOwnKey(key string) {
	if !isOrdinary(lower(key)) && !CommonWords(key) {
		r.Add(behindColon(key))
	}
}

// addCredentialsBelow adds the credentials in texts at and below a node.
func (r *Redactor) addCredentialsBelow(n *yaml.Node, depth int) {
	if n = document.Resolved(n); depth > document.MaxDepth {
		return
	}
	r.AddText(textOf(n))
	for _, child := range n.Content {
		r.addCredentialsBelow(child, depth+1)
	}
}

// addBelow adds all scalars at and below a node, and keys that are no names.
func (r *Redactor) addBelow(n *yaml.Node, depth int) {
	if n == nil || depth > document.MaxDepth {
		return
	}
	switch n = document.Resolved(n); n.Kind {
	case yaml.ScalarNode:
		if n.Tag != "!!null" && n.Tag != "!!bool" {
			r.Add(n.Value)
		}
	case yaml.SequenceNode:
		for _, item := range n.Content {
			r.addBelow(item, depth+1)
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			r.addKey(n.Content[i], n.Content[i+1])
			r.addBelow(n.Content[i+1], depth+1)
		}
	}
}

// addKey adds a key that may be a value: of other characters than names, or
// without a value of its own.
func (r *Redactor) addKey(key, value *yaml.Node) {
	switch {
	case key.Kind != yaml.ScalarNode:
		r.addBelow(key, 0)
	case isCommonKey(key.Value) && !document.IsNull(value):
	case strings.HasPrefix(key.Value, KeyPrefix):
		r.Add(strings.TrimPrefix(key.Value, KeyPrefix))
	case !document.PlainKey(key.Value) || document.IsNull(value) && key.Tag != "!!merge":
		r.Add(behindColon(key.Value))
	}
}

// addText adds what a text with a Secret in it holds.
func (r *Redactor) addText(text string) {
	roots, err := DecodeAll([]byte(text))
	for _, root := range roots {
		f := &placeFinder{}
		f.walk(root)
		r.AddPlaces(f.places)
	}
	if err == nil {
		return
	}
	for line := range strings.Lines(text) {
		_, value, _ := strings.Cut(line, ":")
		r.Add(strings.Trim(strings.TrimSpace(value), `"'`))
	}
}

// addChanges adds what overrides set in data, and in what is or may be a Secret.
func (r *Redactor) addChanges(n *yaml.Node, depth int) {
	n = document.Resolved(n)
	if depth > document.MaxDepth {
		return
	}
	if n.Kind == yaml.MappingNode {
		kind, path := textOf(document.Lookup(n, "kind")), strings.ToLower(textOf(document.Lookup(n, "path")))
		if kind != "" && MaySecret(kind) || isSecretMapping(n) && document.Lookup(n, "op") == nil || strings.Contains(path, "data") {
			r.addObject(n)
			if path != "" {
				r.addQuoted(textOf(document.Lookup(n, "path")))
			}
			return
		}
	}
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			if key := strings.ToLower(child.Value); strings.HasSuffix(key, "data") && key != "metadata" {
				r.addBelow(n.Content[i+1], depth)
			}
			continue
		}
		r.addChanges(child, depth+1)
	}
}

// quotedText is a text in a path's filter.
var quotedText = regexp.MustCompile("'[^']*'|`[^`]*`|\"[^\"]*\"")

func (r *Redactor) addQuoted(path string) {
	for _, text := range quotedText.FindAllString(path, -1) {
		if text = text[1 : len(text)-1]; !document.PlainKey(text) {
			r.Add(text)
		}
	}
}

// addSources adds what generators hold: literals, and what stands where a path
// is wanted and is none.
func (r *Redactor) addSources(n *yaml.Node) {
	n = document.Resolved(n)
	if n.Kind != yaml.MappingNode {
		for _, item := range n.Content {
			r.addSources(item)
		}
		if n.Kind == yaml.ScalarNode && !PlainPath(n.Value) {
			r.Add(n.Value)
		}
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		switch field, value := n.Content[i].Value, n.Content[i+1]; field {
		case "name", "namespace", "type", "behavior", "options":
		case "files", "envs", "env":
			for _, source := range sources(field, value) {
				if !PlainPath(source.Value) {
					r.Add(source.Value)
				}
			}
		default: // literals, and what was meant to be
			r.addKey(n.Content[i], value)
			r.addLiterals(value)
		}
	}
}

func (r *Redactor) addLiterals(n *yaml.Node) {
	n = document.Resolved(n)
	if n.Kind == yaml.ScalarNode {
		if key, value, ok := strings.Cut(n.Value, "="); ok && document.PlainKey(key) {
			r.Add(strings.Trim(value, `"'`))
		} else {
			r.Add(n.Value)
		}
		return
	}
	r.addBelow(n, 0)
	for _, item := range n.Content {
		r.addLiterals(item)
	}
}

// AddMessage adds the values of the fields of a message that are marked as
// secret.
func (r *Redactor) AddMessage(m protoreflect.Message) {
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		r.addField(field, value, document.IsSecret(field))
		return true
	})
}

func (r *Redactor) addField(field protoreflect.FieldDescriptor, value protoreflect.Value, secret bool) {
	switch {
	case field.IsList():
		for i := range value.List().Len() {
			r.addSingle(field, value.List().Get(i), secret)
		}
	case field.IsMap():
		value.Map().Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
			if secret {
				r.addOwnKey(key.String())
			}
			r.addSingle(field.MapValue(), value, secret)
			return true
		})
	default:
		r.addSingle(field, value, secret)
	}
}

func (r *Redactor) addSingle(field protoreflect.FieldDescriptor, value protoreflect.Value, secret bool) {
	switch {
	case field.Message() != nil:
		value.Message().Range(func(inner protoreflect.FieldDescriptor, value protoreflect.Value) bool {
			r.addField(inner, value, secret || document.IsSecret(inner))
			return true
		})
	case !secret || field.Kind() == protoreflect.BoolKind || field.Kind() == protoreflect.EnumKind:
	case field.Kind() == protoreflect.BytesKind:
		r.Add(string(value.Bytes()))
	default:
		r.Add(value.String())
	}
}

// redact hides in problems of a document of swell's own what may be a secret in
// it, such as overrides of Secrets in Defaults.
func (in *reading) redact(problems document.Problems) {
	var r Redactor
	places := SecretPlaces(in.Node, nil)
	r.AddPlaces(places)
	r.KnowNames(in.Node, places)
	RedactProblems(&r, problems)
}

// RedactProblems hides secrets in the messages of problems, in place.
func RedactProblems(r *Redactor, lists ...document.Problems) {
	var texts []*string
	for _, problems := range lists {
		for i := range problems {
			texts = append(texts, &problems[i].Message)
		}
	}
	r.RedactAll(texts)
}
