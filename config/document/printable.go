// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"strconv"
	"strings"
	"unicode"
)

// Printable is a text with characters that do not show, such as line breaks
// and marks for the direction of writing, escaped as in Go.
func Printable(text string) string {
	if IsPrintable(text) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) && r != unicode.ReplacementChar {
			b.WriteRune(r)
			continue
		}
		b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
	}
	return b.String()
}

// IsPrintable says whether all characters of a text show.
func IsPrintable(text string) bool {
	for _, r := range text {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return false
		}
	}
	return true
}
