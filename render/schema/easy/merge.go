// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package easy

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/swell-sh/swell/config/document"
)

// merge says how several writers share a field. The zero value is Kubernetes'
// own default: a list is replaced as a whole.
type merge struct {
	keys  []string // that tell the items of a list apart
	patch patch    // for strategic merge patches
}

// strategies are those of strategic merge patches.
var strategies = []string{"merge", "replace", "retainKeys"}

// merge is how the field on the current path is merged: as the kind says for
// its path, else for its type, else as the field itself says. So one kind can
// decide otherwise than a message that it shares with others, as protoc-gen-crd
// has it.
func (in *inliner) merge(f protoreflect.FieldDescriptor, options fieldOptions) merge {
	m := in.easy.mergeAt(strings.Join(in.path, "."), f, options, func(i int) { in.used[i] = true })
	for strategy := range strings.SplitSeq(m.patch.strategy, ",") {
		if strategy != "" && !slices.Contains(strategies, strategy) {
			in.report(f, "%s: merge_strategy %q: no such strategy%s", f.FullName(), document.Shorten(strategy), document.DidYouMean(strategy, strategies))
		}
	}
	if len(options.keys) > 0 && len(m.keys) == 0 {
		in.report(f, "%s: (swell.keys): want a list of messages", f.FullName())
	}
	m.keys = slices.DeleteFunc(slices.Clone(m.keys), func(key string) bool { return !in.isKey(f, key) })
	in.keyed = in.keyed || len(m.keys) > 0
	return m
}

// mergeAt is how a field on a path is merged. use is called with the indexes of
// what the kind says of it.
func (e *Schema) mergeAt(path string, f protoreflect.FieldDescriptor, options fieldOptions, use func(i int)) merge {
	m := merge{patch: e.kindPatch(path, f, use)}
	if m.patch == (patch{}) {
		m.patch = options.patch
	}
	switch isItems := f.IsList() && form(f) == "message"; {
	case !isItems:
	case len(options.keys) > 0:
		m.keys = options.keys
	case m.patch.key != "" && m.patch.strategy != "replace":
		m.keys = []string{m.patch.key}
	}
	return m
}

// kindPatch finds the kind's own field_patch_strategies for a field.
func (e *Schema) kindPatch(path string, f protoreflect.FieldDescriptor, use func(i int)) patch {
	var byPath, byType patch
	for i, p := range e.names.patches {
		switch {
		case p.path != "" && strings.TrimPrefix(p.path, ".") == path:
			byPath = p.patch
			use(i)
		case p.typ != "" && f.Message() != nil && strings.TrimPrefix(p.typ, ".") == string(f.Message().FullName()):
			byType = p.patch
			use(i)
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
		in.report(f, "%s: key %q: no such field in %s%s", f.FullName(), document.Shorten(key), f.Message().FullName(), document.DidYouMean(key, names))
		return false
	}
	scalar := []string{"text", "int32", "uint32", "int64", "uint64", "boolean", "enum"}
	if field.IsList() || field.IsMap() || !slices.Contains(scalar, form(field)) {
		in.report(f, "%s: key %q: want a string, a whole number, an enum or true or false", f.FullName(), key)
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
