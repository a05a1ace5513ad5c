// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"sync"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/helm"
	"github.com/swell-sh/swell/render/schema"
)

// chartText is a document that a template of a chart gave. It is the same one for all requests
// that give it, so its lines are found once.
type chartText struct {
	text  string
	lines func() []int      // by line, that of the template
	root  func() *yaml.Node // nil where it cannot be read

	objects map[int]map[string]any // by item, see [helm.Object]
}

// textKey is a document, and the file of the chart that it is from.
type textKey struct{ file, text string }

// writtenIn is an object in a document that a chart gave.
type writtenIn struct {
	text *chartText
	item int // see [helm.Object]
}

// placedAs is such an object with what [helm.Place] made of its hooks.
type placedAs struct {
	writtenIn
	marks string
}

// textOf is the document of an object. c.mu is held.
func (c *chart) textOf(o helm.Object) *chartText {
	key := textKey{o.File, o.Text}
	if known, ok := c.documents[key]; ok {
		return known
	}
	t := &chartText{text: o.Text, objects: map[int]map[string]any{}}
	t.lines = sync.OnceValue(func() []int { return helm.Lines(c.texts()[o.File], o.Text) })
	t.root = sync.OnceValue(func() *yaml.Node {
		var root yaml.Node
		if yaml.Unmarshal([]byte(o.Text), &root) != nil || len(root.Content) == 0 {
			return nil
		}
		return root.Content[0]
	})
	c.documents[key] = t
	return t
}

// object is the object of the document, or an item of it. The chart's mu is held.
func (t *chartText) object(o helm.Object) map[string]any {
	if t.objects[o.Item] == nil {
		t.objects[o.Item] = schema.Decode(o.JSON)
	}
	return t.objects[o.Item]
}

// templateLine is the line of the template that the value at a path is from, as well as it can
// be told; zero where it cannot.
func (t *chartText) templateLine(path []any) int {
	line := t.line(path)
	if lines := t.lines(); line > 0 && line <= len(lines) {
		return lines[line-1]
	}
	return 0
}

// line is that of a value in the document; zero where it cannot be told.
func (t *chartText) line(path []any) int {
	if len(path) == 0 {
		return firstLine(t.text)
	}
	if root := t.root(); root != nil {
		return document.NodeAt(root, path).Line
	}
	return 0
}

// firstLine is the first line of a text of YAML that is no comment; zero for none.
func firstLine(text string) int {
	n := 0
	for line := range strings.Lines(text) {
		n++
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			return n
		}
	}
	return 0
}
