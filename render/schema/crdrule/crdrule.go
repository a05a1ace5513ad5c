// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package crdrule compiles and evaluates the x-kubernetes-validations of
// CustomResourceDefinitions with the API server's own code. It is the only package
// that knows github.com/google/cel-go, beside which swell's own expressions use
// cel.dev/cel-go: no value of CEL leaves it.
//
// It asks nobody, and the same definition and object give the same answer. Only the
// zones in functions on times are those of the machine, as on a server.
package crdrule

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// Keyword is the field of a schema that holds rules.
const Keyword = "x-kubernetes-validations"

// Has says whether a schema, decoded from JSON or YAML, has rules anywhere.
func Has(schema any) bool {
	switch s := schema.(type) {
	case map[string]any:
		if rules, ok := s[Keyword].([]any); ok && len(rules) > 0 {
			return true
		}
		for _, below := range s {
			if Has(below) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(s, Has)
	}
	return false
}

// decode reads the JSON of a schema.
func decode(schema []byte) (*apiextensions.JSONSchemaProps, error) {
	var read apiextensionsv1.JSONSchemaProps
	if err := json.Unmarshal(schema, &read); err != nil {
		return nil, err
	}
	var props apiextensions.JSONSchemaProps
	return &props, apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&read, &props, nil)
}

// Rules are the rules of one version of a definition. They are safe for concurrent
// use. Nil is none.
type Rules struct {
	here *cel.Validator // the rules for the value itself; nil for none
	// static are the texts that say of a rule that it is broken, and nothing about
	// the value.
	static map[string]bool
	all    []*Rules // those in allOf, for the same value
	names  []string // of fields, sorted
	fields map[string]*Rules
	elem   *Rules // of the items of a list, or of the values of a map
}

// Compile compiles the rules of a schema in which [Check] found nothing wrong, given
// as JSON.
func Compile(schema []byte) (*Rules, error) {
	props, err := decode(schema)
	if err != nil {
		return nil, err
	}
	s, err := structural.NewStructural(props)
	if err != nil {
		return nil, err
	}
	return tree(cel.NewValidator(s, true, celconfig.PerCallLimit)), nil
}

// tree takes the validator of a schema apart into one for each place with rules: the
// server goes over maps in random order, and stops when the budget is used up.
func tree(v *cel.Validator) *Rules {
	if v == nil {
		return nil
	}
	r := &Rules{elem: tree(v.Items)}
	if v.AdditionalProperties != nil {
		r.elem = tree(v.AdditionalProperties)
	}
	for i := range v.AllOfValidators {
		r.all = append(r.all, tree(v.AllOfValidators[i]))
	}
	for _, name := range slices.Sorted(maps.Keys(v.Properties)) {
		below := v.Properties[name]
		if r.fields == nil {
			r.fields = map[string]*Rules{}
		}
		r.names, r.fields[name] = append(r.names, name), tree(&below)
	}
	if len(v.Schema.XValidations) > 0 {
		alone := *v
		alone.Items, alone.Properties, alone.AllOfValidators, alone.AdditionalProperties = nil, nil, nil, nil
		r.here, r.static = &alone, map[string]bool{}
		for _, rule := range v.Schema.XValidations {
			r.static[strings.TrimSpace(rule.Message)] = true
			r.static["failed rule: "+strings.TrimSpace(rule.Rule)] = true
		}
	}
	return r
}

// Flaw is a rule that a value breaks, or that could not be evaluated.
type Flaw struct {
	Path []any // to the value: names and indexes
	// Reason is what a server calls it: "Invalid value", "Required value".
	Reason string
	// Detail is the rule's message, or the error of evaluating it; empty for
	// duplicates, of which a server says no more.
	Detail string
	// Static says that Detail was not made from the value.
	Static bool
	// Value is the scalar that the rule is about; nil for others.
	Value any
}

// Broken are the rules that an object breaks, defaults added, in the order of their
// paths. They are evaluated as for an object that is created: a rule that compares with
// the old object only counts when it says that there may be none. Above the server's
// budget for an object, the last flaw says so.
func (r *Rules) Broken(object map[string]any) []Flaw {
	if r == nil {
		return nil
	}
	return r.within(celconfig.RuntimeCELCostBudget, object)
}

func (r *Rules) within(budget int64, object map[string]any) []Flaw {
	e := evaluation{left: budget}
	e.visit(r, object)
	return e.flaws
}

type evaluation struct {
	path  []any
	left  int64 // of the budget; negative when it is used up
	flaws []Flaw
}

func (e *evaluation) visit(r *Rules, value any) {
	if r == nil || value == nil || e.left < 0 {
		return
	}
	if r.here != nil {
		e.evaluate(r, value)
	}
	for _, all := range r.all {
		e.visit(all, value)
	}
	switch v := value.(type) {
	case []any:
		for i, item := range v {
			e.below(r.elem, i, item)
		}
	case map[string]any:
		for _, name := range r.names {
			e.below(r.fields[name], name, v[name])
		}
		if r.elem != nil {
			for _, name := range slices.Sorted(maps.Keys(v)) {
				e.below(r.elem, name, v[name])
			}
		}
	}
}

func (e *evaluation) below(r *Rules, step, value any) {
	if r == nil || value == nil {
		return
	}
	e.path = append(e.path, step)
	e.visit(r, value)
	e.path = e.path[:len(e.path)-1]
}

func (e *evaluation) evaluate(r *Rules, value any) {
	found, left := r.here.Validate(context.Background(), nil, nil, value, nil, e.left)
	e.left = left
	for _, err := range found {
		f := Flaw{Path: append(slices.Clone(e.path), fieldPath(err.Field)...), Reason: err.Type.String(), Detail: stable(err.Detail), Static: r.static[err.Detail]}
		if err.Type == field.ErrorTypeInvalid || err.Type == field.ErrorTypeDuplicate {
			f.Value = scalar(err.BadValue, value)
		}
		e.flaws = append(e.flaws, f)
	}
}

// scalar is the value that an error names when it is a scalar; nil for others. An error
// in evaluating names the type instead.
func scalar(named, value any) any {
	switch named.(type) {
	case string, int64, float64, bool:
		if named == value {
			return value
		}
	}
	return nil
}

// selfType is the name that the compiler gives the type of self: another one each time.
var selfType = regexp.MustCompile(`selfType[0-9]+`)

func stable(text string) string { return selfType.ReplaceAllString(text, "self") }

// steps are those of a fieldPath: .name, or ['any name'].
var steps = regexp.MustCompile(`\.?([^.\[\]]+)|\[([^\]]*)\]`)

// fieldPath reads the path that a rule says its message is about, as the server writes
// it; nil for a rule that says none.
func fieldPath(text string) (path []any) {
	if text == "" || text == "<nil>" {
		return nil
	}
	for _, m := range steps.FindAllStringSubmatch(text, -1) {
		path = append(path, strings.Trim(m[1]+m[2], `"'`))
	}
	return path
}

// Problem is why an API server would refuse the rules of a definition.
type Problem struct {
	Path    []any // into the schema
	Message string
}

func (p Problem) String() string { return fmt.Sprint(p.Path, " ", p.Message) }

// toPath is only for messages of the server's own checks.
func toPath(path []any) *field.Path {
	p := field.NewPath("")
	for _, step := range path {
		if i, ok := step.(int); ok {
			p = p.Index(i)
		} else {
			p = p.Child(fmt.Sprint(step))
		}
	}
	return p
}
