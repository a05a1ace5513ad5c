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

// CRD is a CustomResourceDefinition, apiextensions.k8s.io/v1, as Check takes
// it. Check against its own type is not part of With.
type CRD struct {
	Name   string // how messages about others call it, such as its file
	Object map[string]any
	// Live: a cluster has it, so a server took it once, perhaps by older rules. One that
	// has a problem here still defines its kinds; their objects are not checked, and
	// [Kind.Deprecation] says so.
	Live bool
}

// CRDProblem is why an API server would refuse a CustomResourceDefinition. Its
// Path leads into the object.
type CRDProblem struct {
	CRD int // index into the list that was given
	Violation
}

// With is the set and the kinds of custom resources beside it. A definition
// with a problem adds no kind, the others do. Problems come in the order of the
// definitions and, for one, of the versions and their schemas.
func (s *Set) With(crds []CRD) (*Set, []CRDProblem) {
	all := &Set{kinds: maps.Clone(s.kinds), gone: maps.Clone(s.gone), hash: s.hash, minor: s.minor, own: s.kubernetes()}
	if all.gone == nil {
		all.gone = map[string]string{}
	}
	owners := map[string]string{}
	for name := range s.kinds {
		owners[groupKind(name)] = "Kubernetes itself"
		if k := s.kinds[name]; k.crd != "" {
			owners[groupKind(name)] = k.crd
		}
	}
	var problems []CRDProblem
	for i, crd := range crds {
		d := &definition{metadata: s.objectMeta()}
		before := maps.Clone(owners)
		found := d.compile(s, crd, owners)
		if crd.Live && len(d.violations) > 0 {
			crd, owners = crd.unchecked(d.violations[0]), before
			d = &definition{metadata: s.objectMeta()}
			found = d.compile(s, crd, owners)
		}
		for _, v := range d.violations {
			problems = append(problems, CRDProblem{i, v})
		}
		if len(d.violations) > 0 {
			for name := range found.kinds {
				if all.kinds[name] == nil {
					all.gone[name] = "its definition in " + crd.Name + " has a problem"
				}
			}
			continue
		}
		maps.Copy(all.kinds, found.kinds)
		maps.Copy(all.gone, found.gone)
	}
	return all, problems
}

// maxWarning is less than what a definition may have for a deprecationWarning.
const maxWarning = 240

// unchecked is the definition without what its schemas say. Whoever uses its kinds is told
// why.
func (c CRD) unchecked(why Violation) CRD {
	warning := document.Printable(document.Cut(fmt.Sprintf("not checked beyond its metadata: swell cannot use the definition in %s: %s: %s", c.Name, PathText(why.Path), why.Message), maxWarning))
	spec, _ := c.Object["spec"].(map[string]any)
	metadata, _ := c.Object["metadata"].(map[string]any)
	list, _ := spec["versions"].([]any)
	versions := make([]any, len(list))
	for i, item := range list {
		m, _ := item.(map[string]any)
		versions[i] = map[string]any{"name": m["name"], "served": m["served"], "storage": m["storage"], "deprecated": true, "deprecationWarning": warning,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}
	}
	c.Object = map[string]any{
		"metadata": map[string]any{"name": metadata["name"], "annotations": map[string]any{approvedBy: "unapproved, a cluster has it"}},
		"spec":     map[string]any{"group": spec["group"], "names": spec["names"], "scope": spec["scope"], "versions": versions},
	}
	return c
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

// kindsOf are the kinds of one definition, and those of its versions that are
// not served, with the reason.
type kindsOf struct {
	kinds map[string]*Kind
	gone  map[string]string
}

func (d *definition) compile(base *Set, crd CRD, owners map[string]string) kindsOf {
	found := kindsOf{kinds: map[string]*Kind{}, gone: map[string]string{}}
	spec := get[map[string]any](d, crd.Object, "spec")
	if spec == nil {
		d.problem(document.CodeObject, "spec: missing")
		return found
	}
	d.path = append(d.path, "spec")
	group, kind, plural := d.identity(crd, spec)
	if get[bool](d, spec, "preserveUnknownFields") {
		d.problemAt("preserveUnknownFields", document.CodeObject, "not allowed in apiextensions.k8s.io/v1: write x-kubernetes-preserve-unknown-fields: true in the schema")
	}
	d.conversion(get[map[string]any](d, spec, "conversion"))
	namespaced := false
	switch scope := get[string](d, spec, "scope"); scope {
	case "Namespaced":
		namespaced = true
	case "Cluster":
	default:
		d.problemAt("scope", document.CodeObject, "want Namespaced or Cluster, got %q", document.Shorten(scope))
	}
	name := group + " " + kind
	if owner := owners[name]; owner != "" && kind != "" {
		d.problemAt("names", document.CodeDuplicate, "kind %s of group %s is defined by %s already", document.Shorten(kind), document.Shorten(group), owner)
	} else {
		owners[name] = crd.Name
	}
	d.versions(base, crd, spec, func(v servedVersion) {
		name := group + "/" + v.name + " " + kind
		if !v.served {
			found.gone[name] = "this version is not served"
			return
		}
		all, _ := spec["versions"].([]any)
		warning := deprecatedBy(group, kind, v, all)
		content := AppendJSON(nil, []any{group, kind, plural, namespaced, v.schema, warning})
		k := &Kind{Namespaced: namespaced, deprecation: warning, crd: crd.Name, definition: plural + "." + group, typ: v.typ, hash: hash("kind", append(content, base.hash...))}
		if crdrule.Has(v.schema) {
			k.ruled, k.base = v.schema, base.kubernetes()
		}
		found.kinds[name] = k
	})
	return found
}

// identity checks the group and the names, which the name of the definition
// is made of.
func (d *definition) identity(crd CRD, spec map[string]any) (group, kind, plural string) {
	group = get[string](d, spec, "group")
	if !document.IsName(group) || !strings.Contains(group, ".") {
		d.problemAt("group", document.CodeObject, "%q: want a domain with a dot in it", document.Shorten(group))
	}
	names := get[map[string]any](d, spec, "names")
	plural = get[string](d, names, "plural")
	kind = get[string](d, names, "kind")
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
	metadata, _ := crd.Object["metadata"].(map[string]any)
	d.path = d.path[:0]
	if name := plural + "." + group; metadata["name"] != name {
		d.at(func() { d.problem(document.CodeObject, "want %q, the plural and the group", document.Shorten(name)) }, "metadata", "name")
	}
	d.approved(group, metadata)
	d.path = append(d.path, "spec")
	return group, kind, plural
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
	schema     map[string]any
	typ        *Type
}

func (d *definition) versions(base *Set, crd CRD, spec map[string]any, add func(servedVersion)) {
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
			v.schema, v.typ = d.schema(base, m)
			d.served(v, m)
			add(v)
		}, "versions", i)
	}
	if stored != 1 {
		d.problemAt("versions", document.CodeObject, "want exactly one with storage: true, got %d", stored)
	}
}

// schema compiles the schema of a version.
func (d *definition) schema(base *Set, m map[string]any) (schema map[string]any, typ *Type) {
	d.at(func() {
		schema = get[map[string]any](d, get[map[string]any](d, m, "schema"), "openAPIV3Schema")
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
	return schema, typ
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
	if s.kinds[name] != nil {
		return ""
	}
	if hint := removed[name]; hint != "" {
		return "; " + hint
	}
	var same, others []string
	for known := range s.kinds {
		version, knownKind, _ := strings.Cut(known, " ")
		switch {
		case knownKind != kind:
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
	if s.gone[name] != "" {
		reason = " (" + s.gone[name] + ")"
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
