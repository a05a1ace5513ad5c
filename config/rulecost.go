// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	pvcel "buf.build/go/protovalidate/cel"
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// protovalidate runs expressions without any bound. So one with a loop is
// first run here, counted; what it cost is what it costs again. One without a
// loop is bounded by its own length times that of its value, as long as it
// cannot make texts longer, which [refuse] sees to.
const (
	// ruleCost is how much one rule may take for one value, in CEL's own unit,
	// about one for each step or for ten bytes of text; well under a second.
	ruleCost = 1_000_000
	// specCost is how much all rules with loops of a spec may take.
	specCost = 10_000_000
	// maxRule is the length of an expression in bytes.
	maxRule = 4096
)

// ruleEnvironment is CEL as protovalidate has it.
var ruleEnvironment = sync.OnceValue(func() *cel.Env {
	env, err := cel.NewEnv(cel.Lib(pvcel.NewLibrary()))
	if err != nil {
		panic(err) // there is no input
	}
	return env
})

// site is what `this` is in an expression.
type site int

const (
	onMessage site = iota
	onField
	onItems
	onKeys
	onValues
)

// loop is an expression that goes over a list or a map.
type loop struct {
	name    string
	field   protoreflect.FieldDescriptor // nil: of the message
	site    site
	program cel.Program
	adapter types.Adapter
}

func ruleName(rule *validate.Rule) string {
	if rule.GetId() != "" {
		return Shorten(rule.GetId())
	}
	return Shorten(rule.GetExpression())
}

// add compiles expressions of a message or of one of its fields.
func (c *ruleCompiler) add(m protoreflect.MessageDescriptor, of protoreflect.Descriptor, where site, rules []*validate.Rule, expressions []string) {
	for _, text := range expressions {
		rules = append(rules[:len(rules):len(rules)], validate.Rule_builder{Expression: &text}.Build())
	}
	for _, rule := range rules {
		c.text(rule)
		if err := c.compile(m, of, where, rule); err != nil {
			c.problem(of, "rule %q: %s", ruleName(rule), err)
		}
	}
}

// text remembers what a rule says when its expression is false.
func (c *ruleCompiler) text(rule *validate.Rule) {
	if text := rule.GetMessage(); text != "" {
		c.rules.texts[text] = true
		return
	}
	c.rules.texts[fmt.Sprintf("%q returned false", rule.GetExpression())] = true // as protovalidate has it
}

func (c *ruleCompiler) compile(m protoreflect.MessageDescriptor, of protoreflect.Descriptor, where site, rule *validate.Rule) error {
	if len(rule.GetExpression()) > maxRule {
		return fmt.Errorf("want an expression of at most %d bytes, got %d", maxRule, len(rule.GetExpression()))
	}
	field, _ := of.(protoreflect.FieldDescriptor)
	env, err := c.environment(m)
	if err == nil {
		env, err = env.Extend(cel.Variable("this", thisType(m, field, where)))
	}
	if err != nil {
		return err
	}
	checked, issues := env.Compile(rule.GetExpression())
	if issues.Err() != nil {
		return errors.New(firstIssue(issues))
	}
	if t := checked.OutputType(); !t.IsAssignableType(cel.BoolType) && !t.IsAssignableType(cel.StringType) {
		return fmt.Errorf("want an expression that gives a bool or a string, got %s", t)
	}
	if err := refuse(checked); err != nil || !hasLoop(checked) {
		return err
	}
	program, err := env.Program(checked, cel.CostLimit(ruleCost), cel.CostTracking(ruleEstimator{}))
	if err != nil {
		return err
	}
	l := &loop{name: ruleName(rule), field: field, site: where, program: program, adapter: env.CELTypeAdapter()}
	if spent, _ := l.run(dynamicpb.NewMessage(m), specCost); spent > ruleCost {
		return errors.New("takes too much computing, even for an empty message")
	}
	c.rules.loops[m.FullName()] = append(c.rules.loops[m.FullName()], l)
	return nil
}

// environment is that of rules which know the message.
func (c *ruleCompiler) environment(m protoreflect.MessageDescriptor) (*cel.Env, error) {
	if env := c.envs[m.FullName()]; env != nil {
		return env, nil
	}
	env, err := ruleEnvironment().Extend(cel.Types(dynamicpb.NewMessage(m)))
	c.envs[m.FullName()] = env
	return env, err
}

func thisType(m protoreflect.MessageDescriptor, field protoreflect.FieldDescriptor, where site) *cel.Type {
	switch where {
	case onMessage:
		return cel.ObjectType(string(m.FullName()))
	case onKeys:
		return pvcel.ProtoFieldToType(field.MapKey(), false, true)
	case onValues:
		return pvcel.ProtoFieldToType(field.MapValue(), false, true)
	}
	return pvcel.ProtoFieldToType(field, false, where == onItems)
}

func firstIssue(issues *cel.Issues) string {
	if all := issues.Errors(); len(all) > 0 {
		text, _, _ := strings.Cut(all[0].Message, "\n")
		return strings.TrimSpace(text)
	}
	text, _, _ := strings.Cut(issues.Err().Error(), "\n")
	return text
}

func hasLoop(parsed *cel.Ast) bool {
	found := false
	ast.PreOrderVisit(parsed.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		found = found || e.Kind() == ast.ComprehensionKind
	}))
	return found
}

// refuse finds what a rule may not do: read the clock or the machine's time
// zones, or make long texts of short ones.
func refuse(parsed *cel.Ast) error {
	found := refuseZones(parsed.NativeRep())
	inFormat := map[int64]bool{}
	ast.PreOrderVisit(parsed.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.IdentKind:
			if e.AsIdent() == "now" {
				found = errors.New("now: a rule may not read the clock, the same spec must be good at any time")
			}
		case ast.CallKind:
			if err := refuseCall(e.AsCall()); err != nil {
				found = err
			}
			if e.AsCall().FunctionName() == "format" {
				if inFormat[e.ID()] {
					found = errors.New("format: a format inside another one may grow without end")
				}
				ast.PreOrderVisit(e, ast.NewExprVisitor(func(below ast.Expr) {
					inFormat[below.ID()] = inFormat[below.ID()] || below.ID() != e.ID()
				}))
			}
		}
	}))
	return found
}

func refuseCall(call ast.CallExpr) error {
	args := call.Args()
	switch call.FunctionName() {
	case "replace":
		if len(args) < 2 {
			return nil
		}
		from, to := literalText(args[0]), literalText(args[1])
		if from == nil || to == nil || *from == "" || len(*to) > len(*from) {
			return errors.New("replace: want literal strings, and the new one not longer than the old one")
		}
	case "join":
		if len(args) == 1 && (literalText(args[0]) == nil || len(*literalText(args[0])) > 16) {
			return errors.New("join: want a separator that is a literal string of at most 16 bytes")
		}
	case "strings.quote":
		return errors.New("strings.quote: not in rules, it may grow without end")
	}
	return nil
}

func literalText(e ast.Expr) *string {
	if e.Kind() != ast.LiteralKind {
		return nil
	}
	text, ok := e.AsLiteral().(types.String)
	if !ok {
		return nil
	}
	return (*string)(&text)
}

// ruleEstimator counts a call as one step and the texts it goes through.
type ruleEstimator struct{}

func (ruleEstimator) CallCost(function, _ string, args []ref.Val, result ref.Val) *uint64 {
	cost := uint64(1)
	for _, v := range append(args[:len(args):len(args)], result) {
		switch v := v.(type) {
		case types.String:
			cost += uint64(len(v)) / 10
		case types.Bytes:
			cost += uint64(len(v)) / 10
		case traits.Lister:
			if function != "size" && function != "_[_]" {
				cost += uint64(v.Size().(types.Int))
			}
		}
	}
	return &cost
}

// run evaluates the expression for each value that it is a rule of, and
// returns what that took; more than ruleCost when a value, more than budget
// when all of them took too much, and then the value's place in the field.
func (l *loop) run(m protoreflect.Message, budget uint64) (spent uint64, at []step) {
	this := l.adapter.NativeToValue(m.Interface())
	if l.field != nil {
		object, ok := this.(traits.Indexer)
		if !ok {
			return 0, nil
		}
		this = object.Get(types.String(l.field.Name()))
	}
	for _, item := range l.values(this) {
		_, details, err := l.program.Eval(map[string]any{"this": item.value})
		cost := uint64(0)
		if details != nil && details.ActualCost() != nil {
			cost = *details.ActualCost()
		}
		if err != nil && strings.Contains(err.Error(), "cost limit exceeded") {
			return max(ruleCost, budget) + 1, item.at
		}
		if spent += cost; spent > budget {
			return spent, item.at
		}
	}
	return spent, nil
}

type located struct {
	value ref.Val
	at    []step
}

// values are what `this` is, one after another.
func (l *loop) values(field ref.Val) []located {
	switch v := field.(type) {
	case traits.Mapper:
		if l.site != onKeys && l.site != onValues {
			break
		}
		var all []located
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			at := []step{{key: fmt.Sprint(key.Value())}}
			if l.site == onKeys {
				all = append(all, located{key, at})
			} else if value, ok := v.Find(key); ok {
				all = append(all, located{value, at})
			}
		}
		return all
	case traits.Lister:
		if l.site != onItems {
			break
		}
		all := make([]located, 0, int(v.Size().(types.Int)))
		for i := range v.Size().(types.Int) {
			all = append(all, located{v.Get(i), []step{{index: int(i), item: true}}})
		}
		return all
	}
	return []located{{field, nil}}
}

// charge says whether all rules with loops end in time; else there is a
// problem.
func (c *ruleCheck) charge(m protoreflect.Message, at []step) bool {
	if len(c.rules.loops) == 0 {
		return true
	}
	budget := uint64(specCost)
	ends := true
	visit(m, at, func(m protoreflect.Message, at []step) {
		for _, l := range c.rules.loops[m.Descriptor().FullName()] {
			if !ends {
				return
			}
			spent, below := l.run(m, budget)
			if spent <= budget {
				budget -= spent
				continue
			}
			ends = false
			path := at
			if l.field != nil {
				path = append(append(path[:len(path):len(path)], step{key: string(l.field.Name())}), below...)
			}
			c.problem(path, false, "rule %q takes too much computing for this value", l.name)
		}
	})
	return ends
}
