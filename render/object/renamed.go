// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/swell-sh/swell/config"
)

// Renamed returns the bundle of a unit that has another name by now: its objects name that one.
// It keeps the digests of what a commit renders.
func (b *Bundle) Renamed(to config.UnitPath) *Bundle {
	renamed := *b
	renamed.Unit, renamed.Objects = to, make([]*Object, len(b.Objects))
	for i, o := range b.Objects {
		next := *o
		next.JSON = withUnit(o.JSON, to)
		renamed.Objects[i] = &next
	}
	return &renamed
}

// withUnit puts the name of a unit into the annotation of an object's JSON that has one.
func withUnit(text []byte, unit config.UnitPath) []byte {
	begin, end := unitAnnotation(text)
	if begin == end {
		return text
	}
	var name bytes.Buffer
	encoder := json.NewEncoder(&name)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(unit) != nil {
		return text
	}
	return bytes.Join([][]byte{text[:begin], bytes.TrimRight(name.Bytes(), "\n"), text[end:]}, nil)
}

// unitAnnotation is where the value of the annotation stands in an object's JSON, which is
// canonical: without spaces. Both are zero where there is none.
func unitAnnotation(text []byte) (begin, end int64) {
	var path []string // the keys that lead to the present value
	decoder := json.NewDecoder(bytes.NewReader(text))
	isKey, depth := false, []bool{} // whether each open value is an object
	for {
		token, err := decoder.Token()
		if err != nil {
			return 0, 0
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth, path, isKey = append(depth, token == json.Delim('{')), append(path, ""), token == json.Delim('{')
			continue
		case json.Delim('}'), json.Delim(']'):
			depth, path = depth[:len(depth)-1], path[:len(path)-1]
			if len(depth) == 0 {
				return 0, 0
			}
			isKey = depth[len(depth)-1]
			continue
		}
		if isKey {
			path[len(path)-1], isKey = token.(string), false
			begin = decoder.InputOffset() + 1 // the colon
			continue
		}
		if _, isText := token.(string); isText && slices.Equal(path, []string{"metadata", "annotations", config.AnnotationUnit}) {
			return begin, decoder.InputOffset()
		}
		isKey = depth[len(depth)-1]
	}
}
