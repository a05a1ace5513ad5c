// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/schema"
)

// Definition is a CustomResourceDefinition that stands in a unit or in the folder of
// schemas.
type Definition struct {
	hash   string
	place  document.Position
	object func() map[string]any
	doc    func() *document.Document
}

// Object is the definition; it is shared and must not be changed.
func (d *Definition) Object() map[string]any { return d.object() }

// Same says whether two definitions have the same content, wherever they stand.
func (d *Definition) Same(other *Definition) bool { return d.hash == other.hash }

// At is where a part of the definition stands, by its path; the nearest part around it
// where it is not written.
func (d *Definition) At(path ...any) document.Position {
	doc := d.doc()
	if doc == nil { // what kustomize made
		return d.place
	}
	return doc.At(document.NodeAt(doc.Node, path))
}

// DefinitionsIn are the definitions of custom resources that the tree has for a cluster,
// by the names of the definitions; those of the facts are not among them. None where the
// snapshot is held. Their files are read again when somebody asks where a part stands.
func (s *Snapshot) DefinitionsIn(cluster string) map[string]*Definition {
	return s.definitionsIf(func(d *definition) int {
		switch {
		case d.on[cluster]:
			return 1
		case d.unit == "":
			return 2
		case d.lost:
			return 3
		}
		return 0
	})
}

// DefinitionsNowhere are those of units that no cluster takes.
func (s *Snapshot) DefinitionsNowhere() map[string]*Definition {
	return s.definitionsIf(func(d *definition) int {
		if len(d.on) == 0 {
			return 1
		}
		return 0
	})
}

// definitionsIf are the definitions of the lowest rank above 0 of each name.
func (s *Snapshot) definitionsIf(rank func(*definition) int) map[string]*Definition {
	all := map[string]*Definition{}
	if s.world == nil {
		return all
	}
	ranks := map[string]int{}
	for _, d := range s.world.hard.definitions {
		name, mine := d.claim.Plural+"."+d.claim.Group, rank(d)
		if mine == 0 || ranks[name] != 0 && ranks[name] <= mine {
			continue
		}
		ranks[name] = mine
		all[name] = s.world.hard.public(s.Repository.Tree, d)
	}
	return all
}

// public is a definition for others.
func (h *hardKinds) public(tree config.Tree, d *definition) *Definition {
	h.mu.Lock()
	defer h.mu.Unlock()
	if known := h.published[d]; known != nil {
		return known
	}
	known := &Definition{hash: d.hash, place: d.place, object: sync.OnceValue(func() map[string]any { return schema.Decode(d.text) }), doc: sync.OnceValue(func() *document.Document {
		return documentAt(tree, d.place)
	})}
	h.published[d] = known
	return known
}

// DefinitionsHash changes with the definitions in a snapshot, and with the clusters that
// they are for.
func (s *Snapshot) DefinitionsHash() string {
	if s.world == nil {
		return ""
	}
	return s.world.hard.contents()
}

// DefinitionsHash is that of the snapshot of a tree.
func DefinitionsHash(tree config.Tree) string {
	r := config.Load(tree, nil)
	if _, problems := checkFleet(r); len(problems) > 0 {
		return ""
	}
	p := survey(r)
	return p.world.defineHard(p).contents()
}

// contents is the address of the definitions, wherever they are written.
func (h *hardKinds) contents() string {
	var lines []string
	for _, d := range h.definitions {
		lines = append(lines, fmt.Sprintf("%t %s %t %q", d.unit == "", d.hash, d.lost, slices.Sorted(maps.Keys(d.on))))
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:])
}
