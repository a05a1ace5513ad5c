// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"io"
	"strings"

	"github.com/swell-sh/swell/config"
)

// Formats that several verbs write. In all of them JSON and YAML hold the same
// value: apiVersion, kind, fields in lower camel case that are only ever added,
// times as RFC 3339, durations as strings like "1m30s".
const (
	formatTable    = "table"
	formatWide     = "wide"
	formatName     = "name"
	formatJSON     = "json"
	formatYAML     = "yaml"
	formatText     = "text"
	formatMarkdown = "markdown"
)

// oneOf lists words for people: "table, json or yaml".
func oneOf(words []string) string {
	last := len(words) - 1
	if last <= 0 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// list is how items are written as JSON, in the form of a Kubernetes list.
type list[T any] struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Items      []T    `json:"items"` // never null
}

func listOf[T any](kind string, items []T) list[T] {
	return list[T]{config.APIVersion, kind, append([]T{}, items...)}
}

// writeData writes a value as JSON, or as YAML.
func writeData(w io.Writer, format string, value any) error {
	if format != formatYAML {
		return writeIndented(w, value)
	}
	text, err := marshalYAML(value)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// writeIndented writes a value as JSON for people and programs.
func writeIndented(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}
