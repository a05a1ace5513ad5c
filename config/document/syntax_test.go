// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"strings"
	"testing"
)

// TestSyntaxCauses: what is no YAML is told with its line and column, and with
// what mostly stands behind it.
func TestSyntaxCauses(t *testing.T) {
	for _, c := range []struct{ text, at, hint string }{
		{"a: *.log\n", "1:4", "a string that begins with * or & stands in quotes"},
		{"a: b\nc:\n- *.log\n", "3:3", "a string that begins with * or & stands in quotes"},
		{"a: b\nc: & d\n", "2:4", "a string that begins with * or & stands in quotes"},
		{"a: \"x\\/y\"\n", "1:6", "in double quotes a backslash is written twice"},
		{"a: b\nc: \"x\n  \\d\"\n", "3:3", "in double quotes a backslash is written twice"},
		{"a: @x\n", "1:4", "begins with @, % or `"},
		{"a: `x`\n", "1:4", "begins with @, % or `"},
		{"a: b\nc: %x\n", "2:4", "begins with @, % or `"},
		{"a: b\nc: \"x\nd: e\n", "2:4", "the quote that opens here is not closed"},
		{"a: 'it's'\nb: c\n", "1:7", "write '' for a quote in single quotes"},
		{"a: {b: c\nd: e\n", "1:4", "not closed"},
		{"a: b\nc: [d, e\nf: g\n", "2:4", "not closed"},
		{"a: b\nkey:value\nc: d\n", "2:4", "a space behind the colon"},
		{"a:b\nc: d\n", "1:2", "a space behind the colon"},
		{"a: b: c\n", "1:5", "a string with a colon and a space in it stands in quotes"},
		{"a:\n  b: c\n d: e\n", "3:2", "is indented in another way than"},
		{"a:\n  - b\n - c\n", "3:2", "is indented in another way than"},
		{"a:\n  b: c\n    d: e\n", "3:5", "is indented in another way than"},
		{"a:\n- b\nc\n- d\n", "3:1", ""},
		{"a:\n\tb: c\n", "2:1", "a tab: indent with spaces"},
		{"a: b\n}\n", "2:1", ""},
		{"a: b\n- c\n", "2:1", "is indented in another way than"},
		{"]", "1:1", ""},
		{"%", "1:1", ""},
		{"a: *nothing\n", "1:4", "an alias (*) without its anchor"},
		{"{{ x }}: y\n", "", ""},
	} {
		_, problems := ReadValues("f.yaml", []byte(c.text))
		if len(problems) == 0 {
			t.Errorf("%q: no problem", c.text)
			continue
		}
		if p := problems[0]; p.Line == 0 || p.Column == 0 {
			t.Errorf("%q: no line or no column: %s", c.text, p)
		}
		if got := problems[0].String(); !strings.HasPrefix(got, "f.yaml:"+c.at) || !strings.Contains(got, c.hint) {
			t.Errorf("%q:\ngot  %s\nwant %s ... %s", c.text, got, c.at, c.hint)
		}
	}
}
