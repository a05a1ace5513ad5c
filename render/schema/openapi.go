// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// OpenAPI is the OpenAPI v2 document that kustomize reads with
// `openapi: {path: ...}`: how the lists of the kinds are merged. It is strict
// and has the fields that only clients know.
func OpenAPI(kinds []*Easy) map[string]any {
	definitions := map[string]any{}
	for _, e := range kinds {
		in := e.inline(true, ignore)
		definitions[e.definitionName(nil)] = e.clientSchema(in)
		for written := map[protoreflect.FullName]bool{}; len(written) < len(in.shared); {
			for _, name := range slices.Sorted(maps.Keys(in.shared)) {
				if !written[name] {
					m := in.shared[name]
					definitions[e.definitionName(m)] = in.object(m, nil)
					written[name] = true
				}
			}
		}
	}
	return map[string]any{
		"swagger": "2.0", "info": map[string]any{"title": "easy kinds", "version": "v1"},
		"paths": map[string]any{}, "definitions": definitions,
	}
}

// definitionName is the name of the kind's definition, or of that of a message
// in it.
func (e *Easy) definitionName(m protoreflect.MessageDescriptor) string {
	parts := strings.Split(e.Group, ".")
	slices.Reverse(parts)
	name := strings.Join(parts, ".") + ".v1." + e.Kind
	if m != nil {
		name += "." + string(m.FullName())
	}
	return name
}

func (e *Easy) clientSchema(in *inliner) map[string]any {
	s := in.object(e.message, nil)
	properties, _ := s["properties"].(map[string]any)
	if properties == nil {
		properties = map[string]any{}
		s["properties"] = properties
	}
	maps.Copy(properties, objectMeta())
	e.addOverride(properties)
	if text := comment(e.message); text != "" {
		s["description"] = text
	}
	s["x-kubernetes-group-version-kind"] = []any{map[string]any{"group": e.Group, "version": "v1", "kind": e.Kind}}
	return s
}

// addOverride allows spec.override, unless the kind forbids it or has a field
// of that name.
func (e *Easy) addOverride(root map[string]any) {
	spec, _ := root["spec"].(map[string]any)
	properties, _ := spec["properties"].(map[string]any)
	if spec == nil || e.forbids.override || properties["override"] != nil {
		return
	}
	if properties == nil {
		properties = map[string]any{}
		spec["properties"] = properties
	}
	properties["override"] = map[string]any{"type": "object",
		"description": "Patches of the objects that the spec stands for, by their ids in the kind."}
}
