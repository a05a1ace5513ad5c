// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package document

import "strings"

// IsLabel says whether s is an RFC 1123 label, what a namespace's name must be.
func IsLabel(s string) bool {
	return len(s) <= 63 && isPart(s)
}

// IsDNS1035 says whether s is a label that does not begin with a digit.
func IsDNS1035(s string) bool { return IsLabel(s) && (s[0] < '0' || s[0] > '9') }

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

// What a label's or an annotation's key and a label's value must be
// (k8s.io/apimachinery/pkg/util/validation), for "want ...".
const (
	WantKey   = "a key of at most 63 letters, digits, -, _ and ., which may follow a domain and a slash"
	WantLabel = "at most 63 letters, digits, -, _ and ., a letter or digit first and last"
)

// IsKey says whether s can be the key of a label.
func IsKey(s string) bool {
	if domain, name, ok := strings.Cut(s, "/"); ok {
		return IsName(domain) && isWord(name)
	}
	return isWord(s)
}

// IsLabelValue says whether s can be the value of a label.
func IsLabelValue(s string) bool { return s == "" || isWord(s) }

func isWord(s string) bool {
	for i := range len(s) {
		c := s[i]
		alphanumeric := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if inner := (c == '-' || c == '_' || c == '.') && i > 0 && i < len(s)-1; !inner && !alphanumeric {
			return false
		}
	}
	return s != "" && len(s) <= 63
}
