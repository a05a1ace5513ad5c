// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package schema knows what hard objects look like: the kinds of the
// supported Kubernetes versions, embedded, so that no cluster is asked.
package schema

import (
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
)

//go:generate go run gen.go v1.36.3
//go:embed kubernetes-*.json.gz
var files embed.FS

// Versions are the Kubernetes minor versions whose kinds are known, newest
// first.
func Versions() []string {
	entries, _ := files.ReadDir(".")
	var versions []string
	for _, e := range entries {
		versions = append(versions, strings.TrimSuffix(strings.TrimPrefix(e.Name(), "kubernetes-"), ".json.gz"))
	}
	slices.Sort(versions)
	slices.Reverse(versions)
	return versions
}

// Set is the kinds of one Kubernetes version. It is safe for concurrent use.
type Set struct {
	kinds map[string]*Kind // by "apiVersion kind"
	raw   map[string]json.RawMessage

	mu    sync.Mutex
	types map[string]*Type
}

// Kind is one kind of hard object.
type Kind struct {
	Namespaced bool

	set  *Set
	name string
	once sync.Once
	typ  *Type
}

// Form says what values a Type takes.
type Form int

const (
	Any         Form = iota // whatever JSON can hold
	Object                  // the fields of Type.Fields and no others
	Map                     // any keys, values of Type.Elem
	List                    // items of Type.Elem
	String                  // text
	Integer                 // a whole number
	Number                  // any number
	Boolean                 // true or false
	IntOrString             // a port's number or name, a count or a percentage
	Quantity                // "500m", "1Gi" or a number
	Base64                  // bytes as text
)

var formNames = [...]string{"anything", "a mapping", "a mapping", "a list", "a text", "an integer", "a number", "true or false",
	"an integer or a text", "a quantity like 500m or 1Gi", "a text in base64"}

func (f Form) String() string { return formNames[f] }

// Type is the type of a value in a hard object. It may refer to itself.
type Type struct {
	Form     Form
	Fields   map[string]*Type // of an Object; of a text or bytes, those of what may stand in their place
	Required []string         // of an Object
	Elem     *Type            // of a Map or a List
	// Keys are the fields that tell the items of a List apart for server-side
	// apply; empty for a list that is replaced as a whole.
	Keys []string
}

var loaded sync.Map // version -> func() (*Set, error)

// Kubernetes is the kinds of a minor version like "1.36"; "" is the newest
// that is known.
func Kubernetes(version string) (*Set, error) {
	versions := Versions()
	if version == "" {
		version = versions[0]
	}
	if !slices.Contains(versions, version) {
		return nil, fmt.Errorf("Kubernetes %q: no schemas for it, want one of %s", version, strings.Join(versions, ", "))
	}
	load, _ := loaded.LoadOrStore(version, sync.OnceValues(func() (*Set, error) { return read(version) }))
	return load.(func() (*Set, error))()
}

func read(version string) (*Set, error) {
	packed, err := files.ReadFile("kubernetes-" + version + ".json.gz")
	if err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	var content struct {
		Kinds []struct {
			Group, Version, Kind, Type string
			Namespaced                 bool
		}
		Types map[string]json.RawMessage
	}
	if err := json.NewDecoder(z).Decode(&content); err != nil {
		return nil, err
	}
	set := &Set{kinds: make(map[string]*Kind, len(content.Kinds)), raw: content.Types, types: map[string]*Type{}}
	for _, k := range content.Kinds {
		apiVersion := k.Version
		if k.Group != "" {
			apiVersion = k.Group + "/" + k.Version
		}
		set.kinds[apiVersion+" "+k.Kind] = &Kind{Namespaced: k.Namespaced, set: set, name: k.Type}
	}
	return set, nil
}

// Kind finds a kind; nil when there is none of that name and version.
func (s *Set) Kind(apiVersion, kind string) *Kind { return s.kinds[apiVersion+" "+kind] }

// Names are all "apiVersion kind" of the set, for suggestions.
func (s *Set) Names() []string {
	names := make([]string, 0, len(s.kinds))
	for name := range s.kinds {
		names = append(names, name)
	}
	return names
}

// Type is the type of the kind's objects.
func (k *Kind) Type() *Type {
	k.once.Do(func() {
		k.set.mu.Lock()
		defer k.set.mu.Unlock()
		k.typ = k.set.namedLocked(k.name)
	})
	return k.typ
}

// openAPI is the part of an OpenAPI v3 schema that the embedded files use.
type openAPI struct {
	Ref                  string              `json:"$ref"`
	AllOf                []openAPI           `json:"allOf"`
	Type                 string              `json:"type"`
	Format               string              `json:"format"`
	Properties           map[string]*openAPI `json:"properties"`
	AdditionalProperties *openAPI            `json:"additionalProperties"`
	Items                *openAPI            `json:"items"`
	Required             []string            `json:"required"`
	ListType             string              `json:"x-kubernetes-list-type"`
	ListMapKeys          []string            `json:"x-kubernetes-list-map-keys"`
}

// scalars are the named types that are written in a form of their own.
var scalars = map[string]Form{
	"io.k8s.apimachinery.pkg.api.resource.Quantity":   Quantity,
	"io.k8s.apimachinery.pkg.util.intstr.IntOrString": IntOrString,
}

func (s *Set) namedLocked(name string) *Type {
	if t := s.types[name]; t != nil {
		return t
	}
	t := &Type{Form: scalars[name]}
	s.types[name] = t // before its fields: a type may refer to itself
	raw, ok := s.raw[name]
	if !ok || t.Form != Any {
		return t
	}
	var schema openAPI
	if err := json.Unmarshal(raw, &schema); err != nil {
		panic(fmt.Sprintf("embedded schema %s: %v", name, err))
	}
	*t = *s.compileLocked(&schema)
	return t
}

func (s *Set) compileLocked(schema *openAPI) *Type {
	const prefix = "#/components/schemas/"
	if schema.Ref != "" {
		return s.namedLocked(strings.TrimPrefix(schema.Ref, prefix))
	}
	if len(schema.AllOf) == 1 {
		return s.compileLocked(&schema.AllOf[0])
	}
	switch schema.Type {
	case "object":
		switch {
		case schema.Properties != nil:
			t := &Type{Form: Object, Required: schema.Required, Fields: make(map[string]*Type, len(schema.Properties))}
			for name, field := range schema.Properties {
				t.Fields[name] = s.compileLocked(field)
			}
			return t
		case schema.AdditionalProperties != nil:
			return &Type{Form: Map, Elem: s.compileLocked(schema.AdditionalProperties)}
		}
		return &Type{Form: Map, Elem: &Type{}}
	case "array":
		t := &Type{Form: List, Elem: &Type{}}
		if schema.Items != nil {
			t.Elem = s.compileLocked(schema.Items)
		}
		if schema.ListType == "map" {
			t.Keys = schema.ListMapKeys
		}
		return t
	case "string":
		switch schema.Format {
		case "byte":
			return &Type{Form: Base64}
		case "int-or-string":
			return &Type{Form: IntOrString}
		}
		return &Type{Form: String}
	case "integer":
		return &Type{Form: Integer}
	case "number":
		return &Type{Form: Number}
	case "boolean":
		return &Type{Form: Boolean}
	}
	return &Type{}
}
