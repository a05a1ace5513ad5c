// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"slices"

	"go.yaml.in/yaml/v3"
)

// Pack leaves nothing in Node but apiVersion, kind and metadata: the nodes of a document
// take twenty times the room of its text. content is the whole document in a form of the
// caller's; again reads it anew, and gives nil where that cannot be done any more.
func (d *Document) Pack(content []byte, again func() *Document) {
	n := *d.Node
	n.Content = nil
	for i := 0; i+1 < len(d.Node.Content); i += 2 {
		if slices.Contains([]string{"apiVersion", "kind", "metadata"}, d.Node.Content[i].Value) {
			n.Content = append(n.Content, d.Node.Content[i:i+2]...)
		}
	}
	d.Node, d.Packed, d.again = &n, content, again
}

// Whole is the document with all of its nodes.
func (d *Document) Whole() *Document {
	if d.again != nil {
		if whole := d.again(); whole != nil {
			return whole
		}
	}
	return d
}

// Place is the node at a path, in a document with all of its nodes, and that document.
func (d *Document) Place(path []any) (*Document, *yaml.Node) {
	whole := d.Whole()
	return whole, NodeAt(whole.Node, path)
}
