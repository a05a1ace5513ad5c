// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"io/fs"
	"iter"
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

// Past is what a branch had before a commit.
type Past struct {
	// Taken is what it had when a commit of it was taken last, or what a change goes to; nil: there
	// was none.
	Taken Tree
	// Since are the trees that it had between that and the commit, the newest first; the last one
	// is nil where it cannot be read. Nil: there are none.
	Since iter.Seq[Tree]
}

// JudgeIdle judges references by what was taken before; nil: nothing was. Who writes or edits the
// document has a problem. Where it stands as it stood before, somebody took away what it matched:
// that holds nobody's change.
func JudgeIdle(references []IdleReference, taken Tree) (mistyped, gone document.Problems) {
	fresh, stood := sinceTaken(references, taken)
	return mistypedIn(fresh), problemsOf(stood)
}

// JudgeIdle judges what [Repository.Idle] has as if each commit since the one taken before had
// been taken alone: it does not count which of them were fetched together.
func (r *Repository) JudgeIdle(past Past) (mistyped, gone document.Problems) {
	fresh, stood := sinceTaken(r.Idle(), past.Taken)
	written := map[*document.Document]*Repository{}
	fresh = slices.DeleteFunc(fresh, func(reference IdleReference) bool {
		then, known := written[reference.doc]
		if !known {
			then = r.whenWritten(reference.doc, past.Since)
			written[reference.doc] = then
		}
		matched := then != nil && !then.isIdle(reference)
		if matched {
			stood = append(stood, reference)
		}
		return matched
	})
	return mistypedIn(fresh), problemsOf(stood)
}

// sinceTaken are the references whose documents got their words after a tree, and the others.
func sinceTaken(references []IdleReference, taken Tree) (fresh, stood []IdleReference) {
	known := map[*document.Document]bool{}
	for _, r := range references {
		if _, judged := known[r.doc]; !judged {
			known[r.doc] = taken != nil && stoodIn(r.doc, taken)
		}
		if known[r.doc] {
			stood = append(stood, r)
		} else {
			fresh = append(fresh, r)
		}
	}
	return fresh, stood
}

func mistypedIn(references []IdleReference) (problems document.Problems) {
	for _, r := range references {
		r.Message += r.Hint
		problems = append(problems, r.Problem)
	}
	return problems
}

func problemsOf(references []IdleReference) (problems document.Problems) {
	for _, r := range references {
		problems = append(problems, r.Problem)
	}
	return problems
}

// whenWritten is the repository as it was when a document got its words, in one of the trees
// before, the newest first; nil where it got them in none of these, or the fleet had a problem. An
// empty one stands for a tree that cannot be read: a doubt holds nothing back.
func (r *Repository) whenWritten(doc *document.Document, before iter.Seq[Tree]) *Repository {
	var written Tree
	if before != nil {
		for tree := range before {
			if tree == nil {
				return &Repository{}
			}
			if !stoodIn(doc, tree) {
				break
			}
			written = tree
		}
	}
	if written == nil {
		return nil
	}
	if then := Load(written, r); len(then.Problems) == 0 {
		return then
	}
	return nil
}

// isIdle says whether a reference matched nothing here, too.
func (r *Repository) isIdle(reference IdleReference) bool {
	return slices.ContainsFunc(r.Idle(), func(known IdleReference) bool {
		return known.File == reference.File && known.Message == reference.Message
	})
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

// IdleAt is a reference on a path of a document. why says what it does not match, and hint, which may
// be empty, what may have been meant.
func IdleAt(doc *document.Document, code document.Code, hint, why string, path ...any) IdleReference {
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
