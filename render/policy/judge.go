// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	celtypes "github.com/google/cel-go/common/types"
	admission "k8s.io/api/admissionregistration/v1"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	plugin "k8s.io/apiserver/pkg/admission/plugin/cel"
	celbounds "k8s.io/apiserver/pkg/apis/cel"

	"github.com/swell-sh/swell/config/document"
)

// Effect is what a finding does to the object.
type Effect string

const (
	Refused  Effect = "refused"    // the API server would not take it
	Warned   Effect = "warned"     // it would, with a warning or a line in its audit log
	Changed  Effect = "changed"    // a MutatingAdmissionPolicy is about the object
	Unjudged Effect = "not judged" // it depends on who sends the request
)

// Finding is what one policy says of an object.
type Finding struct {
	Effect Effect
	// Policy and Binding are names.
	Policy, Binding string
	// At is where the policy stands; without a file for one of a cluster.
	At      document.Position
	Message string
	// Field is the path of the object's field that the policy is about; nil where
	// that is not known.
	Field []any
}

// validating is a ValidatingAdmissionPolicy.
type validating struct {
	bound[[]admission.ValidationAction]
	compiler    *plugin.CompositedCompiler
	validations []validation
	verdicts    plugin.ConditionEvaluator // of the validations that can be judged
	messages    plugin.ConditionEvaluator // of the same, with holes
	annotations plugin.ConditionEvaluator // for the audit log: they refuse what they fail on; nil: none
}

// validation is one that can be judged.
type validation struct {
	*expression
	message string
}

// mutating is a MutatingAdmissionPolicy. What it changes is not computed.
type mutating struct{ bound[struct{}] }

var (
	boolean = []*cel.Type{cel.BoolType}
	text    = []*cel.Type{cel.StringType}
	note    = []*cel.Type{cel.StringType, cel.NullType}

	// Types of the API server's own, which only expressions of mutations know.
	configuration = []*cel.Type{cel.ObjectType("Object")}
	patches       = []*cel.Type{cel.ListType(cel.ObjectType("JSONPatch"))}
)

// evaluate compiles what the policy does.
func (p *validating) evaluate(env *expressions, spec *admission.ValidatingAdmissionPolicySpec) {
	var verdicts, messages, annotations []plugin.CompilationResult
	for i, v := range spec.Validations {
		x := &expression{text: v.Expression, returns: boolean}
		verdict := env.add(x, true, "spec", "validations", i, "expression")
		var message plugin.CompilationResult
		if v.MessageExpression != "" {
			told := &expression{text: v.MessageExpression, returns: text}
			message = env.add(told, false, "spec", "validations", i, "messageExpression")
			if told.asks != "" {
				message = plugin.CompilationResult{}
			}
		}
		if x.asks != "" {
			p.asks = x.asks
			continue
		}
		p.validations = append(p.validations, validation{x, strings.TrimSpace(v.Message)})
		verdicts, messages = append(verdicts, verdict), append(messages, message)
	}
	for i, a := range spec.AuditAnnotations {
		x := &expression{text: a.ValueExpression, returns: note}
		if result := env.add(x, true, "spec", "auditAnnotations", i, "valueExpression"); x.asks == "" {
			annotations = append(annotations, result)
		}
	}
	p.compiler = env.compiler
	p.verdicts, p.messages = plugin.NewCondition(verdicts), plugin.NewCondition(messages)
	if len(annotations) > 0 {
		p.annotations = plugin.NewCondition(annotations)
	}
}

// conditions are the matchConditions of a policy.
type conditions struct {
	compiler  *plugin.CompositedCompiler
	judged    []*expression
	evaluator plugin.ConditionEvaluator
	asks      string // what a condition asks for that is not known; empty when nothing
}

func (e *expressions) conditions(list []admission.MatchCondition) conditions {
	c := conditions{compiler: e.compiler}
	var results []plugin.CompilationResult
	for i, m := range list {
		x := &expression{name: m.Name, text: m.Expression, returns: boolean}
		result := e.add(x, true, "spec", "matchConditions", i, "expression")
		if x.asks != "" {
			c.asks = x.asks
			continue
		}
		c.judged, results = append(c.judged, x), append(results, result)
	}
	c.evaluator = plugin.NewCondition(results)
	return c
}

// SeeNamespaces says whether verdicts depend on more of namespaces than on their names
// and their limits.
func (p *Policies) SeeNamespaces() bool {
	return slices.ContainsFunc(p.validating, func(v *validating) bool {
		return v.sees || v.match.selects() || slices.ContainsFunc(v.bindings, func(b *binding[[]admission.ValidationAction]) bool { return b.match.selects() })
	}) || slices.ContainsFunc(p.mutating, func(m *mutating) bool {
		return m.sees || m.match.selects() || slices.ContainsFunc(m.bindings, func(b *binding[struct{}]) bool { return b.match.selects() })
	})
}

// Judge is what the policies say of the creation of an object, in the order of their
// names.
func (p *Policies) Judge(o *Object, in Surroundings) []Finding {
	r := newRequest(o, in)
	if r.exempt() {
		return nil
	}
	found := append(r.podSecurity(), r.limits()...)
	for _, v := range p.validating {
		found = append(found, v.judge(r, p)...)
	}
	for _, m := range p.mutating {
		found = append(found, m.judge(r, p)...)
	}
	return found
}

func (p *validating) judge(r *request, all *Policies) (found []Finding) {
	version, matched := p.match.matches(r)
	if !matched {
		return nil
	}
	seen, convertible := r.as(version)
	say := func(b *binding[[]admission.ValidationAction], effect Effect, message string, field []any) {
		if effect != Unjudged && (p.sees || p.match.selects() || b.match.selects()) {
			message += r.unsure()
		}
		found = append(found, Finding{Effect: effect, Policy: p.name, Binding: b.name, At: p.at, Message: message, Field: field})
	}
	reported := r.in.About == nil
	for _, b := range p.bindings {
		if _, matched := b.match.matches(r); !matched {
			continue
		}
		if !reported {
			r.in.About(p.name, p.at)
			reported = true
		}
		if !convertible {
			say(b, Unjudged, fmt.Sprintf("it is about %s, and %s is another version", version, r.object.APIVersion), nil)
			continue
		}
		if why := unknownParams(p.paramKind, b.params, r); why != "" {
			say(b, Unjudged, why, nil)
			continue
		}
		params, err := all.paramsOf(p.paramKind, b.params, r)
		if err != nil {
			if !p.ignore {
				say(b, Refused, err.Error(), nil)
			}
			continue
		}
		effect := Warned
		if slices.Contains(b.spec, admission.Deny) {
			effect = Refused
		}
		for _, param := range params {
			applies, asks, err := p.applies(seen, param)
			switch {
			case err != nil && !p.ignore:
				say(b, effect, r.errorText(err), nil)
			case asks != "":
				say(b, Unjudged, "it asks for "+asks, nil)
			case applies && err == nil:
				p.validate(seen, param, func(message string, field []any) { say(b, effect, message, field) })
				if p.asks != "" {
					say(b, Unjudged, "one of its validations asks for "+p.asks, nil)
				}
			}
		}
	}
	return found
}

// applies says whether the matchConditions hold. asks is what that depends on and
// nobody knows.
func (b *bound[B]) applies(r *request, param runtime.Object) (applies bool, asks string, err error) {
	c := &b.conditions
	if len(c.judged) > 0 {
		results, _, err := r.evaluate(c.compiler, c.evaluator, param, nil, celbounds.RuntimeCELCostBudgetMatchConditions)
		if err != nil {
			return false, "", err
		}
		var failed error
		for _, result := range results {
			if result.EvalResult == celtypes.False {
				return false, "", nil
			}
			if result.Error != nil && failed == nil {
				failed = result.Error
			}
		}
		if failed != nil {
			return false, "", failed
		}
	}
	return c.asks == "", c.asks, nil
}

// validate evaluates the validations, and what fails with them, in the manner of the
// API server's validator.
func (p *validating) validate(r *request, param runtime.Object, refuse func(message string, field []any)) {
	fail := func(err error, field []any) {
		if !p.ignore {
			refuse(r.errorText(err), field)
		}
	}
	verdicts, left, err := r.evaluate(p.compiler, p.verdicts, param, r.namespaceObject(), celbounds.RuntimeCELCostBudget)
	if err != nil {
		fail(err, nil)
		return
	}
	messages := make([]plugin.EvaluationResult, len(verdicts))
	if slices.ContainsFunc(verdicts, func(v plugin.EvaluationResult) bool { return v.Error == nil && v.EvalResult != celtypes.True }) {
		var told []plugin.EvaluationResult
		if told, _, err = r.evaluate(p.compiler, p.messages, param, r.namespaceObject(), left); err == nil {
			messages = told
		}
	}
	for i, verdict := range verdicts {
		v := p.validations[i]
		switch {
		case verdict.Error != nil:
			fail(verdict.Error, v.field)
		case verdict.EvalResult == celtypes.True:
		case err != nil:
			fail(fmt.Errorf("failed messageExpression: %w", err), v.field)
		default:
			refuse(r.message(v, messages[i]), v.field)
		}
	}
	if p.annotations == nil {
		return
	}
	annotations, _, err := r.evaluate(p.compiler, p.annotations, param, r.namespaceObject(), celbounds.RuntimeCELCostBudget)
	if err != nil {
		fail(err, nil)
	}
	for _, annotation := range annotations {
		if annotation.Error != nil {
			fail(annotation.Error, nil)
		}
	}
}

// message is why a validation refuses the object.
func (r *request) message(v validation, computed plugin.EvaluationResult) string {
	if !r.object.Secret && computed.Error == nil && computed.EvalResult != nil {
		text, _ := computed.EvalResult.Value().(string)
		text = strings.TrimSpace(text)
		if text != "" && len(text) <= celbounds.MaxEvaluatedMessageExpressionSizeBytes && !strings.Contains(text, "\n") {
			return text
		}
	}
	if v.message != "" {
		return v.message
	}
	return "failed expression: " + strings.TrimSpace(v.text)
}

// errorText is why an expression could not be evaluated. It may hold values of the
// object.
func (r *request) errorText(err error) string {
	if r.object.Secret {
		return "an expression of it cannot be evaluated"
	}
	return err.Error()
}

func (p *mutating) judge(r *request, all *Policies) []Finding {
	version, matched := p.match.matches(r)
	if !matched {
		return nil
	}
	r, convertible := r.as(version)
	if !convertible {
		return nil
	}
	for _, b := range p.bindings {
		if _, matched := b.match.matches(r); !matched {
			continue
		}
		if unknownParams(p.paramKind, b.params, r) != "" {
			return []Finding{{Effect: Changed, Policy: p.name, Binding: b.name, At: p.at}}
		}
		params, err := all.paramsOf(p.paramKind, b.params, r)
		if err != nil {
			if p.ignore {
				continue
			}
			return []Finding{{Effect: Refused, Policy: p.name, Binding: b.name, At: p.at, Message: err.Error()}}
		}
		for _, param := range params {
			if applies, asks, err := p.applies(r, param); applies || asks != "" || err != nil && !p.ignore {
				return []Finding{{Effect: Changed, Policy: p.name, Binding: b.name, At: p.at}}
			}
		}
	}
	return nil
}

// unknownParams says why nobody here can know the parameters of a binding; empty where
// they are known. Secrets are never read.
func unknownParams(kind *admission.ParamKind, ref *admission.ParamRef, r *request) string {
	if kind == nil || ref == nil {
		return ""
	}
	if kind.APIVersion == "v1" && kind.Kind == "Secret" {
		return "its parameters are Secrets"
	}
	if _, known := r.in.Scope(kind.APIVersion, kind.Kind); !known {
		return fmt.Sprintf("its parameters are of a kind that is not known here, %s %s", kind.APIVersion, kind.Kind)
	}
	return ""
}

// paramsOf are the parameters that a binding is evaluated with, one after another; a
// nil one is none.
func (p *Policies) paramsOf(kind *admission.ParamKind, ref *admission.ParamRef, r *request) ([]runtime.Object, error) {
	if kind == nil || ref == nil {
		return []runtime.Object{nil}, nil
	}
	namespace := ref.Namespace
	switch namespaced, _ := r.in.Scope(kind.APIVersion, kind.Kind); {
	case !namespaced && namespace != "":
		return nil, fmt.Errorf("paramRef.namespace: a %s lives in no namespace", kind.Kind)
	case namespaced && namespace == "":
		if namespace = r.namespaceName(); namespace == "" {
			return nil, fmt.Errorf("paramRef: no namespace for what lives in none")
		}
	}
	var selected []runtime.Object
	for _, param := range p.params[metav1.TypeMeta{APIVersion: kind.APIVersion, Kind: kind.Kind}] {
		picked, err := picks(ref, param)
		if err != nil {
			return nil, err
		}
		if picked && param.GetNamespace() == namespace {
			selected = append(selected, param)
		}
	}
	if len(selected) == 0 && ref.ParameterNotFoundAction != nil && *ref.ParameterNotFoundAction == admission.DenyAction {
		return nil, fmt.Errorf("no parameters found, and parameterNotFoundAction is Deny")
	}
	return selected, nil
}

func picks(ref *admission.ParamRef, param *unstructured.Unstructured) (bool, error) {
	if ref.Name != "" {
		return param.GetName() == ref.Name, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(ref.Selector)
	if err != nil {
		return false, err
	}
	return selector.Matches(labelsOf(param.Object)), nil
}

// evaluate evaluates compiled expressions; namespace is what they see as namespaceObject.
func (r *request) evaluate(compiler *plugin.CompositedCompiler, compiled plugin.ConditionEvaluator, param runtime.Object, namespace *core.Namespace, budget int64) ([]plugin.EvaluationResult, int64, error) {
	admitted := plugin.CreateAdmissionRequest(r.attributes, metav1.GroupVersionResource(r.attributes.GetResource()), metav1.GroupVersionKind(r.attributes.GetKind()))
	ctx := &meter{CompositionContext: compiler.CreateContext(context.Background()), budget: budget}
	return compiled.ForInput(ctx, r.versioned(), admitted,
		plugin.OptionalVariableBindings{VersionedParams: param}, namespace, budget)
}
