// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// words are the entries of words.txt.
type words struct {
	names    map[string]string // a whole name, in lower case, to what stands there instead
	parts    []part
	comments *regexp.Regexp
	instead  map[string]string // of a match of comments, in lower case
}

// part is some words of a name, as [joined] writes them.
type part struct{ text, word, instead string }

func parseWords(text string) (*words, error) {
	w := &words{names: map[string]string{}, instead: map[string]string{}}
	var comments []string
	for i, line := range strings.Split(text, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		left, instead, ok := strings.Cut(line, " -> ")
		kind, word, _ := strings.Cut(left, " ")
		if !ok || word == "" || instead == "" {
			return nil, fmt.Errorf("line %d: want KIND WORD -> INSTEAD", i+1)
		}
		lower := strings.ToLower(word)
		switch kind {
		case "name":
			w.names[lower] = instead
		case "part", "word":
			w.parts = append(w.parts, part{joined(word), word, instead})
		case "text":
		default:
			return nil, fmt.Errorf("line %d: kind %q: want name, part, word or text", i+1, kind)
		}
		if kind == "word" || kind == "text" {
			comments = append(comments, regexp.QuoteMeta(lower))
			w.instead[lower] = instead
		}
	}
	w.comments = regexp.MustCompile(`(?i)\b(` + strings.Join(comments, "|") + `)\b`)
	return w, nil
}

// inName returns the first word that a name should not have; empty when it has none.
func (w *words) inName(name string) (word, instead string) {
	if instead := w.names[strings.ToLower(name)]; instead != "" {
		return name, instead
	}
	text := joined(name)
	for _, p := range w.parts {
		if strings.Contains(text, p.text) {
			return p.word, p.instead
		}
	}
	return "", ""
}

// joined returns the words of a name in lower case, with _ before and after each: takeInOrder
// is _take_in_order_, HTTPServer is _http_server_.
func joined(name string) string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		if i > 0 && unicode.IsUpper(r) && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return "_" + b.String() + "_"
}
