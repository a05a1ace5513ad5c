// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
)

var (
	yamlErrorLine = regexp.MustCompile(`^(?:yaml: )?(?:unmarshal errors:\s*)?(?:line (\d+): )?`)
	// parserError is what the YAML library says in its grammar. Only there it
	// counts lines from 0.
	parserError   = regexp.MustCompile(`^(did not find expected (<|node content|'-' indicator|key|',' or)|found (undefined tag handle|duplicate %|incompatible YAML))`)
	unknownAnchor = regexp.MustCompile(`^unknown anchor '(.*)' referenced$`)
)

// What the YAML library says of a tab before a key. It says noToken of other
// characters too; with tabIndent it names the line of the value before the tab.
const (
	noToken   = "found character that cannot start any token"
	tabIndent = "found a tab character that violates indentation"
)

// explainTab finds what one of those texts is about, and where. It shows
// nothing of the line, which may be a Secret's.
func explainTab(pos Position, content []byte, text string) (Position, string) {
	lines := bytes.Split(content, []byte("\n"))
	for i := max(pos.Line, 1) - 1; i < len(lines); i++ {
		indent := lines[i][:len(lines[i])-len(bytes.TrimLeft(lines[i], " \t"))]
		if tab := bytes.IndexByte(indent, '\t'); tab >= 0 {
			pos.Line, pos.Column = i+1, tab+1
			return pos, "a tab: indent with spaces"
		}
		if text == noToken {
			return pos, text + ": write a string that begins with @, % or ` in quotes"
		}
	}
	return pos, text
}

func syntaxProblem(file string, content []byte, err error) Problem {
	text := strings.TrimSpace(err.Error())
	pos := Position{File: file}
	if m := yamlErrorLine.FindStringSubmatch(text); m != nil {
		pos.Line, _ = strconv.Atoi(m[1])
		text = text[len(m[0]):]
	}
	text, _, _ = strings.Cut(text, "\n")
	if parserError.MatchString(text) {
		pos.Line++
	}
	library := text
	if m := unknownAnchor.FindStringSubmatch(text); m != nil { // it has no line
		if before, _, found := bytes.Cut(content, []byte("*"+m[1])); found {
			pos.Line, pos.Column = 1+bytes.Count(before, []byte("\n")), len(before)-bytes.LastIndexByte(before, '\n')
		}
		text = "an alias (*) without its anchor (&) before it: write a string that begins with * in quotes" // which may be a Secret's value
	}
	if text == noToken || text == tabIndent {
		pos, text = explainTab(pos, content, text)
	}
	lines := bytes.Split(bytes.TrimRight(content, "\n"), []byte("\n"))
	pos.Line = max(1, min(pos.Line, len(lines))) // not behind the end; of the first line it says nothing
	hint := syntaxHint(text, lines[pos.Line-1])
	if at, cause := explainSyntax(pos, lines, library); pos.Column == 0 {
		pos = at
		if hint == "" && cause != "" {
			hint = ": " + cause
		}
	}
	text += hint
	return Problem{Position: pos, Code: CodeSyntax, Message: Printable("not valid YAML: " + text)}
}

// syntaxHint says in people's words what mostly stands behind an error on that
// line. It holds nothing of the line, which may be of a Secret.
func syntaxHint(text string, line []byte) string {
	switch {
	case bytes.HasPrefix(line, []byte("<<<<<<<")), bytes.HasPrefix(line, []byte("=======")), bytes.HasPrefix(line, []byte(">>>>>>>")):
		return ": a merge conflict that is not resolved"
	case bytes.Contains(line, []byte("{{")):
		return ": templates of Helm and the like are not run, and a string that begins with { stands in quotes"
	case bytes.Contains(line, []byte("\u00a0")):
		return ": a space on this line is a no-break space (U+00A0), which YAML takes for a letter"
	case strings.HasPrefix(text, "did not find expected <document start>"):
		return ": something follows the end of the document; --- on a line of its own begins another one"
	case strings.HasPrefix(text, "found incompatible YAML document"):
		return ": remove the %YAML line, or make it %YAML 1.1"
	}
	return ""
}
