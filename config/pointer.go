// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"
	"strings"
)

// Fixed is a field by which swell knows an object.
type Fixed struct {
	Path []string
	Mark bool // swell sets it on everything that it applies; else the object would be another one
}

// FixedFields are all such fields. Nothing in Git changes or ignores them.
var FixedFields = []Fixed{
	{Path: []string{"apiVersion"}}, {Path: []string{"kind"}}, {Path: []string{"metadata", "name"}}, {Path: []string{"metadata", "namespace"}},
	{[]string{"metadata", "labels", LabelRepository}, true}, {[]string{"metadata", "labels", LabelUnit}, true},
	{[]string{"metadata", "annotations", AnnotationUnit}, true},
}

// wrongPointer says what is wrong with a JSON pointer of an ignore rule that
// begins with a slash; empty when nothing is. It may lead to none of [FixedFields],
// nor to what one of them lies in.
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
	for _, fixed := range FixedFields {
		if n := min(len(fixed.Path), len(segments)); slices.Equal(fixed.Path[:n], segments[:n]) {
			return "cannot be ignored: it holds " + strings.Join(fixed.Path, ".") + ", by which swell knows the object"
		}
	}
	return ""
}

var escapePointer, unescapePointer = strings.NewReplacer("~", "~0", "/", "~1"), strings.NewReplacer("~1", "/", "~0", "~")

// PointerSegment is a name as a segment of a JSON pointer (RFC 6901).
func PointerSegment(name string) string { return escapePointer.Replace(name) }

// PointerSegments are the unescaped segments of a JSON pointer (RFC 6901).
func PointerSegments(text string) (segments []string) {
	for segment := range strings.SplitSeq(strings.TrimPrefix(text, "/"), "/") {
		segments = append(segments, unescapePointer.Replace(segment))
	}
	return segments
}
