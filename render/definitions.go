// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"sync"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

// Definition is a CustomResourceDefinition that stands in a unit or in the folder of
// schemas. Object is shared and must not be changed.
type Definition struct {
	Object map[string]any

	place document.Position
	doc   func() *document.Document
}

// At is where a part of the definition stands, by its path; the nearest part around it
// where it is not written.
func (d *Definition) At(path ...any) document.Position {
	doc := d.doc()
	if doc == nil { // what kustomize made
		return d.place
	}
	return doc.At(document.NodeAt(doc.Node, path))
}

// Definitions are all definitions of custom resources of the snapshot's commit, in the
// order in which they are read; none where it is held. Their files are read again when
// somebody asks where a part stands.
func (s *Snapshot) Definitions() []*Definition {
	if s.world == nil {
		return nil
	}
	var all []*Definition
	for i, crd := range s.world.hard.definitions {
		place := s.world.hard.places[i]
		all = append(all, &Definition{Object: crd.Object, place: place, doc: sync.OnceValue(func() *document.Document {
			return documentAt(s.Repository.Tree, place)
		})})
	}
	return all
}

func documentAt(tree config.Tree, place document.Position) *document.Document {
	content, err := tree.ReadFile(place.File)
	if err != nil {
		return nil
	}
	docs, _ := document.ReadDialect(place.File, content, document.Kubectl) // its problems are the snapshot's
	for _, doc := range docs {
		if doc.Position() == place {
			return doc
		}
	}
	return nil
}
