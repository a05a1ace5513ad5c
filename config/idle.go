// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"go.yaml.in/yaml/v3"

	"github.com/swell-sh/swell/config/document"
)

// IdleReference is a name or a selector in a document of the fleet that matches nothing: what
// the document promises to protect is not protected there. Whoever writes or edits the document
// has mistyped it. Where the document stands as it stood, what it matched has gone.
type IdleReference struct {
	document.Problem
	doc *document.Document
}

// StoodIn says whether the document was in an earlier tree, in the same file and with the same
// words. Where that tree cannot be read, it was not.
func (i *IdleReference) StoodIn(before Tree) bool {
	content, err := before.ReadFile(i.doc.File)
	if err != nil {
		return false
	}
	docs, _ := document.ReadDocuments(i.doc.File, content)
	for _, doc := range docs {
		if doc.Kind == i.doc.Kind && doc.Name == i.doc.Name && saysTheSame(doc.Node, i.doc.Node) {
			return true
		}
	}
	return false
}

// saysTheSame compares what two nodes say, and not where and how they are written.
func saysTheSame(a, b *yaml.Node) bool {
	if a.Kind != b.Kind || a.Tag != b.Tag || a.Value != b.Value || len(a.Content) != len(b.Content) {
		return false
	}
	for i := range a.Content {
		if !saysTheSame(a.Content[i], b.Content[i]) {
			return false
		}
	}
	return true
}

// Idle are the references of the fleet's documents that match nothing.
func (r *Repository) Idle() []IdleReference {
	return append(r.Fleet.idle[:len(r.Fleet.idle):len(r.Fleet.idle)], r.idle...)
}

// idleInFleet notes what was found to match nothing of the fleet.
func (l *loader) idleInFleet(doc *document.Document, problems ...document.Problem) {
	for _, p := range problems {
		l.repository.Fleet.idle = append(l.repository.Fleet.idle, IdleReference{p, doc})
	}
}

// idleInUnits notes what was found to match no unit.
func (l *loader) idleInUnits(doc *document.Document, problems ...document.Problem) {
	for _, p := range problems {
		l.repository.idle = append(l.repository.idle, IdleReference{p, doc})
	}
}
