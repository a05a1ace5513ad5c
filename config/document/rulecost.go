// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package document

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

	"github.com/swell-sh/swell/config/bounds"
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

// loop is an expression that goes over a list or a map. protovalidate runs it
// without any bound: it is run here first, counted, and what it cost is what it
// costs again.
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
	if len(rule.GetExpression()) > bounds.Rule {
		return fmt.Errorf("want an expression of at most %d bytes, got %d", bounds.Rule, len(rule.GetExpression()))
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
	if err := refuse(checked); err != nil || !bounds.HasLoop(checked) {
		return err
	}
	program, err := env.Program(checked, bounds.CountRules()...)
	if err != nil {
		return err
	}
	l := &loop{name: ruleName(rule), field: field, site: where, program: program, adapter: env.CELTypeAdapter()}
	if spent, _ := l.run(dynamicpb.NewMessage(m), bounds.RulesCost); spent > bounds.Cost {
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

// refuse finds what a rule may not do: read the clock or the machine's time
// zones, or make long texts of short ones.
func refuse(parsed *cel.Ast) error {
	found := refuseZones(parsed.NativeRep())
	var growth bounds.Growth
	ast.PreOrderVisit(parsed.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.IdentKind && e.AsIdent() == "now" {
			found = errors.New("now: a rule may not read the clock, the same spec must be good at any time")
		}
		if err := growth.Check(e); err != nil {
			found = err
		}
	}))
	return found
}

// run evaluates the expression for each value that it is a rule of, and
// returns what that took; more than bounds.Cost when a value, more than budget
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
		if bounds.Exceeded(err) {
			return max(bounds.Cost, budget) + 1, item.at
		}
		if spent += bounds.Spent(details); spent > budget {
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
	budget := uint64(bounds.RulesCost)
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
