// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package easy

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// CRD is the CustomResourceDefinition of the kind, as a server wants it: its
// types and how lists are merged, but no rule that a value may once have
// broken. Fields that only clients know are not in it. It is the caller's to
// change.
func (e *Schema) CRD() map[string]any {
	version := map[string]any{
		"name": "v1", "served": true, "storage": true,
		"schema": map[string]any{"openAPIV3Schema": e.wholeSchema(e.inline(false, ignore))},
	}
	if status := e.message.Fields().ByName("status"); status != nil && isMessage(status) && !fieldOptionsOf(status).clientOnly {
		version["subresources"] = map[string]any{"status": map[string]any{}}
	}
	if columns := e.columns(); len(columns) > 0 {
		version["additionalPrinterColumns"] = columns
	}
	called := map[string]any{"kind": e.Kind, "listKind": e.Kind + "List", "singular": e.Singular, "plural": e.Plural}
	if len(e.names.short) > 0 {
		called["shortNames"] = anyTexts(e.names.short)
	}
	if len(e.names.categories) > 0 {
		called["categories"] = anyTexts(e.names.categories)
	}
	scope := "Namespaced"
	if e.names.cluster {
		scope = "Cluster"
	}
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": e.Plural + "." + e.Group},
		"spec":     map[string]any{"group": e.Group, "names": called, "scope": scope, "versions": []any{version}},
	}
}

// ignore is for what New has reported already.
func ignore(protoreflect.Descriptor, string, ...any) {}

// definition writes all inlined schemas once, to find what is wrong with them.
func (e *Schema) definition() {
	client, server := e.inline(true, e.problem), e.inline(false, e.problem)
	e.clientSchema(client)
	e.wholeSchema(server)
	e.keyed = client.keyed
	for i, used := range server.used { // by a field of status
		client.used[i] = client.used[i] || used
	}
	paths := map[string]bool{}
	fieldPaths(e.message, "", nil, paths)
	client.unusedPatches(paths)
}

// fieldPaths gathers the paths of all fields, as field_path has them.
func fieldPaths(m protoreflect.MessageDescriptor, prefix string, stack []protoreflect.FullName, paths map[string]bool) {
	if slices.Contains(stack, m.FullName()) || isWellKnown(m) || len(paths) > maxNodes {
		return
	}
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		path := prefix + string(f.Name())
		paths[path] = true
		below := f.Message()
		if f.IsMap() {
			below = f.MapValue().Message()
		}
		if below != nil {
			fieldPaths(below, path+".", append(stack, m.FullName()), paths)
		}
	}
}

// wholeSchema is the schema of a whole object, which has properties.
func (e *Schema) wholeSchema(in *inliner) map[string]any {
	s := in.object(e.message, nil)
	properties, _ := s["properties"].(map[string]any)
	if properties == nil {
		properties = map[string]any{}
		s["properties"] = properties
	}
	maps.Copy(properties, objectMeta())
	if text := comment(e.message); text != "" {
		s["description"] = text
	}
	return s
}

// objectMeta are the fields of every object, whose schema Kubernetes knows.
func objectMeta() map[string]any {
	return map[string]any{
		"apiVersion": map[string]any{"type": "string"}, "kind": map[string]any{"type": "string"}, "metadata": map[string]any{"type": "object"},
	}
}

func (e *Schema) columns() []any {
	var columns []any
	for _, c := range e.names.columns {
		path := c.path
		if path[0] != '.' {
			path = "." + path
		}
		shown := map[string]any{"name": c.name, "type": c.typ, "jsonPath": path}
		if c.format != "" {
			shown["format"] = c.format
		}
		if c.description != "" {
			shown["description"] = c.description
		}
		if c.priority != 0 {
			shown["priority"] = c.priority
		}
		columns = append(columns, shown)
	}
	return columns
}

func anyTexts(texts []string) []any {
	all := make([]any, len(texts))
	for i, text := range texts {
		all[i] = text
	}
	return all
}
