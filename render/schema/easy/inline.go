// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package easy

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/swell-sh/swell/config/document"
)

// inliner writes a message as one schema in which each message stands where it
// is used, as a CRD wants it and as patches that depend on the place need it.
type inliner struct {
	easy *Schema
	// client asks for the strict schema with the hints of kustomize; else it
	// is the server's.
	client bool
	report func(d protoreflect.Descriptor, format string, args ...any)

	stack []protoreflect.FullName // of the messages around
	path  []string                // of fields, from the root
	// instances is how many values there may be of the schema that is written.
	instances int64
	// loose is set inside a list whose items cannot be told apart over time.
	loose bool
	// unchecked is set inside what rules are ignored of.
	unchecked bool
	nodes     int
	cost      int64 // of the rules so far, as an API server estimates it
	// shared are the messages that were met inside themselves.
	shared map[protoreflect.FullName]protoreflect.MessageDescriptor
	used   []bool // by index of names.patches
	keyed  bool   // a list has keys
}

// maxNodes bounds a schema: etcd takes no CRD above 1.5 MiB, and messages that
// use each other several times grow without end when they are inlined.
const maxNodes = 10_000

const keepUnknown = "x-kubernetes-preserve-unknown-fields"

func (e *Schema) inline(client bool, report func(d protoreflect.Descriptor, format string, args ...any)) *inliner {
	return &inliner{easy: e, client: client, report: report, instances: 1,
		shared: map[protoreflect.FullName]protoreflect.MessageDescriptor{}, used: make([]bool, len(e.names.patches))}
}

// opaque is an object of any content. On a server, all messages keep the fields
// that they do not know: a newer client may have sent them. Otherwise it
// would drop them silently, also in strict mode, as soon as one object around keeps
// them.
func opaque() map[string]any { return map[string]any{"type": "object", keepUnknown: true} }

// object is the schema of a message; keys are fields that must be there since
// they tell it apart from its neighbours in a list.
func (in *inliner) object(m protoreflect.MessageDescriptor, keys []string) map[string]any {
	if in.nodes++; in.nodes == maxNodes+1 {
		in.report(in.easy.message, "message %s: its schema has more than %d parts with each message written where it is used", in.easy.message.FullName(), maxNodes)
	}
	again := slices.Contains(in.stack, m.FullName())
	if again && in.client {
		in.shared[m.FullName()] = m
		return map[string]any{"$ref": "#/definitions/" + in.easy.definitionName(m)}
	}
	s := map[string]any{"type": "object"}
	if !in.client && len(in.stack) > 0 {
		s = opaque() // but for the properties
	}
	in.stack = append(in.stack, m.FullName())
	properties := map[string]any{}
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		name := string(f.Name())
		known := !again && in.nodes <= maxNodes && !in.isRootName(f)
		if known && (in.client || !fieldOptionsOf(f).clientOnly) || slices.Contains(keys, name) {
			properties[name] = in.field(f)
		}
	}
	in.stack = in.stack[:len(in.stack)-1]
	if len(properties) > 0 {
		s["properties"] = properties
	}
	if required := in.required(m, keys, properties); len(required) > 0 {
		s["required"] = required
	}
	if in.client {
		s["additionalProperties"] = false
	} else if !again {
		in.oneofs(s, m, properties)
		in.immutable(s, m, properties)
	}
	return s
}

// isRootName says whether the field is one that every object of Kubernetes
// has, and whose schema is not ours to give, or for clients one that no author
// writes.
func (in *inliner) isRootName(f protoreflect.FieldDescriptor) bool {
	if len(in.stack) != 1 || in.stack[0] != in.easy.message.FullName() {
		return false
	}
	return !slices.Contains(document.WrittenFields(in.easy.message), f) && (in.client || f.Name() != "status")
}

func (in *inliner) required(m protoreflect.MessageDescriptor, keys []string, properties map[string]any) []any {
	var required []any
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		if properties[string(f.Name())] == nil {
			continue
		}
		if slices.Contains(keys, string(f.Name())) || in.client && isRequired(f, in.unchecked) {
			required = append(required, string(f.Name()))
		}
	}
	return required
}

func (in *inliner) field(f protoreflect.FieldDescriptor) map[string]any {
	in.path = append(in.path, string(f.Name()))
	defer func() { in.path = in.path[:len(in.path)-1] }()
	options := fieldOptionsOf(f)
	r := fieldRules(f, in.unchecked).withoutZero(f)
	wasUnchecked := in.unchecked
	in.unchecked = in.unchecked || r.always
	defer func() { in.unchecked = wasUnchecked }()
	merge := in.merge(f, options)
	var s map[string]any
	switch {
	case f.IsMap():
		s = map[string]any{"type": "object", "additionalProperties": in.repeated(r, "maxProperties", false, func() map[string]any {
			return in.value(f.MapValue(), r.items, nil)
		})}
		in.limit(s, r)
	case f.IsList():
		s = map[string]any{"type": "array", "items": in.repeated(r, "maxItems", len(merge.keys) == 0, func() map[string]any {
			return in.value(f, r.items, merge.keys)
		})}
		in.limit(s, r)
	default:
		s = in.value(f, &r, nil)
	}
	merge.write(s, f, in.client)
	describe(s, f)
	if options.secret && s["type"] == "string" {
		s["format"] = "password"
	}
	if values, _ := examples(f, options.examples); in.client && len(values) > 0 {
		s["example"] = values[0]
	}
	return s
}

// repeated writes what there may be many of.
func (in *inliner) repeated(r rules, bound string, loose bool, write func() map[string]any) map[string]any {
	const unbounded, many = 1_000_000, 1 << 40
	times := int64(unbounded)
	if most, ok := r.keywords[bound].(uint64); ok && most < unbounded {
		times = int64(max(most, 1))
	}
	instances, wasLoose := in.instances, in.loose
	in.instances, in.loose = min(instances*times, many), wasLoose || loose
	defer func() { in.instances, in.loose = instances, wasLoose }()
	return write()
}

// value is the schema of one value of a field: of an item, if it is a list.
func (in *inliner) value(f protoreflect.FieldDescriptor, r *rules, keys []string) map[string]any {
	if r == nil {
		r = &rules{}
	}
	if form(f) == "message" {
		wasUnchecked := in.unchecked
		in.unchecked = in.unchecked || r.always || r.orZero
		defer func() { in.unchecked = wasUnchecked }()
		return in.object(f.Message(), keys)
	}
	in.nodes++
	loose := r.withoutZero(f)
	r = &loose
	s := in.scalar(f)
	in.limit(s, *r)
	if values := choices(f, r); in.client && values != nil {
		s["enum"] = values
	}
	return s
}

func (in *inliner) scalar(f protoreflect.FieldDescriptor) map[string]any {
	switch form(f) {
	case "text", "duration", "mask":
		return map[string]any{"type": "string"}
	case "bytes":
		return map[string]any{"type": "string", "format": "byte"}
	case "time":
		return map[string]any{"type": "string", "format": "date-time"}
	case "int32":
		return map[string]any{"type": "integer", "format": "int32"}
	case "uint32":
		return map[string]any{"type": "integer", "format": "int64", "minimum": int64(0)}
	case "number":
		return map[string]any{"type": "number"}
	case "boolean":
		return map[string]any{"type": "boolean"}
	case "object", "refused": // another client may know what it is
		return opaque()
	case "list":
		return map[string]any{"type": "array", "items": map[string]any{keepUnknown: true}}
	case "any":
		return map[string]any{keepUnknown: true}
	}
	return map[string]any{"x-kubernetes-int-or-string": true} // 64 bits, enums
}

// limit takes over rules. The server gets only those that bound a value's
// size, without which its own CEL rules would be too costly for it: all others
// may be mended later on, and it must go on taking what it has.
func (in *inliner) limit(s map[string]any, r rules) {
	for keyword, value := range r.keywords {
		switch keyword {
		case "maxLength", "maxItems", "maxProperties":
			s[keyword] = value
		case "exclusiveMinimum", "exclusiveMaximum":
			if in.client {
				s[strings.ToLower(strings.TrimPrefix(keyword, "exclusive"))], s[keyword] = value, true // as OpenAPI v2 has it
			}
		default:
			if in.client {
				s[keyword] = value
			}
		}
	}
}

// What an API server takes of its estimates of the cost of a rule, and of all
// rules of a CRD (k8s.io/apiextensions-apiserver,
// pkg/apis/apiextensions/validation). The rest of the total is for oneofs.
const (
	ruleLimit  = 10_000_000
	totalLimit = 80_000_000
)

// oneofs adds that at most one field of each oneof is set: as a CEL rule,
// which has a message, or where that might cost too much as plain keywords.
func (in *inliner) oneofs(s map[string]any, m protoreflect.MessageDescriptor, properties map[string]any) {
	const cheap = 1000 // instances
	for i := range m.Oneofs().Len() {
		of := m.Oneofs().Get(i)
		var fields, terms []string
		exposed := true
		for j := range of.Fields().Len() {
			name := string(of.Fields().Get(j).Name())
			if property, ok := properties[name].(map[string]any); ok {
				fields = append(fields, name)
				terms = append(terms, fmt.Sprintf("(has(self.%s) ? 1 : 0)", celName(name)))
				exposed = exposed && isExposed(property)
			}
		}
		switch {
		case of.IsSynthetic() || len(fields) < 2:
		case exposed && in.instances <= cheap:
			addRule(s, map[string]any{"rule": strings.Join(terms, " + ") + " <= 1", "message": "at most one of " + strings.Join(fields, ", ") + " may be set"})
		default:
			all, _ := s["allOf"].([]any)
			s["allOf"] = append(all, map[string]any{"oneOf": atMostOne(fields, false)})
		}
	}
}

func addRule(s map[string]any, rule map[string]any) {
	all, _ := s["x-kubernetes-validations"].([]any)
	s["x-kubernetes-validations"] = append(all, rule)
}

// immutable adds a rule for each field that cannot be changed or removed.
func (in *inliner) immutable(s map[string]any, m protoreflect.MessageDescriptor, properties map[string]any) {
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		property, ok := properties[string(f.Name())].(map[string]any)
		if !ok || !fieldOptionsOf(f).immutable {
			continue
		}
		cost := in.instances * (size(property)/10 + 20)
		switch {
		case in.loose:
			in.report(f, "%s: (swell.immutable): it is in a list whose items cannot be told apart: give the list (swell.keys)", f.FullName())
		case !isExposed(property):
			in.report(f, "%s: (swell.immutable): a value of any form cannot be compared by an API server", f.FullName())
		case cost > ruleLimit || in.cost+cost > totalLimit:
			in.report(f, "%s: (swell.immutable): costs an API server too much where there may be any number: set max_items, max_pairs and max_len around it", f.FullName())
		default:
			in.cost += cost
			name := celName(string(f.Name()))
			addRule(s, map[string]any{"rule": fmt.Sprintf("!has(oldSelf.%[1]s) || has(self.%[1]s) && self.%[1]s == oldSelf.%[1]s", name),
				"message": string(f.Name()) + " cannot be changed once it is set"})
		}
	}
}

// size is about how many bytes of a value are compared at most.
func size(s map[string]any) int64 {
	const request = 3 << 20 // the API server takes no larger one
	for _, bound := range []string{"maxLength", "maxItems", "maxProperties"} {
		if most, ok := s[bound].(uint64); ok && most < request/4 {
			return int64(most) * 4 // bytes of a letter
		}
	}
	switch s["type"] {
	case "integer", "number", "boolean":
		return 8
	}
	return request
}

// isExposed says whether CEL rules of the API server see a value of the schema
// (k8s.io/apiserver/pkg/cel/common, SchemaDeclType).
func isExposed(s map[string]any) bool {
	if items, ok := s["items"].(map[string]any); ok {
		return isExposed(items)
	}
	if values, ok := s["additionalProperties"].(map[string]any); ok {
		return isExposed(values)
	}
	return s["type"] != nil || s["x-kubernetes-int-or-string"] == true
}

// celWords cannot stand for a field in a CEL rule
// (k8s.io/apiserver/pkg/cel, celReservedSymbols).
var celWords = []string{"true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if",
	"import", "let", "loop", "package", "namespace", "return", "var", "void", "while"}

// celName is how a CEL rule of the API server writes a field of a message.
func celName(field string) string {
	if slices.Contains(celWords, field) {
		return "__" + field + "__"
	}
	return strings.ReplaceAll(field, "__", "__underscores__")
}

// unusedPatches reports field_patch_strategies that nothing is named by.
func (in *inliner) unusedPatches(paths map[string]bool) {
	for i, p := range in.easy.names.patches {
		switch message := in.easy.message; {
		case in.used[i]:
		case p.path != "":
			known := make([]string, 0, len(paths))
			for path := range paths {
				known = append(known, path)
			}
			in.report(message, "message %s: field_patch_strategies: field_path %q: no such field%s", message.FullName(), document.Shorten(p.path), document.DidYouMean(strings.TrimPrefix(p.path, "."), known))
		default:
			in.report(message, "message %s: field_patch_strategies: protobuf_type %q: no field has this type", message.FullName(), document.Shorten(p.typ))
		}
	}
}
