// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"sync"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/config/sops"
	"github.com/swell-sh/swell/render/schema"
)

// pack keeps the definitions among the documents of a file as text: units of operators
// have tens of megabytes of them, and little is asked about their lines.
func (w *world) pack(docs []*document.Document) {
	for _, doc := range docs {
		if !isDefinition(doc) || sops.MetadataIn(doc.Node) != nil {
			continue
		}
		if object, ok := plain(doc); ok {
			place, text := doc.Position(), schema.AppendObject(nil, object)
			if w.hard != nil && bytes.Equal(w.hard.texts[place], text) { // one copy is enough
				text = w.hard.texts[place]
			}
			doc.Pack(text, func() *document.Document { return w.again.at(w.repository.Tree, place) })
		}
	}
}

// lastFile is the file that was read again last: problems of one file are told together.
// It is safe for concurrent use.
type lastFile struct {
	mu   sync.Mutex
	name string
	docs map[document.Position]*document.Document
}

// at is the document of a tree at a position; nil where there is none any more.
func (l *lastFile) at(tree config.Tree, place document.Position) *document.Document {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.name != place.File {
		docs, ok := readAgain(tree, place.File)
		if !ok {
			return nil
		}
		l.name, l.docs = place.File, docs
	}
	return l.docs[place]
}

func (l *lastFile) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.name, l.docs = "", nil
}

// readAgain reads the documents of a file; its problems are the snapshot's.
func readAgain(tree config.Tree, file string) (map[document.Position]*document.Document, bool) {
	content, err := tree.ReadFile(file)
	if err != nil {
		return nil, false
	}
	docs, _ := document.ReadDialect(file, content, document.Kubectl)
	byPlace := make(map[document.Position]*document.Document, len(docs))
	for _, doc := range docs {
		byPlace[doc.Position()] = doc
	}
	return byPlace, true
}

func documentAt(tree config.Tree, place document.Position) *document.Document {
	docs, _ := readAgain(tree, place.File)
	return docs[place]
}
