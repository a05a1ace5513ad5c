// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/ext"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/bounds"
	"github.com/swell-sh/swell/config/document"
)

// HealthRule is a compiled [config.HealthRule]. It is safe for concurrent use,
// and reads nothing but the object that it is given.
type HealthRule struct {
	Name           string
	healthy        *expression
	failed, reason *expression // nil where the rule has none
}

// Verdict is what a rule says of a live object. An object that is neither
// healthy nor failed is not healthy yet.
type Verdict struct {
	Healthy, Failed bool
	// Reason is a text of the rule, or says which of its expressions could not be
	// evaluated and why. It may be empty, be of any length and hold anything that
	// the object does.
	Reason string
	// Otherwise is the reason to give where there is no better one. It is never
	// empty, except when the object is healthy.
	Otherwise string
}

// healthEnvironment is CEL as kinds have it, without what only a monorepo has.
var healthEnvironment = sync.OnceValue(func() *environment {
	options := append(orderedMacros(),
		cel.OptionalTypes(),
		ext.Strings(), ext.Lists(ext.ListsMaxRangeSize(bounds.Range)), ext.Encoders(ext.EncodersVersion(0)),
		cel.Variable("object", cel.DynType),
	)
	env, err := cel.NewEnv(slices.Concat(options, matching(), timestamps())...)
	if err != nil {
		panic(err) // there is no input
	}
	guards, err := bounds.Guarded(env)
	if err != nil {
		panic(err)
	}
	return &environment{cel: env, options: []cel.ProgramOption{guards}}
})

// CompileHealthRule compiles the expressions of a rule.
func CompileHealthRule(rule *config.HealthRule) (*HealthRule, document.Problems) {
	compiled := &HealthRule{Name: rule.Name}
	var problems document.Problems
	for _, e := range []struct {
		field string
		from  config.Expression
		want  *cel.Type
		into  **expression
	}{
		{"healthy", rule.Healthy, cel.BoolType, &compiled.healthy},
		{"failed", rule.Failed, cel.BoolType, &compiled.failed},
		{"reason", rule.Reason, cel.StringType, &compiled.reason},
	} {
		if e.from.Text == "" {
			continue
		}
		x, err := healthEnvironment().compile(e.from.Text, e.from.At)
		if err == nil && x.typ.Kind() != e.want.Kind() && x.typ.Kind() != cel.DynKind {
			err = fmt.Errorf("%q: want a %s, got %s", e.from.Text, e.want, x.typ)
			if isOptional(x.typ) {
				err = fmt.Errorf("%w: end it with .orValue(...)", err)
			}
		}
		if err != nil {
			problems = append(problems, document.Problem{Position: e.from.At, Code: document.CodeFleet, Message: document.Printable(fmt.Sprintf("spec.%s: %s", e.field, err))})
			continue
		}
		*e.into = x
	}
	return compiled, problems
}

// Judge evaluates the rule for a live object, as it is decoded from JSON.
// The same object gives the same verdict.
func (r *HealthRule) Judge(object map[string]any) Verdict {
	failed, _, err := r.isTrue(r.failed, object)
	if err != nil {
		return r.undecided("failed", err)
	}
	if failed {
		return Verdict{Failed: true, Reason: r.why(object), Otherwise: fmt.Sprintf("failed by HealthRule %q", r.Name)}
	}
	healthy, missing, err := r.isTrue(r.healthy, object)
	switch {
	case err != nil:
		return r.undecided("healthy", err)
	case healthy:
		return Verdict{Healthy: true}
	case missing != "":
		return Verdict{Reason: r.why(object), Otherwise: fmt.Sprintf("HealthRule %q: healthy: %s", r.Name, missing)}
	}
	return Verdict{Reason: r.why(object), Otherwise: fmt.Sprintf("not healthy by HealthRule %q", r.Name)}
}

func (r *HealthRule) undecided(field string, err error) Verdict {
	text := r.trouble(field, err)
	return Verdict{Reason: text, Otherwise: text}
}

func (r *HealthRule) trouble(field string, err error) string {
	return fmt.Sprintf("HealthRule %q: %s: %s", r.Name, field, err)
}

// isTrue says whether an expression is true. A field that is not there makes it
// false, and missing says which.
func (r *HealthRule) isTrue(x *expression, object map[string]any) (yes bool, missing string, err error) {
	value, missing, err := x.ofObject(object)
	if value == nil {
		return false, missing, err
	}
	answer, ok := value.(types.Bool)
	if !ok {
		return false, "", fmt.Errorf("want a bool, got %s", value.Type().TypeName())
	}
	return bool(answer), "", nil
}

// why is what the reason expression says. Where it asks for a field that is not
// there, it says nothing.
func (r *HealthRule) why(object map[string]any) string {
	value, _, err := r.reason.ofObject(object)
	if value == nil && err == nil {
		return ""
	}
	text, ok := value.(types.String)
	if err == nil && !ok {
		err = fmt.Errorf("want a string, got %s", value.Type().TypeName())
	}
	if err != nil {
		return r.trouble("reason", err)
	}
	return string(text)
}

// ofObject evaluates an expression of a rule. There is no value where it asks
// for a field that is not there, which missing names, where there is an error,
// and where there is no expression.
func (x *expression) ofObject(object map[string]any) (value ref.Val, missing string, err error) {
	if x == nil {
		return nil, "", nil
	}
	value, _, err = x.program.Eval(map[string]any{"object": object})
	if err == nil {
		return value, "", nil
	}
	switch reason := oneLine(err); {
	case strings.HasPrefix(reason, "no such key: "):
		return nil, reason, nil
	case bounds.Exceeded(err):
		return nil, "", fmt.Errorf("takes more than %d steps", bounds.Cost)
	default:
		return nil, "", fmt.Errorf("%s", reason)
	}
}
