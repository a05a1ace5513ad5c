// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package override

import (
	"strings"
	"testing"
)

// TestLongNumbers: a filter compares integers with all of their digits, or
// refuses to.
func TestLongNumbers(t *testing.T) {
	if _, err := parseFilter("id==`9007199254740993`"); err == nil || !strings.Contains(err.Error(), "above 2^53 loses digits") {
		t.Errorf("a literal above 2^53: %v", err)
	}
	f, err := parseFilter("a==b")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		a, b int64
		want bool
	}{{9007199254740993, 9007199254740992, false}, {9007199254740993, 9007199254740993, true}, {-9007199254740993, -9007199254740992, false}, {1, 1, true}} {
		a := applier{work: 1000}
		if got, err := f.picks(a.view(map[string]any{"a": c.a, "b": c.b})); err != nil || got != c.want {
			t.Errorf("%d == %d: got %v %v, want %v", c.a, c.b, got, err, c.want)
		}
	}
	for _, c := range []struct {
		a, b any
		want bool
	}{{int64(9007199254740993), float64(9007199254740992), false}, {float64(9007199254740992), int64(9007199254740993), false}, {int64(2), 2.0, true}, {int64(2), 2.5, false}} {
		if got := same(c.a, c.b); got != c.want {
			t.Errorf("test of %v and %v: %v, want %v", c.a, c.b, got, c.want)
		}
	}
}
