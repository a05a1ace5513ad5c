// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/swell-sh/swell/config/document"
)

// IgnoreFile names files and folders below its own folder that hold nothing for units,
// in the form of a .gitignore: a pattern a line, # begins a comment, ! takes back what a
// line before left out, a slash at the end is for folders alone. A pattern without
// another slash is for names at any depth. The last line that matches decides.
const IgnoreFile = ".swellignore"

// leaveRules are the lines of the ignore files from the root down to a folder.
type leaveRules []leaveRule

type leaveRule struct {
	at             document.Position
	pattern        string // of paths from the root
	takes, folders bool
}

// parseLeaveRules reads the file of a folder.
func parseLeaveRules(file string, content []byte) (rules leaveRules, problems document.Problems) {
	number := 0
	for line := range strings.Lines(string(content)) {
		number++
		text := strings.TrimRight(line, " \t\r\n")
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		rule := leaveRule{at: document.Position{File: file, Line: number}}
		text, rule.takes = strings.CutPrefix(text, "!")
		text, rule.folders = strings.CutSuffix(text, "/")
		anywhere := !strings.Contains(text, "/")
		text = strings.TrimPrefix(text, "/")
		if text == "" || !doublestar.ValidatePattern(text) {
			problems = append(problems, document.Problem{Position: rule.at, Code: document.CodeType, Message: fmt.Sprintf("%q: want a pattern of a file or folder, as in a .gitignore", document.Shorten(strings.TrimSpace(line)))})
			continue
		}
		if anywhere {
			text = "**/" + text
		}
		rule.pattern = text
		if dir := path.Dir(file); dir != "." {
			rule.pattern = escapePattern(dir) + "/" + text
		}
		rules = append(rules, rule)
	}
	return rules, problems
}

// escapePattern is a path as a pattern of itself alone.
func escapePattern(name string) string {
	var b strings.Builder
	for _, r := range name {
		if strings.ContainsRune(`*?[]{}\`, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// leaves says why a file or folder is left out; empty when it is not.
func (rules leaveRules) leaves(name string, folder bool) (why string) {
	for _, rule := range rules {
		switch {
		case rule.folders && !folder, !matches(rule.pattern, name):
		case rule.takes:
			why = ""
		default:
			why = rule.at.String() + ": leaves it out"
		}
	}
	return why
}
