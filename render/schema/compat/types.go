// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/swell-sh/swell/render/schema/easy"
)

// fit says which values of one form are good values of another one, and mean the same.
type fit int

const (
	none fit = iota
	some
	all
)

// fits are the forms that a form may become, beside itself. What is not in it does not
// fit. A text may be read from a file where another form would not.
var fits = map[string]map[string]fit{
	"int32":    {"int64": all, "number": all, "any": all, "uint32": some, "uint64": some, "enum": some},
	"uint32":   {"int64": all, "uint64": all, "number": all, "any": all, "int32": some, "enum": some},
	"int64":    {"int32": some, "uint32": some, "uint64": some, "number": some, "text": some, "any": some, "enum": some},
	"uint64":   {"int32": some, "uint32": some, "int64": some, "number": some, "text": some, "any": some, "enum": some},
	"number":   {"any": all, "int32": some, "uint32": some, "int64": some, "uint64": some},
	"boolean":  {"any": all},
	"text":     {"any": some, "enum": some, "duration": some, "time": some, "mask": some, "int64": some, "uint64": some},
	"enum":     {"text": some, "any": some, "int32": some, "int64": some},
	"duration": {"text": all, "any": all},
	"time":     {"text": some, "any": some},
	"mask":     {"text": all, "any": all},
	"message":  {"object": all, "any": all},
	"object":   {"any": all, "message": some},
	"list":     {"any": all},
	"any":      {"text": some, "boolean": some, "number": some, "int32": some, "int64": some, "uint32": some, "uint64": some, "enum": some, "duration": some, "time": some, "object": some, "list": some, "message": some},
}

// types compares the types of a field. It returns whether values of it are still
// written in the same way.
func (c *comparison) types(was, is protoreflect.FieldDescriptor, path []string) bool {
	before, after := shape(was), shape(is)
	if before != after {
		switch f := wholeFit(was, is); f {
		case all:
		case some:
			c.narrowed(FieldTypeNarrowed, was, is, path)
		default:
			c.narrowed(FieldCardinality, was, is, path)
		}
		return false
	}
	same := true
	if was.IsMap() {
		same = c.fit(was, is, formFit(was.MapKey(), is.MapKey(), true), path)
	}
	return c.fit(was, is, formFit(element(was), element(is), false), path) && same
}

func (c *comparison) fit(was, is protoreflect.FieldDescriptor, f fit, path []string) bool {
	switch f {
	case none:
		c.narrowed(FieldTypeChanged, was, is, path)
	case some:
		c.narrowed(FieldTypeNarrowed, was, is, path)
	}
	return easy.Form(element(was)) == easy.Form(element(is))
}

func (c *comparison) narrowed(rule Rule, was, is protoreflect.FieldDescriptor, path []string) {
	c.add(rule, is, path, "was %s, and is %s: %s", typeText(was), typeText(is), Rules[rule].Why)
}

// shape is how a field is written.
func shape(f protoreflect.FieldDescriptor) string {
	switch {
	case f.IsMap():
		return "map"
	case f.IsList():
		return "list"
	}
	return "value"
}

// wholeFit is for fields of two shapes: messages of google.protobuf hold lists and maps
// too.
func wholeFit(was, is protoreflect.FieldDescriptor) fit {
	switch to := easy.Form(is); {
	case is.IsMap() && !was.IsList() && easy.Form(was) == "object":
		return itemFit(nil, element(is))
	case is.IsList() && !was.IsMap() && easy.Form(was) == "list":
		return itemFit(nil, is)
	case is.IsMap() || is.IsList():
		return none
	case was.IsMap() && (to == "object" || to == "any"), was.IsList() && (to == "list" || to == "any"):
		return itemFit(element(was), nil)
	}
	return none
}

// itemFit is between the items of a list or the values of a map and a
// google.protobuf.Value, which nil stands for.
func itemFit(was, is protoreflect.FieldDescriptor) fit {
	from, to := "any", "any"
	if was != nil {
		from = easy.Form(was)
	}
	if is != nil {
		to = easy.Form(is)
	}
	if from == to {
		return all
	}
	return fits[from][to]
}

// formFit is between two values, or two keys of maps, which are texts in YAML.
func formFit(was, is protoreflect.FieldDescriptor, key bool) fit {
	from, to := easy.Form(was), easy.Form(is)
	switch {
	case key && from != to && to == "text":
		return all
	case key && from == "text" && to != "text":
		return some
	case from == to && from == "number" && bits(was) == 64 && bits(is) == 32:
		return some
	case from == "int32" && to == "number" && bits(is) == 32, from == "uint32" && to == "number" && bits(is) == 32:
		return some
	case from == to:
		return all
	case from == "message" && (to == "object" || to == "any"):
		return messageFit(was.Message(), map[protoreflect.FullName]bool{})
	}
	return fits[from][to]
}

// messageFit is between a message and a google.protobuf.Struct: all that is in it
// becomes a google.protobuf.Value.
func messageFit(m protoreflect.MessageDescriptor, seen map[protoreflect.FullName]bool) fit {
	seen[m.FullName()] = true
	least := all
	for f := range fields(m) {
		f = element(f)
		switch {
		case easy.Form(f) != "message":
			least = min(least, itemFit(f, nil))
		case !seen[f.Message().FullName()]:
			least = min(least, messageFit(f.Message(), seen))
		}
	}
	return max(least, some)
}

// bits is the size of a number with a fraction.
func bits(f protoreflect.FieldDescriptor) int {
	if easy.Wrapped(f).Kind() == protoreflect.FloatKind {
		return 32
	}
	return 64
}

// typeText is the type of a field as a .proto has it.
func typeText(f protoreflect.FieldDescriptor) string {
	switch {
	case f.IsMap():
		return "map<" + typeText(f.MapKey()) + ", " + typeText(f.MapValue()) + ">"
	case f.IsList():
		return "repeated " + scalarText(f)
	}
	return scalarText(f)
}

func scalarText(f protoreflect.FieldDescriptor) string {
	switch {
	case f.Message() != nil:
		return string(f.Message().FullName())
	case f.Enum() != nil:
		return string(f.Enum().FullName())
	}
	return f.Kind().String()
}
