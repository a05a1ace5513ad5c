// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// explanation writes what is known of a kind or a field.
type explanation struct {
	out   io.Writer
	lines int   // of the tree of fields so far
	open  []any // keys of the types that the tree is inside of
	cut   bool  // the tree is longer than mostLines
}

// mostLines is how long the tree of --recursive may get. JSON schemas inside
// CRDs have some hundreds of fields, a Deployment about a thousand.
const mostLines = 5000

const (
	textWidth = 80
	indent    = "  "
)

func (e *explanation) write(k *explained, path []string, s shape, recursive bool) {
	if len(path) == 0 {
		fmt.Fprintf(e.out, "%s (%s), %s\n", k.name, k.apiVersion, k.from)
	} else {
		fmt.Fprintf(e.out, "%s (%s): %s\n", strings.Join(append([]string{k.name}, path...), "."), k.apiVersion, s.typ)
	}
	for paragraph := range strings.SplitSeq(s.doc, "\n\n") {
		if paragraph != "" {
			fmt.Fprintf(e.out, "\n%s", wrap(paragraph, indent))
		}
	}
	e.values(s.values)
	if fields := s.allFields(); len(fields) > 0 && recursive {
		fmt.Fprint(e.out, "\nFields:\n")
		e.tree(s, indent)
	} else if len(fields) > 0 {
		fmt.Fprint(e.out, "\nFields:\n")
		e.list(fields)
	}
	if len(path) == 0 && k.easy {
		e.objects(k)
	}
}

func (e *explanation) values(values []enumValue) {
	if len(values) == 0 {
		return
	}
	fmt.Fprint(e.out, "\nOne of:\n")
	names := make([]string, len(values))
	for i, v := range values {
		names[i] = v.name
	}
	for i, v := range values {
		e.entry(names[i], longestOf(names), strings.ReplaceAll(v.doc, "\n\n", " "))
	}
}

// list shows fields with their types and first sentences.
func (e *explanation) list(fields []field) {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	for i, f := range fields {
		text := f.shape.typ
		for _, more := range []string{f.note, defaultOf(f.doc)} {
			if more != "" {
				text += ", " + more
			}
		}
		e.entry(names[i], longestOf(names), text)
		if sentence := firstSentence(f.doc); sentence != "" {
			fmt.Fprint(e.out, wrap(sentence, strings.Repeat(" ", longestOf(names)+2*len(indent))))
		}
	}
}

// entry writes a name and, beside it, a text of any length.
func (e *explanation) entry(name string, column int, text string) {
	left := indent + name + strings.Repeat(" ", column-utf8.RuneCountInString(name)) + indent
	wrapped := wrap(text, strings.Repeat(" ", len(indent)*2+column))
	if wrapped == "" {
		fmt.Fprintln(e.out, indent+name)
		return
	}
	fmt.Fprint(e.out, left+strings.TrimLeft(wrapped, " "))
}

func longestOf(names []string) int {
	longest := 0
	for _, name := range names {
		longest = max(longest, utf8.RuneCountInString(name))
	}
	return longest
}

// tree shows the fields with their fields, down to types that are open
// already.
func (e *explanation) tree(s shape, in string) {
	e.open = append(e.open, s.key)
	defer func() { e.open = e.open[:len(e.open)-1] }()
	for _, f := range s.allFields() {
		if e.lines++; e.lines > mostLines {
			if !e.cut {
				fmt.Fprintf(e.out, "%s... more than %d fields: name one of them to see its fields\n", in, mostLines)
			}
			e.cut = true
			return
		}
		text := f.shape.typ
		if f.note != "" {
			text += ", " + f.note
		}
		switch {
		case f.shape.fields == nil || f.shape.closed:
			fmt.Fprintf(e.out, "%s%s: %s\n", in, f.name, text)
		case e.isOpen(f.shape.key):
			fmt.Fprintf(e.out, "%s%s: %s, as further up\n", in, f.name, text)
		default:
			fmt.Fprintf(e.out, "%s%s: %s\n", in, f.name, text)
			e.tree(f.shape, in+indent)
		}
	}
}

func (e *explanation) isOpen(key any) bool { return contains(e.open, key) }

func (e *explanation) objects(k *explained) {
	fmt.Fprint(e.out, "\nObjects, by the ids that spec.override may name:\n")
	names := make([]string, len(k.objects))
	for i, o := range k.objects {
		names[i] = o.ID
	}
	for i, o := range k.objects {
		e.entry(names[i], longestOf(names), fmt.Sprintf("%s (%s)", o.Kind, o.APIVersion))
		column := strings.Repeat(" ", longestOf(names)+2*len(indent))
		if o.When != "" {
			fmt.Fprint(e.out, wrap("when "+o.When, column))
		}
		if o.Each != "" {
			fmt.Fprint(e.out, wrap("for each "+o.Each, column))
		}
	}
	fmt.Fprintf(e.out, "\n%s", wrap("In place of a string or bytes a spec may say {fromFile: NAME}, a file in the unit's folder or below it.", ""))
}

// firstSentence is a comment up to its first full stop, without the default.
func firstSentence(doc string) string {
	doc, _, _ = strings.Cut(doc, "\n\n")
	for i := range len(doc) {
		if doc[i] == '.' && (i+1 == len(doc) || doc[i+1] == ' ') && !abbreviated(doc[:i]) {
			doc = doc[:i+1]
			break
		}
	}
	if strings.HasPrefix(doc, defaultMark) {
		return ""
	}
	return doc
}

// abbreviated says whether a full stop after the text belongs to its last
// word, "e.g.", "i.e.", or to others before it: "...".
func abbreviated(text string) bool {
	if strings.HasSuffix(text, ".") {
		return true
	}
	last := text[strings.LastIndexAny(text, " (")+1:]
	return len(last) == 1 || strings.Contains(last, ".") && len(last) == 3 || last == "etc"
}

const defaultMark = "Default: "

// defaultOf is what a comment says after "Default: ".
func defaultOf(doc string) string {
	i := strings.Index(doc, defaultMark)
	if i < 0 {
		return ""
	}
	text, _, _ := strings.Cut(doc[i+len(defaultMark):], "\n\n")
	text, _, _ = strings.Cut(text, ". ")
	return "default: " + strings.TrimSuffix(text, ".")
}

// wrap breaks a text into lines that start with in.
func wrap(text, in string) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		word = visible(word)
		width := utf8.RuneCountInString(word)
		switch {
		case column == 0:
			b.WriteString(in + word)
			column = len(in) + width
		case column+1+width > textWidth:
			b.WriteString("\n" + in + word)
			column = len(in) + width
		default:
			b.WriteString(" " + word)
			column += 1 + width
		}
	}
	if column > 0 {
		b.WriteByte('\n')
	}
	return b.String()
}
