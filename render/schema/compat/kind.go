// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/schema/easy"
)

// Kind is one state of an easy kind.
type Kind struct {
	*easy.Schema
	// ObjectsAt and FieldNamesAt are where the kind.yaml has spec.objects and
	// spec.fieldNames, or what is around them.
	ObjectsAt, FieldNamesAt document.Position
	// JSONNames says that documents spell fields as in JSON.
	JSONNames bool
	// Objects are the ids of the kind's objects.
	Objects []string
	// Located gives a position in an imported file the path that the file has.
	Located func(document.Position) document.Position
}

// Kinds compares a kind with what it was.
func Kinds(was, is Kind) []Finding {
	c := &comparison{kind: is.Kind, is: is, was: was, seen: map[[2]protoreflect.FullName]bool{}}
	c.definition()
	c.message(was.Message(), is.Message(), nil)
	return Sorted(c.findings)
}

// Removed is the finding for a kind that is not there any more. is is the one that has
// taken its place; nil for none.
func Removed(was Kind, is *Kind) Finding {
	c := &comparison{kind: was.Kind, is: was}
	if is == nil {
		c.at(KindRemoved, document.Position{File: was.ObjectsAt.File}, nil, "kind %s of %s is not there any more", was.Kind, was.Group)
	} else {
		c.is = *is
		c.add(KindRenamed, is.Message(), nil, "was kind %s of %s, and is %s of %s", was.Kind, was.Group, is.Kind, is.Group)
	}
	return c.findings[0]
}

// comparison gathers the findings about one kind.
type comparison struct {
	kind     string
	was, is  Kind
	seen     map[[2]protoreflect.FullName]bool // pairs of messages and of enums
	findings []Finding
}

// add adds a finding where d is declared, in the new state.
func (c *comparison) add(rule Rule, d protoreflect.Descriptor, path []string, format string, args ...any) {
	c.at(rule, c.is.Located(document.DeclaredAt(d)), path, format, args...)
}

func (c *comparison) at(rule Rule, at document.Position, path []string, format string, args ...any) {
	c.findings = append(c.findings, Finding{Position: at, Rule: rule, Severity: Rules[rule].Severity,
		At: strings.Join(append([]string{c.kind}, path...), "."), Message: fmt.Sprintf(format, args...)})
}

// definition compares the names and options of the kinds as a whole.
func (c *comparison) definition() {
	was, is := c.was, c.is
	for _, name := range []struct{ what, was, is string }{{"plural", was.Plural, is.Plural}, {"singular", was.Singular, is.Singular}} {
		if name.was != name.is {
			c.add(KindNamesChanged, is.Message(), nil, "the %s was %q, and is %q", name.what, name.was, name.is)
		}
	}
	if was.ClusterScoped() != is.ClusterScoped() {
		scopes := map[bool]string{false: "namespaced", true: "cluster-scoped"}
		c.add(KindScopeChanged, is.Message(), nil, "was %s, and is %s", scopes[was.ClusterScoped()], scopes[is.ClusterScoped()])
	}
	if !was.OverrideForbidden() && is.OverrideForbidden() {
		c.add(OverrideForbidden, is.Message(), nil, "(swell.forbid_override) is new: documents with spec.override are refused")
	}
	if !was.FromFileForbidden() && is.FromFileForbidden() {
		c.add(FromFileForbidden, is.Message(), nil, "(swell.forbid_from_file) is new: documents with fromFile are refused")
	}
	for _, id := range was.Objects {
		if !slices.Contains(is.Objects, id) {
			c.at(KindObjectRemoved, is.ObjectsAt, []string{"spec", "override", id}, "the kind has no object %q any more: overrides of it are refused", id)
		}
	}
}
