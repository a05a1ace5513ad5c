// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package checker is what the compiler and those who run programs for it say to each
// other: the texts that a program is to judge, and what it said. It finds the texts in
// objects. It runs nothing.
package checker

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/swell-sh/swell/config"
)

// Request asks a program about a text.
type Request struct {
	Program string // the name that a Checker has
	// File is the text, and Beside are others that it may refer to.
	File   File
	Beside []File
	// Private is set when a text may hold a secret: what is said of it is not to be
	// stored.
	Private bool
	// Tenant is whose unit has the text. The verdict does not depend on it.
	Tenant string
}

// File is a text with the name that the program sees.
type File struct{ Name, Content string }

// Verdict is what a program said.
type Verdict struct {
	// Findings are what is wrong with the text; empty when nothing is.
	Findings []Finding
}

// Retry says whether it may be another one another time.
func (v Verdict) Retry() bool {
	return slices.ContainsFunc(v.Findings, func(f Finding) bool { return f.Retry })
}

// Finding is one thing that is wrong.
type Finding struct {
	File         string `json:",omitempty"` // the name of the file it is about; empty: the text itself
	Line, Column int    `json:",omitempty"` // in that file, from 1; zero is unknown
	Text         string // in one line, in the program's own words
	// Retry is set when it may not be found another time: the machine was busy.
	Retry bool `json:",omitempty"`
}

// Text is a text in an object, and where.
type Text struct {
	File   File
	Beside []File
	Path   []any
}

// Texts are those of an object that are to be judged, in the order of their paths.
func Texts(t *config.CheckedTexts, object map[string]any) []Text {
	if t.Key != "" {
		return keys(t, object)
	}
	var found []Text
	walk(object, t.Path, nil, func(path []any, value any) {
		found = append(found, Text{File: File{Name: fileName(path), Content: content(value)}, Path: path})
	})
	return found
}

// keys are the texts under keys of a ConfigMap: also those in binaryData, which are
// mounted as they are.
func keys(t *config.CheckedTexts, object map[string]any) (found []Text) {
	texts := texts(object)
	matching := func(pattern string) (matched []Text) {
		for _, text := range texts {
			if named, _ := path.Match(pattern, text.File.Name); named { // the pattern was checked
				matched = append(matched, text)
			}
		}
		return matched
	}
	for _, text := range matching(t.Key) {
		for _, pattern := range t.Beside {
			for _, other := range matching(pattern) {
				if other.File.Name != text.File.Name && !slices.Contains(text.Beside, other.File) {
					text.Beside = append(text.Beside, other.File)
				}
			}
		}
		found = append(found, text)
	}
	return found
}

// texts are all of a ConfigMap, by their keys.
func texts(object map[string]any) (list []Text) {
	data, _ := object["data"].(map[string]any)
	for key, value := range data {
		if text, ok := value.(string); ok {
			list = append(list, Text{File: File{key, text}, Path: []any{"data", key}})
		}
	}
	encoded, _ := object[Encoded].(map[string]any)
	for key, value := range encoded {
		text, _ := value.(string)
		if content, err := base64.StdEncoding.DecodeString(text); err == nil { // else it is a problem of the object
			list = append(list, Text{File: File{key, string(content)}, Path: []any{Encoded, key}})
		}
	}
	slices.SortFunc(list, func(a, b Text) int { return strings.Compare(a.File.Name, b.File.Name) })
	return list
}

// Encoded is the field of a ConfigMap with texts in base64, whose lines are not those of
// the texts.
const Encoded = "binaryData"

// walk finds the values that a path leads to. One that is missing is left out.
func walk(value any, steps []string, at []any, each func(path []any, value any)) {
	if len(steps) == 0 {
		if value != nil {
			each(slices.Clone(at), value)
		}
		return
	}
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if steps[0] == key || steps[0] == "*" {
				walk(value[key], steps[1:], append(at, key), each)
			}
		}
	case []any:
		for i, item := range value {
			if steps[0] == "*" {
				walk(item, steps[1:], append(at, i), each)
			}
		}
	}
}

// content is a text as it is, and another value as JSON.
func content(value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		panic(err) // it came out of JSON or YAML
	}
	return string(text) + "\n"
}

// fileName is what a program sees of a field without a file name: that of its last key.
func fileName(path []any) string {
	for _, step := range slices.Backward(path) {
		if key, ok := step.(string); ok && isFileName(key) {
			return key
		}
	}
	return "text" + strconv.Itoa(len(path))
}

// isFileName says whether a text is the name of a file anywhere.
func isFileName(text string) bool {
	for _, c := range text {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return text != "" && len(text) < 254 && text[0] != '.' && text[0] != '-'
}
