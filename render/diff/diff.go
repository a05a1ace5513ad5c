// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package diff compares two snapshots: what a commit changes, with equal
// changes on several targets shown once.
package diff

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
)

// Action is what happens to an object.
type Action string

const (
	Created    Action = "created"
	Configured Action = "configured"
	Deleted    Action = "deleted"
)

// Change is one object of a unit that changes in the same way on some targets.
type Change struct {
	Unit   config.UnitPath `json:"unit"`
	Action Action          `json:"action"`
	// Object is named without its namespace where that differs from target to
	// target: "Deployment/*/cart".
	Object string `json:"object"`
	// Targets are sorted; never empty.
	Targets []config.TargetName `json:"targets"`
	// Fields that change, sorted by path; empty unless configured.
	Fields []Field `json:"fields,omitempty"`
}

// Field is one field that changes. From or To is nil where the field is not
// there. The values of a Secret are replaced by what is left to say of them.
type Field struct {
	Path string `json:"path"`
	From any    `json:"from"`
	To   any    `json:"to"`
}

// Report is all that changes from one snapshot to another.
type Report struct {
	// Changes are sorted by unit, object, action and targets.
	Changes []Change `json:"changes"`
	// Unknown are units that could not be compared, because one side has a
	// problem with them, sorted.
	Unknown []config.UnitPath `json:"unknown,omitempty"`
}

// Compare tells what is different in head. The error is that the objects of a
// unit could not be had.
func Compare(base, head *render.Snapshot) (*Report, error) {
	report := &Report{}
	units := map[config.UnitPath]bool{}
	for path := range base.Units.All() {
		units[path] = true
	}
	for path := range head.Units.All() {
		units[path] = true
	}
	for _, path := range slices.Sorted(maps.Keys(units)) {
		was, is := base.Units.Get(path), head.Units.Get(path)
		if was != nil && len(was.Problems) > 0 || is != nil && len(is.Problems) > 0 {
			report.Unknown = append(report.Unknown, path)
			continue
		}
		if sameBundles(was, is) {
			continue
		}
		before, err := bundlesOf(base, was)
		if err != nil {
			return nil, err
		}
		after, err := bundlesOf(head, is)
		if err != nil {
			return nil, err
		}
		report.Changes = append(report.Changes, Unit(path, before, after)...)
	}
	return report, nil
}

func sameBundles(was, is *render.Unit) bool {
	return was != nil && is != nil && slices.EqualFunc(was.Placements, is.Placements, func(a, b render.Placement) bool {
		return a.Target.Name == b.Target.Name && a.Digest == b.Digest
	})
}

func bundlesOf(s *render.Snapshot, unit *render.Unit) (map[config.TargetName]*render.Bundle, error) {
	if unit == nil {
		return nil, nil
	}
	bundles, err := s.Bundles(unit)
	by := make(map[config.TargetName]*render.Bundle, len(bundles))
	for _, b := range bundles {
		by[b.Target] = b
	}
	return by, err
}

// group gathers the targets of equal changes.
type group struct {
	change     Change
	namespaces map[string]bool
	id         render.ObjectID
}

// Unit compares two states of one unit: its bundles by target. Bundles of the same
// digest are not looked into. The changes are sorted as in a [Report].
func Unit(path config.UnitPath, was, is map[config.TargetName]*render.Bundle) []Change {
	groups := map[string]*group{}
	targets := map[config.TargetName]bool{}
	for _, bundles := range []map[config.TargetName]*render.Bundle{was, is} {
		for target := range bundles {
			targets[target] = true
		}
	}
	for _, target := range slices.Sorted(maps.Keys(targets)) {
		for _, c := range compareBundles(was[target], is[target]) {
			text, err := json.Marshal(c.change.Fields)
			if err != nil {
				panic(err) // plain values encode
			}
			id := c.id
			id.Namespace = ""
			key := fmt.Sprintf("%s %s %v %s", c.change.Action, id, c.id.Namespace == "", text)
			if g := groups[key]; g != nil && g.change.Targets[len(g.change.Targets)-1] == target {
				key += " " + c.id.Namespace // the same name in two namespaces of one target
			}
			g := groups[key]
			if g == nil {
				g = &group{change: c.change, namespaces: map[string]bool{}, id: c.id}
				groups[key] = g
			}
			g.namespaces[c.id.Namespace] = true
			g.change.Targets = append(g.change.Targets, target)
		}
	}
	var changes []Change
	for _, g := range groups {
		if len(g.namespaces) > 1 {
			g.id.Namespace = "*"
		}
		g.change.Unit, g.change.Object = path, g.id.String()
		changes = append(changes, g.change)
	}
	slices.SortFunc(changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.Action, b.Action), slices.Compare(a.Targets, b.Targets))
	})
	return changes
}

type objectChange struct {
	id     render.ObjectID
	change Change
}

func compareBundles(was, is *render.Bundle) []objectChange {
	if was != nil && is != nil && was.Digest == is.Digest {
		return nil
	}
	before, after := byID(was), byID(is)
	var changes []objectChange
	for id, old := range before {
		switch object := after[id]; {
		case object == nil:
			changes = append(changes, objectChange{id, Change{Action: Deleted}})
		case object.Digest != old.Digest:
			changes = append(changes, objectChange{id, Change{Action: Configured, Fields: Fields(old, object)}})
		}
	}
	for id := range after {
		if before[id] == nil {
			changes = append(changes, objectChange{id, Change{Action: Created}})
		}
	}
	slices.SortFunc(changes, func(a, b objectChange) int { return a.id.Compare(b.id) })
	return changes
}

func byID(b *render.Bundle) map[render.ObjectID]*render.Object {
	if b == nil {
		return nil
	}
	objects := make(map[render.ObjectID]*render.Object, len(b.Objects))
	for _, o := range b.Objects {
		objects[o.ID] = o
	}
	return objects
}

// Fields compares two versions of an object.
func Fields(old, object *render.Object) []Field {
	c := comparer{secret: object.ID.IsSecret()}
	if old.Version != object.Version {
		c.fields = append(c.fields, Field{Path: "apiVersion", From: old.APIVersion(), To: object.APIVersion()})
	}
	c.compare("", decode(old), decode(object))
	return c.fields
}

func decode(o *render.Object) any {
	decoder := json.NewDecoder(strings.NewReader(string(o.JSON)))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		panic(err) // it is canonical JSON of our own
	}
	return value
}

type comparer struct {
	secret bool
	fields []Field
}

func (c *comparer) compare(path string, from, to any) {
	if fromMap, ok := from.(map[string]any); ok {
		if toMap, ok := to.(map[string]any); ok {
			c.compareMaps(path, fromMap, toMap)
			return
		}
	}
	if fromList, ok := from.([]any); ok {
		if toList, ok := to.([]any); ok {
			c.compareLists(path, fromList, toList)
			return
		}
	}
	if equal(from, to) {
		return
	}
	if c.secret && hidden(path) {
		from, to = mask(from, "(old value)"), mask(to, "(new value)")
	}
	c.fields = append(c.fields, Field{Path: path, From: from, To: to})
}

// lastApplied is where kubectl apply keeps a copy of the whole object.
const lastApplied = `metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]`

// hidden says whether the value at a path of a Secret is not for showing.
func hidden(path string) bool {
	first := path
	if end := strings.IndexAny(path, ".["); end >= 0 {
		first = path[:end]
	}
	return first == "data" || first == "stringData" || path == lastApplied
}

// mask hides a value, all the way down, but not that there is one.
func mask(value any, as string) any {
	switch v := value.(type) {
	case nil:
		return nil
	case map[string]any:
		masked := make(map[string]any, len(v))
		for key, item := range v {
			masked[key] = mask(item, as)
		}
		return masked
	}
	return as
}

func equal(a, b any) bool {
	switch a.(type) {
	case map[string]any, []any:
		return false
	}
	switch b.(type) {
	case map[string]any, []any:
		return false
	}
	return a == b
}

func (c *comparer) compareMaps(path string, from, to map[string]any) {
	keys := map[string]bool{}
	for key := range from {
		keys[key] = true
	}
	for key := range to {
		keys[key] = true
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		below := path + "." + key
		switch {
		case strings.ContainsAny(key, `./[]"`):
			below = fmt.Sprintf("%s[%q]", path, key)
		case path == "":
			below = key
		}
		c.compare(below, from[key], to[key])
	}
}

// compareLists compares items by their name where all have one, else by index.
func (c *comparer) compareLists(path string, from, to []any) {
	fromNames, ok1 := names(from)
	toNames, ok2 := names(to)
	if ok1 && ok2 {
		order := slices.Clone(fromNames)
		for _, name := range toNames {
			if !slices.Contains(order, name) {
				order = append(order, name)
			}
		}
		for _, name := range order {
			c.compare(fmt.Sprintf("%s[name=%s]", path, name), named(from, fromNames, name), named(to, toNames, name))
		}
		return
	}
	for i := range max(len(from), len(to)) {
		c.compare(fmt.Sprintf("%s[%d]", path, i), at(from, i), at(to, i))
	}
}

func names(items []any) ([]string, bool) {
	found := make([]string, len(items))
	for i, item := range items {
		m, _ := item.(map[string]any)
		name, ok := m["name"].(string)
		if !ok || slices.Contains(found[:i], name) {
			return nil, false
		}
		found[i] = name
	}
	return found, true
}

func named(items []any, names []string, name string) any {
	return at(items, slices.Index(names, name))
}

func at(items []any, i int) any {
	if i < 0 || i >= len(items) {
		return nil
	}
	return items[i]
}
