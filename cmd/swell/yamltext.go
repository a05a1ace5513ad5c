// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"sigs.k8s.io/yaml"

	"github.com/swell-sh/swell/render/kind"
)

// All YAML that verbs write comes from here: every reader takes it for the same
// value, and no character in it is one that nobody sees.

// marshalYAML is a value as YAML, with the fields that it has as JSON.
func marshalYAML(value any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return jsonToYAML(text.Bytes())
}

// jsonToYAML is JSON as YAML. The usual library refuses or confuses characters
// that nobody sees, so texts with one are written by swell's own encoder.
func jsonToYAML(text []byte) ([]byte, error) {
	if isPlainJSON(text) {
		return yaml.JSONToYAML(text)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	if !isOdd(value) {
		return yaml.JSONToYAML(text)
	}
	value, err := withNumbers(value)
	if err != nil {
		return nil, err
	}
	return kind.YAML(value), nil
}

// isPlainJSON says whether it is sure at a glance that no text is odd.
func isPlainJSON(text []byte) bool {
	for i, c := range text {
		if c >= 0x7f || c == '\\' && i+1 < len(text) && strings.IndexByte("ubfr", text[i+1]) >= 0 {
			return false
		}
	}
	return true
}

// isOdd says whether a text at or below a value, or a key, has a character that
// nobody sees, other than a line break or a tab.
func isOdd(value any) bool {
	switch v := value.(type) {
	case string:
		return strings.ContainsFunc(v, func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) })
	case []any:
		for _, item := range v {
			if isOdd(item) {
				return true
			}
		}
	case map[string]any:
		for key, item := range v {
			if isOdd(key) || isOdd(item) {
				return true
			}
		}
	}
	return false
}

// withNumbers is a value with Go's numbers in place of [json.Number].
func withNumbers(value any) (any, error) {
	switch v := value.(type) {
	case json.Number:
		if i, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return i, nil
		}
		f, err := v.Float64()
		if err != nil {
			return nil, fmt.Errorf("%s: a number that does not fit: %w", v, err)
		}
		return f, nil
	case []any:
		for i, item := range v {
			var err error
			if v[i], err = withNumbers(item); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for key, item := range v {
			var err error
			if v[key], err = withNumbers(item); err != nil {
				return nil, err
			}
		}
	}
	return value, nil
}
