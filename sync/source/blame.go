// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

// Line is the commit that a line of a file is from.
type Line struct {
	Commit config.Commit // empty for a line that is in no commit yet
	// File and Number, from 1, say where the line stood in that commit.
	File   string
	Number int
	// Oldest is set when the history was followed no further than Commit: it
	// ends there in a shallow clone, or it is too long. The line may be older.
	Oldest bool
}

// Blamed is where a file is from.
type Blamed struct {
	Lines []Line
	// Last is the commit that changed the file last; Number is 0.
	Last Line
}

// maxHistory is how many commits one blame looks at.
const maxHistory = 100_000

// Blame tells for each line of a file which commit brought it, as git blame
// does. content is the file as it is now, nil for what the commit has: its
// lines that the commit does not have are in no commit yet.
//
// A merge brings what none of its parents has. A file that was moved without a
// change is followed to its old name; one that was changed in the same commit
// is new there, where git blame may follow it still. Of equal lines in a row,
// and in files that share little, git may find another one to be the new one.
func (s *Source) Blame(ctx context.Context, commit config.Commit, file string, content []byte) (*Blamed, error) {
	b := blame{source: s, suspects: map[suspectKey]*suspect{}, most: maxHistory}
	if err := b.run(ctx, commit, file, content); err != nil {
		return nil, s.wrap(fmt.Sprintf("blame %s at %s", file, commit.Short()), err)
	}
	return &b.result, nil
}

type blame struct {
	source   *Source
	suspects map[suspectKey]*suspect
	queue    suspects
	result   Blamed
	settled  bool // the last commit of the file is known
	seen     int  // commits looked at
	most     int  // that may be
}

// suspect is a file of a commit that may have brought some lines.
type suspect struct {
	suspectKey
	commit *object.Commit
	blob   plumbing.Hash
	lines  []string // read when they are asked for
	// held are the lines that it may have brought: of the file of the question,
	// and of its own.
	held []heldLine
}

type suspectKey struct {
	hash plumbing.Hash // of the commit
	file string
}

type heldLine struct{ asked, here int }

func (b *blame) run(ctx context.Context, commit config.Commit, file string, content []byte) error {
	hash, err := hashOf(commit)
	if err != nil {
		return err
	}
	c, err := b.source.objects.commit(hash)
	if err != nil {
		return err
	}
	first, err := b.at(c, file)
	if err != nil {
		return err
	}
	switch {
	case first != nil:
		err = b.read(first)
	case content == nil:
		err = &fs.PathError{Op: "blame", Path: file, Err: fs.ErrNotExist}
	}
	if err != nil {
		return err
	}
	b.begin(first, file, content)
	for len(b.queue) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		next := heap.Pop(&b.queue).(*suspect)
		delete(b.suspects, next.suspectKey)
		if b.seen++; b.seen > b.most {
			b.take(next, true)
			continue
		}
		if err := b.examine(next); err != nil {
			return err
		}
	}
	return nil
}

// begin asks for all lines of the content.
func (b *blame) begin(first *suspect, file string, content []byte) {
	if content == nil {
		b.result.Lines = make([]Line, len(first.lines))
		b.hold(first, whole(len(first.lines)))
		return
	}
	now := split(content)
	b.result.Lines = make([]Line, len(now))
	for i := range now {
		b.result.Lines[i] = Line{File: file, Number: i + 1}
	}
	if first == nil || !slices.Equal(first.lines, now) {
		b.settled = true
		b.result.Last = Line{File: file}
	}
	if first != nil {
		var held []heldLine
		for i, j := range matches(first.lines, now) {
			if j >= 0 {
				held = append(held, heldLine{i, j})
			}
		}
		b.hold(first, held)
	}
}

func whole(n int) []heldLine {
	held := make([]heldLine, n)
	for i := range held {
		held[i] = heldLine{i, i}
	}
	return held
}

// hold suspects a file of having brought some lines.
func (b *blame) hold(s *suspect, held []heldLine) {
	if known := b.suspects[s.suspectKey]; known != nil {
		known.held = append(known.held, held...)
		return
	}
	s.held = held
	b.suspects[s.suspectKey] = s
	heap.Push(&b.queue, s)
}

// take finds a file to have brought what it holds.
func (b *blame) take(s *suspect, oldest bool) {
	commit := commitOf(s.hash)
	if !b.settled {
		b.settled = true
		b.result.Last = Line{Commit: commit, File: s.file, Oldest: oldest}
	}
	for _, h := range s.held {
		b.result.Lines[h.asked] = Line{Commit: commit, File: s.file, Number: h.here + 1, Oldest: oldest}
	}
}

// examine hands what a suspect holds on to its parents, as far as they have it.
func (b *blame) examine(s *suspect) error {
	shallow := b.source.repository.Load().isShallow(s.hash)
	if shallow {
		b.take(s, true)
		return nil
	}
	var parents []*suspect
	for _, hash := range s.commit.ParentHashes {
		c, err := b.source.objects.commit(hash)
		if err != nil {
			return err
		}
		parent, err := b.at(c, s.file)
		if err == nil && parent == nil {
			parent, err = b.moved(s, c)
		}
		if err != nil {
			return err
		}
		if parent == nil {
			continue
		}
		if parent.blob == s.blob {
			b.hold(parent, s.held)
			return nil
		}
		parents = append(parents, parent)
	}
	if len(parents) > 0 {
		if err := b.read(append(parents, s)...); err != nil {
			return err
		}
	}
	for _, parent := range parents {
		from := matches(parent.lines, s.lines)
		var theirs, ours []heldLine
		for _, h := range s.held {
			if from[h.here] >= 0 {
				theirs = append(theirs, heldLine{h.asked, from[h.here]})
			} else {
				ours = append(ours, h)
			}
		}
		if !b.settled {
			b.settled, b.result.Last = true, Line{Commit: commitOf(s.hash), File: s.file}
		}
		if len(theirs) > 0 {
			b.hold(parent, theirs)
		}
		s.held = ours
	}
	b.take(s, false)
	return nil
}

// at is the file in a commit; nil when it has none of that name.
func (b *blame) at(c *object.Commit, file string) (*suspect, error) {
	t := tree{b.source, c.TreeHash}
	e, err := t.find("blame", file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !e.mode.IsRegular() {
		return nil, nil
	}
	if refused, ok := errors.AsType[document.Refusal](err); ok && refused != "" { // a link stands on the way
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &suspect{suspectKey: suspectKey{c.Hash, file}, commit: c, blob: e.hash}, nil
}

// read reads the lines of suspects.
func (b *blame) read(all ...*suspect) error {
	for _, s := range all {
		if s.lines != nil {
			continue
		}
		t := tree{b.source, s.commit.TreeHash}
		content, err := t.ReadFile(s.file)
		if err != nil {
			return err
		}
		s.lines = split(content)
	}
	return nil
}

// moved is the file of a parent that a new file of the same content took the
// place of; nil when there is none. Of several it is the first by name.
func (b *blame) moved(s *suspect, parent *object.Commit) (*suspect, error) {
	changed, err := b.source.Changed(commitOf(parent.Hash), commitOf(s.hash))
	if errors.Is(err, errTooManyChanges) || errors.As(err, new(document.OddName)) {
		return nil, nil // of other files; this one counts as new
	}
	if err != nil {
		return nil, err
	}
	before, after := tree{b.source, parent.TreeHash}, tree{b.source, s.commit.TreeHash}
	for _, name := range changed {
		e, err := before.find("blame", name)
		if err != nil || e.hash != s.blob || !e.mode.IsRegular() {
			continue
		}
		if _, err := after.find("blame", name); errors.Is(err, fs.ErrNotExist) {
			return b.at(parent, name)
		}
	}
	return nil, nil
}

// split is the lines of a file, each with its end.
func split(content []byte) []string {
	lines := strings.SplitAfter(string(content), "\n")
	if last := len(lines) - 1; lines[last] == "" {
		lines = lines[:last]
	}
	return lines
}

// suspects are those whose commit is the newest first: so that one is looked at
// once, after all that descend from it.
type suspects []*suspect

func (s suspects) Len() int      { return len(s) }
func (s suspects) Swap(i, j int) { s[i], s[j] = s[j], s[i] }
func (s *suspects) Push(x any)   { *s = append(*s, x.(*suspect)) }
func (s suspects) Less(i, j int) bool {
	return cmp.Or(timeOf(s[j]).Compare(timeOf(s[i])), strings.Compare(s[i].hash.String(), s[j].hash.String()), strings.Compare(s[i].file, s[j].file)) < 0
}

func timeOf(s *suspect) time.Time { return s.commit.Committer.When }

func (s *suspects) Pop() any {
	last := len(*s) - 1
	x := (*s)[last]
	*s = (*s)[:last]
	return x
}
