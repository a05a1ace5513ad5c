// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"slices"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

// anyKind is listed for what could not be read, such as a file, or a link in the place
// of one or of a whole unit: what it holds is not known.
const anyKind = "*"

// scan lists the kinds of the documents in a unit that is not rendered yet:
// those that define custom resources, or that other units collect, must be
// known before any unit is rendered. It may list more than there are.
func (w *world) scan(unit *config.Unit) []string {
	var kinds []string
	add := func(kind string) {
		if kind != "" && !slices.Contains(kinds, kind) {
			kinds = append(kinds, shared(kind))
		}
	}
	if len(unit.Problems) > 0 {
		add(anyKind)
	}
	if unit.Kustomization != "" {
		docs, _, problems := w.documents(unit, &recorder{world: w})
		for _, doc := range docs {
			add(doc.Kind)
		}
		if problems.Retry() {
			add(anyKind)
		}
		return kinds
	}
	for _, file := range unit.Files {
		content, err := w.repository.Tree.ReadFile(file)
		if err != nil {
			add(anyKind) // rendering will say so
			continue
		}
		if !kindsIn(content, add) {
			docs, _ := document.ReadDialect(file, content, document.Kubectl)
			for _, doc := range docs {
				add(doc.Kind)
			}
		}
	}
	return kinds
}

// kindsIn finds the values of all fields named kind, at any depth, without
// parsing. It gives up where the text could be written in a way that it does
// not see through.
func kindsIn(content []byte, add func(string)) bool {
	const field = "kind"
	if bytes.ContainsAny(content, `\\*&!?`) {
		return false
	}
	for {
		at := bytes.Index(content, []byte(field))
		if at < 0 {
			return true
		}
		content = content[at+len(field):]
		rest := bytes.TrimLeft(bytes.TrimLeft(content, `"'`), " \t\r\n")
		if len(rest) == 0 || rest[0] != ':' {
			continue // part of another word
		}
		rest = bytes.TrimLeft(bytes.TrimLeft(rest[1:], " \t\r\n"), `"'`)
		end := 0
		for end < len(rest) && isWord(rest[end]) {
			end++
		}
		if end == 0 {
			return false
		}
		add(string(rest[:end]))
	}
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
