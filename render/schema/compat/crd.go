// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config/document"
)

// Definition is one state of a CustomResourceDefinition.
type Definition struct {
	Object map[string]any
	// At is where a part of it stands, by its path.
	At func(path ...any) document.Position
}

// Name is that of the definition: its plural and its group.
func (d Definition) Name() string { return text(mapping(d.Object, "metadata"), "name") }

// Use is what is known of the objects of a definition.
type Use struct {
	// Documents says whether the tree has objects of a version.
	Documents func(version string) bool
	// Stored are the versions that clusters have objects of, by their
	// status.storedVersions; nil where that is not known.
	Stored []string
}

func (u Use) has(version string) bool {
	return u.Documents != nil && u.Documents(version) || slices.Contains(u.Stored, version)
}

// RemovedDefinition is the finding for a definition that is not there any more.
func RemovedDefinition(was Definition) Finding {
	d := definitionsOf(was, was)
	d.add(CRDRemoved, was.At(), nil, "the definition of %s is not there any more: where it is applied, a server deletes all objects with it", was.Name())
	return d.findings[0]
}

// Definitions compares a definition with what it was. Objects are of the versions of
// was.
func Definitions(was, is Definition, use Use) []Finding {
	d := definitionsOf(was, is)
	d.whole(use)
	return Sorted(d.findings)
}

// definitions gathers the findings about one definition.
type definitions struct {
	was, is  Definition
	kind     string // and, inside of a version, the version: Box/v1
	findings []Finding
}

func definitionsOf(was, is Definition) *definitions {
	return &definitions{was: was, is: is, kind: text(mapping(mapping(was.Object, "spec"), "names"), "kind")}
}

func (d *definitions) add(rule Rule, at document.Position, path []string, format string, args ...any) *Finding {
	d.findings = append(d.findings, Finding{Position: at, Rule: rule, Severity: Rules[rule].Severity,
		At: strings.Join(append([]string{d.kind}, path...), "."), Message: fmt.Sprintf(format, args...)})
	return &d.findings[len(d.findings)-1]
}

func mapping(m map[string]any, key string) map[string]any {
	below, _ := m[key].(map[string]any)
	return below
}

func text(m map[string]any, key string) string {
	value, _ := m[key].(string)
	return value
}

func list(m map[string]any, key string) []any {
	value, _ := m[key].([]any)
	return value
}

func isTrue(m map[string]any, key string) bool { return m[key] == true }

// whole compares all but the schemas, and then those.
func (d *definitions) whole(use Use) {
	was, is := mapping(d.was.Object, "spec"), mapping(d.is.Object, "spec")
	for _, name := range []string{"kind", "singular", "listKind"} {
		before, after := text(mapping(was, "names"), name), text(mapping(is, "names"), name)
		if before != "" && after != "" && before != after {
			d.add(CRDNamesChanged, d.is.At("spec", "names", name), nil, "the %s was %q, and is %q", name, before, after)
		}
	}
	if before, after := text(was, "scope"), text(is, "scope"); before != after {
		d.add(CRDScopeChanged, d.is.At("spec", "scope"), nil, "was %s, and is %s", before, after)
	}
	kind := d.kind
	for _, item := range list(was, "versions") {
		before, _ := item.(map[string]any)
		name := text(before, "name")
		i := slices.IndexFunc(list(is, "versions"), func(item any) bool {
			m, _ := item.(map[string]any)
			return text(m, "name") == name
		})
		if i < 0 {
			d.gone(name, before, use)
			continue
		}
		after := list(is, "versions")[i].(map[string]any)
		d.kind = kind + "/" + name
		d.version(before, after, i, use)
		d.kind = kind
	}
}

func (d *definitions) gone(name string, before map[string]any, use Use) {
	at := d.is.At("spec", "versions")
	if isTrue(before, "storage") || slices.Contains(use.Stored, name) {
		d.add(CRDStorageRemoved, at, []string{name}, "version %s was stored: a server refuses to forget it while its status.storedVersions has it", name)
	}
	if isTrue(before, "served") {
		d.unused(d.add(CRDVersionRemoved, at, []string{name}, "version %s is not there any more", name), name, use)
	}
}

// unused makes a finding about a version that nobody is seen to use a warning.
func (d *definitions) unused(f *Finding, version string, use Use) {
	if !use.has(version) {
		f.Severity = Warning
		f.Message += "; the tree has no object of it"
	}
}

func (d *definitions) version(was, is map[string]any, i int, use Use) {
	name := text(was, "name")
	if isTrue(was, "served") && !isTrue(is, "served") {
		d.unused(d.add(CRDVersionUnserved, d.is.At("spec", "versions", i, "served"), nil, "version %s is not served any more", name), name, use)
		return
	}
	for _, sub := range slices.Sorted(maps.Keys(mapping(was, "subresources"))) {
		if mapping(is, "subresources")[sub] == nil {
			d.add(CRDSubresource, d.is.At("spec", "versions", i), nil, "the subresource %s is not there any more", sub)
		}
	}
	before, after := mapping(mapping(was, "schema"), "openAPIV3Schema"), mapping(mapping(is, "schema"), "openAPIV3Schema")
	if before != nil && after != nil {
		d.schema(before, after, []any{"spec", "versions", i, "schema", "openAPIV3Schema"}, nil)
	}
}
