// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"cmp"
	"slices"
	"strings"
)

// Lines tells for each line of a rendered text which line of its template it is from, from
// 1; zero where that cannot be told. Templates do not say that: lines are compared, in
// their order. What an expression gives as a whole is from the line of the expression. It
// takes a time that grows with the length of the texts, not with its square.
func Lines(template, rendered string) []int {
	from, to := skeletons(template), strings.Split(rendered, "\n")
	for i, line := range to {
		to[i] = strings.TrimSpace(line)
	}
	a := alignment{from: from, to: to, lines: make([]int, len(to)), cells: mostCells}
	a.split(span{0, len(from), 0, len(to)}, deepestSplit)
	a.fill()
	return a.lines
}

// skeleton is what is certain of a line of a template.
type skeleton struct {
	prefix   string // before the first expression
	whole    bool   // there is no expression in it
	computed bool   // it is nothing but expressions
}

func skeletons(template string) []skeleton {
	var all []skeleton
	for _, line := range strings.Split(template, "\n") {
		before, _, has := strings.Cut(line, "{{")
		s := skeleton{prefix: strings.TrimSpace(before), whole: !has}
		s.computed = has && s.prefix == ""
		all = append(all, s)
	}
	return all
}

const (
	scoreBegun = 2 // the line begins as the template's does
	scoreWhole = 3 // it is the same
)

// score says how well a rendered line without its indentation fits; zero is not at all.
func (s skeleton) score(line string) int {
	switch {
	case s.prefix == "" || line == "":
		return 0
	case s.whole && s.prefix == line:
		return scoreWhole
	case !s.whole && strings.HasPrefix(line, s.prefix):
		return scoreBegun
	}
	return 0
}

const (
	// mostCells is how many pairs of lines are compared for one text where no line stands out;
	// beyond, only texts are looked for.
	mostCells = 1_000_000
	// smallSpan is how many pairs of lines are compared rather than looked through for lines
	// that stand out.
	smallSpan = 1_000
	// deepestSplit is how often a span is split.
	deepestSplit = 8
)

// alignment finds pairs of lines. lines has the result.
type alignment struct {
	from  []skeleton
	to    []string // without their indentation
	lines []int
	cells int // comparisons that are left
}

// span is lines of the template, and lines of the rendered text that are from there; the
// ends are not in it.
type span struct{ from, fromEnd, to, toEnd int }

// split pairs the lines that both sides have once, in their order, and aligns what lies
// between them.
func (a *alignment) split(s span, depth int) {
	for s.from < s.fromEnd && s.to < s.toEnd && a.from[s.from].score(a.to[s.to]) == scoreWhole {
		a.lines[s.to] = s.from + 1
		s.from, s.to = s.from+1, s.to+1
	}
	if s.cells() <= smallSpan || depth == 0 {
		a.align(s)
		return
	}
	anchors := a.anchors(s)
	if len(anchors) == 0 {
		a.align(s)
		return
	}
	for _, pair := range anchors {
		a.lines[pair.to] = pair.from + 1
		a.split(span{s.from, pair.from, s.to, pair.to}, depth-1)
		s.from, s.to = pair.from+1, pair.to+1
	}
	a.split(s, depth-1)
}

func (s span) cells() int { return (s.fromEnd - s.from) * (s.toEnd - s.to) }

// pair is a line of the template and one of the rendered text.
type pair struct{ from, to int }

// anchors are pairs of equal lines that stand once on each side, as many as have one order on
// both.
func (a *alignment) anchors(s span) []pair {
	const several = -1
	once := map[string]int{} // the line of the template
	for i := s.from; i < s.fromEnd; i++ {
		if line := a.from[i]; line.whole && line.prefix != "" {
			if _, known := once[line.prefix]; known {
				once[line.prefix] = several
			} else {
				once[line.prefix] = i
			}
		}
	}
	rendered := map[string]int{}
	for j := s.to; j < s.toEnd; j++ {
		if i, known := once[a.to[j]]; known && i != several {
			rendered[a.to[j]]++
		}
	}
	var pairs []pair
	for j := s.to; j < s.toEnd; j++ {
		if rendered[a.to[j]] == 1 {
			pairs = append(pairs, pair{once[a.to[j]], j})
		}
	}
	return increasing(pairs)
}

// increasing is the longest part of pairs, which are in the order of the rendered text, that
// is in the order of the template, too.
func increasing(pairs []pair) []pair {
	var ends []int // by length, the pair with which the best part of that length ends
	before := make([]int, len(pairs))
	for i, p := range pairs {
		longer, _ := slices.BinarySearchFunc(ends, p.from, func(end, from int) int { return cmp.Compare(pairs[end].from, from) })
		before[i] = -1
		if longer > 0 {
			before[i] = ends[longer-1]
		}
		if longer == len(ends) {
			ends = append(ends, i)
		} else {
			ends[longer] = i
		}
	}
	found := make([]pair, len(ends))
	for n, i := len(ends)-1, last(ends); n >= 0; n, i = n-1, before[i] {
		found[n] = pairs[i]
	}
	return found
}

// last is the last number; -1 for none.
func last(numbers []int) int {
	if len(numbers) == 0 {
		return -1
	}
	return numbers[len(numbers)-1]
}

// align finds the best pairs of lines of a span, in the order of both.
func (a *alignment) align(s span) {
	if a.cells -= s.cells(); a.cells < 0 {
		return
	}
	from, to := a.from[s.from:s.fromEnd], a.to[s.to:s.toEnd]
	width := len(to) + 1
	best := make([]int32, (len(from)+1)*width)
	for i := len(from) - 1; i >= 0; i-- {
		for j := len(to) - 1; j >= 0; j-- {
			b := max(best[(i+1)*width+j], best[i*width+j+1])
			if score := from[i].score(to[j]); score > 0 {
				b = max(b, int32(score)+best[(i+1)*width+j+1])
			}
			best[i*width+j] = b
		}
	}
	for i, j := 0, 0; i < len(from) && j < len(to); {
		score := from[i].score(to[j])
		switch {
		case score > 0 && best[i*width+j] == int32(score)+best[(i+1)*width+j+1]:
			a.lines[s.to+j] = s.from + i + 1
			i, j = i+1, j+1
		case best[i*width+j] == best[(i+1)*width+j]:
			i++
		default:
			j++
		}
	}
}

// fill tells where lines without a pair are from: the line that each fits best, as in a loop;
// else the first expression between the lines around it.
func (a *alignment) fill() {
	fitting, next := fittings(a.from), expressions(a.from)
	following := make([]int, len(a.lines)) // of the template, the line of the pair that follows
	for i, line := len(a.lines)-1, len(a.from)+1; i >= 0; i-- {
		if a.lines[i] > 0 {
			line = a.lines[i]
		}
		following[i] = line
	}
	last := 0
	for i, line := range a.lines {
		switch {
		case line > 0:
			last = line
		case fitting.line(a.to[i]) > 0:
			a.lines[i] = fitting.line(a.to[i])
		case last < len(a.from) && next[last] < following[i]-1:
			a.lines[i] = next[last] + 1
		default:
			a.lines[i] = last
		}
	}
}

// expressions are by line of a template, from 0, the first line from there on that is nothing
// but expressions; the number of lines for none.
func expressions(from []skeleton) []int {
	next := make([]int, len(from))
	for i, line := len(from)-1, len(from); i >= 0; i-- {
		if from[i].computed {
			line = i
		}
		next[i] = line
	}
	return next
}

// fitted finds the line of a template that a text fits best.
type fitted struct {
	whole, begun map[string]int // the first line with that text, or that beginning
	lengths      []int          // of the beginnings
}

func fittings(from []skeleton) fitted {
	f := fitted{whole: map[string]int{}, begun: map[string]int{}}
	for i, s := range from {
		lines := f.begun
		if s.whole {
			lines = f.whole
		}
		if _, known := lines[s.prefix]; !known && s.prefix != "" {
			lines[s.prefix] = i + 1
		}
	}
	for beginning := range f.begun {
		f.lengths = append(f.lengths, len(beginning))
	}
	slices.Sort(f.lengths)
	f.lengths = slices.Compact(f.lengths)
	return f
}

// line is from 1; zero for none.
func (f fitted) line(text string) (line int) {
	if line := f.whole[text]; line > 0 {
		return line
	}
	for _, length := range f.lengths {
		if length > len(text) {
			break
		}
		if begun := f.begun[text[:length]]; begun > 0 && (line == 0 || begun < line) {
			line = begun
		}
	}
	return line
}
