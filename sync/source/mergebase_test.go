// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/rapidtest"
)

// TestMergeBase holds merge bases in a random history, many commits of which are of the same
// second, against those that git finds.
func TestMergeBase(t *testing.T) {
	c := newClone(t)
	git(t, c.dir, "commit", "-q", "--allow-empty", "-m", "a tree")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	tree := strings.TrimSpace(git(t, c.dir, "rev-parse", "HEAD^{tree}"))
	all := []config.Commit{c.head()}
	near := func() config.Commit { return all[max(0, len(all)-1-random.IntN(6))] }
	for i := range 60 {
		args := []string{"commit-tree", "-m", fmt.Sprint(i), tree, "-p", string(near())}
		if other := near(); random.IntN(3) == 0 && string(other) != args[len(args)-1] {
			args = append(args, "-p", string(other))
		}
		all = append(all, config.Commit(strings.TrimSpace(git(t, c.dir, args...))))
	}
	s := local(t, c)
	for budget := rapidtest.NewBudget(t, 60, 300*time.Millisecond); budget.Next(); {
		a, b := all[random.IntN(len(all))], all[random.IntN(len(all))]
		got, err := s.MergeBase(a, b)
		if want := strings.Fields(git(t, c.dir, "merge-base", "--all", string(a), string(b))); err != nil || !slices.Contains(want, string(got)) {
			t.Errorf("of %s and %s: got %s, %v; git says %q", a.Short(), b.Short(), got, err, want)
		}
	}
}

// TestMergeBaseOfNone: histories that never met, and one that was left out of the clone.
func TestMergeBaseOfNone(t *testing.T) {
	c := newClone(t)
	git(t, c.dir, "commit", "-q", "--allow-empty", "-m", "first")
	first := c.head()
	git(t, c.dir, "checkout", "-q", "--orphan", "other")
	git(t, c.dir, "commit", "-q", "--allow-empty", "-m", "other")
	other := c.head()
	if _, err := local(t, c).MergeBase(first, other); !errors.Is(err, ErrUnrelated) {
		t.Errorf("got %v", err)
	}
	git(t, c.dir, "commit", "-q", "--allow-empty", "-m", "more")
	git(t, c.dir, "checkout", "-q", "-b", "third", string(other))
	git(t, c.dir, "commit", "-q", "--allow-empty", "-m", "third")
	shallow := t.TempDir()
	git(t, shallow, "clone", "-q", "--depth", "1", "--no-single-branch", "file://"+c.dir, ".")
	s, err := OpenLocal(shallow)
	if err != nil {
		t.Fatal(err)
	}
	a, errA := s.Resolve("origin/other")
	b, errB := s.Resolve("origin/third")
	if _, err := s.MergeBase(a, b); errA != nil || errB != nil || !errors.Is(err, ErrShallow) {
		t.Errorf("got %v, %v, %v", err, errA, errB)
	}
}
