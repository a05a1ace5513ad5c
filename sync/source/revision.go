// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/swell-sh/swell/config"
)

// Resolve finds the commit that a revision means, as git rev-parse does: a
// full or short hash, HEAD or @, a branch, a tag or any other ref, each with
// any number of ~, ~N, ^, ^N and ^{commit} after it. A name that is both a ref
// and a short hash is the ref. Ranges, dates, reflogs and searches are not
// known here.
func (s *Source) Resolve(rev string) (config.Commit, error) {
	h, err := s.resolve(rev)
	if err != nil {
		return "", s.wrap(fmt.Sprintf("revision %q", rev), err)
	}
	return commitOf(h), nil
}

func (s *Source) resolve(rev string) (plumbing.Hash, error) {
	end := strings.IndexAny(rev, "~^")
	if end < 0 {
		end = len(rev)
	}
	h, err := s.resolveName(rev[:end])
	if err != nil {
		return h, err
	}
	c, err := s.peel(h)
	if err != nil {
		return h, err
	}
	for rest := rev[end:]; rest != ""; {
		op := rest[0]
		rest = rest[1:]
		if op == '^' && strings.HasPrefix(rest, "{") {
			kind, after, ok := strings.Cut(rest[1:], "}")
			if !ok || kind != "" && kind != "commit" && kind != "0" {
				return h, fmt.Errorf("^{%s} is not known; want ^{commit}", kind)
			}
			rest = after
			continue
		}
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		n := 1
		if digits > 0 {
			if n, err = strconv.Atoi(rest[:digits]); err != nil {
				return h, fmt.Errorf("%s: not a number of commits", rest[:digits])
			}
			rest = rest[digits:]
		}
		switch op {
		case '~':
			for range n {
				if c, err = s.parent(c, 1); err != nil {
					return h, err
				}
			}
		case '^':
			if n > 0 {
				if c, err = s.parent(c, n); err != nil {
					return h, err
				}
			}
		default:
			return h, fmt.Errorf("%q is not known; want ~N, ^N or ^{commit}", string(op)+rest)
		}
	}
	return c.Hash, nil
}

// parent returns the nth parent, counted from 1.
func (s *Source) parent(c *object.Commit, n int) (*object.Commit, error) {
	if n > len(c.ParentHashes) {
		if len(c.ParentHashes) == 0 {
			return nil, fmt.Errorf("commit %s is the first of its history", commitOf(c.Hash).Short())
		}
		return nil, fmt.Errorf("commit %s has %d parents; there is no number %d", commitOf(c.Hash).Short(), len(c.ParentHashes), n)
	}
	p, err := s.objects.commit(c.ParentHashes[n-1])
	return p, s.endOfHistory(c, err)
}

// endOfHistory is the error of reading a parent of a commit: it says so where the clone does
// not have the parents.
func (s *Source) endOfHistory(c *object.Commit, err error) error {
	if err != nil && s.repository.Load().isShallow(c.Hash) {
		return fmt.Errorf("the history ends at %s: %w", commitOf(c.Hash).Short(), ErrShallow)
	}
	return err
}

const minShort = 4 // digits of a short hash; Git's own minimum

func (s *Source) resolveName(name string) (plumbing.Hash, error) {
	if len(name) == 40 && plumbing.IsHash(name) {
		return plumbing.NewHash(name), nil
	}
	if name == "@" {
		name = "HEAD"
	}
	if name == "" || strings.ContainsAny(name, ": \\") || strings.Contains(name, "..") || strings.Contains(name, "@{") {
		return plumbing.ZeroHash, errors.New("want a branch, a tag or a hash")
	}
	if s.repository.Load() == nil {
		return plumbing.ZeroHash, fmt.Errorf("no Git repository at %s", s.local)
	}
	for _, rule := range plumbing.RefRevParseRules {
		full := plumbing.ReferenceName(fmt.Sprintf(rule, name))
		if !full.IsSafe() {
			continue
		}
		_, h, err := s.repository.Load().ref(full)
		if !errors.Is(err, errNoRef) {
			return h, err
		}
	}
	if digits := strings.ToLower(name); len(name) >= minShort && len(name) < 40 && strings.Trim(digits, "0123456789abcdef") == "" {
		return s.resolveShort(digits)
	}
	return plumbing.ZeroHash, ErrNoRevision
}

// resolveShort finds the one commit, or tag of a commit, that begins with
// digits. Files and folders do not make it ambiguous.
func (s *Source) resolveShort(digits string) (plumbing.Hash, error) {
	hashes, err := s.objects.withPrefix(digits)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	var found []plumbing.Hash
	for _, h := range hashes {
		if _, err := s.peel(h); err == nil {
			found = append(found, h)
		}
	}
	switch len(found) {
	case 0:
		return plumbing.ZeroHash, ErrNoRevision
	case 1:
		return found[0], nil
	}
	return plumbing.ZeroHash, fmt.Errorf("ambiguous: %d commits begin with it, %s and %s among them", len(found), found[0], found[1])
}

// maxTags is how many tags in a row may name another one.
const maxTags = 10

// peel follows tags to the commit they name.
func (s *Source) peel(h plumbing.Hash) (*object.Commit, error) {
	for range maxTags {
		obj, err := s.objects.read(h, plumbing.AnyObject, maxCommit)
		if err != nil {
			return nil, err
		}
		switch obj.Type() {
		case plumbing.CommitObject:
			return s.objects.commit(h)
		case plumbing.TagObject:
			tag, err := object.DecodeTag(nil, obj)
			if err != nil {
				return nil, err
			}
			h = tag.Target
		default:
			return nil, fmt.Errorf("%s is a %s, not a commit", h, obj.Type())
		}
	}
	return nil, fmt.Errorf("more than %d tags in a row", maxTags)
}

// descends says whether commit to has commit from in its history. It goes from
// the newest commits to the oldest, by the committer's time, so that a branch
// that moved forward is decided after the commits that are new.
func (o *objects) descends(ctx context.Context, to, from plumbing.Hash) (bool, error) {
	queue := &newestFirst[queued]{}
	seen := map[plumbing.Hash]bool{}
	for next := []plumbing.Hash{to}; ; {
		for _, h := range next {
			if h == from {
				return true, nil
			}
			if seen[h] {
				continue
			}
			seen[h] = true
			c, err := o.commit(h)
			if err != nil {
				return false, err
			}
			heap.Push(queue, queued{c.Committer.When, c.ParentHashes})
		}
		if queue.Len() == 0 {
			return false, nil
		}
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		next = heap.Pop(queue).(queued).parents
	}
}

type queued struct {
	time    time.Time
	parents []plumbing.Hash
}

func (q queued) date() time.Time { return q.time }
