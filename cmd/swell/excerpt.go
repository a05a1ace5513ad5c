// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render"
)

// problemText writes problems for people.
type problemText struct {
	out io.Writer
	// sources is where excerpts come from: the tree that was checked, be it a
	// folder or a commit. Nil for one line a problem, without excerpts.
	sources *sources
	color   bool
}

// The colours of a terminal, by what they are for.
const (
	colorPlace = "\x1b[1m"    // bold
	colorMark  = "\x1b[1;31m" // bold red
	colorDim   = "\x1b[2m"
	colorOff   = "\x1b[0m"
)

func (t *problemText) paint(color, text string) string {
	if !t.color {
		return text
	}
	return color + text + colorOff
}

func (t *problemText) write(problems document.Problems) {
	for _, p := range problems {
		code := t.paint(colorDim, "("+string(p.Code)+")")
		if t.sources == nil {
			fmt.Fprintf(t.out, "%s %s %s\n", t.paint(colorPlace, visible(p.Position.String())+":"), visible(p.Text()+viaText(p)), code)
			continue
		}
		fmt.Fprintf(t.out, "%s %s %s\n", t.paint(colorPlace, visible(p.Position.String())+":"), visible(p.Text()), code)
		t.excerpt(p.Position)
		for _, via := range p.Via {
			fmt.Fprintf(t.out, "  from %s\n", t.paint(colorPlace, visible(via.String())))
			t.excerpt(via)
		}
	}
}

// viaText is the chain of places as it stands at the end of a problem's line.
func viaText(p document.Problem) string {
	var b strings.Builder
	for _, via := range p.Via {
		fmt.Fprintf(&b, " (from %s)", via)
	}
	return b.String()
}

// excerpt writes the line at a place with a caret under its column:
//
//	12 |   replicsa: 3
//	   |   ^
func (t *problemText) excerpt(at document.Position) {
	line, column, ok := t.sources.line(at)
	if !ok {
		return
	}
	text, offset := cut(line, column-1)
	number := strconv.Itoa(at.Line)
	fmt.Fprintf(t.out, "%s %s\n", t.paint(colorDim, fmt.Sprintf("%6s |", number)), text)
	if column > 0 {
		fmt.Fprintf(t.out, "%s %s%s\n", t.paint(colorDim, "       |"), strings.Repeat(" ", offset), t.paint(colorMark, "^"))
	}
}

const (
	widest   = 100 // columns of an excerpt
	leftPart = 60  // of those, how many stand before the caret in a line that is cut
	tabStop  = 4
)

// cut makes a line of a file fit for a terminal: tabs expanded, nothing that
// moves the cursor, and of a long line the part around the rune at index.
// offset is how many columns stand before that rune; index may be the line's
// length or more, and is taken as its end then.
func cut(line string, index int) (text string, offset int) {
	runes := []rune(line)
	index = max(0, min(index, len(runes)))
	cells := make([]string, len(runes))
	starts := make([]int, len(runes)+1) // the columns where cells start
	for i, r := range runes {
		var w int
		cells[i], w = glyph(r, starts[i])
		starts[i+1] = starts[i] + w
	}
	if starts[len(runes)] <= widest {
		return strings.Join(cells, ""), starts[index]
	}
	from, to := 0, len(runes)
	for starts[index]-starts[from] > leftPart {
		from++
	}
	for starts[to]-starts[from] > widest {
		to--
	}
	before, after := "", ""
	if from > 0 {
		before = "…"
	}
	if to < len(runes) {
		after = "…"
	}
	return before + strings.Join(cells[from:to], "") + after, utf8.RuneCountInString(before) + starts[index] - starts[from]
}

// glyph is what a rune that starts at a column looks like, and how wide it is.
func glyph(r rune, column int) (string, int) {
	switch {
	case r == '\t':
		n := tabStop - column%tabStop
		return strings.Repeat(" ", n), n
	case unicode.In(r, unicode.Mn, unicode.Me):
		return string(r), 0 // it stands on the one before it
	case !unicode.IsPrint(r):
		return "\uFFFD", 1
	}
	if kind := width.LookupRune(r).Kind(); kind == width.EastAsianWide || kind == width.EastAsianFullwidth {
		return string(r), 2
	}
	return string(r), 1
}

// visible is a text for one line of a terminal: what would move the cursor or
// change the order of reading is written as an escape.
func visible(s string) string {
	plain := strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
	if plain && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRuneToASCII(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

// sources reads lines out of the tree that was checked.
type sources struct {
	tree     config.Tree
	snapshot *render.Snapshot // says which kinds have secret fields; nil: none
	files    map[string]*sourceFile
}

func newSources(s *render.Snapshot) *sources {
	return &sources{tree: s.Repository.Tree, snapshot: s, files: map[string]*sourceFile{}}
}

// sourceFile is a file by lines. The lines of a Secret are cut behind the
// first key.
type sourceFile struct {
	lines []string
}

// line returns the line of a place and the number of the rune in it, from 1;
// zero where no column is known. It is false where there is no such line, or
// none that may be shown.
func (s *sources) line(at document.Position) (line string, column int, ok bool) {
	file := s.file(at.File)
	if file == nil || at.Line < 1 || at.Line > len(file.lines) {
		return "", 0, false
	}
	line = file.lines[at.Line-1]
	return line, runeColumn(at, line), true
}

func (s *sources) file(name string) *sourceFile {
	if known, ok := s.files[name]; ok {
		return known
	}
	file := s.read(name)
	s.files[name] = file
	return file
}

func (s *sources) read(name string) *sourceFile {
	ext := path.Ext(name)
	if s.tree == nil || ext != ".yaml" && ext != ".yml" && ext != ".proto" {
		return nil
	}
	content, err := s.tree.ReadFile(name)
	if err != nil {
		return nil
	}
	text := strings.ReplaceAll(string(content), "\r\n", "\n")
	// These are ends of lines to the YAML reader too; a file with one has
	// other line numbers than people count.
	if strings.ContainsAny(text, "\r\u0085\u2028\u2029") {
		return nil
	}
	file := &sourceFile{lines: strings.Split(text, "\n")}
	if ext != ".proto" {
		hideSecrets(file.lines, s.kinds(name))
	}
	return file
}

// kinds tells which documents of a file may be shown. One without a kind is
// hidden where every document needs one.
func (s *sources) kinds(file string) config.KindMessage {
	if s.snapshot == nil {
		return nil
	}
	kindless := slices.Contains(config.KustomizationFiles, path.Base(file)) || s.snapshot.Repository.Data != "" && config.Within(file, s.snapshot.Repository.Data)
	return func(apiVersion, kind string) (protoreflect.MessageDescriptor, bool) {
		if kind == "" && kindless {
			return nil, true
		}
		return s.snapshot.KindMessage(apiVersion, kind)
	}
}

// runeColumn is the place's column counted in runes. YAML's are; in a .proto
// a tab reaches to the next multiple of 8; in text that is no UTF-8 or has a
// NUL byte they are bytes.
func runeColumn(at document.Position, line string) int {
	switch {
	case at.Column == 0:
		return 0
	case path.Ext(at.File) == ".proto":
		column, count := 0, 1
		for _, r := range line {
			if column >= at.Column-1 {
				break
			}
			if r == '\t' {
				column += 8 - column%8
			} else {
				column++
			}
			count++
		}
		return count
	case !utf8.ValidString(line) || strings.ContainsRune(line, 0):
		return utf8.RuneCountInString(line[:min(at.Column-1, len(line))]) + 1
	}
	return at.Column
}
