// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"container/heap"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/swell-sh/swell/config"
)

var (
	// ErrShallow is the error of a history that ends too early.
	ErrShallow = errors.New("the clone is shallow")
	// ErrUnrelated is the error of commits whose histories never met.
	ErrUnrelated = errors.New("they have no commit in common")
)

// MergeBase is a commit that two commits have in common and that none of the others in common
// comes after, the newest of these; one of the two where the other one has it. Where clocks
// were wrong it may be an older one.
func (s *Source) MergeBase(a, b config.Commit) (config.Commit, error) {
	w := baseWalk{source: s, seen: map[plumbing.Hash]*sided{}}
	base, err := w.run(a, b)
	if err != nil {
		return "", s.wrap(fmt.Sprintf("merge base of %s and %s", a.Short(), b.Short()), err)
	}
	return base, nil
}

// baseWalk goes back from two commits, the newest first.
type baseWalk struct {
	source *Source
	seen   map[plumbing.Hash]*sided
	open   newestFirst[*sided]
}

// sided is a commit, and which of the two have it.
type sided struct {
	commit *object.Commit
	sides  side
	found  bool
}

// side is a set of these.
type side uint8

const (
	ofFirst side = 1 << iota
	ofSecond
	// stale is what comes before a commit that both have.
	stale

	ofBoth = ofFirst | ofSecond
)

func isFresh(s *sided) bool { return s.sides&stale == 0 }

func (s *sided) date() time.Time { return s.commit.Committer.When }

func (w *baseWalk) run(a, b config.Commit) (config.Commit, error) {
	for n, commit := range []config.Commit{a, b} {
		h, err := hashOf(commit)
		if err != nil {
			return "", err
		}
		if err := w.reach(h, ofFirst<<n); err != nil {
			return "", err
		}
	}
	var found []*sided
	for slices.ContainsFunc(w.open, isFresh) || len(found) > 1 && w.mayReach(found) {
		is := heap.Pop(&w.open).(*sided)
		sides := is.sides
		if sides&ofBoth == ofBoth {
			if sides |= stale; !is.found {
				is.found, found = true, append(found, is)
			}
		}
		if err := w.parents(is.commit, sides); err != nil {
			return "", err
		}
	}
	if found = slices.DeleteFunc(found, func(s *sided) bool { return !isFresh(s) }); len(found) == 0 {
		return "", ErrUnrelated
	}
	return commitOf(found[0].commit.Hash), nil
}

// mayReach says whether what is open may come before one of the commits that were found:
// among commits of one second, some may have been found too early.
func (w *baseWalk) mayReach(found []*sided) bool {
	oldest := slices.MinFunc(found, func(a, b *sided) int { return a.date().Compare(b.date()) })
	return slices.ContainsFunc(w.open, func(s *sided) bool { return !s.date().Before(oldest.date()) })
}

func (w *baseWalk) parents(of *object.Commit, sides side) error {
	for _, parent := range of.ParentHashes {
		if err := w.source.endOfHistory(of, w.reach(parent, sides)); err != nil {
			return err
		}
	}
	return nil
}

// reach comes to a commit from one of the sides.
func (w *baseWalk) reach(h plumbing.Hash, sides side) error {
	if is := w.seen[h]; is != nil {
		if is.sides|sides != is.sides { // it may have passed already, where clocks were wrong
			is.sides |= sides
			heap.Push(&w.open, is)
		}
		return nil
	}
	c, err := w.source.objects.commit(h)
	if err != nil {
		return err
	}
	is := &sided{commit: c, sides: sides}
	w.seen[h] = is
	heap.Push(&w.open, is)
	return nil
}
