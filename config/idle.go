// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"io/fs"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/swell-sh/swell/config/document"
)

// IdleReference is a name or a selector in a document of the fleet that matches nothing: what
// the document promises to protect is not protected there. Whoever writes or edits the document
// has mistyped it. Where the document stands as it stood, what it matched has gone.
type IdleReference struct {
	document.Problem
	// Hint is the end of the message for whoever wrote the name: what may have been meant.
	Hint string
	doc  *document.Document
}

// JudgeIdle judges references by the commit before; nil: there is none. Who writes or edits the
// document has a problem. Where it stands as it stood before, somebody took away what it matched:
// that holds nobody's change.
func JudgeIdle(references []IdleReference, before Tree) (mistyped, gone document.Problems) {
	stood := map[*document.Document]bool{}
	for _, r := range references {
		if _, known := stood[r.doc]; !known {
			stood[r.doc] = before != nil && stoodIn(r.doc, before)
		}
		if stood[r.doc] {
			gone = append(gone, r.Problem)
			continue
		}
		r.Message += r.Hint
		mistyped = append(mistyped, r.Problem)
	}
	return mistyped, gone
}

// stoodIn says whether a document was in an earlier tree, in the same file and with the same
// words. A file that cannot be read at the moment counts as one in which it was: a disk that
// fails holds nothing back.
func stoodIn(doc *document.Document, before Tree) bool {
	content, err := before.ReadFile(doc.File)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	earlier, _ := document.ReadDocuments(doc.File, content) // whose problems were told
	return slices.ContainsFunc(earlier, func(d *document.Document) bool {
		return d.Kind == doc.Kind && d.Name == doc.Name && saysTheSame(d.Node, doc.Node)
	})
}

// saysTheSame compares what two nodes say, and not where, how and in which order of keys they are
// written.
func saysTheSame(a, b *yaml.Node) bool {
	if a.Kind != b.Kind || a.Tag != b.Tag || a.Value != b.Value || len(a.Content) != len(b.Content) {
		return false
	}
	if a.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(a.Content); i += 2 {
			other := document.Lookup(b, a.Content[i].Value)
			if other == nil || !saysTheSame(a.Content[i+1], other) {
				return false
			}
		}
		return true
	}
	return slices.EqualFunc(a.Content, b.Content, saysTheSame)
}

// Idle are the references of the fleet's documents that match nothing.
func (r *Repository) Idle() []IdleReference {
	return append(r.Fleet.idle[:len(r.Fleet.idle):len(r.Fleet.idle)], r.idle...)
}

// idleAt is a reference on a path of a document. hint may be empty.
func idleAt(doc *document.Document, code document.Code, hint, why string, path ...any) IdleReference {
	in := &reading{Document: doc}
	in.at(path...).problem(code, "%s", why)
	return IdleReference{Problem: in.problems()[0], Hint: hint, doc: doc}
}

// idleInFleet notes what was found to match nothing of the fleet.
func (l *loader) idleInFleet(reference IdleReference) {
	l.repository.Fleet.idle = append(l.repository.Fleet.idle, reference)
}

// idleInUnits notes what was found to match no unit.
func (l *loader) idleInUnits(reference IdleReference) {
	l.repository.idle = append(l.repository.idle, reference)
}
