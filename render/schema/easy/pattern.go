// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package easy

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode"
)

// portable is a pattern of RE2, which rules are written in, as one that means
// the same in JavaScript, with its flag u or without: what editors have. A
// pattern that means the same already stays as it is. ok is false for an empty
// pattern and for one that JavaScript cannot say.
func portable(pattern string) (_ string, ok bool) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	switch {
	case pattern == "" || err != nil:
		return "", false
	case isPortable(pattern):
		return pattern, true
	}
	w := patternWriter{ok: true}
	w.write(parsed)
	if _, err := regexp.Compile(w.String()); err != nil {
		return "", false
	}
	return w.String(), w.ok
}

// sameEscapes are characters that mean the same in both languages behind a
// backslash, outside of brackets. \s and \S are not among them: JavaScript
// knows more spaces.
const sameEscapes = `dDwWbBnrtf^$\.*+?()[]{}|/`

// isPortable says whether all of a pattern is written in what both languages
// read alike.
func isPortable(pattern string) bool {
	brackets := false
	for i := 0; i < len(pattern); i++ {
		c := pattern[i]
		rest := pattern[i+1:]
		switch {
		case c < ' ' || c > '~':
			return false
		case c == '\\' && rest != "" && strings.IndexByte(sameEscapes, rest[0]) >= 0 && (!brackets || rest[0] != 'b' && rest[0] != 'B'):
			i++
		case c == '\\' && brackets && strings.HasPrefix(rest, "-"):
			i++
		case c == '\\':
			return false
		case brackets && c == ']':
			brackets = false
		case brackets && c == '[':
			return false // [:alpha:]
		case brackets:
		case c == '[':
			brackets = true
			if strings.HasPrefix(rest, "]") || strings.HasPrefix(rest, "^]") {
				return false // a bracket to RE2, nothing to JavaScript
			}
		case c == '.' || c == ']' || c == '}': // a dot: JavaScript has more ends of lines
			return false
		case c == '{':
			end := repetition.FindString(pattern[i:])
			if end == "" {
				return false
			}
			i += len(end) - 1
		case c == '(' && strings.HasPrefix(rest, "?") && !strings.HasPrefix(rest, "?:"):
			return false
		}
	}
	return true
}

var repetition = regexp.MustCompile(`^\{[0-9]+(,[0-9]*)?\}`)

// patternWriter writes a parsed pattern in the words of both languages.
type patternWriter struct {
	strings.Builder
	ok bool // until there is something that JavaScript cannot say
}

func (w *patternWriter) write(re *syntax.Regexp) {
	switch re.Op {
	case syntax.OpNoMatch:
		w.WriteString(`[^\d\D]`)
	case syntax.OpEmptyMatch:
		w.WriteString(`(?:)`)
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			w.literal(r, re.Flags&syntax.FoldCase != 0)
		}
	case syntax.OpCharClass:
		w.class(re.Rune)
	case syntax.OpAnyCharNotNL:
		w.WriteString(`[^\n]`)
	case syntax.OpAnyChar:
		w.WriteString(`[\d\D]`)
	case syntax.OpBeginText:
		w.WriteByte('^')
	case syntax.OpEndText:
		w.WriteByte('$')
	case syntax.OpWordBoundary:
		w.WriteString(`\b`)
	case syntax.OpNoWordBoundary:
		w.WriteString(`\B`)
	case syntax.OpCapture:
		w.group(re.Sub[0])
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		w.group(re.Sub[0])
		w.times(re)
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if sub.Op == syntax.OpAlternate {
				w.group(sub)
			} else {
				w.write(sub)
			}
		}
	case syntax.OpAlternate:
		for i, sub := range re.Sub {
			if i > 0 {
				w.WriteByte('|')
			}
			w.write(sub)
		}
	default: // ends of lines
		w.ok = false
	}
}

// group writes a part that something follows which holds for all of it.
func (w *patternWriter) group(re *syntax.Regexp) {
	switch {
	case re.Op == syntax.OpCharClass, re.Op == syntax.OpAnyChar, re.Op == syntax.OpAnyCharNotNL, re.Op == syntax.OpLiteral && len(re.Rune) == 1:
		w.write(re)
	default:
		w.WriteString("(?:")
		w.write(re)
		w.WriteByte(')')
	}
}

func (w *patternWriter) times(re *syntax.Regexp) {
	switch {
	case re.Op == syntax.OpStar:
		w.WriteByte('*')
	case re.Op == syntax.OpPlus:
		w.WriteByte('+')
	case re.Op == syntax.OpQuest:
		w.WriteByte('?')
	case re.Max < 0:
		fmt.Fprintf(w, "{%d,}", re.Min)
	case re.Max == re.Min:
		fmt.Fprintf(w, "{%d}", re.Min)
	default:
		fmt.Fprintf(w, "{%d,%d}", re.Min, re.Max)
	}
}

// literal writes one character, in all its cases where those are one.
func (w *patternWriter) literal(r rune, anyCase bool) {
	if next := unicode.SimpleFold(r); anyCase && next != r {
		w.WriteByte('[')
		for ; ; next = unicode.SimpleFold(next) {
			w.character(next)
			if next == r {
				break
			}
		}
		w.WriteByte(']')
		return
	}
	w.character(r)
}

// class writes a class of characters: pairs of first and last. One that goes
// beyond 16 bits is written by what is not in it, as all of those are then.
func (w *patternWriter) class(pairs []rune) {
	n := len(pairs)
	if n == 2 && pairs[0] == 0 && pairs[1] == unicode.MaxRune {
		w.WriteString(`[\d\D]`)
		return
	}
	if n > 0 && pairs[n-1] == unicode.MaxRune {
		w.WriteString("[^")
		next := rune(0)
		for i := 0; i < n; i += 2 {
			w.between(next, pairs[i]-1)
			next = pairs[i+1] + 1
		}
	} else {
		w.WriteByte('[')
		for i := 0; i < n; i += 2 {
			w.between(pairs[i], pairs[i+1])
		}
	}
	w.WriteByte(']')
}

func (w *patternWriter) between(first, last rune) {
	if first > last {
		return
	}
	w.character(first)
	if last > first {
		w.WriteByte('-')
		w.character(last)
	}
}

func (w *patternWriter) character(r rune) {
	switch {
	case r > 0xffff || r >= 0xd800 && r < 0xe000 || r == '\u2028' || r == '\u2029':
		w.ok = false
	case r < ' ' || r == 0x7f:
		fmt.Fprintf(w, `\x%02x`, r)
	case strings.ContainsRune(`^$\.*+?()[]{}|/`, r):
		w.WriteString(`\` + string(r))
	case r == '-': // of itself it is a range in brackets
		w.WriteString(`\x2d`)
	default:
		w.WriteRune(r)
	}
}
