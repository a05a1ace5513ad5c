// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package policy judges the creation of hard objects as the admission of an API
// server does: by ValidatingAdmissionPolicies with their bindings and parameters. It
// compiles and evaluates them with the API server's own code, and asks no server.
//
// What it judges is what stands in Git. An API server judges the object after it has
// added defaults, so every finding is modelled. Who sends the request is not known:
// expressions about that are not judged, and a finding says so.
package policy

import (
	"fmt"
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/swell-sh/swell/config/document"
)

// Group is that of policies and bindings.
const Group = "admissionregistration.k8s.io"

// IsAdmission says whether a kind is that of admission policies or of their bindings.
func IsAdmission(group, kind string) bool {
	return group == Group && strings.HasSuffix(strings.TrimSuffix(kind, "Binding"), "AdmissionPolicy")
}

// Document is a policy, a binding or a parameter.
type Document struct {
	Object map[string]any
	At     document.Position
}

// Flaw is what is wrong with a document. Path leads into its object; Line and Column
// into the text there, from 1, where that is an expression.
type Flaw struct {
	Document     int // index into the list that was given
	Path         []any
	Line, Column int
	Message      string
	// Unbound says that the document is right by itself: it is a binding of a policy that is not here.
	Unbound bool
}

// Text is the message, with the place in an expression.
func (f *Flaw) Text() string {
	if f.Line == 0 {
		return f.Message
	}
	return fmt.Sprintf("%d:%d: %s", f.Line, f.Column, f.Message)
}

// Policies are compiled. They are safe for concurrent use; nil are none.
type Policies struct {
	validating []*validating
	mutating   []*mutating
	params     map[metav1.TypeMeta][]*unstructured.Unstructured
}

// bound is what all policies have in common.
type bound[B any] struct {
	name       string
	at         document.Position
	match      *matcher
	conditions conditions
	paramKind  *admission.ParamKind
	ignore     bool   // what cannot be evaluated lets the object pass
	sees       bool   // it asks for the namespace of objects
	asks       string // what a validation asks for that is not known; empty when nothing
	bindings   []*binding[B]
}

// binding puts a policy in force.
type binding[B any] struct {
	name   string
	match  *matcher // nil: all that the policy matches
	params *admission.ParamRef
	spec   B
}

// Compile makes policies of documents, of which the schemas were checked. Those with
// a flaw are left out.
func Compile(docs []Document) (*Policies, []Flaw) {
	c := compilation{docs: docs, policies: &Policies{params: map[metav1.TypeMeta][]*unstructured.Unstructured{}}}
	first := map[string]document.Position{}
	for i, doc := range docs {
		c.at = i
		u := unstructured.Unstructured{Object: doc.Object}
		name := u.GroupVersionKind().GroupKind().String() + " " + u.GetNamespace() + "/" + u.GetName()
		if at, twice := first[name]; twice {
			c.flaw([]any{"metadata", "name"}, "%s %q: stands twice, first at %s", u.GetKind(), document.Shorten(u.GetName()), at)
			continue
		}
		first[name] = doc.At
		switch kindOf(doc.Object) {
		case "ValidatingAdmissionPolicy":
			c.validating(doc)
		case "MutatingAdmissionPolicy":
			c.mutating(doc)
		}
	}
	for i, doc := range docs {
		switch c.at = i; kindOf(doc.Object) {
		case "ValidatingAdmissionPolicy", "MutatingAdmissionPolicy":
		case "ValidatingAdmissionPolicyBinding":
			c.validatingBinding(doc)
		case "MutatingAdmissionPolicyBinding":
			c.mutatingBinding(doc)
		default:
			c.param(doc)
		}
	}
	return c.policies, c.flaws
}

// kindOf is the kind of a policy or a binding; empty for others, which are parameters.
func kindOf(object map[string]any) string {
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	if strings.HasPrefix(apiVersion, Group+"/") {
		return kind
	}
	return ""
}

type compilation struct {
	docs     []Document
	at       int // the document
	policies *Policies
	flaws    []Flaw
	broken   []string // "kind name" of policies with a flaw
}

func (c *compilation) flaw(path []any, format string, args ...any) {
	c.flaws = append(c.flaws, Flaw{Document: c.at, Path: path, Message: fmt.Sprintf(format, args...)})
}

// read decodes a document whose schema was checked.
func (c *compilation) read(doc Document, into any) bool {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(doc.Object, into); err != nil {
		c.flaw(nil, "%s", err)
		return false
	}
	return true
}

func (c *compilation) validating(doc Document) {
	var read admission.ValidatingAdmissionPolicy
	if !c.read(doc, &read) {
		return
	}
	before := len(c.flaws)
	spec := &read.Spec
	p := &validating{bound: bound[[]admission.ValidationAction]{name: read.Name, at: doc.At, paramKind: spec.ParamKind,
		ignore: spec.FailurePolicy != nil && *spec.FailurePolicy == admission.Ignore}}
	p.match = c.matcher(spec.MatchConstraints, "spec", "matchConstraints")
	env := c.expressions(spec.ParamKind, spec.Variables)
	p.conditions = env.conditions(spec.MatchConditions)
	p.evaluate(env, spec)
	p.sees = env.sees
	if len(c.flaws) > before {
		c.broken = append(c.broken, "ValidatingAdmissionPolicy "+read.Name)
		return
	}
	c.policies.validating = append(c.policies.validating, p)
}

func (c *compilation) mutating(doc Document) {
	var read admission.MutatingAdmissionPolicy
	if !c.read(doc, &read) {
		return
	}
	before := len(c.flaws)
	spec := &read.Spec
	p := &mutating{bound[struct{}]{name: read.Name, at: doc.At, paramKind: spec.ParamKind,
		ignore: spec.FailurePolicy != nil && *spec.FailurePolicy == admission.Ignore}}
	p.match = c.matcher(spec.MatchConstraints, "spec", "matchConstraints")
	env := c.expressions(spec.ParamKind, spec.Variables)
	p.conditions = env.conditions(spec.MatchConditions)
	env.mutations(spec.Mutations)
	if len(c.flaws) > before {
		c.broken = append(c.broken, "MutatingAdmissionPolicy "+read.Name)
		return
	}
	c.policies.mutating = append(c.policies.mutating, p)
}

func (c *compilation) validatingBinding(doc Document) {
	var read admission.ValidatingAdmissionPolicyBinding
	if !c.read(doc, &read) {
		return
	}
	i := slices.IndexFunc(c.policies.validating, func(p *validating) bool { return p.name == read.Spec.PolicyName })
	if i < 0 {
		c.noPolicy("ValidatingAdmissionPolicy", read.Spec.PolicyName)
		return
	}
	p := c.policies.validating[i]
	p.bindings = append(p.bindings, &binding[[]admission.ValidationAction]{name: read.Name, params: read.Spec.ParamRef,
		match: c.matcher(read.Spec.MatchResources, "spec", "matchResources"), spec: read.Spec.ValidationActions})
}

func (c *compilation) mutatingBinding(doc Document) {
	var read admission.MutatingAdmissionPolicyBinding
	if !c.read(doc, &read) {
		return
	}
	i := slices.IndexFunc(c.policies.mutating, func(p *mutating) bool { return p.name == read.Spec.PolicyName })
	if i < 0 {
		c.noPolicy("MutatingAdmissionPolicy", read.Spec.PolicyName)
		return
	}
	p := c.policies.mutating[i]
	p.bindings = append(p.bindings, &binding[struct{}]{name: read.Name, params: read.Spec.ParamRef,
		match: c.matcher(read.Spec.MatchResources, "spec", "matchResources")})
}

// noPolicy is the flaw of a binding that puts nothing in force.
func (c *compilation) noPolicy(kind, name string) {
	if slices.Contains(c.broken, kind+" "+name) {
		return
	}
	var names []string
	for _, doc := range c.docs {
		if kindOf(doc.Object) == kind {
			names = append(names, (&unstructured.Unstructured{Object: doc.Object}).GetName())
		}
	}
	c.flaw([]any{"spec", "policyName"}, "%q: no such %s here%s", document.Shorten(name), kind, document.DidYouMean(name, names))
	c.flaws[len(c.flaws)-1].Unbound = true
}

func (c *compilation) param(doc Document) {
	u := &unstructured.Unstructured{Object: doc.Object}
	kind := metav1.TypeMeta{APIVersion: u.GetAPIVersion(), Kind: u.GetKind()}
	if kind.APIVersion == "v1" && kind.Kind == "Secret" {
		c.flaw(nil, "Secrets are not read as parameters: want a ConfigMap or a custom resource")
		return
	}
	if !slices.ContainsFunc(c.docs, func(doc Document) bool {
		apiVersion, _, _ := unstructured.NestedString(doc.Object, "spec", "paramKind", "apiVersion")
		name, _, _ := unstructured.NestedString(doc.Object, "spec", "paramKind", "kind")
		return apiVersion == kind.APIVersion && name == kind.Kind
	}) {
		c.flaw(nil, "%s %s: neither an admission policy nor a binding, and no policy here takes it as its parameter", document.Shorten(kind.APIVersion), document.Shorten(kind.Kind))
		return
	}
	c.policies.params[kind] = append(c.policies.params[kind], u)
}
