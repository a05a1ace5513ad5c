// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package schema has the schemas of hard objects. Those of the supported
// Kubernetes versions are embedded, so no cluster is asked.
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
	"sync/atomic"

	"github.com/swell-sh/swell/render/schema/crdrule"
)

//go:generate go run gen.go v1.34.4 v1.35.4 v1.36.3
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
	kinds  map[string]*Kind  // by "apiVersion kind"
	hidden map[string]hidden // by the same, versions of custom resources that are not served
	hash   string            // of the Kubernetes version with its schemas
	minor  string            // Kubernetes' own version
	// Open says that kinds whose definition is nowhere pass, see [Set.Nowhere].
	Open bool
	raw  map[string]json.RawMessage // not of a set that has custom resources

	typesOnly bool // for tests: without the rules that OpenAPI does not have

	mu    sync.Mutex
	types map[string]*Type

	listing sync.Once
	listed  []string // see [Set.Served]

	own         *Set // Kubernetes' own kinds, of a set with others beside them; else nil
	compiled    compiledRules
	definitions definitions
}

// kubernetes is the set of Kubernetes' own kinds, which lasts.
func (s *Set) kubernetes() *Set {
	if s.own != nil {
		return s.own
	}
	return s
}

// Kind is one kind of hard object.
type Kind struct {
	Namespaced bool

	of *Definition // nil for Kubernetes' own, and for those of which nothing is known
	// definition is the metadata.name of that one.
	definition string
	hash       string
	set        *Set         // of Kubernetes' own kinds; else nil
	typeOf     func() *Type // of a custom resource
	next       *Kind        // of the same name, by another definition; see [Set.Kinds]
	name       string
	// deprecation is what to say of the kind's version; empty when all is well.
	deprecation string
	named       sync.Once // sets secret, by the name of the kind
	secret      bool      // values are in no message
	once        sync.Once
	typ         *Type

	// ruled gives the schema, as JSON, of a custom resource that has rules in it; nil for
	// others.
	ruled func() []byte
	rules atomic.Pointer[crdrule.Rules]
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
	set := &Set{kinds: make(map[string]*Kind, len(content.Kinds)), raw: content.Types, types: map[string]*Type{}, hash: hash("kubernetes "+version, packed), minor: version}
	for _, k := range content.Kinds {
		apiVersion := k.Version
		if k.Group != "" {
			apiVersion = k.Group + "/" + k.Version
		}
		set.kinds[apiVersion+" "+k.Kind] = &Kind{Namespaced: k.Namespaced, set: set, name: k.Type, hash: set.hash, deprecation: deprecation(apiVersion+" "+k.Kind, minorOf(version))}
	}
	return set, nil
}

// Kind finds a kind; nil when there is none of that name and version.
func (s *Set) Kind(apiVersion, kind string) *Kind {
	k := s.kinds[apiVersion+" "+kind]
	if k == nil || k.of == nil {
		return k
	}
	_, version, _ := strings.Cut(apiVersion, "/")
	for ; k != nil; k = k.next {
		if usable := k.usable(version); usable != nil {
			return usable
		}
	}
	return nil
}

// OtherVersions are the other apiVersions that have a kind, sorted.
func (s *Set) OtherVersions(apiVersion, kind string) (others []string) {
	for name := range s.kinds {
		version, named, _ := strings.Cut(name, " ")
		if named == kind && version != apiVersion && groupKind(name) == groupKind(apiVersion+" "+kind) {
			others = append(others, version)
		}
	}
	slices.Sort(others)
	return others
}

// Names are all "apiVersion kind" of the set, for suggestions.
func (s *Set) Names() []string {
	names := make([]string, 0, len(s.kinds))
	for name := range s.kinds {
		names = append(names, name)
	}
	return names
}

// Definition is the name of the CustomResourceDefinition that the kind is of;
// empty for Kubernetes' own kinds, and for nil.
func (k *Kind) Definition() string {
	if k == nil {
		return ""
	}
	return k.definition
}

// Resource is the plural name of the kind, as in the paths of the API: deployments.
func (k *Kind) Resource() string {
	if plural, _, custom := strings.Cut(k.definition, "."); custom {
		return plural
	}
	return Plural(k.name[strings.LastIndexByte(k.name, '.')+1:])
}

// Plural is the resource of one of Kubernetes' own kinds, and a guess for others.
func Plural(kind string) string {
	name := strings.ToLower(kind)
	switch {
	case name == "endpoints":
		return name
	case strings.HasSuffix(name, "s"):
		return name + "es"
	case strings.HasSuffix(name, "y"):
		return strings.TrimSuffix(name, "y") + "ies"
	}
	return name + "s"
}

// Type is the type of the kind's objects.
func (k *Kind) Type() *Type {
	k.once.Do(func() {
		if k.typeOf != nil {
			k.typ = k.typeOf()
		}
		if k.set == nil {
			return
		}
		k.set.mu.Lock()
		defer k.set.mu.Unlock()
		k.typ = k.set.namedLocked(k.name)
	})
	return k.typ
}

// Published is the schemas of a Kubernetes minor version as its API server publishes
// them, by name, less what gen.go leaves out; and the name of each kind's schema, by
// "apiVersion kind". Neither may be changed.
func Published(version string) (types map[string]json.RawMessage, kinds map[string]string, err error) {
	set, err := Kubernetes(version)
	if err != nil {
		return nil, nil, err
	}
	kinds = make(map[string]string, len(set.kinds))
	for name, kind := range set.kinds {
		kinds[name] = kind.name
	}
	return set.raw, kinds, nil
}
