// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// table is rows of cells in columns. A last cell that does not fit beside the
// others is folded: it stands below its row, indented.
//
//	UNIT                STATUS  TARGETS  REASON
//	services/shop/cart  failed  1/3
//	    target sas-1/rz00a: Deployment/shop/cart: container main: ImagePullBackOff: ...
type table struct {
	rows [][]string
}

func newTable() *table { return &table{} }

func (t *table) row(cells ...string) {
	for i, cell := range cells {
		cells[i] = visible(cell)
	}
	t.rows = append(t.rows, cells)
}

const (
	columnGap  = "  "
	foldIndent = "    "
	// pipeWidth is for an output that is no terminal and tells no COLUMNS.
	pipeWidth = 140
	// narrowest is the least width that a table is folded to.
	narrowest = 60
)

func (t *table) write(w io.Writer) error {
	var b strings.Builder
	widths := t.widths()
	limit := widthOf(w)
	for _, row := range t.rows {
		last := len(row) - 1
		line := ""
		for i, cell := range row[:last] {
			line += cell + strings.Repeat(" ", widths[i]-cellWidth(cell)) + columnGap
		}
		if cellWidth(line)+cellWidth(row[last]) <= limit {
			b.WriteString(strings.TrimRight(line+row[last], " ") + "\n")
			continue
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
		for _, part := range fold(row[last], limit-len(foldIndent)) {
			b.WriteString(foldIndent + part + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// widths are those of all columns but the last.
func (t *table) widths() []int {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row[:len(row)-1] {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], cellWidth(cell))
		}
	}
	return widths
}

// fold breaks a text into lines of at most so many columns, between words; a
// longer word has a line of its own.
func fold(text string, limit int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && cellWidth(line)+1+cellWidth(word) > limit {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(lines, line)
}

// cellWidth is how many columns of a terminal a text takes. It holds nothing
// that moves the cursor.
func cellWidth(text string) int {
	n := 0
	for _, r := range text {
		_, w := glyph(r, n)
		n += w
	}
	return n
}

// widthOf is how wide a table may be: as the terminal is, or as COLUMNS says.
func widthOf(w io.Writer) int {
	s, ok := w.(*screen)
	if !ok {
		return pipeWidth
	}
	if f, ok := s.out.(*os.File); ok {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
			return max(narrowest, columns)
		}
	}
	if s.columns > 0 {
		return max(narrowest, s.columns)
	}
	return pipeWidth
}
