// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"

	"github.com/swell-sh/swell/config"
)

// listingFormats are what every verb writes that lists something.
var listingFormats = []string{formatTable, formatWide, formatName, formatJSON, formatYAML}

// listing is what a verb found: a table for people, names for shells, items for
// programs.
type listing struct {
	kind    string // of the list in JSON and YAML
	columns []column
	rows    []listedRow
	nothing string // written in place of a table without rows; empty: the head alone
}

// column of a table. The last one may hold a text of any length.
type column struct {
	head string
	wide bool // only in -o wide
}

type listedRow struct {
	item  any
	name  string
	cells []string
}

// heads are columns that are in both tables.
func heads(names ...string) []column {
	columns := make([]column, len(names))
	for i, name := range names {
		columns[i] = column{head: name}
	}
	return columns
}

// add adds a row with a cell for each column.
func (l *listing) add(item any, name string, cells ...string) {
	l.rows = append(l.rows, listedRow{item, name, cells})
}

func (l *listing) items() []any {
	items := make([]any, len(l.rows))
	for i, r := range l.rows {
		items[i] = r.item
	}
	return items
}

// write writes the listing in one of [listingFormats].
func (l *listing) write(w io.Writer, format string) error {
	switch format {
	case formatJSON, formatYAML:
		return writeData(w, format, list[any]{config.APIVersion, l.kind, l.items()})
	case formatName:
		for _, r := range l.rows {
			if _, err := fmt.Fprintln(w, r.name); err != nil {
				return err
			}
		}
		return nil
	}
	if len(l.rows) == 0 && l.nothing != "" {
		_, err := fmt.Fprintln(w, l.nothing)
		return err
	}
	return l.table(format == formatWide).write(w)
}

func (l *listing) table(wide bool) *table {
	t := newTable()
	show := func(cells []string) {
		var row []string
		for i, c := range l.columns {
			if wide || !c.wide {
				row = append(row, cells[i])
			}
		}
		t.row(row...)
	}
	names := make([]string, len(l.columns))
	for i, c := range l.columns {
		names[i] = c.head
	}
	show(names)
	for _, r := range l.rows {
		show(r.cells)
	}
	return t
}
