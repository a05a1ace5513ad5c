// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"container/heap"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/swell-sh/swell/config"
)

// maxAuthored is how many commits [Source.Authors] looks at.
const maxAuthored = 10_000

// Authors are the emails of the authors and co-authors of the commits that to has and from
// has not, sorted. Without from, they are those of to alone. It is an error when that is
// too many commits to look at.
func (s *Source) Authors(from, to config.Commit) ([]string, error) {
	w := authorWalk{source: s, seen: map[plumbing.Hash]*walked{}}
	err := w.start(to, false)
	if err == nil && from != "" {
		err = w.start(from, true)
	}
	if err == nil && from != "" {
		err = w.run()
	}
	if err != nil {
		return nil, s.wrap("authors of "+to.Short(), err)
	}
	return w.emails(), nil
}

// authorWalk goes back from two commits, the newest first, and knows of each which of the
// two has it.
type authorWalk struct {
	source *Source
	seen   map[plumbing.Hash]*walked
	open   newestFirst[*walked]
	news   int // how many of those the earlier commit may not have
}

func (w *authorWalk) start(commit config.Commit, known bool) error {
	h, err := hashOf(commit)
	if err != nil {
		return err
	}
	return w.reach(h, known)
}

type walked struct {
	commit *object.Commit
	known  bool // the earlier commit has it
	done   bool
}

func (w *walked) date() time.Time { return w.commit.Committer.When }

// reach comes to a commit.
func (w *authorWalk) reach(h plumbing.Hash, known bool) error {
	is := w.seen[h]
	if is == nil {
		if len(w.seen) == maxAuthored {
			return fmt.Errorf("more than %d commits", maxAuthored)
		}
		c, err := w.source.objects.commit(h)
		if err != nil {
			return err
		}
		is = &walked{commit: c}
		w.seen[h] = is
		heap.Push(&w.open, is)
		w.news++
	}
	if !known || is.known {
		return nil
	}
	is.known = true
	if is.done { // it was taken for news: its clock is wrong
		is.done = false
		heap.Push(&w.open, is)
	} else {
		w.news--
	}
	return nil
}

// run goes on until the earlier commit has all that is left. Where clocks were wrong, some
// that it has may pass for news: an author too many is the safe side.
func (w *authorWalk) run() error {
	var oldest time.Time // of what passed for news
	for w.news > 0 || !oldest.IsZero() && len(w.open) > 0 && !w.open[0].commit.Committer.When.Before(oldest) {
		is := heap.Pop(&w.open).(*walked)
		is.done = true
		if !is.known {
			w.news--
			if at := is.commit.Committer.When; oldest.IsZero() || at.Before(oldest) {
				oldest = at
			}
		}
		for _, parent := range is.commit.ParentHashes {
			if err := w.reach(parent, is.known); err != nil {
				return err
			}
		}
	}
	return nil
}

// emails are those of the authors of what the earlier commit has not.
func (w *authorWalk) emails() (all []string) {
	for _, is := range w.seen {
		if !is.known {
			all = append(all, authorsOf(is.commit)...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// authorsOf are the author and the co-authors of a commit.
func authorsOf(c *object.Commit) []string {
	emails := []string{strings.ToLower(c.Author.Email)}
	for line := range strings.Lines(c.Message) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if !strings.EqualFold(key, "Co-authored-by") {
			continue
		}
		if _, email, ok := strings.Cut(value, "<"); ok {
			email, _, _ = strings.Cut(email, ">")
			emails = append(emails, strings.ToLower(email))
		}
	}
	return emails
}
