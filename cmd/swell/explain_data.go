// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/kind"
)

// explanationData is what explain tells, for programs.
type explanationData struct {
	APIVersion  string         `json:"apiVersion"`
	Kind        string         `json:"kind"`
	Of          explainedRef   `json:"of"`
	Path        string         `json:"path,omitempty"` // "spec.autoscale"; empty: the kind as a whole
	Type        string         `json:"type"`
	Description string         `json:"description,omitempty"`
	Values      []valueData    `json:"values,omitempty"` // of an enum
	Fields      []fieldData    `json:"fields,omitempty"`
	Objects     []explainedObj `json:"objects,omitempty"` // that an easy kind stands for
}

type explainedRef struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	From       string `json:"from"`
}

type valueData struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

type fieldData struct {
	Name        string      `json:"name"`
	Type        string      `json:"type"`
	Required    bool        `json:"required,omitempty"`
	Note        string      `json:"note,omitempty"` // what else is to be said of it
	Default     string      `json:"default,omitempty"`
	Description string      `json:"description,omitempty"`
	Values      []valueData `json:"values,omitempty"`
	Fields      []fieldData `json:"fields,omitempty"` // with --recursive
}

type explainedObj struct {
	ID         string `json:"id"`
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	When       string `json:"when,omitempty"`
	Each       string `json:"each,omitempty"`
}

func explanationOf(k *explained, path []string, s shape, recursive bool) explanationData {
	data := explanationData{APIVersion: config.APIVersion, Kind: "Explanation", Of: explainedRef{k.apiVersion, k.name, k.from},
		Path: strings.Join(path, "."), Type: s.typ, Description: s.doc, Values: valuesOf(s.values)}
	b := fieldsBuilder{recursive: recursive}
	data.Fields = b.fields(s)
	if len(path) == 0 && k.easy {
		data.Objects = objectsOf(k.objects)
	}
	return data
}

func valuesOf(values []enumValue) (data []valueData) {
	for _, v := range values {
		data = append(data, valueData{v.name, v.doc})
	}
	return data
}

func objectsOf(objects []kind.Object) (data []explainedObj) {
	for _, o := range objects {
		data = append(data, explainedObj{o.ID, o.APIVersion, o.Kind, o.When, o.Each})
	}
	return data
}

// fieldsBuilder goes into fields as --recursive does: not into a type that is
// open already, and no further than mostLines.
type fieldsBuilder struct {
	recursive bool
	open      []any
	count     int
}

func (b *fieldsBuilder) fields(s shape) (data []fieldData) {
	b.open = append(b.open, s.key)
	defer func() { b.open = b.open[:len(b.open)-1] }()
	for _, f := range s.allFields() {
		if b.count++; b.count > mostLines {
			return data
		}
		d := fieldData{Name: f.name, Type: f.shape.typ, Required: f.note == requiredNote, Note: f.note,
			Default: strings.TrimPrefix(defaultOf(f.doc), "default: "), Description: f.doc, Values: valuesOf(f.shape.values)}
		if d.Required {
			d.Note = ""
		}
		if b.recursive && f.shape.fields != nil && !f.shape.closed && !contains(b.open, f.shape.key) {
			d.Fields = b.fields(f.shape)
		}
		data = append(data, d)
	}
	return data
}

func contains(open []any, key any) bool {
	for _, k := range open {
		if key != nil && k == key {
			return true
		}
	}
	return false
}
