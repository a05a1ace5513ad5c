// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/swell-sh/swell/config/document"
)

// Reach says whether a value of the type can have what a JSON pointer leads to. In a
// list a segment is an index, or "name=main" for the items whose field "name" is "main".
// Where nothing is known of a value, it can. hint is the end of a message about a field
// that there is not. t may be nil.
func (t *Type) Reach(segments []string) (hint string, ok bool) {
	if t == nil || len(segments) == 0 {
		return "", true
	}
	name, rest := segments[0], segments[1:]
	switch t.Form {
	case Any, Map:
		return t.Field(name).Reach(rest)
	case Object:
		if field := t.Fields[name]; field != nil {
			return field.Reach(rest)
		}
		return document.DidYouMean(name, slices.Collect(maps.Keys(t.Fields))), false
	case List:
		key, _, byKey := strings.Cut(name, "=")
		if _, err := strconv.ParseUint(name, 10, 31); err != nil && !byKey {
			return `, want an index or "name=value" for the items of the list`, false
		}
		if byKey {
			if hint, ok := t.Elem.Reach([]string{key}); !ok {
				return hint, false
			}
		}
		return t.Elem.Reach(rest)
	}
	return ", a field above it is " + t.Form.String(), false
}
