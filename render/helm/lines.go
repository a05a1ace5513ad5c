// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package helm

import "strings"

// Lines tells for each line of a rendered text which line of its template it is from, from
// 1; zero where that cannot be told. Templates do not say that: lines are compared, in
// their order. What an expression gives as a whole is from the line of the expression.
func Lines(template, rendered string) []int {
	from, to := skeletons(template), strings.Split(rendered, "\n")
	const most = 4_000_000 // comparisons; beyond, only texts are looked for
	lines := make([]int, len(to))
	if len(from)*len(to) <= most {
		align(from, to, lines)
	}
	last := 0
	for i, line := range lines {
		if line == 0 {
			lines[i] = between(from, last, following(lines[i:]), to[i])
			continue
		}
		last = line
	}
	return lines
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

// score says how well a rendered line fits; zero is not at all.
func (s skeleton) score(line string) int {
	line = strings.TrimSpace(line)
	switch {
	case s.prefix == "" || line == "":
		return 0
	case s.whole && s.prefix == line:
		return 3
	case !s.whole && strings.HasPrefix(line, s.prefix):
		return 2
	}
	return 0
}

// align finds the best pairs of lines in the order of both.
func align(from []skeleton, to []string, lines []int) {
	width := len(to) + 1
	best := make([]int32, (len(from)+1)*width)
	for i := len(from) - 1; i >= 0; i-- {
		for j := len(to) - 1; j >= 0; j-- {
			b := max(best[(i+1)*width+j], best[i*width+j+1])
			if s := from[i].score(to[j]); s > 0 {
				b = max(b, int32(s)+best[(i+1)*width+j+1])
			}
			best[i*width+j] = b
		}
	}
	for i, j := 0, 0; i < len(from) && j < len(to); {
		s := from[i].score(to[j])
		switch {
		case s > 0 && best[i*width+j] == int32(s)+best[(i+1)*width+j+1]:
			lines[j] = i + 1
			i, j = i+1, j+1
		case best[i*width+j] == best[(i+1)*width+j]:
			i++
		default:
			j++
		}
	}
}

// following is the next line that is known; zero for none.
func following(lines []int) int {
	for _, line := range lines {
		if line > 0 {
			return line
		}
	}
	return 0
}

// between is where a line without a pair is from: the line that it fits best, as in a loop;
// else the first expression between the lines around it.
func between(from []skeleton, after, before int, line string) int {
	if before == 0 {
		before = len(from) + 1
	}
	found, score := 0, 0
	for i, s := range from {
		if got := s.score(line); got > score {
			found, score = i+1, got
		}
	}
	if found > 0 {
		return found
	}
	for i := after; i < before-1 && i < len(from); i++ {
		if from[i].computed {
			return i + 1
		}
	}
	return after
}
