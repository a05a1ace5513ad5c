// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestLongMessages: an expression of 200,000 characters is not repeated in
// full; where it stands and what is wrong with it is.
func TestLongMessages(t *testing.T) {
	for _, filling := range []string{"x", "é", "漢"} {
		long := "spec.let[0]: " + strings.Repeat(filling, 200_000) + ": undeclared reference"
		got := Problems{{Message: long}, {Message: "short"}}.Sorted()
		if got[0].Message != "short" && got[1].Message != "short" {
			t.Errorf("a short message is changed: %q", got)
		}
		for _, p := range got {
			if len(p.Message) > maxMessage || !utf8.ValidString(p.Message) {
				t.Errorf("%d bytes, valid %t", len(p.Message), utf8.ValidString(p.Message))
			}
			if p.Message != "short" && (!strings.HasPrefix(p.Message, "spec.let[0]: ") || !strings.HasSuffix(p.Message, ": undeclared reference")) {
				t.Errorf("got %q", p.Message)
			}
		}
	}
}
