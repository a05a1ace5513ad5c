// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/swell-sh/swell/config/rapidtest"
)

func TestNames(t *testing.T) {
	for _, c := range []struct {
		names, admitted, denied string
	}{
		{"", "a b", ""},
		{"a", "a", "b aa"},
		{"a b*", "a b bc", "ab"},
		{"!a", "b", "a"},
		{"* !a*", "b", "a ab"},
		{"!a a", "", "a b"},
		{"x/*", "x/a x/a/b x/", "x xx/a"},
		{"*a*a*", "aa bacad", "a ba"},
		{"a*a", "aa aba", "a"},
	} {
		names := Names(strings.Fields(c.names))
		for _, name := range strings.Fields(c.admitted) {
			if !names.Admit(name) {
				t.Errorf("%q denies %q", c.names, name)
			}
		}
		for _, name := range strings.Fields(c.denied) {
			if names.Admit(name) {
				t.Errorf("%q admits %q", c.names, name)
			}
		}
	}
}

// TestPropertyLike holds patterns against regular expressions.
func TestPropertyLike(t *testing.T) {
	text := rapid.StringOf(rapid.SampledFrom([]rune("ab*")))
	rapidtest.Check(t, 100, 100*time.Millisecond, func(t *rapid.T) {
		pattern, name := text.Draw(t, "pattern"), strings.ReplaceAll(text.Draw(t, "name"), "*", "c")
		parts := strings.Split(pattern, "*")
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		want := regexp.MustCompile("^" + strings.Join(parts, ".*") + "$").MatchString(name)
		if got := like(pattern, name); got != want {
			t.Errorf("%q like %q: got %t, want %t", name, pattern, got, want)
		}
	})
}
