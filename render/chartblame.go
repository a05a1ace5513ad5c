// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/blame"
	"github.com/swell-sh/swell/render/helm"
	"github.com/swell-sh/swell/render/kind"
	"github.com/swell-sh/swell/render/schema"
)

// blamed is how the object was made.
func (r *rendered) blamed() *blame.Chart {
	c := r.chart
	object := schema.Decode(r.object.JSON)
	b := &blame.Chart{At: r.at, Namespace: c.Doc.Position()}
	b.Has = func(at []any) bool {
		_, has := kind.ValueAt(object, at)
		return has
	}
	if c.Namespace != nil {
		b.Namespace = c.Doc.At(c.Namespace)
	}
	b.Reads = func(at document.Position) (values []blame.Value) {
		for _, name := range helm.Reads(c.texts(), r.object.File, at.Line) {
			values = append(values, blame.Value{Name: name, Places: c.places(r.object.File, name)})
		}
		return values
	}
	return b
}

// places are where a value that a template asks for is written, the one that counts first.
func (c *chart) places(template, name string) (places []blame.ValuePlace) {
	add := func(file string, n *yaml.Node, isDefault bool) {
		if n != nil {
			places = append(places, blame.ValuePlace{File: file, Node: n, Default: isDefault})
		}
	}
	steps := strings.Split(name, ".")
	if c.Values != nil {
		add(c.Doc.File, descend(c.Values, steps), false)
	}
	for _, f := range slices.Backward(c.valuesFiles) {
		add(f.Name, valueIn(f, steps), false)
	}
	for _, owner := range helm.Owners(template, name) {
		file := path.Join(owner.Folder, "values.yaml")
		if text, there := c.texts()[file]; there {
			add(c.fileOf(file), valueIn(helm.File{Content: []byte(text)}, strings.Split(owner.Name, ".")), true)
		}
	}
	return places
}
