// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"io"

	"github.com/swell-sh/swell/config"
)

// writeList writes items as JSON in the form of a Kubernetes list.
func writeList[T any](w io.Writer, kind string, items []T) error {
	return writeIndented(w, listOf(kind, items))
}

type list[T any] struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Items      []T    `json:"items"` // never null
}

func listOf[T any](kind string, items []T) list[T] {
	return list[T]{config.APIVersion, kind, append([]T{}, items...)}
}

// writeIndented writes a value as JSON for people and programs.
func writeIndented(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}
