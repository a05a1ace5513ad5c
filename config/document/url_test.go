// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"strings"
	"testing"
)

func TestWebURL(t *testing.T) {
	for _, good := range []string{"https://git.example.com", "http://127.0.0.1:3000/git", "https://[::1]:8443/"} {
		if at, err := WebURL(good); err != nil || at.String() != good {
			t.Errorf("%s: %v, %v", good, at, err)
		}
	}
	for _, bad := range []string{"", "git.example.com", "ssh://git.example.com", "https://", "https:///x", "https://LEAK@git.example.com", "https://a:LEAK@git.example.com",
		"https://a:LEAK%zz@git.example.com", "https://a:LEAK@b@git.example.com", "a:LEAK@git.example.com", "https://LEAK\n@git.example.com"} {
		at, err := WebURL(bad)
		if err == nil {
			t.Errorf("%q: no error, %v", bad, at)
			continue
		}
		if strings.Contains(err.Error(), "LEAK") {
			t.Errorf("%q: the error repeats the password: %v", bad, err)
		}
	}
}

// TestWithoutUser: a URL that is refused for its password was shown with its query.
func TestWithoutUser(t *testing.T) {
	for text, want := range map[string]string{
		"https://u:LEAK@host/path?token=LEAK": "...@host/path?...",
		"https://host/path?token=LEAK@9":      "...@9",
		"https://u:a?LEAK@host/path":          "...@host/path",
		"https://u:a?LEAK@host/?token=LEAK":   "...@host/?...",
		"https://host/path#token=LEAK":        "https://host/path#...",
		"https://host/path":                   "https://host/path",
	} {
		if got := WithoutUser(text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
