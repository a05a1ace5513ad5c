// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"path"
	"slices"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/kind"
	"github.com/swell-sh/swell/render/schema"
)

// read tells where something that a template read is written, and how near it
// comes to the value. It is never empty.
func (b *blamer) read(m *made, r kind.Read, value any) []found {
	switch r.From {
	case "self":
		return []found{b.self(m, r.Path, value)}
	case "file":
		return []found{b.besideSpec(fmt.Sprint(r.Path[0]), value)}
	case "template":
		file := path.Join(m.src.spec.Kind().Folder, fmt.Sprint(r.Path[0]))
		return []found{{fitSet, []Origin{{Kind: OriginTemplate, Role: RoleValue, Position: config.Position{File: file, Line: 1}, Text: fmt.Sprintf("template(%q)", r.Path[0]), Whole: true}}}}
	case "data":
		return []found{b.fact(r.Path, value)}
	case "unit":
		return []found{b.unitField(r.Path, value)}
	case "target":
		return []found{b.targetField(r.Path, value)}
	}
	return b.collected(m, r, value)
}

// self is a place in the spec that the object was rendered from.
func (b *blamer) self(m *made, at []any, value any) found {
	if m.parent != nil {
		return b.nested(m, at, value)
	}
	n := descend(m.src.doc.Node, at)
	if n == nil {
		return b.unset(m, at)
	}
	if file := fromFile(m, n); file != "" {
		f := b.besideSpec(file, value)
		f.origins = append(f.origins, Origin{Kind: OriginSpec, Role: RoleValue, Position: m.src.doc.At(n), Text: schema.PathText(at) + ".fromFile"})
		return f
	}
	if b.unit.Kustomization != "" {
		f := b.kustomized(m.src.doc, at, n, value)
		f.origins[0].Text = schema.PathText(at)
		return f
	}
	fit, n, at := nearest(m.src.doc.Node, n, at, value)
	return found{fit, []Origin{{Kind: OriginSpec, Role: RoleValue, Position: m.src.doc.At(n), Text: schema.PathText(at)}}}
}

// fromFile is the file that a field is taken from; empty when it is not.
func fromFile(m *made, n *yaml.Node) string {
	if easy := m.src.spec.Kind().Schema(); easy.FromFileForbidden() || n.Kind != yaml.MappingNode || len(n.Content) != 2 || n.Content[0].Value != "fromFile" {
		return ""
	}
	return n.Content[1].Value
}

// nearest is the scalar below a node that is the value or the only one that is
// a part of it, or else the node; of a mapping its key, which is what people
// look for.
func nearest(root, n *yaml.Node, at []any, value any) (fit int, near *yaml.Node, path []any) {
	if n.Kind == yaml.ScalarNode {
		return fitOf(n.Value, value), n, at
	}
	if inside := equalScalars(n, value); len(inside) > 0 {
		return fitEquals, inside[0].node, append(slices.Clip(at), inside[0].path...)
	}
	if parts := scalarsOf(n, func(text string) bool { return fitOf(text, value) == fitPart }); len(parts) == 1 {
		return fitPart, parts[0].node, append(slices.Clip(at), parts[0].path...)
	}
	return fitSet, nodeAt(root, at), at
}

// unset is a field that is not written: where it is declared.
func (b *blamer) unset(m *made, at []any) found {
	origin := Origin{Kind: OriginUnset, Role: RoleCondition, Text: schema.PathText(at) + " is not set"}
	var ok bool
	if origin.Position, ok = m.src.spec.Kind().FieldAt(at); !ok {
		origin.Position = m.src.doc.Position()
	}
	return found{fitUnset, []Origin{origin}}
}

// nested is a place in a spec that a template made.
func (b *blamer) nested(m *made, at []any, value any) found {
	there, ok := valueAt(m.parent.object, at)
	if !ok {
		return b.unset(m, at)
	}
	if file, ok := nestedFile(m, there); ok {
		f := b.besideSpec(file, value)
		f.origins = append(f.origins, b.origins(m.parent, append(slices.Clip(at), "fromFile"), file)...)
		return f
	}
	var scalars []found
	eachLeaf(there, nil, func(below []any, v any) {
		if fit := fitOf(textOf(v), value); fit == fitEquals && len(scalars) == 0 {
			scalars = append(scalars, found{fit, b.origins(m.parent, append(slices.Clip(at), below...), v)})
		}
	})
	if len(scalars) > 0 {
		return scalars[0]
	}
	switch there.(type) {
	case map[string]any, []any:
		if leafAt(m.parent.traced.Leaves, at) == nil {
			return found{fitSet, []Origin{{Kind: OriginTemplate, Role: RoleTemplate, Position: m.parent.templateAt(at)}}}
		}
		return found{fitSet, b.origins(m.parent, at, there)}
	}
	return found{fitOf(textOf(there), value), b.origins(m.parent, at, there)}
}

func nestedFile(m *made, value any) (string, bool) {
	object, _ := value.(map[string]any)
	file, ok := object["fromFile"].(string)
	return file, ok && len(object) == 1 && !m.src.spec.Kind().Schema().FromFileForbidden()
}

func valueAt(value any, at []any) (any, bool) {
	for _, s := range at {
		switch v := value.(type) {
		case map[string]any:
			below, ok := v[fmt.Sprint(s)]
			if !ok {
				return nil, false
			}
			value = below
		case []any:
			i, ok := s.(int)
			if !ok || i < 0 || i >= len(v) {
				return nil, false
			}
			value = v[i]
		default:
			return nil, false
		}
	}
	return value, true
}

// besideSpec is a file in the unit's folder.
func (b *blamer) besideSpec(name string, value any) found {
	full := path.Join(string(b.unit.Path), name)
	content, _ := b.repository.Tree.ReadFile(full)
	return found{fitOf(string(content), value), []Origin{{Kind: OriginFile, Role: RoleValue, Position: config.Position{File: full, Line: 1}, Text: name, Whole: true}}}
}

// reread reads a file again, once.
func (b *blamer) reread(file string) []*config.Document {
	docs, ok := b.files[file]
	if !ok {
		docs = b.repository.Documents(file)
		b.files[file] = docs
	}
	return docs
}

// fact is a value of data/*.yaml.
func (b *blamer) fact(at []any, value any) found {
	text := pathOf("data", texts(at))
	if len(at) == 0 {
		return found{fitSet, []Origin{{Kind: OriginData, Role: RoleValue, Position: config.Position{File: b.repository.Data}, Text: text, Whole: true}}}
	}
	for _, ext := range []string{".yaml", ".yml"} {
		file := path.Join(b.repository.Data, fmt.Sprint(at[0])+ext)
		for _, doc := range b.reread(file) {
			n := descend(doc.Node, at[1:])
			if n == nil {
				origin := Origin{Kind: OriginUnset, Role: RoleCondition, Position: doc.At(nodeAt(doc.Node, at[1:])), Text: text + " is not there"}
				return found{fitUnset, []Origin{origin}}
			}
			fit, n, below := nearest(doc.Node, n, at[1:], value)
			text := schema.PathText(append([]any{"data", at[0]}, below...))
			return found{fit, []Origin{{Kind: OriginData, Role: RoleValue, Position: doc.At(n), Text: text}}}
		}
	}
	return found{fitUnset, []Origin{{Kind: OriginUnset, Role: RoleCondition, Position: config.Position{File: b.repository.Data}, Text: text + " is not there", Whole: true}}}
}

// unitField is what a template knows of its unit: from Defaults, or from the
// name of its folder.
func (b *blamer) unitField(at []any, value any) found {
	names, d := texts(at), b.unit.Defaults
	fit := fitSet
	switch {
	case len(names) == 0 || names[0] == "name" || names[0] == "path":
		if len(names) > 0 {
			fit = fitOf(map[string]string{"name": b.unit.Name(), "path": string(b.unit.Path)}[names[0]], value)
		}
		return found{fit, []Origin{{Kind: OriginUnit, Role: RoleValue, Position: b.folder(), Text: pathOf("unit", names)}}}
	case names[0] == "labels":
		fit, names = b.labels(names, value)
	default:
		fit = fitOf(d.Tenant, value)
	}
	if at, ok := b.repository.DefaultsAt(b.unit.Path, names...); ok {
		return found{fit, []Origin{{Kind: OriginDefaults, Role: RoleValue, Position: at, Text: pathOf("unit", names)}}}
	}
	unset := Origin{Kind: OriginUnset, Role: RoleCondition, Position: b.folder(), Text: pathOf("unit", names) + " is not set by any swell.yaml"}
	return found{fitUnset, []Origin{unset}}
}

// folder stands for the unit's folder: the first file in it.
func (b *blamer) folder() config.Position {
	if len(b.unit.Files) == 0 {
		return config.Position{File: string(b.unit.Path)}
	}
	return config.Position{File: b.unit.Files[0], Line: 1}
}

// pathOf is a path from a name, as expressions write it.
func pathOf(name string, steps []string) string {
	at := []any{name}
	for _, s := range steps {
		at = append(at, s)
	}
	return schema.PathText(at)
}

// labels picks the label of the unit that is the value.
func (b *blamer) labels(names []string, value any) (fit int, picked []string) {
	labels := b.unit.Defaults.Labels
	if len(names) > 1 {
		return fitOf(labels[names[1]], value), names
	}
	if key := keyOf(labels, value); key != "" {
		return fitEquals, []string{names[0], key}
	}
	return fitSet, names
}

// keyOf is the first key with the value, or that is it; empty when there is
// none.
func keyOf(values map[string]string, value any) (key string) {
	for k, v := range values {
		if (fitOf(v, value) == fitEquals || fitOf(k, value) == fitEquals) && (key == "" || k < key) {
			key = k
		}
	}
	return key
}

// texts are the steps as texts.
func texts(at []any) []string {
	names := make([]string, len(at))
	for i, s := range at {
		names[i] = fmt.Sprint(s)
	}
	return names
}

// targetField is what a template knows of the target, from the fleet.
func (b *blamer) targetField(at []any, value any) found {
	names := texts(at)
	t := b.target
	origin := Origin{Kind: OriginFleet, Role: RoleValue}
	fit := fitSet
	switch {
	case len(names) == 0:
		names = []string{"name"}
	case names[0] == "labels" || names[0] == "variables":
		all := t.Labels
		if names[0] == "variables" {
			all = t.Variables
		}
		if key := keyOf(all, value); len(names) == 1 && key != "" {
			names = append(names, key)
		}
		if len(names) > 1 {
			fit = fitOf(all[names[1]], value)
		}
	default:
		fit = fitOf(map[string]string{"name": string(t.Name), "cluster": t.Cluster, "cell": t.Cell}[names[0]], value)
	}
	origin.Text = pathOf("target", names)
	var ok bool
	if origin.Position, ok = b.repository.TargetAt(t, names...); !ok {
		origin.Kind, origin.Role, fit = OriginUnset, RoleCondition, fitUnset
		origin.Text += " is not set in the fleet"
		origin.Position, _ = b.repository.TargetAt(t, "cluster")
	}
	return found{fit, []Origin{origin}}
}

// maxCollected is how many collected documents are told of one value.
const maxCollected = 20

// collected are the documents of a collection that the value is made of; all
// of them where that cannot be told.
func (b *blamer) collected(m *made, r kind.Read, value any) []found {
	var all, parts []found
	for _, c := range m.src.spec.Kind().Collections() {
		if c.Name != r.From {
			continue
		}
		want := collection{name: c.APIVersion + " " + c.Kind, scope: c.Scope, target: b.target.Name}
		if c.Scope == kind.ScopeTenant {
			want.tenant = b.unit.Defaults.Tenant
		}
		b.offers.find(b.world, want, func(_ *offer, from *offered) {
			if from.item == nil {
				return
			}
			f := b.collectedFrom(c, from.position, value)
			all = append(all, f)
			if f.fit > fitSet {
				parts = append(parts, f)
			}
		})
		if len(all) == 0 {
			return []found{{fitUnset, []Origin{{Kind: OriginUnset, Role: RoleCondition, Position: c.At, Text: "no " + c.Kind + " to collect"}}}}
		}
	}
	if len(parts) > 0 {
		all = parts
	}
	return all[:min(len(all), maxCollected)]
}

func (b *blamer) collectedFrom(c *kind.Collection, at config.Position, value any) found {
	f := found{fitSet, []Origin{{Kind: OriginCollected, Role: RoleValue, Position: at, Text: c.Kind}}}
	for _, doc := range b.reread(at.File) {
		doc = itemAt(doc, at)
		if doc == nil {
			continue
		}
		f.origins[0].Text = c.Kind + " " + doc.Name
		if inside := equalScalars(doc.Node, value); len(inside) > 0 {
			f.fit, f.origins[0].Position = fitEquals, doc.At(inside[0].node)
			f.origins[0].Text += " " + schema.PathText(inside[0].path)
		} else if fitOf(doc.Name, value) == fitPart {
			f.fit = fitPart
		}
	}
	return f
}

// itemAt is the document at a position: doc, or an item of the list that it is;
// nil when it is neither.
func itemAt(doc *config.Document, at config.Position) *config.Document {
	if doc.Position() == at {
		return doc
	}
	items := config.Lookup(doc.Node, "items")
	if items == nil {
		return nil
	}
	for _, n := range items.Content {
		if doc.At(n) == at {
			item := *doc
			item.Node, item.Name = n, ""
			if name := descend(n, []any{"metadata", "name"}); name != nil {
				item.Name = name.Value
			}
			return &item
		}
	}
	return nil
}

// written is a line of YAML that somebody wrote.
func (b *blamer) written(m *made, at []any, value any) []Origin {
	doc := m.src.doc
	n := descend(doc.Node, at)
	if n == nil {
		n = nodeAt(doc.Node, at)
	}
	if b.unit.Kustomization != "" {
		return b.kustomized(doc, at, n, value).origins
	}
	return []Origin{{Kind: OriginDocument, Role: RoleValue, Position: doc.At(n)}}
}
