// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Position is a place in a file of the monorepo. Line and Column count from 1;
// zero means unknown, and then the columns and lines after it are left out of
// the text as well.
type Position struct {
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
}

func (p Position) String() string {
	file := Printable(p.File)
	switch {
	case p.Line == 0:
		return file
	case p.Column == 0:
		return fmt.Sprintf("%s:%d", file, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", file, p.Line, p.Column)
}

func comparePositions(a, b Position) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
}

// Code is the stable name of a class of problems. SW1xxx is wrong input,
// SW2xxx is something that went wrong while running. The list with what to do
// about each is in docs of the codes, see [Codes].
type Code string

// Basis is how sure a finding about an object is.
type Basis string

const (
	// Exact is the API server's own rule: its schemas, or the definition of a custom
	// resource.
	Exact Basis = "exact"
	// Modelled is swell's model of a rule, of a default or of a fact.
	Modelled Basis = "modelled"
)

// Problem is one thing that is wrong with the input, in one line.
type Problem struct {
	Position
	Code Code `json:"code"`
	// Message says what and why, without the position: `spec.replicsa:
	// unknown field, did you mean "replicas"?`.
	Message string `json:"message"`
	// Unit is the unit that cannot be released because of it. Empty when the
	// problem holds more than one unit (a fleet document, a kind).
	Unit string `json:"unit,omitempty"`
	// Via is the chain of places between the spec and the problem, outermost
	// first: a problem in a rendered object is at the spec's line, via the
	// template's line. Empty for a problem in the document itself.
	Via []Position `json:"via,omitempty"`
	// Targets are those that the problem is found on, in the order of the
	// fleet. Empty when it is all targets of the unit, or has nothing to do
	// with targets.
	Targets []string `json:"targets,omitempty"`
	// Basis says how sure the finding is; empty where it is not about what an API server
	// will say.
	Basis Basis `json:"basis,omitempty"`
	// Retry is set when a file could not be read, which may go well another
	// time. What came of it must not be remembered.
	Retry bool `json:"-"`
}

func (p Problem) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", p.Position, p.Text())
	for _, via := range p.Via {
		fmt.Fprintf(&b, " (from %s)", via)
	}
	return b.String()
}

// MaxProblems is how many problems of one document are reported. A document with
// more is wrong as a whole.
const MaxProblems = 100

// Add adds a problem, up to MaxProblems and one that says so.
func (ps *Problems) Add(p Problem) {
	if len(*ps) == MaxProblems {
		p.Message = fmt.Sprintf("and more: only the first %d problems of a document are told", MaxProblems)
	}
	if len(*ps) <= MaxProblems {
		*ps = append(*ps, p)
	}
}

// Text is the message with the first of the targets that it is about.
func (p Problem) Text() string {
	if len(p.Targets) == 0 {
		return p.Message
	}
	return fmt.Sprintf("%s (on target %s)", p.Message, Some(p.Targets, 1))
}

// Problems are sorted by position, then by text, then by unit, and hold no two
// equal lines of one unit, once [Problems.Sorted] has been called.
type Problems []Problem

// Sorted returns the problems in reading order without repetitions. The
// receiver's backing array is reused.
func (ps Problems) Sorted() Problems {
	for i := range ps {
		ps[i].Message = bounded(ps[i].Message)
	}
	slices.SortStableFunc(ps, func(a, b Problem) int {
		if c := comparePositions(a.Position, b.Position); c != 0 {
			return c
		}
		return cmp.Or(cmp.Compare(a.String(), b.String()), cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Code, b.Code))
	})
	return slices.CompactFunc(ps, func(a, b Problem) bool {
		return a.Code == b.Code && a.Unit == b.Unit && a.String() == b.String()
	})
}

// maxMessage is the longest message, in bytes. A longer one repeats a value or an
// expression, of which people know the rest.
const maxMessage = 2000

// bounded is a message with its middle left out where it is too long: the
// beginning says where, the end says why.
func bounded(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	end := message[len(message)-maxMessage/4:]
	for end != "" && !utf8.RuneStart(end[0]) {
		end = end[1:]
	}
	return Cut(message, maxMessage/2) + end
}

func (ps Problems) String() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Retry says whether one of the problems is that a file could not be read.
func (ps Problems) Retry() bool {
	return slices.ContainsFunc(ps, func(p Problem) bool { return p.Retry })
}

// Error makes a list of problems an error, for callers that have nowhere else
// to put it. A caller must not return an empty list as an error.
func (ps Problems) Error() string { return ps.String() }
