// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"regexp"
	"strings"
)

// syntaxCause is what mostly stands behind an error of the YAML library. The
// hint holds nothing of the line, which may be of a Secret.
type syntaxCause struct {
	errors []string       // what the library's text begins with
	line   *regexp.Regexp // of the line; its last group is where the cause stands
	before int            // how many lines before the one that the library names are looked at
	after  int            // and how many behind it
	hint   string
}

var syntaxCauses = []syntaxCause{
	{[]string{"did not find expected alphabetic"}, regexp.MustCompile(`(?:^|[\s\[{,])([*&])(?:[^A-Za-z0-9_-]|$)`), 0, 1,
		"a string that begins with * or & stands in quotes"},
	{[]string{"found unknown escape character"}, regexp.MustCompile(`^(?:[^\\]|\\[0abt\tnvfre "\\N_LPxuU])*(\\)[^0abt\tnvfre "\\N_LPxuU]`), 0, 100,
		"in double quotes a backslash is written twice; in single quotes it is an ordinary character"},
	{[]string{noToken}, regexp.MustCompile("(?:^|[\\s\\[{,])([@`%])"), 0, 1, ""}, // it has its hint
	{[]string{"found unexpected end of stream", "found unexpected document indicator"}, regexp.MustCompile(`(?:^|.*[\s\[{,])(["'])`), 0, 0,
		"the quote that opens here is not closed"},
	{[]string{"did not find expected ',' or"}, regexp.MustCompile(`^[^{}\[\]]*(?:[{\[][^{}\[\]]*[}\]][^{}\[\]]*)*([{\[])[^}\]]*$`), 20, 0,
		"a { or [ that opens here is not closed, or a comma is missing"},
	{[]string{"could not find expected ':'", "mapping values are not allowed"}, regexp.MustCompile(`^\s*(?:- )*[\w.-]+(:)[^\s/:]`), 2, 0,
		"write a space behind the colon"},
	{[]string{"mapping values are not allowed"}, regexp.MustCompile(`^\s*(?:- )*[^\s'"][^'"]*?:\s+[^\s'"].*?(:)(?:\s|$)`), 0, 0,
		"a string with a colon and a space in it stands in quotes"},
	{[]string{"did not find expected key"}, regexp.MustCompile(`:\s+'[^']*(')[\w]`), 0, 0, "write '' for a quote in single quotes"},
}

// maxCauseLine is the longest line in bytes that is looked at for a cause.
const maxCauseLine = 1000

// explainSyntax finds where the cause of an error stands, and what mostly is
// behind it; hint is empty where it is not known. The line of pos is 1 at
// least.
func explainSyntax(pos Position, lines [][]byte, text string) (at Position, hint string) {
	for _, c := range syntaxCauses {
		if !c.fits(text) {
			continue
		}
		for i := 0; i <= c.before+c.after; i++ {
			line := pos.Line - i // backwards from the line, or
			if i > c.before {
				line = pos.Line + i - c.before // on behind it
			}
			if line < 1 || line > len(lines) || len(lines[line-1]) > maxCauseLine {
				continue
			}
			if m := c.line.FindSubmatchIndex(lines[line-1]); m != nil {
				pos.Line, pos.Column = line, m[len(m)-2]+1
				return pos, c.hint
			}
		}
	}
	pos.Column = 1 + len(indentOf(lines, pos.Line))
	if isIndented(lines, pos.Line, text) {
		hint = "the line is indented in another way than those around it"
	}
	return pos, hint
}

func (c *syntaxCause) fits(text string) bool {
	for _, start := range c.errors {
		if strings.HasPrefix(text, start) {
			return true
		}
	}
	return false
}

// indentOf are the spaces before a line, counted from 1.
func indentOf(lines [][]byte, line int) []byte {
	if line > len(lines) {
		return nil
	}
	text := lines[line-1]
	return text[:len(text)-len(bytes.TrimLeft(text, " "))]
}

// isIndented says whether an error is one of a line that does not stand below
// the one before it.
func isIndented(lines [][]byte, line int, text string) bool {
	if !strings.HasPrefix(text, "did not find expected key") && !strings.HasPrefix(text, "did not find expected '-'") && !strings.HasPrefix(text, "mapping values are not allowed") {
		return false
	}
	if line < 2 || line > len(lines) {
		return false
	}
	isItem := func(line int) bool { return bytes.HasPrefix(bytes.TrimLeft(lines[line-1], " "), []byte("- ")) }
	return len(indentOf(lines, line)) != len(indentOf(lines, line-1)) || isItem(line) != isItem(line-1)
}
