// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/swell-sh/swell/config/bounds"
	"github.com/swell-sh/swell/config/document"
)

// verbs are those of Go's fmt whose text is made of the value alone. %p is an
// address, %T a type of Go, and a verb that Go does not know prints one too.
const verbs = "bcdeEfFgGoOqstUvxX"

var (
	// directive is flags, width, precision, the argument's number and the verb.
	directive = regexp.MustCompile(`^%([-+# 0]*)(\d*)(?:\.(\d*))?(?:\[(\d+)\])?([%` + verbs + `])`)
	// likeDirective is what somebody meant for one.
	likeDirective = regexp.MustCompile(`^%[^\pL%]*[\pL%]?`)
)

// Bounds of what Go prints for a value, in bytes.
const (
	printedPart  = 96  // of a scalar, or around and between the parts of a list or mapping
	printedFloat = 700 // of a number without an exponent
	printedByte  = 5   // of a byte of a text that is escaped or in hexadecimal
)

// printf is Go's, of a text whose length is bounded before it is made: an
// argument may be printed more than once, and wider than it is.
func (r *templateRun) printf(format string, args ...any) (string, error) {
	size, next, numbered := len(format), 0, false
	for rest := format; ; {
		i := strings.IndexByte(rest, '%')
		if i < 0 {
			break
		}
		rest = rest[i:]
		m := directive.FindStringSubmatch(rest)
		if m == nil {
			return "", fmt.Errorf("printf: %q is not known here: want %%, flags, width and precision in digits, [n], and one of %s, in this order", document.Shorten(likeDirective.FindString(rest)), verbs)
		}
		if rest = rest[len(m[0]):]; m[5] == "%" {
			continue
		}
		if len(m[2]) > 3 || len(m[3]) > 3 {
			return "", errors.New("printf: want a width below 1000")
		}
		if m[4] != "" {
			next, _ = strconv.Atoi(m[4]) // one that is too large is no argument's
			next, numbered = next-1, true
		}
		size += printedPart // a missing argument is reported in the text
		if next >= 0 && next < len(args) {
			size += printedSize(m, args[next])
		}
		if next++; size > bounds.Text {
			return "", bounds.ErrTooLarge
		}
	}
	if !numbered && next < len(args) { // Go adds the others
		size += printedWhole(args[next:])
	}
	if size > bounds.Text {
		return "", bounds.ErrTooLarge
	}
	return r.made(fmt.Sprintf(format, args...))
}

// printedSize bounds what a directive makes of an argument. Width and precision
// are those of each key and value in it.
func printedSize(m []string, arg any) int {
	width, _ := strconv.Atoi(m[2])
	precision, _ := strconv.Atoi(m[3])
	perPart, perByte := printedPart, 1
	switch verb := m[5]; {
	case verb == "f" || verb == "F":
		perPart = printedFloat
	case verb == "q" || verb == "x" || verb == "X" || verb == "v" && strings.Contains(m[1], "#"):
		perByte = printedByte
	}
	size := sizeOf(arg)
	return size.nodes*(perPart+2*(width+precision)) + size.bytes*perByte
}

// printedWhole bounds what Go prints of arguments one after the other.
func printedWhole(args []any) int {
	size := sizeOf(args)
	return size.nodes*printedPart + size.bytes
}

// printed is print or println of Go.
func (r *templateRun) printed(print func(...any) string) func(...any) (string, error) {
	return func(args ...any) (string, error) {
		if printedWhole(args) > bounds.Text {
			return "", bounds.ErrTooLarge
		}
		return r.made(print(args...))
	}
}
