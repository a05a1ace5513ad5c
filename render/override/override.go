// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package override changes rendered objects as `spec.override` of an easy spec
// says (medium mode).
//
//	override:
//	  deployment:                 # the id of an object in the kind
//	    update:
//	    - path: spec.template.spec.containers[?name=='main'].resources
//	      value: {limits: {memory: 1Gi}}
//
// An update merges mappings field by field and replaces everything else; null
// removes a field or a list's item. A path is made of names, quoted names, indexes and
// [?name=='value'] filters. Only the last name of a path may be new.
package override

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config"
)

// Overrides are the patches of one spec by object id. The zero value has none.
type Overrides struct {
	doc *config.Document
	ids []target
}

type target struct {
	id      string
	node    *yaml.Node
	updates []update
}

type update struct {
	at    *yaml.Node // of the path
	path  []step
	value any
}

// Read reads the override field of an easy spec; n is nil when there is none.
func Read(doc *config.Document, n *yaml.Node) (Overrides, config.Problems) {
	o := Overrides{doc: doc}
	if n == nil {
		return o, nil
	}
	if n.Kind != yaml.MappingNode {
		return o, config.Problems{doc.Problem(n, config.CodeOverride, "spec.override: want a mapping of object ids")}
	}
	var problems config.Problems
	for i := 0; i+1 < len(n.Content); i += 2 {
		t := target{id: n.Content[i].Value, node: n.Content[i]}
		problems = append(problems, o.readTarget(&t, n.Content[i+1])...)
		o.ids = append(o.ids, t)
	}
	return o, problems
}

func (o *Overrides) readTarget(t *target, n *yaml.Node) config.Problems {
	var problems config.Problems
	problem := func(n *yaml.Node, format string, args ...any) {
		problems = append(problems, o.doc.Problem(n, config.CodeOverride, "spec.override.%s: %s", t.id, fmt.Sprintf(format, args...)))
	}
	if n.Kind != yaml.MappingNode {
		problem(n, "want a mapping with update")
		return problems
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, items := n.Content[i], n.Content[i+1]
		if key.Value != "update" {
			problem(key, "%s: unknown field%s", key.Value, config.DidYouMean(key.Value, []string{"update"}))
			continue
		}
		if items.Kind != yaml.SequenceNode {
			problem(items, "update: want a list of path and value")
			continue
		}
		for j, item := range items.Content {
			path, value := config.Lookup(item, "path"), config.Lookup(item, "value")
			if path == nil || value == nil || len(item.Content) != 4 {
				problem(item, "update[%d]: want a path and a value, and nothing else", j)
				continue
			}
			steps, err := parsePath(path.Value)
			if err != nil {
				problem(path, "update[%d].path: %s", j, err)
				continue
			}
			plain, found := o.doc.Plain(value)
			for _, p := range found { // without the value: it may be a Secret's
				p.Message = fmt.Sprintf("spec.override.%s: update[%d].value: a number that JSON cannot hold", t.id, j)
				problems = append(problems, p)
			}
			t.updates = append(t.updates, update{at: path, path: steps, value: plain})
		}
	}
	return problems
}

// Unused lists the overrides whose id is none of the known ones.
func (o *Overrides) Unused(known []string) config.Problems {
	var problems config.Problems
	for _, t := range o.ids {
		if !slices.Contains(known, t.id) {
			problems = append(problems, o.doc.Problem(t.node, config.CodeOverride,
				"spec.override.%s: the kind has no object of this id%s", t.id, config.DidYouMean(t.id, known)))
		}
	}
	return problems
}

// Apply returns the object with the overrides of its id. The object that came
// in is not changed.
func (o *Overrides) Apply(id string, object map[string]any) (map[string]any, config.Problems) {
	for _, t := range o.ids {
		if t.id == id && len(t.updates) > 0 {
			return o.apply(t, object)
		}
	}
	return object, nil
}

func (o *Overrides) apply(t target, object map[string]any) (map[string]any, config.Problems) {
	changed := deepCopy(object).(map[string]any)
	var problems config.Problems
	for _, u := range t.updates {
		if err := u.apply(changed); err != nil {
			problems = append(problems, o.doc.Problem(u.at, config.CodeOverride, "spec.override.%s: %s", t.id, err))
		}
	}
	if what := identityChange(object, changed); what != "" {
		problems = append(problems, o.doc.Problem(t.node, config.CodeOverride, "spec.override.%s: %s: an override cannot change which object it is", t.id, what))
	}
	return changed, problems
}

// identityChange names the identity field that differs; "" when none does.
func identityChange(before, after map[string]any) string {
	for _, field := range []string{"apiVersion", "kind"} {
		if !reflect.DeepEqual(before[field], after[field]) {
			return field
		}
	}
	was, _ := before["metadata"].(map[string]any)
	is, _ := after["metadata"].(map[string]any)
	for _, field := range []string{"name", "namespace"} {
		if !reflect.DeepEqual(was[field], is[field]) {
			return "metadata." + field
		}
	}
	return ""
}

// merge lays value over base. Mappings are merged; nil removes a field.
func merge(base, value any) any {
	overlay, ok := value.(map[string]any)
	if !ok {
		return deepCopy(value)
	}
	into, ok := base.(map[string]any)
	if !ok {
		into = make(map[string]any, len(overlay))
	}
	for _, key := range slices.Sorted(maps.Keys(overlay)) {
		if overlay[key] == nil {
			delete(into, key)
			continue
		}
		into[key] = merge(into[key], overlay[key])
	}
	return into
}

func deepCopy(value any) any {
	switch v := value.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, item := range v {
			m[key] = deepCopy(item)
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, item := range v {
			l[i] = deepCopy(item)
		}
		return l
	}
	return value
}
