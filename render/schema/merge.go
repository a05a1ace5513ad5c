// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/swell-sh/swell/config"
)

// merge says how several writers share a field. The zero value is Kubernetes'
// own default: a list is replaced as a whole.
type merge struct {
	keys  []string // that tell the items of a list apart
	patch patch    // for strategic merge patches
}

// merge is how the field on the current path is merged: by its own options,
// else by those that the kind has for its path, else for its type.
func (in *inliner) merge(f protoreflect.FieldDescriptor, options fieldOptions) merge {
	m := merge{keys: options.keys, patch: in.kindPatch(f)}
	if options.patch != (patch{}) {
		m.patch = options.patch
	}
	isItems := f.IsList() && form(f) == "message"
	if len(m.keys) > 0 && !isItems {
		in.report(f, "%s: (swell.keys): want a list of messages", f.FullName())
		m.keys = nil
	}
	if len(m.keys) == 0 && m.patch.key != "" && m.patch.strategy != "replace" && isItems {
		m.keys = []string{m.patch.key}
	}
	m.keys = slices.DeleteFunc(slices.Clone(m.keys), func(key string) bool { return !in.isKey(f, key) })
	return m
}

// kindPatch finds the kind's own field_patch_strategies for a field.
func (in *inliner) kindPatch(f protoreflect.FieldDescriptor) patch {
	var byPath, byType patch
	path := strings.Join(in.path, ".")
	for i, p := range in.easy.names.patches {
		switch {
		case p.path != "" && strings.TrimPrefix(p.path, ".") == path:
			byPath, in.used[i] = p.patch, true
		case p.typ != "" && f.Message() != nil && strings.TrimPrefix(p.typ, ".") == string(f.Message().FullName()):
			byType, in.used[i] = p.patch, true
		}
	}
	if byPath != (patch{}) {
		return byPath
	}
	return byType
}

// isKey says whether a field of a list's items can tell them apart.
func (in *inliner) isKey(f protoreflect.FieldDescriptor, key string) bool {
	var names []string
	for i := range f.Message().Fields().Len() {
		names = append(names, string(f.Message().Fields().Get(i).Name()))
	}
	field := f.Message().Fields().ByName(protoreflect.Name(key))
	if field == nil {
		in.report(f, "%s: key %q: no such field in %s%s", f.FullName(), config.Shorten(key), f.Message().FullName(), config.DidYouMean(key, names))
		return false
	}
	scalar := []string{"text", "int32", "uint32", "int64", "uint64", "boolean", "enum"}
	if field.IsList() || field.IsMap() || !slices.Contains(scalar, form(field)) {
		in.report(f, "%s: key %q: want a text, a whole number, an enum or true or false", f.FullName(), key)
		return false
	}
	if !in.client && fieldOptionsOf(field).clientOnly && !fieldOptionsOf(f).clientOnly {
		in.report(f, "%s: key %q: it is known to clients only, so a server cannot tell the items apart", f.FullName(), key)
		return false
	}
	return true
}

// write adds what the API server, or kustomize, must know to merge the field.
func (m merge) write(s map[string]any, f protoreflect.FieldDescriptor, client bool) {
	if len(m.keys) > 0 && (!client || len(m.keys) > 1) {
		keys := make([]any, len(m.keys))
		for i, key := range m.keys {
			keys[i] = key
		}
		s["x-kubernetes-list-type"], s["x-kubernetes-list-map-keys"] = "map", keys
	}
	isScalars := f.IsList() && form(f) != "message"
	if !client {
		if isScalars && m.patch.strategy == "merge" && isComparable(f) {
			s["x-kubernetes-list-type"] = "set"
		}
		return
	}
	key, strategy := m.patch.key, m.patch.strategy
	if len(m.keys) > 0 {
		if key == "" {
			key = m.keys[0]
		}
		if strategy == "" {
			strategy = "merge"
		}
	}
	if key != "" && len(m.keys) > 0 {
		s["x-kubernetes-patch-merge-key"] = key
	}
	if strategy != "" {
		s["x-kubernetes-patch-strategy"] = strategy
	}
}

// isComparable says whether a list of such items can be a set to a server.
func isComparable(f protoreflect.FieldDescriptor) bool {
	return slices.Contains([]string{"text", "bytes", "int32", "uint32", "boolean", "number", "duration", "time"}, form(f))
}
