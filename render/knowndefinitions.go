// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/cache"
	"github.com/swell-sh/swell/render/schema"
)

// fileDefinitions are the definitions in a file, as the cache keeps them: megabytes of YAML
// are not parsed for each commit.
type fileDefinitions struct {
	list []*definition
	only bool // there is nothing else in the file, and no problem
}

// knownDefinitions are those in a file of the tree, where they were read before.
func (w *world) knownDefinitions(file string) (found fileDefinitions, known bool) {
	key, ok := w.definitionsKey(file)
	if !ok {
		return found, false
	}
	packed, ok := w.cache.Get(key)
	if !ok {
		return found, false
	}
	d := decoding{rest: packed}
	found.only = d.number() == 1
	for range d.count() {
		claim := schema.Claim{Group: d.text(), Kind: d.text(), Plural: d.text()}
		place := document.Position{File: file, Line: d.number(), Column: d.number()}
		text := d.bytes()
		sum := sha256.Sum256(text)
		found.list = append(found.list, &definition{place: place, text: text, hash: hex.EncodeToString(sum[:]), claim: claim})
	}
	return found, d.err == nil
}

func (w *world) keepDefinitions(file string, found fileDefinitions) {
	key, ok := w.definitionsKey(file)
	if !ok {
		return
	}
	var e encoding
	e.flag(found.only)
	e.number(len(found.list))
	for _, d := range found.list {
		e.text(d.claim.Group)
		e.text(d.claim.Kind)
		e.text(d.claim.Plural)
		e.number(d.place.Line)
		e.number(d.place.Column)
		e.text(string(d.text))
	}
	w.cache.Put(key, e)
}

func (w *world) definitionsKey(file string) (key cache.Key, ok bool) {
	hash, err := w.repository.Tree.Hash(file)
	return sha256.Sum256(fmt.Appendf(nil, "definitions %s %q %q %s", format, w.version, file, hash)), err == nil
}

// isSound says whether a definition is known to have no problem in a version of Kubernetes.
func (w *world) isSound(d *definition, version string) bool {
	_, known := w.cache.Get(w.soundKey(d, version))
	return known
}

func (w *world) keepSound(d *definition, version string) {
	w.cache.Put(w.soundKey(d, version), []byte{1})
}

func (w *world) soundKey(d *definition, version string) cache.Key {
	return sha256.Sum256(fmt.Appendf(nil, "sound %s %q %s %s", format, w.version, version, d.hash))
}
