// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package easy

import (
	"regexp"
	"testing"

	"google.golang.org/protobuf/types/known/wrapperspb"
)

// TestPortable: patterns that mean something else in JavaScript stood in JSON
// Schemas, or kept an editor from reading them.
func TestPortable(t *testing.T) {
	texts := []string{"", "a", "A", "ab", "k", "\u212a", "1", "-", "a-b", "a.b", "{", "a{2}", "]", "\n", "\r", "\u00a0", "ä", "a b", "^", "\\", "/"}
	for _, test := range []struct{ pattern, want string }{
		{`^[a-z]([-a-z0-9]*[a-z0-9])?$`, `^[a-z]([-a-z0-9]*[a-z0-9])?$`},
		{`^\d{2,}\w+(?:a|b)*?$`, `^\d{2,}\w+(?:a|b)*?$`},
		{`^.+$`, `^[^\n]+$`},
		{`(?s)^.+$`, `^[\d\D]+$`},
		{`^\S$`, `^[^\x09-\x0a\x0c-\x0d ]$`},
		{`\Aa\z`, `^a$`},
		{`(?i)k`, "[k\u212aK]"},
		{`[[:alpha:]]`, `[A-Za-z]`},
		{`(?P<name>a|b)c`, `[a-b]c`},
		{`\Qa.b\E`, `a\.b`},
		{`a\-b`, `a\x2db`},
		{`^a{|]$`, `^a\{|\]$`},
		{`[^/]`, `[^/]`},
		{`\x{61}`, `a`},
		{`[]a]`, `[\]a]`},
		{`(?m)^a$`, ``},  // ends of lines
		{`^\p{L}+$`, ``}, // letters beyond 16 bits
		{`[\x{1F600}]`, ``},
		{`(`, ``}, {``, ``},
	} {
		got, ok := portable(test.pattern)
		if ok != (test.want != "") || ok && got != test.want {
			t.Errorf("%s: got %s %t, want %s", test.pattern, got, ok, test.want)
		}
		if !ok {
			continue
		}
		for _, text := range texts {
			if regexp.MustCompile(test.pattern).MatchString(text) != regexp.MustCompile(got).MatchString(text) {
				t.Errorf("%s and %s differ on %q", test.pattern, got, text)
			}
		}
	}
}

// TestWritten: what went wrong in one kind kept the schemas of all others from
// being written.
func TestWritten(t *testing.T) {
	k := Own((&wrapperspb.BoolValue{}).ProtoReflect().Descriptor(), "Broken")
	k.names.columns = []column{{}} // New refuses it
	if problems := k.Written(); len(problems) != 1 || problems[0].Position.File != "google/protobuf/wrappers.proto" {
		t.Errorf("got %v, want one problem in the file", problems)
	}
}
