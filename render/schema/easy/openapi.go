// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package easy

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"sigs.k8s.io/kustomize/kyaml/openapi"
)

// OpenAPI is the OpenAPI v2 document that kustomize reads with
// `openapi: {path: ...}`: how the lists of the kinds are merged, and which are
// namespaced. It is strict and has the fields that only clients know. kustomize
// then forgets what it has built in, so others are its definitions of other
// kinds, or nil.
func OpenAPI(kinds []*Schema, others map[string]any) map[string]any {
	definitions, paths := map[string]any{}, map[string]any{}
	maps.Copy(definitions, others)
	for _, e := range kinds {
		paths[e.getPath()] = map[string]any{"get": map[string]any{
			"responses":  map[string]any{"200": map[string]any{"description": "OK"}},
			gvkExtension: e.gvk(),
		}}
		maps.Copy(definitions, e.clientDefinitions())
	}
	return map[string]any{
		"swagger": "2.0", "info": map[string]any{"title": "easy kinds", "version": "v1"},
		"paths": paths, "definitions": definitions,
	}
}

// clientDefinitions are the kind's own definition and those of the messages
// that it refers to, as kustomize reads them, by name.
func (e *Schema) clientDefinitions() map[string]any {
	in := e.inline(true, ignore)
	definitions := map[string]any{e.definitionName(nil): e.clientSchema(in)}
	for written := map[protoreflect.FullName]bool{}; len(written) < len(in.shared); {
		for _, name := range slices.Sorted(maps.Keys(in.shared)) {
			if !written[name] {
				m := in.shared[name]
				definitions[e.definitionName(m)] = in.object(m, nil)
				written[name] = true
			}
		}
	}
	return definitions
}

// BuiltIn is the definitions that kustomize has built in, without their
// descriptions. kustomize holds them in one place for the whole process: call
// this before it is given other ones.
func BuiltIn() (map[string]any, error) {
	text, err := json.Marshal(openapi.Schema().Definitions)
	if err != nil {
		return nil, err
	}
	var definitions map[string]any
	if err := json.Unmarshal(text, &definitions); err != nil {
		return nil, err
	}
	withoutDescriptions(definitions)
	return definitions, nil
}

func withoutDescriptions(value any) {
	switch v := value.(type) {
	case map[string]any:
		if _, isText := v["description"].(string); isText { // else it is a field of that name
			delete(v, "description")
		}
		for _, below := range v {
			withoutDescriptions(below)
		}
	case []any:
		for _, item := range v {
			withoutDescriptions(item)
		}
	}
}

const gvkExtension = "x-kubernetes-group-version-kind"

func (e *Schema) gvk() map[string]any {
	return map[string]any{"group": e.Group, "version": "v1", "kind": e.Kind}
}

// getPath is where an API server has an object of the kind.
func (e *Schema) getPath() string {
	path := "/apis/" + e.APIVersion() + "/"
	if !e.names.cluster {
		path += "namespaces/{namespace}/"
	}
	return path + e.Plural + "/{name}"
}

// definitionName is the name of the kind's definition, or of that of a message
// in it.
func (e *Schema) definitionName(m protoreflect.MessageDescriptor) string {
	parts := strings.Split(e.Group, ".")
	slices.Reverse(parts)
	name := strings.Join(parts, ".") + ".v1." + e.Kind
	if m != nil {
		name += "." + string(m.FullName())
	}
	return name
}

// clientSchema is the schema of a whole object for kustomize.
func (e *Schema) clientSchema(in *inliner) map[string]any {
	s := e.wholeSchema(in)
	e.addOverride(s["properties"].(map[string]any))
	s[gvkExtension] = []any{e.gvk()}
	return s
}

// addOverride allows spec.override, unless the kind forbids it, has a field of
// that name, or a spec that is no message of its own.
func (e *Schema) addOverride(root map[string]any) {
	if f := e.message.Fields().ByName("spec"); f == nil || form(f) != "message" {
		return // one of a form of its own has no more fields
	}
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
