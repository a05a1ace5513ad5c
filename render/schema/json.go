// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"
)

// AppendJSON appends the canonical JSON of a value made of map[string]any,
// []any, string, int64, float64, bool and nil: keys sorted, no spaces, fields
// that are nil left out of mappings, numbers in their shortest form. It panics
// on any other type, which would be a mistake in the program.
func AppendJSON(dst []byte, value any) []byte { return appendJSON(dst, value, false) }

// AppendObject is [AppendJSON] with the fields that are nil: for a value that
// [WithoutNulls] returned, where those left mean something.
func AppendObject(dst []byte, value any) []byte { return appendJSON(dst, value, true) }

func appendJSON(dst []byte, value any, nulls bool) []byte {
	switch v := value.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		return strconv.AppendBool(dst, v)
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case float64:
		return appendFloat(dst, v)
	case string:
		return appendString(dst, v)
	case []any:
		dst = append(dst, '[')
		for i, item := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendJSON(dst, item, nulls)
		}
		return append(dst, ']')
	case map[string]any:
		return appendMap(dst, v, nulls)
	}
	panic(fmt.Sprintf("canonical JSON: a value of type %T", value))
}

func appendMap(dst []byte, m map[string]any, nulls bool) []byte {
	var few [24]string
	keys := few[:0]
	for key, value := range m {
		if value != nil || nulls {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	dst = append(dst, '{')
	for i, key := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, key), ':')
		dst = appendJSON(dst, m[key], nulls)
	}
	return append(dst, '}')
}

func appendFloat(dst []byte, f float64) []byte {
	const exact = 1 << 53
	if f == float64(int64(f)) && f <= exact && f >= -exact {
		return strconv.AppendInt(dst, int64(f), 10)
	}
	return strconv.AppendFloat(dst, f, 'g', -1, 64)
}

func appendString(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			quoted, err := json.Marshal(s)
			if err != nil {
				panic(err) // text always encodes
			}
			return append(dst, quoted...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}
