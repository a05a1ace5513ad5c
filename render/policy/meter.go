// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	celtypes "github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apimachinery/pkg/util/version"
	plugin "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/lazy"
	"k8s.io/apiserver/pkg/cel/library"
)

// An API server takes + of two fields of an object for one step, however long the texts
// are, and counts what replace has made once it is there. So variables that each double
// the one before end with its memory. Here texts are measured before they are made, and
// cost what they are long.

// maxText is the length in bytes of a text that an expression of a policy makes. An API
// server stores no object that is as large.
const maxText = 4 << 20

var errText = fmt.Errorf("a text of more than %d MiB", maxText>>20)

// makers are the functions whose text may be longer than those that they are given
// together, and a bound of it.
var makers = map[string]func(args []ref.Val) int{
	operators.Add: func(args []ref.Val) int { return length(args...) },
	"join": func(args []ref.Val) int {
		list, ok := args[0].(traits.Lister)
		if !ok {
			return 0
		}
		count, _ := list.Size().(celtypes.Int)
		return inList(list) + int(count)*length(args[1:]...)
	},
	"replace": func(args []ref.Val) int {
		text, _ := args[0].(celtypes.String)
		if len(args) < 3 || len(text) > maxText {
			return len(text)
		}
		old, _ := args[1].(celtypes.String)
		return len(text) + strings.Count(string(text), string(old))*length(args[2])
	},
	"format": func(args []ref.Val) int {
		list, ok := args[len(args)-1].(traits.Lister)
		if !ok {
			return 0
		}
		return length(args[0]) + inList(list)
	},
	"strings.quote": func(args []ref.Val) int { return 2 * length(args...) },
}

func length(values ...ref.Val) (n int) {
	for _, v := range values {
		switch v := v.(type) {
		case celtypes.String:
			n += len(v)
		case celtypes.Bytes:
			n += len(v)
		}
	}
	return n
}

// inList is how long the texts of a list are, at most somewhat more than maxText.
func inList(list traits.Lister) (n int) {
	for it := list.Iterator(); n <= maxText && it.HasNext() == celtypes.True; {
		n += length(it.Next())
	}
	return n
}

// costs are those of an API server, and of texts by their length.
type costs struct{ library.CostEstimator }

// CallCost implements the interpreter's ActualCostEstimator.
func (c *costs) CallCost(function, overload string, args []ref.Val, result ref.Val) *uint64 {
	own := c.CostEstimator.CallCost(function, overload, args, result)
	made := uint64(length(result)/10) + 1 // ten bytes a unit, as CEL counts
	if list, ok := result.(traits.Lister); ok && function == "split" {
		count, _ := list.Size().(celtypes.Int)
		made = uint64(count)
	}
	if own != nil && *own >= made || own == nil && made == 1 {
		return own
	}
	return &made
}

// metered is an environment of policies in which texts are measured, made once.
var metered = sync.OnceValues(func() (*environment.EnvSet, error) {
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	env, err := base.Env(environment.StoredExpressions)
	if err != nil {
		return nil, err
	}
	bodies := map[string]*functions.Overload{}
	for name := range makers {
		declared := env.Functions()[name]
		if declared == nil {
			return nil, fmt.Errorf("function %s: unknown to policies", name)
		}
		bindings, err := declared.Bindings()
		if err != nil {
			return nil, err
		}
		for _, b := range bindings {
			bodies[b.Operator] = b
		}
	}
	guard := func(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
		call, ok := i.(interpreter.InterpretableCall)
		if !ok || makers[call.Function()] == nil {
			return i, nil
		}
		body := bodies[call.OverloadID()]
		if body == nil {
			body = bodies[call.Function()]
		}
		if body == nil {
			return nil, fmt.Errorf("function %s: nothing to call", call.Function())
		}
		return &guarded{call, body, makers[call.Function()]}, nil
	}
	return base.Extend(environment.VersionedOptions{IntroducedVersion: version.MajorMinor(1, 0),
		ProgramOptions: []cel.ProgramOption{cel.CustomDecoratorV2(guard), cel.CostTracking(&costs{})}})
})

// guarded is a call that is not made when its text would be too long.
type guarded struct {
	interpreter.InterpretableCall
	body *functions.Overload
	size func(args []ref.Val) int
}

// Exec implements [interpreter.InterpretableV2].
func (m *guarded) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	args := make([]ref.Val, len(m.Args()))
	for i, arg := range m.Args() {
		args[i] = arg.Exec(frame)
	}
	if i := slices.IndexFunc(args, func(arg ref.Val) bool { return celtypes.IsUnknownOrError(arg) }); i >= 0 {
		return args[i]
	}
	if m.size(args) > maxText {
		return celtypes.WrapErr(errText)
	}
	switch {
	case m.body.OperandTrait != 0 && !args[0].Type().HasTrait(m.body.OperandTrait):
	case m.body.Function != nil:
		return m.body.Function(args...)
	case len(args) == 2 && m.body.Binary != nil:
		return m.body.Binary(args[0], args[1])
	case len(args) == 1 && m.body.Unary != nil:
		return m.body.Unary(args[0])
	}
	return celtypes.NewErr("no such overload: %s", m.Function())
}

// Eval implements [interpreter.Interpretable].
func (m *guarded) Eval(activation interpreter.Activation) ref.Val {
	return m.Exec(interpreter.AsFrame(activation))
}

// meter hands the variables of a policy to one evaluation, and no more once they have
// cost the budget. A server looks at the budget only when an expression is through.
type meter struct {
	plugin.CompositionContext
	spent, budget int64
}

var errBudget = errors.New("the variables take more than the budget of a policy")

// Variables implements [plugin.CompositionContext].
func (m *meter) Variables(activation any) ref.Val {
	variables, ok := m.CompositionContext.Variables(activation).(*lazy.MapValue)
	if !ok {
		panic("policies have no variables as they had") // of another version of the library
	}
	return &meteredVariables{variables, m}
}

// GetAndResetCost implements [plugin.CompositionContext].
func (m *meter) GetAndResetCost() int64 {
	m.spent += m.CompositionContext.GetAndResetCost()
	spent := m.spent
	m.spent, m.budget = 0, m.budget-spent
	return spent
}

// exceeded says whether variables have cost more than the budget.
func (m *meter) exceeded() bool {
	m.spent += m.CompositionContext.GetAndResetCost()
	return m.spent > m.budget
}

type meteredVariables struct {
	*lazy.MapValue
	meter *meter
}

// Find implements [traits.Mapper].
func (v *meteredVariables) Find(key ref.Val) (ref.Val, bool) {
	if v.meter.exceeded() {
		return celtypes.WrapErr(errBudget), true
	}
	return v.MapValue.Find(key)
}

// Get implements [traits.Indexer].
func (v *meteredVariables) Get(key ref.Val) ref.Val {
	if v.meter.exceeded() {
		return celtypes.WrapErr(errBudget)
	}
	return v.MapValue.Get(key)
}
