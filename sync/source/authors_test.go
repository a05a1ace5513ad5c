// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"slices"
	"strings"
	"testing"

	"github.com/swell-sh/swell/config"
)

// TestAuthors holds the authors between two commits, over merges too, against what git
// says.
func TestAuthors(t *testing.T) {
	c := newClone(t)
	as := func(name, message string, args ...string) config.Commit {
		t.Helper()
		git(t, c.dir, append([]string{"-c", "user.name=" + name, "-c", "user.email=" + name + "@Example.com", "commit", "-q", "--allow-empty", "-m", message, "--author", name + " <" + name + "@Example.com>"}, args...)...)
		return c.head()
	}
	first := as("ann", "first")
	second := as("ben", "second")
	git(t, c.dir, "checkout", "-q", "-b", "side", string(first))
	side := as("eve", "side", "--date", "2001-01-01T00:00:00Z")
	git(t, c.dir, "checkout", "-q", "-")
	git(t, c.dir, "-c", "user.name=dan", "-c", "user.email=dan@example.com", "merge", "-q", "--no-ff", "-m", "merge", "side")
	merge := c.head()
	last := as("ann", "last\n\nCo-authored-by: Joe <Joe@example.com>\n"+
		"Co-Authored-By: Kim <kim@example.com>\nCO-AUTHORED-BY: Lea <LEA@example.com>")
	s := local(t, c)
	for _, between := range [][2]config.Commit{{first, second}, {first, merge}, {second, merge}, {side, merge}, {first, last}, {merge, merge}, {last, first}, {second, side}} {
		got, err := s.Authors(between[0], between[1])
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Fields(strings.ToLower(git(t, c.dir, "log", "--format=%ae", string(between[0])+".."+string(between[1]))))
		if between[1] == last {
			want = append(want, "joe@example.com", "kim@example.com", "lea@example.com")
		}
		slices.Sort(want)
		if want = slices.Compact(want); !slices.Equal(got, want) {
			t.Errorf("from %s to %s: got %q, git says %q", between[0].Short(), between[1].Short(), got, want)
		}
	}
	all := []string{"ann@example.com", "joe@example.com", "kim@example.com", "lea@example.com"}
	if got, err := s.Authors("", last); err != nil || !slices.Equal(got, all) {
		t.Errorf("of the first commit: %q, %v", got, err)
	}
	if _, err := s.Authors("", config.Commit(strings.Repeat("0", 40))); err == nil {
		t.Error("of no commit")
	}
}
