// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package override

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/jmespath-community/go-jmespath/pkg/functions"
	"github.com/jmespath-community/go-jmespath/pkg/interpreter"
	"github.com/jmespath-community/go-jmespath/pkg/parsing"
	"github.com/jmespath-community/go-jmespath/pkg/util"

	"github.com/swell-sh/swell/config/document"
)

// filter picks items of a list.
type filter struct{ condition parsing.ASTNode }

// filterFunctions are those of JMESPath whose result is no larger than what
// they get and does not depend on the order of a mapping: a filter cannot be
// made to run for long, and picks the same items each time.
var filterFunctions = []string{"abs", "avg", "ceil", "contains", "ends_with", "floor", "length", "max", "min", "not_null",
	"starts_with", "sum", "to_number", "type"}

func filterCaller() interpreter.FunctionCaller {
	all := functions.GetDefaultFunctions()
	return interpreter.NewFunctionCaller(slices.DeleteFunc(all, func(f functions.FunctionEntry) bool {
		return !slices.Contains(filterFunctions, f.Name)
	})...)
}

var caller = filterCaller()

func parseFilter(text string) (*filter, error) {
	if strings.TrimSpace(text) == "" {
		return nil, fmt.Errorf("want a condition like name=='main'")
	}
	condition, err := parsing.NewParser().Parse(text)
	if err != nil {
		return nil, fmt.Errorf("no JMESPath: %s", strings.TrimPrefix(err.Error(), "SyntaxError: "))
	}
	if err := checkFilter(&condition); err != nil {
		return nil, err
	}
	if isConstant(&condition) {
		return nil, fmt.Errorf("picks every item or none, whatever they are: write [*] for every item")
	}
	return &filter{condition}, nil
}

// checkFilter refuses functions that could make a large value out of a small one, or
// another value the next time: every author of a spec may write a filter.
func checkFilter(n *parsing.ASTNode) error {
	switch n.NodeType {
	case parsing.ASTComparator, parsing.ASTOrExpression, parsing.ASTAndExpression, parsing.ASTNotExpression,
		parsing.ASTField, parsing.ASTSubexpression, parsing.ASTIndexExpression, parsing.ASTIndex, parsing.ASTSlice,
		parsing.ASTCurrentNode, parsing.ASTIdentity, parsing.ASTPipe,
		parsing.ASTProjection, parsing.ASTFilterProjection, parsing.ASTFlatten:
	case parsing.ASTLiteral:
		if isLong(n.Value) {
			return fmt.Errorf("a number above 2^53 loses digits in a filter: pick the item by another field")
		}
	case parsing.ASTFunctionExpression:
		name := fmt.Sprint(n.Value)
		if !slices.Contains(filterFunctions, name) {
			hint := document.DidYouMean(name, filterFunctions)
			if hint == "" {
				hint = ", want one of " + strings.Join(filterFunctions, ", ")
			}
			return fmt.Errorf("%s: no function of filters%s", document.Shorten(name), hint)
		}
	case parsing.ASTMultiSelectHash, parsing.ASTMultiSelectList:
		return fmt.Errorf("a filter cannot make new lists and maps: compare the fields one by one")
	case parsing.ASTValueProjection:
		return fmt.Errorf("* has no order in a filter: name the field")
	case parsing.ASTArithmeticExpression, parsing.ASTArithmeticUnaryExpression:
		return fmt.Errorf("a filter cannot calculate; a name with - in it stands in double quotes")
	default:
		return fmt.Errorf("a filter has fields, comparisons, &&, ||, ! and functions, and nothing else")
	}
	for i := range n.Children {
		if err := checkFilter(&n.Children[i]); err != nil {
			return err
		}
	}
	return nil
}

// isLong says whether a literal has a number that JMESPath may have cut.
func isLong(literal any) bool {
	switch v := literal.(type) {
	case float64:
		return v > exact || v < -exact
	case []any:
		return slices.ContainsFunc(v, isLong)
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), isLong)
	}
	return false
}

// isConstant says whether a condition is the same for every item, as
// everybody can see: it looks at none of its fields, or compares a thing with
// itself, or is the item alone.
func isConstant(n *parsing.ASTNode) bool {
	switch n.NodeType {
	case parsing.ASTCurrentNode:
		return true
	case parsing.ASTNotExpression:
		return isConstant(&n.Children[0])
	case parsing.ASTComparator:
		return reflect.DeepEqual(n.Children[0], n.Children[1]) || !looksAtItem(n)
	}
	return !looksAtItem(n)
}

func looksAtItem(n *parsing.ASTNode) bool {
	return n.NodeType == parsing.ASTField || n.NodeType == parsing.ASTCurrentNode ||
		slices.ContainsFunc(n.Children, func(child parsing.ASTNode) bool { return looksAtItem(&child) })
}

// picks says whether the filter picks an item made by [applier.view].
func (f *filter) picks(view any) (bool, error) {
	result, err := interpreter.NewInterpreter(view, caller, nil).Execute(f.condition, view)
	return err == nil && !util.IsFalse(result), err
}
