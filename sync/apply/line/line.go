// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package line makes texts of servers fit for a line of a log.
package line

import "strings"

// Most is the longest text taken over from a server, in bytes. A schema
// violation of a large object quotes the object.
const Most = 1024

// One makes a server's text fit for a line of a log: white space is folded,
// what is too long is cut.
func One(s string) string { return Cut(Fold(s)) }

// Fold makes one space of all white space between words.
func Fold(s string) string { return strings.Join(strings.Fields(strings.ToValidUTF8(s, "?")), " ") }

// Cut cuts what is too long.
func Cut(s string) string {
	if len(s) > Most {
		s = strings.ToValidUTF8(s[:Most], "") + " ..."
	}
	return s
}
