// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config/document"
)

// object is a document as plain values. Its positions are those of the file that it
// began in; one that a template made has those of the template.
type object struct {
	doc   *document.Document
	value map[string]any
	made  bool // by a template or a kustomization: the document is what it was made from
}

// asObject is a document as an object; ok is false where a value cannot be read.
func asObject(doc *document.Document) (o *object, ok bool) {
	plain, problems := doc.Plain(doc.Node)
	value, isMap := plain.(map[string]any)
	return &object{doc: doc, value: value}, isMap && len(problems) == 0
}

func (o *object) text(path ...string) string {
	text, _ := o.at(path...).(string)
	return text
}

func (o *object) at(path ...string) any { return valueAt(o.value, path...) }

func (o *object) kind() string       { return o.text("kind") }
func (o *object) name() string       { return o.text("metadata", "name") }
func (o *object) namespace() string  { return o.text("metadata", "namespace") }
func (o *object) apiVersion() string { return o.text("apiVersion") }

// group is that of the API version; empty for the core group.
func (o *object) group() string {
	group, _, grouped := strings.Cut(o.apiVersion(), "/")
	if !grouped {
		return ""
	}
	return group
}

// what is how people call it.
func (o *object) what() string { return o.kind() + " " + o.name() }

// position is that of a field, or of what is there of the path.
func (o *object) position(field string) document.Position {
	if field == "" {
		return o.doc.Position()
	}
	if o.made && o.doc.Kind == "ApplicationSet" {
		field = "spec.template." + field
	}
	n, at := o.doc.Node, o.doc.Node
	for _, step := range strings.Split(field, ".") {
		for i := 0; i+1 < len(n.Content) && n.Kind == yaml.MappingNode; i += 2 {
			if n.Content[i].Value == step {
				at = n.Content[i]
			}
		}
		if n = document.Lookup(n, step); n == nil {
			break
		}
	}
	return o.doc.At(at)
}

func (o *object) note(field, why, do string) Note {
	at := o.position(field)
	at.Column = 0
	return Note{At: at, What: o.what(), Field: field, Why: why, Do: do}
}

// valueAt is the value at a path of keys; nil where there is none.
func valueAt(value any, path ...string) any {
	for _, step := range path {
		m, _ := value.(map[string]any)
		value = m[step]
	}
	return value
}

func mapAt(value any, path ...string) map[string]any {
	m, _ := valueAt(value, path...).(map[string]any)
	return m
}

func listAt(value any, path ...string) []any {
	l, _ := valueAt(value, path...).([]any)
	return l
}

func textAt(value any, path ...string) string {
	s, _ := valueAt(value, path...).(string)
	return s
}

// textsAt are the texts of a list.
func textsAt(value any, path ...string) (texts []string) {
	for _, item := range listAt(value, path...) {
		if text, ok := item.(string); ok {
			texts = append(texts, text)
		}
	}
	return texts
}
