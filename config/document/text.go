// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// checkText finds what no text may hold, in YAML or in a file that a spec names.
func checkText(file string, content []byte) *Problem {
	at := func(offset int, message string) *Problem { return textProblem(file, content, offset, message) }
	switch {
	case bytes.HasPrefix(content, []byte{0xff, 0xfe}), bytes.HasPrefix(content, []byte{0xfe, 0xff}):
		return at(0, "UTF-16 text: save the file as UTF-8")
	case bytes.HasPrefix(content, []byte{0xef, 0xbb, 0xbf}):
		return at(0, "a byte order mark: save the file as UTF-8 without one")
	}
	if i := bytes.IndexByte(content, 0); i >= 0 {
		return at(i, "a NUL byte: this is no text")
	}
	if !utf8.Valid(content) {
		offset := 0
		for {
			r, size := utf8.DecodeRune(content[offset:])
			if r == utf8.RuneError && size <= 1 {
				return at(offset, "invalid UTF-8")
			}
			offset += size
		}
	}
	return nil
}

// checkYAML finds what no YAML file may hold. The YAML library would not say
// where it stands, or would take it for a part of a name.
func checkYAML(file string, content []byte) *Problem {
	if p := checkText(file, content); p != nil {
		return p
	}
	if i := bytes.Index(content, []byte("\n\ufeff")); i >= 0 { // files were put one behind the other
		return textProblem(file, content, i+1, "a byte order mark inside the file: remove it")
	}
	if at, message := lineBreak(content); message != "" {
		return textProblem(file, content, at, message)
	}
	if i := falseSeparator(content); i >= 0 {
		return textProblem(file, content, i, "a line that ends the document to kubectl and is text to other YAML readers: write a space after ---, or indent the line")
	}
	if i := bytes.IndexFunc(content, isControl); i >= 0 {
		return textProblem(file, content, i, "a control character: remove it, or write it in double quotes, like \"\\x1b\"")
	}
	return nil
}

// falseSeparator is where a line begins that kubectl takes for the end of a
// document, for it has only white space of any kind or a comment behind its ---,
// and YAML for text, for no blank follows at once; -1 when there is none.
func falseSeparator(content []byte) int {
	for at := 0; ; at += 3 {
		i := bytes.Index(content[at:], []byte("---"))
		if i < 0 {
			return -1
		}
		if at += i; at > 0 && content[at-1] != '\n' {
			continue
		}
		rest, _, _ := bytes.Cut(content[at+3:], []byte("\n"))
		if len(rest) == 0 || strings.IndexByte(" \t\r", rest[0]) >= 0 {
			continue
		}
		if rest = bytes.TrimSpace(rest); len(rest) == 0 || rest[0] == '#' {
			return at
		}
	}
}

// lineBreak finds a character that ends a line to some YAML readers and to
// editors not, or the other way round.
func lineBreak(content []byte) (at int, message string) {
	i := bytes.IndexFunc(content, func(r rune) bool { return r == 0x85 || r == 0x2028 || r == 0x2029 })
	if i >= 0 {
		r, _ := utf8.DecodeRune(content[i:])
		escaped := map[rune]string{0x85: `\N`, 0x2028: `\L`, 0x2029: `\P`}[r]
		return i, fmt.Sprintf("the character U+%04X, which ends a line to some YAML readers: remove it, or write %s in double quotes", r, escaped)
	}
	for i := 0; i < len(content); i++ {
		if content[i] == '\r' && (i+1 == len(content) || content[i+1] != '\n') {
			return i, "a carriage return that ends no line of an editor: save the file with line feeds"
		}
	}
	return 0, ""
}

// loneTagText is what a tag of a lone ! looks like, and more.
var loneTagText = regexp.MustCompile(`!(\s|$)`)

// loneTag finds a value with the tag !, which is a string to some YAML readers,
// kubectl's among them, and whatever it looks like to others.
func loneTag(file string, content []byte, root *yaml.Node) *Problem {
	if !loneTagText.Match(content) {
		return nil
	}
	lines := bytes.Split(content, []byte("\n"))
	var find func(n *yaml.Node) *Problem
	find = func(n *yaml.Node) *Problem {
		if n.Kind == yaml.ScalarNode && n.Line > 0 && n.Line <= len(lines) {
			text := []rune(string(lines[n.Line-1]))
			words := strings.Fields(string(text[min(n.Column-1, len(text)):]))
			for len(words) > 0 && strings.HasPrefix(words[0], "&") {
				words = words[1:]
			}
			if len(words) > 0 && words[0] == "!" {
				return &Problem{Position: Position{file, n.Line, n.Column}, Code: CodeSyntax, Message: "the tag !, which makes a string of any value to some YAML readers: remove it, or write the value in quotes"}
			}
		}
		for _, child := range n.Content {
			if p := find(child); p != nil {
				return p
			}
		}
		return nil
	}
	return find(root)
}

func textProblem(file string, content []byte, offset int, message string) *Problem {
	line := 1 + bytes.Count(content[:offset], []byte("\n"))
	column := offset - bytes.LastIndexByte(content[:offset], '\n')
	return &Problem{Position: Position{file, line, column}, Code: CodeSyntax, Message: message}
}

// isControl says whether YAML takes a character only when it is escaped.
func isControl(r rune) bool {
	switch r {
	case '\t', '\n', '\r':
		return false
	case 0xfffe, 0xffff:
		return true
	}
	return r < 0x20 || r >= 0x7f && r < 0xa0
}
