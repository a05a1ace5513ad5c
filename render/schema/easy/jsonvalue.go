// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package easy

import (
	"fmt"
	"maps"
	"math"

	"google.golang.org/protobuf/reflect/protoreflect"
)

func decimal(value any) string { return fmt.Sprint(value) }

// unsigned is how the decoder, with strconv, reads a whole number in a text.
const unsigned = `(0|[1-9][0-9_]*|0[xX][0-9a-fA-F_]+|0[oO]?[0-7_]+|0[bB][01_]+)`

// goDuration is what time.ParseDuration takes.
const goDuration = `^[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`

// maskPaths is what the decoder takes for a FieldMask.
const maskPaths = `^([A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*(,[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*)*)?$`

// value is the schema of one value of a field: of an item, if it is a list.
func (w *jsonWriter) value(f protoreflect.FieldDescriptor, r *rules) map[string]any {
	if r == nil {
		r = &rules{}
	}
	switch form(f) {
	case "message":
		return w.message(f.Message(), w.unchecked || r.always)
	case "any":
		return map[string]any{}
	case "object":
		return map[string]any{"type": "object"}
	case "list":
		return map[string]any{"type": "array"}
	case "mask":
		return map[string]any{"type": "string", "pattern": maskPaths}
	case "refused":
		return map[string]any{"not": map[string]any{}}
	case "duration":
		return map[string]any{"type": "string", "pattern": goDuration}
	case "time":
		return map[string]any{"type": "string", "format": "date-time"}
	case "text":
		return w.text(f, r)
	case "bytes":
		s := map[string]any{"type": "string", "contentEncoding": "base64"}
		if r.nonZero {
			s["minLength"] = uint64(1)
		}
		return w.orFile(s)
	case "boolean":
		return limited(map[string]any{"type": "boolean"}, f, r)
	case "enum":
		return limited(map[string]any{}, f, r)
	}
	return limited(jsonNumber(form(f)), f, r)
}

// jsonNumber is the schema of a number. 64-bit integers may be texts as well, for
// readers that hold numbers in floating point.
func jsonNumber(form string) map[string]any {
	switch form {
	case "int32":
		return map[string]any{"type": "integer", "minimum": int64(math.MinInt32), "maximum": int64(math.MaxInt32)}
	case "uint32":
		return map[string]any{"type": "integer", "minimum": int64(0), "maximum": int64(math.MaxUint32)}
	case "int64":
		return map[string]any{"type": []any{"integer", "string"}, "pattern": "^[-+]?" + unsigned + "$", "minimum": int64(math.MinInt64), "maximum": int64(math.MaxInt64)}
	case "uint64":
		return map[string]any{"type": []any{"integer", "string"}, "pattern": "^" + unsigned + "$", "minimum": int64(0), "maximum": uint64(math.MaxUint64)}
	}
	return map[string]any{"type": "number"}
}

// text is a text that fits the rules, or one that is read from a file, which
// the decoder looks at.
func (w *jsonWriter) text(f protoreflect.FieldDescriptor, r *rules) map[string]any {
	s := map[string]any{"type": "string"}
	if r.allowed == nil && r.denied == nil && !r.never {
		maps.Copy(s, r.keywords) // they hold for texts only
		return w.orFile(s)
	}
	limited(s, f, r)
	if !w.fromFile {
		return s
	}
	return map[string]any{"if": map[string]any{"type": "object"}, "then": w.orFile(map[string]any{"type": "object"}), "else": s}
}

// orFile allows {fromFile: path} in place of a text.
func (w *jsonWriter) orFile(s map[string]any) map[string]any {
	if !w.fromFile {
		return s
	}
	if s["type"] == "string" {
		s["type"] = []any{"string", "object"}
	}
	s["required"] = []any{"fromFile"}
	s["additionalProperties"] = false
	s["properties"] = map[string]any{"fromFile": map[string]any{"type": "string", "minLength": 1, "description": "Path of a file beside the spec, whose content is the value."}}
	return s
}
