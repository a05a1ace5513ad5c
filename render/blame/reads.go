// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package blame

import (
	"fmt"
	"path"
	"slices"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/kind"
	"github.com/swell-sh/swell/render/schema"
)

// read tells where something that a template read is written, and how near it
// comes to the value. It is never empty.
func (r *Reader) read(s *Step, read kind.Read, value any) []found {
	switch read.From {
	case "self":
		return []found{r.self(s, read.Path, value)}
	case "file":
		return []found{r.besideSpec(fmt.Sprint(read.Path[0]), value)}
	case "template":
		file := path.Join(s.Spec.Kind().Folder, fmt.Sprint(read.Path[0]))
		return []found{{fitSet, []Origin{{Kind: FromTemplate, Role: RoleValue, Position: document.Position{File: file, Line: 1}, Text: fmt.Sprintf("template(%q)", read.Path[0]), Whole: true}}}}
	case "data":
		return []found{r.fact(read.Path, value)}
	case "unit":
		return []found{r.unitField(read.Path, value)}
	case "target":
		return []found{r.targetField(read.Path, value)}
	}
	return r.collected(s, read, value)
}

// self is a place in the spec that the object was rendered from.
func (r *Reader) self(s *Step, at []any, value any) found {
	if s.Parent != nil {
		return r.nested(s, at, value)
	}
	n := descend(s.Doc.Node, at)
	if n == nil {
		return r.unset(s, at)
	}
	if file := fromFile(s, n); file != "" {
		f := r.besideSpec(file, value)
		f.origins = append(f.origins, Origin{Kind: FromSpec, Role: RoleValue, Position: s.Doc.At(n), Text: schema.PathText(at) + ".fromFile"})
		return f
	}
	if r.Unit.Kustomization != "" {
		f := r.kustomized(s.Doc, at, n, value)
		f.origins[0].Text = schema.PathText(at)
		return f
	}
	fit, n, at := nearest(s.Doc.Node, n, at, value)
	return found{fit, []Origin{{Kind: FromSpec, Role: RoleValue, Position: s.Doc.At(n), Text: schema.PathText(at)}}}
}

// fromFile is the file that a field is taken from; empty when it is not.
func fromFile(s *Step, n *yaml.Node) string {
	if easy := s.Spec.Kind().Schema(); easy.FromFileForbidden() || n.Kind != yaml.MappingNode || len(n.Content) != 2 || n.Content[0].Value != "fromFile" {
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
	return fitSet, document.NodeAt(root, at), at
}

// unset is a field that is not written: where it is declared.
func (r *Reader) unset(s *Step, at []any) found {
	origin := Origin{Kind: FromUnset, Role: RoleCondition, Text: schema.PathText(at) + " is not set"}
	var ok bool
	if origin.Position, ok = s.Spec.Kind().FieldAt(at); !ok {
		origin.Position = s.Doc.Position()
	}
	return found{fitUnset, []Origin{origin}}
}

// nested is a place in a spec that a template made.
func (r *Reader) nested(s *Step, at []any, value any) found {
	there, ok := kind.ValueAt(s.Parent.Object, at)
	if !ok {
		return r.unset(s, at)
	}
	if file, ok := nestedFile(s, there); ok {
		f := r.besideSpec(file, value)
		f.origins = append(f.origins, r.origins(s.Parent, append(slices.Clip(at), "fromFile"), file)...)
		return f
	}
	var scalars []found
	eachLeaf(there, nil, func(below []any, v any) {
		if fit := fitOf(textOf(v), value); fit == fitEquals && len(scalars) == 0 {
			scalars = append(scalars, found{fit, r.origins(s.Parent, append(slices.Clip(at), below...), v)})
		}
	})
	if len(scalars) > 0 {
		return scalars[0]
	}
	switch there.(type) {
	case map[string]any, []any:
		if s.Parent.Traced.Leaf(at) == nil {
			return found{fitSet, []Origin{{Kind: FromTemplate, Role: RoleTemplate, Position: s.Parent.templateAt(at)}}}
		}
		return found{fitSet, r.origins(s.Parent, at, there)}
	}
	return found{fitOf(textOf(there), value), r.origins(s.Parent, at, there)}
}

func nestedFile(s *Step, value any) (string, bool) {
	object, _ := value.(map[string]any)
	file, ok := object["fromFile"].(string)
	return file, ok && len(object) == 1 && !s.Spec.Kind().Schema().FromFileForbidden()
}

// besideSpec is a file in the unit's folder.
func (r *Reader) besideSpec(name string, value any) found {
	full := path.Join(string(r.Unit.Path), name)
	content, _ := r.Repository.Tree.ReadFile(full)
	return found{fitOf(string(content), value), []Origin{{Kind: FromFile, Role: RoleValue, Position: document.Position{File: full, Line: 1}, Text: name, Whole: true}}}
}

// reread reads a file again, once.
func (r *Reader) reread(file string) []*document.Document {
	docs, ok := r.files[file]
	if !ok {
		docs = r.Repository.Documents(file)
		if r.files == nil {
			r.files = map[string][]*document.Document{}
		}
		r.files[file] = docs
	}
	return docs
}

// fact is a value of data/*.yaml.
func (r *Reader) fact(at []any, value any) found {
	text := pathOf("data", texts(at))
	if len(at) == 0 {
		return found{fitSet, []Origin{{Kind: FromData, Role: RoleValue, Position: document.Position{File: r.Repository.Data}, Text: text, Whole: true}}}
	}
	for _, ext := range []string{".yaml", ".yml"} {
		file := path.Join(r.Repository.Data, fmt.Sprint(at[0])+ext)
		for _, doc := range r.reread(file) {
			n := descend(doc.Node, at[1:])
			if n == nil {
				origin := Origin{Kind: FromUnset, Role: RoleCondition, Position: doc.At(document.NodeAt(doc.Node, at[1:])), Text: text + " is not there"}
				return found{fitUnset, []Origin{origin}}
			}
			fit, n, below := nearest(doc.Node, n, at[1:], value)
			text := schema.PathText(append([]any{"data", at[0]}, below...))
			return found{fit, []Origin{{Kind: FromData, Role: RoleValue, Position: doc.At(n), Text: text}}}
		}
	}
	return found{fitUnset, []Origin{{Kind: FromUnset, Role: RoleCondition, Position: document.Position{File: r.Repository.Data}, Text: text + " is not there", Whole: true}}}
}

// unitField is what a template knows of its unit: from Defaults, or from the
// name of its folder.
func (r *Reader) unitField(at []any, value any) found {
	names, d := texts(at), r.Unit.Defaults
	fit := fitSet
	switch {
	case len(names) == 0 || names[0] == "name" || names[0] == "path":
		if len(names) > 0 {
			fit = fitOf(map[string]string{"name": r.Unit.Name(), "path": string(r.Unit.Path)}[names[0]], value)
		}
		return found{fit, []Origin{{Kind: FromUnit, Role: RoleValue, Position: r.folder(), Text: pathOf("unit", names)}}}
	case names[0] == "labels":
		fit, names = r.labels(names, value)
	default:
		fit = fitOf(d.Tenant, value)
	}
	if at, ok := r.Repository.DefaultsAt(r.Unit.Path, names...); ok {
		return found{fit, []Origin{{Kind: FromDefaults, Role: RoleValue, Position: at, Text: pathOf("unit", names)}}}
	}
	unset := Origin{Kind: FromUnset, Role: RoleCondition, Position: r.folder(), Text: pathOf("unit", names) + " is not set by any swell.yaml"}
	return found{fitUnset, []Origin{unset}}
}

// folder stands for the unit's folder: the first file in it.
func (r *Reader) folder() document.Position {
	if len(r.Unit.Files) == 0 {
		return document.Position{File: string(r.Unit.Path)}
	}
	return document.Position{File: r.Unit.Files[0], Line: 1}
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
func (r *Reader) labels(names []string, value any) (fit int, picked []string) {
	labels := r.Unit.Defaults.Labels
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
func (r *Reader) targetField(at []any, value any) found {
	names := texts(at)
	t := r.Target
	origin := Origin{Kind: FromFleet, Role: RoleValue}
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
	if origin.Position, ok = r.Repository.TargetAt(t, names...); !ok {
		origin.Kind, origin.Role, fit = FromUnset, RoleCondition, fitUnset
		origin.Text += " is not set in the fleet"
		origin.Position, _ = r.Repository.TargetAt(t, "cluster")
	}
	return found{fit, []Origin{origin}}
}

// maxCollected is how many collected documents are shown for one value.
const maxCollected = 20

// collected are the documents of a collection that the value is made of; all
// of them where that cannot be told.
func (r *Reader) collected(s *Step, read kind.Read, value any) []found {
	var all, parts []found
	for _, c := range s.Spec.Kind().Collections() {
		if c.Name != read.From {
			continue
		}
		for _, at := range r.Collected(c) {
			f := r.collectedFrom(c, at, value)
			all = append(all, f)
			if f.fit > fitSet {
				parts = append(parts, f)
			}
		}
		if len(all) == 0 {
			return []found{{fitUnset, []Origin{{Kind: FromUnset, Role: RoleCondition, Position: c.At, Text: "no " + c.Kind + " to collect"}}}}
		}
	}
	if len(parts) > 0 {
		all = parts
	}
	return all[:min(len(all), maxCollected)]
}

func (r *Reader) collectedFrom(c *kind.Collection, at document.Position, value any) found {
	f := found{fitSet, []Origin{{Kind: FromCollected, Role: RoleValue, Position: at, Text: c.Kind}}}
	for _, doc := range r.reread(at.File) {
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
func itemAt(doc *document.Document, at document.Position) *document.Document {
	if doc.Position() == at {
		return doc
	}
	items := document.Lookup(doc.Node, "items")
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
func (r *Reader) written(s *Step, at []any, value any) []Origin {
	doc := s.Doc
	n := descend(doc.Node, at)
	if n == nil {
		n = document.NodeAt(doc.Node, at)
	}
	if r.Unit.Kustomization != "" {
		return r.kustomized(doc, at, n, value).origins
	}
	return []Origin{{Kind: FromDocument, Role: RoleValue, Position: doc.At(n)}}
}
