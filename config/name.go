// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import "strings"

// IsLabel says whether s is an RFC 1123 label, what a namespace's name must be.
func IsLabel(s string) bool {
	return len(s) <= 63 && isPart(s)
}

// isPart says whether s can stand between two dots of a name.
func isPart(s string) bool {
	for i := range len(s) {
		c := s[i]
		if inner := c == '-' && i > 0 && i < len(s)-1; !inner && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// IsName says whether s can be an object's name: an RFC 1123 subdomain.
func IsName(s string) bool {
	for part := range strings.SplitSeq(s, ".") {
		if !isPart(part) {
			return false
		}
	}
	return len(s) <= 253
}
