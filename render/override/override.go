// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package override changes rendered objects as `spec.override` of an easy spec
// and `spec.overrides` of Defaults say (medium mode).
//
//	override:
//	  deployment:                 # the id of an object in the kind
//	    update:                   # merge: mappings by field, lists by their keys
//	    - {path: "spec.template.spec.containers[?name=='main'].resources", value: {limits: {memory: 1Gi}}}
//	    set:                      # replace what is there
//	    - {path: spec.replicas, value: 5}
//	    remove:
//	    - spec.template.spec.containers[*].livenessProbe
//	    append:                   # to a list, which is made when there is none
//	    - {path: spec.template.spec.containers, value: {name: sidecar, image: x}}
//	    patch:                    # RFC 6902
//	    - {op: test, path: /spec/replicas, value: 5}
//
// The operations are done in this order, whatever the order of the keys, and
// those of one kind in the order written. In an update a list that server-side
// apply merges by keys is merged by them, any other list is replaced, and null
// removes a field or a list's item.
//
// A path is JMESPath in a form that names places: names, names in double
// quotes, [1], [-1], [0:2], [*], * for every value of a mapping, and filters,
// [?port==`80` && contains(name, 'x')], which see one item and are computed by
// a JMESPath library. Steps are taken one after another: a[?x].b[?y] filters
// each b, also where JMESPath would filter the list of all b. The last name of
// an update, a set or an append may be new. Below a step that picks several
// places, those where the rest of the path leads nowhere are passed over, as in
// JMESPath; a path that leads nowhere at all is an error.
//
// The package never decides whether the result is a good object: that is
// checked afterwards, like every other object.
package override

import (
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

// Overrides are the overrides of one spec by object id. The zero value has
// none.
type Overrides struct {
	doc *document.Document
	ids []named
}

type named struct {
	id       string
	at       *yaml.Node
	override *Override // nil after a problem
}

// Override is the operations on one object. It is never changed after it was
// read and may be used by several goroutines.
type Override struct {
	doc        *document.Document
	place      string // "spec.override.deployment", for messages
	operations []operation
}

// Read reads the override field of an easy spec; n is nil when there is none.
func Read(doc *document.Document, n *yaml.Node) (Overrides, document.Problems) {
	o := Overrides{doc: doc}
	if n == nil {
		return o, nil
	}
	if n.Kind != yaml.MappingNode {
		return o, document.Problems{doc.Problem(n, document.CodeOverride, "spec.override: want a map of object ids")}
	}
	var problems document.Problems
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		override, found := read(doc, "spec.override."+key.Value, n.Content[i+1], nil)
		problems = append(problems, found...)
		o.ids = append(o.ids, named{id: key.Value, at: key, override: override})
	}
	return o, problems
}

// ReadDefault reads the operations of one item of spec.overrides of Defaults.
func ReadDefault(from *config.Override) (*Override, document.Problems) {
	return read(from.Doc, from.Place, from.Node, []string{"match", "kind", "object"})
}

// Unused lists the overrides whose id is none of the known ones.
func (o *Overrides) Unused(known []string) document.Problems {
	var problems document.Problems
	for _, t := range o.ids {
		if !slices.Contains(known, t.id) {
			problems = append(problems, o.doc.Problem(t.at, document.CodeOverride,
				"spec.override.%s: the kind has no object of this id%s", t.id, document.DidYouMean(t.id, known)))
		}
	}
	return problems
}

// Idle lists the overrides of objects that are not rendered on any target;
// rendered are the ids of those that are.
func (o *Overrides) Idle(rendered []string) document.Problems {
	instead := "none of this spec is"
	if len(rendered) > 0 {
		instead = "rendered are " + strings.Join(rendered, ", ")
	}
	var problems document.Problems
	for _, t := range o.ids {
		if !slices.Contains(rendered, t.id) {
			problems = append(problems, o.doc.Problem(t.at, document.CodeOverride,
				"spec.override.%s: the object is rendered on no target of the unit; %s", t.id, instead))
		}
	}
	return problems
}

// Of is the override of the object with this id; nil when there is none.
func (o *Overrides) Of(id string) *Override {
	for _, t := range o.ids {
		if t.id == id {
			return t.override
		}
	}
	return nil
}
