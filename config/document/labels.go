// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"strings"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// labelled are the mappings of swell's own messages that hold labels, or ask for
// them; true where the values are free. Metadata is that of easy specs too.
var labelled = map[protoreflect.FullName]bool{
	"swell.v1.Metadata.labels": false, "swell.v1.Metadata.annotations": true, "swell.v1.Cell.labels": false,
	"swell.v1.DefaultsSpec.labels": false, "swell.v1.Match.labels": false,
}

// checkLabel finds keys and values that no label can have: a space at the end,
// or an invisible character, would silently match nothing.
func (d *decoder) checkLabel(key, value *yaml.Node, field protoreflect.FieldDescriptor) {
	free, is := labelled[field.FullName()]
	if !is {
		return
	}
	name := key.Value
	if free {
		name = strings.ToLower(name) // an annotation's domain may have capitals
	}
	if !IsKey(name) {
		d.problem(key, CodeType, "%+q: want %s", Shorten(key.Value), WantKey)
	}
	values := []*yaml.Node{value}
	if value.Kind == yaml.SequenceNode {
		values = value.Content
	}
	for _, v := range values {
		if !free && v.Kind == yaml.ScalarNode && v.Tag == "!!str" && !IsLabelValue(v.Value) {
			d.problem(v, CodeType, "%+q: want %s", Shorten(v.Value), WantLabel)
		}
	}
}
