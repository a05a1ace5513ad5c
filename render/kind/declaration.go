// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"crypto/sha256"
	"maps"
	"runtime"
	"slices"
	"sync"
	"weak"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/schema/easy"
)

// declaration is what a .proto and what it imports make of a kind, whatever the rest of the commit
// is. Nothing changes it, so kinds of many commits may share it.
type declaration struct {
	message, envelope, collected protoreflect.MessageDescriptor // collected is the envelope with the unit
	easy                         *easy.Schema
	rules                        *document.Rules // of the spec's values
	secrets                      bool            // a field of the message is marked as secret

	reads map[string]read // by the name in the import; the file itself too
}

// read is what came of reading a file.
type read struct {
	content [sha256.Size]byte
	absent  bool
}

func readOf(content []byte, err error) read {
	if err != nil {
		return read{absent: true}
	}
	return read{content: sha256.Sum256(content)}
}

// source is what a kind says of its declaration, and the file that has it.
type source struct{ file, message, fieldNames string }

// declarations are those that some kind still has, of all commits that this process has loaded:
// most of the time a kind takes to load goes into compiling its message and rules, and two commits
// seldom differ in it.
type declarations struct {
	mu    sync.Mutex
	known map[source][]weak.Pointer[declaration]
}

var shared declarations

// find is the first declaration from a source that is the same; nil for none.
func (s *declarations) find(from source, same func(d *declaration) bool) *declaration {
	s.mu.Lock()
	list := slices.Clone(s.known[from])
	s.mu.Unlock()
	for _, pointer := range list {
		if d := pointer.Value(); d != nil && same(d) {
			return d
		}
	}
	return nil
}

// reuse takes over a declaration that was made of files which are the same in this tree.
func (l *loader) reuse(from source) bool {
	found := shared.find(from, func(d *declaration) bool {
		// Files that only another declaration imports are none of this kind's.
		again := &loader{all: l.all, kind: &Kind{Folder: l.kind.Folder}, tree: &recordingTree{Tree: l.tree.Tree, read: map[string]string{}}}
		if !d.isOf(again.openProto) {
			return false
		}
		maps.Copy(l.tree.read, again.tree.read)
		l.kind.protos = again.kind.protos
		return true
	})
	if found == nil {
		return false
	}
	l.kind.declaration, l.kind.Group, l.kind.Name = found, found.easy.Group, found.easy.Kind
	return true
}

// isOf reads the files again that the declaration was made of, and says whether they are the same.
func (d *declaration) isOf(open func(name string) ([]byte, error)) bool {
	for name, before := range d.reads {
		content, err := open(name)
		if readOf(content, err) != before || err != nil && document.MayPass(err) {
			return false
		}
	}
	return true
}

// add makes a declaration known, until no kind has it any more.
func (s *declarations) add(from source, d *declaration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = map[source][]weak.Pointer[declaration]{}
	}
	s.known[from] = append(s.known[from], weak.Make(d))
	runtime.AddCleanup(d, s.forget, from)
}

// forget drops the declarations from a source that no kind has.
func (s *declarations) forget(from source) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[from] = slices.DeleteFunc(s.known[from], func(p weak.Pointer[declaration]) bool { return p.Value() == nil })
	if len(s.known[from]) == 0 {
		delete(s.known, from)
	}
}
