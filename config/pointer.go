// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"
	"strings"
)

// identity are the fields without which an object is another one, or nobody's.
// A pointer to one of them, or to what it lies in, cannot be ignored.
var identity = [][]string{
	{"apiVersion"}, {"kind"}, {"metadata", "name"}, {"metadata", "namespace"},
	{"metadata", "labels", LabelManagedBy}, {"metadata", "labels", LabelUnit}, {"metadata", "labels", LabelRepository},
	{"metadata", "annotations", AnnotationUnit},
}

// wrongPointer says what is wrong with a JSON pointer of an ignore rule that
// begins with a slash; empty when nothing is.
func wrongPointer(text string) string {
	for segment := range strings.SplitSeq(text[1:], "/") {
		if rest := strings.NewReplacer("~0", "", "~1", "").Replace(segment); strings.Contains(rest, "~") {
			return `has a "~" that is neither "~0" (a tilde) nor "~1" (a slash)`
		}
		if segment == "-" {
			return `has the segment "-", which stands for no item of a list`
		}
	}
	segments := PointerSegments(text)
	for _, fixed := range identity {
		if n := min(len(fixed), len(segments)); slices.Equal(fixed[:n], segments[:n]) {
			return "cannot be ignored: it holds " + strings.Join(fixed, ".") + ", by which swell knows the object"
		}
	}
	return ""
}

var unescapePointer = strings.NewReplacer("~1", "/", "~0", "~")

// PointerSegments are the unescaped segments of a JSON pointer (RFC 6901).
func PointerSegments(text string) (segments []string) {
	for segment := range strings.SplitSeq(strings.TrimPrefix(text, "/"), "/") {
		segments = append(segments, unescapePointer.Replace(segment))
	}
	return segments
}
