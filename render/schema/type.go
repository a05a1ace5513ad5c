// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"maps"
	"regexp"
	"slices"

	"github.com/swell-sh/swell/render/schema/validation"
)

// Form says what values a Type takes.
type Form int

const (
	Any         Form = iota // whatever JSON can hold
	Object                  // the fields of Type.Fields and no others
	Map                     // any keys, values of Type.Elem
	List                    // items of Type.Elem
	String                  // text
	Integer                 // a whole number
	Number                  // any number
	Boolean                 // true or false
	IntOrString             // a port's number or name, a count or a percentage
	Quantity                // "500m", "1Gi" or a number
	Base64                  // bytes as text
)

var formNames = [...]string{"anything", "a map", "a map", "a list", "a string", "an integer", "a number", "true or false",
	"an integer or a string", "a quantity like 500m or 1Gi", "a string in base64"}

func (f Form) String() string { return formNames[f] }

// Type is the type of a value in a hard object. It may refer to itself. A Type
// must not be changed once it is in use.
type Type struct {
	Form Form
	// Fields are the fields of an Object, and of a Map those keys that have a
	// type of their own. Of Any they hold for a value that is a mapping, and of
	// a text or bytes they are what may stand in its place.
	Fields   map[string]*Type
	Required []string // names of Fields
	Elem     *Type    // of a Map or a List
	// Keys are the fields that tell the items of a List apart for server-side
	// apply; empty for a list that is replaced as a whole.
	Keys []string
	// Set says that no two items of a List are equal.
	Set bool
	// Nullable says that null is a value of its own, not the absence of one. Of
	// Any it always is.
	Nullable bool
	// Default is what the API server takes for a field that is not there; nil
	// for none.
	Default any
	// Rules are what Form does not say; nil for none.
	Rules *Rules

	zero     any      // see zeros; nil in a custom resource, and for Any
	unset    []string // see [WithoutUnset]
	defaults bool     // a custom resource with defaults somewhere in it
}

// Field is the type of the value that a mapping has under this name: the
// field's own type where it has one, else that of any key. It is nil when
// nothing is known about it. t may be nil.
func (t *Type) Field(name string) *Type {
	if t == nil {
		return nil
	}
	if field := t.Fields[name]; field != nil {
		return field
	}
	if t.Form == Map {
		return t.Elem
	}
	return nil
}

// FieldNames are the names of the fields of the type and below it, sorted, each once.
func (t *Type) FieldNames() []string {
	names, seen := map[string]bool{}, map[*Type]bool{nil: true}
	var gather func(t *Type)
	gather = func(t *Type) {
		if seen[t] {
			return
		}
		seen[t] = true
		for name, field := range t.Fields {
			names[name] = true
			gather(field)
		}
		gather(t.Elem)
	}
	gather(t)
	return slices.Sorted(maps.Keys(names))
}

// Item is the type of a list's items; nil when nothing is known about them. t
// may be nil.
func (t *Type) Item() *Type {
	if t == nil || t.Form != List {
		return nil
	}
	return t.Elem
}

// Rules narrow the values of a Type down. A rule for texts says nothing about
// numbers, and so on, as in JSON Schema. A zero rule does not restrict.
type Rules struct {
	Enum    []any
	Pattern *regexp.Regexp // of a text, found anywhere in it
	// Format is of a text one that the API server enforces (ipv4, date-time,
	// ...), of a number int32.
	Format               string
	MinLength, MaxLength *int64 // of a text, in characters
	Minimum, Maximum     *float64
	// ExclusiveMinimum says that Minimum itself is too small.
	ExclusiveMinimum, ExclusiveMaximum bool
	MultipleOf                         *float64
	MinItems, MaxItems                 *int64
	MinProperties, MaxProperties       *int64
	// AllOf and the others hold types without a form.
	AllOf, AnyOf, OneOf []*Type
	Not                 *Type

	// never says why no number fits; empty when some do.
	never string
	// orEmpty says that an empty text is the same as none, although Enum does
	// not have it.
	orEmpty bool
	// check finds what is wrong beyond that.
	check validation.Rule
}
