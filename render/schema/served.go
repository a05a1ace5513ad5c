// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/swell-sh/swell/config/document"
)

// served checks what stands beside the schema of a version: how API servers serve it.
func (d *definition) served(v servedVersion, m map[string]any) {
	const longest = 256 // bytes of a warning
	_, warns := m["deprecationWarning"].(string)
	switch {
	case warns && !v.deprecated:
		d.problemAt("deprecationWarning", document.CodeObject, "only for a version with deprecated: true")
	case warns && (v.warning == "" || len(v.warning) > longest || strings.ContainsFunc(v.warning, func(r rune) bool { return !unicode.IsPrint(r) })):
		d.problemAt("deprecationWarning", document.CodeObject, "want 1 to %d printable characters", longest)
	}
	d.columns(m)
	d.selectable(v.typ, m)
	d.at(func() {
		d.at(func() {
			scale := get[map[string]any](d, get[map[string]any](d, m, "subresources"), "scale")
			if scale == nil {
				return
			}
			for _, field := range []struct {
				name     string
				optional bool
				below    []string
			}{{"specReplicasPath", false, []string{".spec."}}, {"statusReplicasPath", false, []string{".status."}}, {"labelSelectorPath", true, []string{".spec.", ".status."}}} {
				path := get[string](d, scale, field.name)
				if path == "" && field.optional {
					continue
				}
				if !simplePath.MatchString(path) || !slices.ContainsFunc(field.below, func(prefix string) bool { return strings.HasPrefix(path, prefix) }) {
					d.problemAt(field.name, document.CodeObject, "%q: want a path like %sreplicas", document.Shorten(path), field.below[0])
				}
			}
		}, "scale")
	}, "subresources")
}

// simplePath is a path of fields.
var simplePath = regexp.MustCompile(`^(\.[-A-Za-z0-9_]+)+$`)

var (
	columnTypes   = []string{"boolean", "date", "integer", "number", "string"}
	columnFormats = []string{"", "byte", "date", "date-time", "double", "float", "int32", "int64", "password"}
)

// selectable checks the fields that lists can be filtered by.
func (d *definition) selectable(t *Type, m map[string]any) {
	for i, item := range get[[]any](d, m, "selectableFields") {
		field, _ := item.(map[string]any)
		d.at(func() {
			path, at := get[string](d, field, "jsonPath"), t
			names := strings.Split(path, ".")
			for _, name := range names[1:] {
				if at != nil {
					at = at.Fields[name]
				}
			}
			if names[0] != "" || at == nil || at.Form != String && at.Form != Integer && at.Form != Boolean {
				d.problemAt("jsonPath", document.CodeObject, "%q: want the path of a string, an integer or a boolean, like .spec.class", document.Shorten(path))
			}
		}, "selectableFields", i)
	}
}

// columns checks what kubectl get shows.
func (d *definition) columns(m map[string]any) {
	for i, item := range get[[]any](d, m, "additionalPrinterColumns") {
		column, _ := item.(map[string]any)
		d.at(func() {
			if t := get[string](d, column, "type"); !slices.Contains(columnTypes, t) {
				d.problemAt("type", document.CodeObject, "want one of %s, got %q", strings.Join(columnTypes, ", "), document.Shorten(t))
			}
			if f := get[string](d, column, "format"); !slices.Contains(columnFormats, f) {
				d.problemAt("format", document.CodeObject, "want one of %s, got %q", strings.Join(columnFormats[1:], ", "), document.Shorten(f))
			}
			if get[string](d, column, "name") == "" {
				d.problem(document.CodeObject, "name: missing")
			}
			if path := get[string](d, column, "jsonPath"); !strings.HasPrefix(path, ".") {
				d.problemAt("jsonPath", document.CodeObject, "%q: want a path like .spec.replicas", document.Shorten(path))
			}
		}, "additionalPrinterColumns", i)
	}
}

// conversion checks who converts objects from version to version.
func (d *definition) conversion(conversion map[string]any) {
	if conversion == nil {
		return
	}
	d.at(func() {
		webhook := get[map[string]any](d, conversion, "webhook")
		switch strategy := get[string](d, conversion, "strategy"); strategy {
		case "None":
			if webhook != nil {
				d.problemAt("webhook", document.CodeObject, "only for strategy: Webhook")
			}
		case "Webhook":
			switch {
			case webhook == nil:
				d.problem(document.CodeObject, "webhook: missing, strategy: Webhook has one")
			case get[map[string]any](d, webhook, "clientConfig") == nil:
				d.problemAt("webhook", document.CodeObject, "clientConfig: missing, strategy: Webhook has one")
			}
		default:
			d.problemAt("strategy", document.CodeObject, "want None or Webhook, got %q", document.Shorten(strategy))
		}
	}, "conversion")
}

// Served are the versions of the API, and the kinds in each, as an API server lists
// them: apps/v1 and apps/v1/Deployment. They are sorted.
func (s *Set) Served() []string {
	s.listing.Do(func() { s.listed = s.list() })
	return s.listed
}

func (s *Set) list() []string {
	versions := map[string]bool{}
	for name := range s.kinds {
		version, kind, _ := strings.Cut(name, " ")
		versions[version], versions[version+"/"+kind] = true, true
	}
	return slices.Sorted(maps.Keys(versions))
}
