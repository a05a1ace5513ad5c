// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/schema/crdrule"
)

// With is the set of Kubernetes' own kinds and those of custom resources beside it. A
// definition with a problem adds no kind, the others do. Where several definitions have
// a kind, the first is meant, and [Set.Kinds] has the others.
func (s *Set) With(definitions []*Definition) *Set {
	base := s.kubernetes()
	all := &Set{kinds: maps.Clone(base.kinds), hidden: map[string]hidden{}, hash: base.hash, minor: base.minor, own: base}
	for _, d := range definitions {
		for _, v := range d.versions {
			name := d.group + "/" + v.name + " " + d.kind
			switch first := all.kinds[name]; {
			case !v.served:
				all.hidden[name] = hidden{d}
			case first == nil:
				all.kinds[name] = d.kindOf(v)
			case first.of != nil:
				for first.next != nil {
					first = first.next
				}
				first.next = d.kindOf(v)
			}
		}
	}
	return all
}

// Kinds are the kinds of a name by all definitions of the set that check it in different
// ways. Most have one.
func (s *Set) Kinds(apiVersion, kind string) (all []*Kind) {
	_, version, _ := strings.Cut(apiVersion, "/")
	for k := s.kinds[apiVersion+" "+kind]; k != nil; k = k.next {
		if usable := k.usable(version); usable != nil && !slices.ContainsFunc(all, func(known *Kind) bool { return known.hash == usable.hash }) {
			all = append(all, usable)
		}
	}
	return all
}

// hash tells contents of one sort apart.
func hash(sort string, content []byte) string {
	sum := sha256.Sum256(append([]byte(sort+"\n"), content...))
	return hex.EncodeToString(sum[:])
}

// Hash is the same for kinds that check alike. It does not change when the
// definitions of other custom resources do.
func (k *Kind) Hash() string { return k.hash }

// groupKind is the group and kind of "apiVersion kind".
func groupKind(name string) string {
	apiVersion, kind, _ := strings.Cut(name, " ")
	group, _, ok := strings.Cut(apiVersion, "/")
	if !ok {
		group = "" // of v1
	}
	return group + " " + kind
}

// objectMeta is the type of every object's metadata.
func (s *Set) objectMeta() *Type { return s.Kind("v1", "ConfigMap").Type().Fields["metadata"] }

// check finds what is wrong with a definition by itself.
func (d *definition) check(base *Set, object map[string]any) {
	spec := get[map[string]any](d, object, "spec")
	if spec == nil {
		d.problem(document.CodeObject, "spec: missing")
		return
	}
	d.path = append(d.path, "spec")
	d.identity(object, spec)
	if get[bool](d, spec, "preserveUnknownFields") {
		d.problemAt("preserveUnknownFields", document.CodeObject, "not allowed in apiextensions.k8s.io/v1: write x-kubernetes-preserve-unknown-fields: true in the schema")
	}
	if claim := ClaimOf(object); base.owns(claim.Group, claim.Kind) {
		d.problemAt("names", document.CodeDuplicate, "%s", DefinedBy(claim, "Kubernetes itself"))
	}
	d.conversion(get[map[string]any](d, spec, "conversion"))
	switch scope := get[string](d, spec, "scope"); scope {
	case "Namespaced", "Cluster":
	default:
		d.problemAt("scope", document.CodeObject, "want Namespaced or Cluster, got %q", document.Shorten(scope))
	}
	d.versions(base, spec)
}

// DefinedBy is the problem of the second definition of a kind.
func DefinedBy(c Claim, owner string) string {
	return fmt.Sprintf("kind %s of group %s is defined by %s already", document.Shorten(c.Kind), document.Shorten(c.Group), owner)
}

// owns says whether a kind is one of Kubernetes' own.
func (s *Set) owns(group, kind string) bool {
	for name, k := range s.kinds {
		if k.of == nil && groupKind(name) == group+" "+kind {
			return true
		}
	}
	return false
}

// identity checks the group and the names, which the name of the definition
// is made of.
func (d *definition) identity(object, spec map[string]any) {
	group := get[string](d, spec, "group")
	if !document.IsName(group) || !strings.Contains(group, ".") {
		d.problemAt("group", document.CodeObject, "%q: want a domain with a dot in it", document.Shorten(group))
	}
	names := get[map[string]any](d, spec, "names")
	plural := get[string](d, names, "plural")
	kind := get[string](d, names, "kind")
	d.at(func() {
		for _, field := range []string{"plural", "kind", "singular", "listKind"} {
			value, _ := names[field].(string)
			optional := field == "singular" || field == "listKind"
			if field == "kind" || field == "listKind" {
				value = strings.ToLower(value)
			}
			if (value != "" || !optional) && !document.IsDNS1035(value) {
				d.problemAt(field, document.CodeObject, "%q: want at most 63 letters, digits and -, a letter first", document.Shorten(value))
			}
		}
		for _, field := range []string{"shortNames", "categories"} {
			for i, name := range d.names(names, field) {
				if !document.IsDNS1035(name) {
					d.at(func() {
						d.problem(document.CodeObject, "%q: want at most 63 lower-case letters, digits and -, a letter first", document.Shorten(name))
					}, field, i)
				}
			}
		}
		if listKind := names["listKind"]; kind != "" && listKind == kind {
			d.problemAt("listKind", document.CodeObject, "%q: want another name than the kind's", document.Shorten(kind))
		}
	}, "names")
	metadata, _ := object["metadata"].(map[string]any)
	d.path = d.path[:0]
	if name := plural + "." + group; metadata["name"] != name {
		d.at(func() { d.problem(document.CodeObject, "want %q, the plural and the group", document.Shorten(name)) }, "metadata", "name")
	}
	d.approved(group, metadata)
	d.path = append(d.path, "spec")
}

const approvedBy = "api-approved.kubernetes.io"

// approved checks what an API server wants for a group of Kubernetes' own.
func (d *definition) approved(group string, metadata map[string]any) {
	ours := strings.HasSuffix("."+group, ".k8s.io") || strings.HasSuffix("."+group, ".kubernetes.io")
	annotations, _ := metadata["annotations"].(map[string]any)
	if value, _ := annotations[approvedBy].(string); ours && value == "" {
		d.at(func() {
			d.problem(document.CodeObject, "missing, group %s belongs to Kubernetes: write the URL of the approval, or unapproved and why", document.Shorten(group))
		}, "metadata", "annotations", approvedBy)
	}
}

// servedVersion is one version of a definition, also one that is not served.
type servedVersion struct {
	name       string
	served     bool
	deprecated bool
	warning    string // in place of a server's own about deprecation
	typ        *Type
}

func (d *definition) versions(base *Set, spec map[string]any) {
	list := get[[]any](d, spec, "versions")
	seen := map[string]bool{}
	stored := 0
	for i, item := range list {
		d.at(func() {
			m, ok := item.(map[string]any)
			if !ok {
				d.problem(document.CodeType, "want a map, got %s", Describe(item))
				return
			}
			v := servedVersion{name: get[string](d, m, "name"), served: get[bool](d, m, "served"),
				deprecated: get[bool](d, m, "deprecated"), warning: get[string](d, m, "deprecationWarning")}
			if get[bool](d, m, "storage") {
				stored++
			}
			if !document.IsDNS1035(v.name) {
				d.problemAt("name", document.CodeObject, "%q: want at most 63 lower-case letters, digits and -, a letter first", document.Shorten(v.name))
			}
			if seen[v.name] {
				d.problemAt("name", document.CodeDuplicate, "%q: a version of that name stands before", document.Shorten(v.name))
			}
			seen[v.name] = true
			v.typ = d.schema(base, m)
			d.served(v, m)
		}, "versions", i)
	}
	if stored != 1 {
		d.problemAt("versions", document.CodeObject, "want exactly one with storage: true, got %d", stored)
	}
}

// schema compiles the schema of a version.
func (d *definition) schema(base *Set, m map[string]any) (typ *Type) {
	d.at(func() {
		schema := get[map[string]any](d, get[map[string]any](d, m, "schema"), "openAPIV3Schema")
		if schema == nil {
			d.problem(document.CodeObject, "openAPIV3Schema: missing, every version has its schema")
			return
		}
		d.at(func() {
			if get[bool](d, schema, "nullable") {
				d.problemAt("nullable", document.CodeObject, "not allowed for a whole object: remove it")
			}
			before := len(d.violations)
			typ = d.typ(schema, true)
			if len(d.violations) == before {
				d.rules(base, schema)
			}
		}, "openAPIV3Schema")
	}, "schema")
	return typ
}

// rules checks the x-kubernetes-validations of a schema in which all else is right.
func (d *definition) rules(base *Set, schema map[string]any) {
	if !crdrule.Has(schema) {
		return
	}
	for _, p := range base.kubernetes().checkRules(AppendJSON(nil, schema)) {
		d.at(func() { d.problem(document.CodeObject, "%s", p.Message) }, p.Path...)
	}
}

// Instead says why there is no kind of that name and what to write: the end of
// a message like "v1 Foo: no such kind". Empty when nothing better is known
// than the names that are near.
func (s *Set) Instead(apiVersion, kind string) string {
	name := apiVersion + " " + kind
	if s.Kind(apiVersion, kind) != nil {
		return ""
	}
	if hint := removed[name]; hint != "" {
		return "; " + hint
	}
	var same, others []string
	for known := range s.kinds {
		version, knownKind, _ := strings.Cut(known, " ")
		switch {
		case knownKind != kind || s.Kind(version, kind) == nil:
		case groupKind(known) == groupKind(name):
			same = append(same, version)
		default:
			others = append(others, version)
		}
	}
	if len(same) == 0 {
		same = others
	}
	reason := ""
	if why := s.gone(name); why != "" {
		reason = " (" + why + ")"
	}
	if len(same) == 0 {
		return reason
	}
	slices.Sort(same)
	for i, version := range same {
		same[i] = fmt.Sprintf("%q", version+" "+kind)
	}
	return fmt.Sprintf("%s, did you mean %s?", reason, strings.Join(same, " or "))
}

// removed are kinds that Kubernetes had once and has under no other name.
var removed = map[string]string{
	"policy/v1beta1 PodSecurityPolicy":     "removed in Kubernetes 1.25, Pod Security Admission takes its place",
	"extensions/v1beta1 PodSecurityPolicy": "removed in Kubernetes 1.16, Pod Security Admission takes its place",
}
