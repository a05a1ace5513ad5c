// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"fmt"
	"runtime"
	"sync"
	"weak"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/schema/crdrule"
)

// Definition is a CustomResourceDefinition, apiextensions.k8s.io/v1, as one Kubernetes
// version reads it. It is kept as text: of a large one, an object seldom needs more than
// one version. Check against its own type is not part of it. It is safe for concurrent use.
type Definition struct {
	Name string // how messages about others call it, such as its file
	// Live: a cluster has it, so a server took it once, perhaps by older rules. One that
	// has a problem here still defines its kinds; their objects are not checked, and
	// [Kind.Deprecation] says so.
	Live bool
	*compiled

	once    sync.Once
	instead *Definition // of one that is live and has a problem
}

// compiled is what is known of the text of a definition. All definitions with the same
// text share it.
type compiled struct {
	base *Set // Kubernetes' own kinds
	text []byte

	group, kind, plural string
	namespaced          bool
	versions            []definedVersion

	checked    sync.Once
	violations []Violation
}

// definedVersion is one version of a definition.
type definedVersion struct {
	name   string
	served bool
	hash   string // of all that an object of it is checked by
	// warning is what to say of its objects; empty when all is well.
	warning string
	typ     func() *Type  // as it is checked where the definition has no problem
	rules   func() []byte // its schema as JSON, where there are x-kubernetes-validations; else nil
}

// definitions finds what is in use of a text again, so that it is compiled once.
type definitions struct {
	mu     sync.Mutex
	byText map[string]weak.Pointer[compiled] // by the hash of the text
}

// Define reads a definition, given as canonical JSON, which must not change any more.
func (s *Set) Define(name string, text []byte, live bool) *Definition {
	return &Definition{Name: name, Live: live, compiled: s.kubernetes().compiledOf(text)}
}

func (s *Set) compiledOf(text []byte) *compiled {
	key, known := hash("definition", text), &s.definitions
	known.mu.Lock()
	defer known.mu.Unlock()
	if c := known.byText[key].Value(); c != nil {
		return c
	}
	c := s.read(text)
	if known.byText == nil {
		known.byText = map[string]weak.Pointer[compiled]{}
	}
	pointer := weak.Make(c)
	known.byText[key] = pointer
	runtime.AddCleanup(c, func(key string) {
		known.mu.Lock()
		defer known.mu.Unlock()
		if known.byText[key] == pointer { // nobody has read the text again meanwhile
			delete(known.byText, key)
		}
	}, key)
	return c
}

// read finds the kinds in a definition, whatever else may be wrong with it.
func (s *Set) read(text []byte) *compiled {
	c := &compiled{base: s, text: text}
	spec, _ := c.object()["spec"].(map[string]any)
	names, _ := spec["names"].(map[string]any)
	c.group, _ = spec["group"].(string)
	c.kind, _ = names["kind"].(string)
	c.plural, _ = names["plural"].(string)
	c.namespaced = spec["scope"] == "Namespaced"
	list, _ := spec["versions"].([]any)
	for i, item := range list {
		m, _ := item.(map[string]any)
		v := servedVersion{}
		v.name, _ = m["name"].(string)
		v.served, _ = m["served"].(bool)
		v.deprecated, _ = m["deprecated"].(bool)
		v.warning, _ = m["deprecationWarning"].(string)
		schema := schemaOf(m)
		known := definedVersion{name: v.name, served: v.served, typ: sync.OnceValue(func() *Type { return c.typeOf(i) })}
		if crdrule.Has(schema) {
			known.rules = func() []byte { return AppendJSON(nil, c.schema(i)) }
		}
		if v.served {
			known.warning = deprecatedBy(c.group, c.kind, v, list)
			content := AppendJSON(nil, []any{c.group, c.kind, c.plural, c.namespaced, schema, known.warning})
			known.hash = hash("kind", append(content, s.hash...))
		}
		c.versions = append(c.versions, known)
	}
	return c
}

// Claim is the names that the definition takes.
func (c *compiled) Claim() Claim { return Claim{c.group, c.kind, c.plural} }

// object is the definition as the compiler of schemas takes it.
func (c *compiled) object() map[string]any { return Decode(c.text) }

// Decode reads an object from JSON that is known to be valid, such as [AppendJSON] writes:
// whole numbers are int64, others float64.
func Decode(text []byte) map[string]any {
	var object map[string]any
	if err := utiljson.Unmarshal(text, &object); err != nil {
		panic(err) // it is canonical
	}
	return object
}

// schema is that of the version of an index.
func (c *compiled) schema(i int) map[string]any {
	spec, _ := c.object()["spec"].(map[string]any)
	list, _ := spec["versions"].([]any)
	m, _ := list[i].(map[string]any)
	return schemaOf(m)
}

func schemaOf(version map[string]any) map[string]any {
	m, _ := version["schema"].(map[string]any)
	schema, _ := m["openAPIV3Schema"].(map[string]any)
	return schema
}

// typeOf compiles the version of an index, of a definition without a problem.
func (c *compiled) typeOf(i int) *Type {
	d := definition{metadata: c.base.objectMeta()}
	return d.typ(c.schema(i), true)
}

// Violations are why an API server would refuse the definition, in the order of its
// versions and their schemas.
func (c *compiled) Violations() []Violation {
	c.checked.Do(func() {
		d := definition{metadata: c.base.objectMeta()}
		d.check(c.base, c.object())
		c.violations = d.violations
	})
	return c.violations
}

// kindOf is the kind that objects of a version are of.
func (d *Definition) kindOf(v definedVersion) *Kind {
	return &Kind{Namespaced: d.namespaced, deprecation: v.warning, of: d, definition: d.plural + "." + d.group, hash: v.hash, typeOf: v.typ, ruled: v.rules}
}

// usable is the kind as objects are checked by it; nil where its definition has a problem.
func (k *Kind) usable(version string) *Kind {
	if k.of == nil || len(k.of.Violations()) == 0 {
		return k
	}
	if !k.of.Live {
		return nil
	}
	instead := k.of.unchecked()
	for _, v := range instead.versions {
		if v.name == version && len(instead.Violations()) == 0 {
			return instead.kindOf(v)
		}
	}
	return nil
}

// maxWarning is less than what a definition may have for a deprecationWarning.
const maxWarning = 240

// unchecked is the definition without what its schemas say. Whoever uses its kinds is told
// why.
func (d *Definition) unchecked() *Definition {
	d.once.Do(func() {
		why := d.Violations()[0]
		warning := document.Printable(document.Cut(fmt.Sprintf("not checked beyond its metadata: swell cannot use the definition in %s: %s: %s", d.Name, PathText(why.Path), why.Message), maxWarning))
		object := d.object()
		spec, _ := object["spec"].(map[string]any)
		metadata, _ := object["metadata"].(map[string]any)
		list, _ := spec["versions"].([]any)
		versions := make([]any, len(list))
		for i, item := range list {
			m, _ := item.(map[string]any)
			versions[i] = map[string]any{"name": m["name"], "served": m["served"], "storage": m["storage"], "deprecated": true, "deprecationWarning": warning,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}
		}
		text := AppendJSON(nil, map[string]any{
			"metadata": map[string]any{"name": metadata["name"], "annotations": map[string]any{approvedBy: "unapproved, a cluster has it"}},
			"spec":     map[string]any{"group": spec["group"], "names": spec["names"], "scope": spec["scope"], "versions": versions},
		})
		d.instead = d.base.Define(d.Name, text, true)
	})
	return d.instead
}

// hidden is a kind that a definition names and that is none.
type hidden struct{ of *Definition }

// gone says why "apiVersion kind" is no kind, where a definition names it; else empty.
func (s *Set) gone(name string) string {
	if h, ok := s.hidden[name]; ok && (len(h.of.Violations()) == 0 || h.of.Live) {
		return "this version is not served"
	}
	if k := s.kinds[name]; k != nil && k.of != nil && len(k.of.Violations()) > 0 {
		return "its definition in " + k.of.Name + " has a problem"
	}
	return ""
}
