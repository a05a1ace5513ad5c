// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"errors"
	"fmt"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/functions"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// guards are calls that are looked at before they are made, by the function's
// name: their time or their result is not in proportion to what CEL counts.
var guards = map[string]func(args []ref.Val) error{
	operators.Add:           guardAdd,
	operators.In:            deep,
	"distinct":              guardPairs,
	"hasOnly":               guardPairs,
	"hasAny":                guardPairs,
	"hasAll":                guardPairs,
	"hasExactly":            guardPairs,
	"flatten":               deep,
	"sort":                  deep,
	"format":                deep,
	"join":                  guardJoin,
	"replace":               guardReplace,
	"split":                 guardSplit,
	"indexOf":               guardSearch,
	"lastIndexOf":           guardSearch,
	"strings.quote":         deep,
	"base64.encode":         deep,
	"reverse":               deep,
	"@sortByAssociatedKeys": deep,
}

// deep holds what a call goes over to what is allowed.
func deep(args []ref.Val) error {
	if len(args) == 2 {
		if _, isMap := args[1].(traits.Mapper); isMap {
			return nil // looked up by a key, which is a scalar
		}
	}
	_, err := weigh(args...)
	return err
}

func length(v ref.Val) int {
	switch v := v.(type) {
	case types.String:
		return len(v)
	case types.Bytes:
		return len(v)
	case traits.Lister:
		size, _ := v.Size().(types.Int)
		return int(size)
	}
	return 0
}

func guardAdd(args []ref.Val) error {
	most := Text
	if _, isList := args[0].(traits.Lister); isList {
		most = Parts
	}
	if len(args) == 2 && length(args[0])+length(args[1]) > most {
		return ErrTooLarge
	}
	return nil
}

// guardPairs is for calls that compare all items with all others.
func guardPairs(args []ref.Val) error {
	total := 1
	for _, arg := range args {
		w, err := weigh(arg)
		if err != nil {
			return err
		}
		total *= w
	}
	if len(args) == 1 {
		total *= length(args[0])
	}
	if total > product {
		return errors.New("lists that are too long to compare each item with each other")
	}
	return nil
}

func guardJoin(args []ref.Val) error {
	list, ok := args[0].(traits.Lister)
	if !ok || length(list) > Parts {
		return ErrTooLarge
	}
	total := 0
	for it := list.Iterator(); it.HasNext() == types.True; {
		total += length(it.Next())
	}
	if len(args) == 2 {
		total += length(list) * length(args[1])
	}
	if total > Text {
		return ErrTooLarge
	}
	return nil
}

func guardReplace(args []ref.Val) error {
	if len(args) < 3 {
		return nil
	}
	text, _ := args[0].(types.String)
	old, _ := args[1].(types.String)
	if len(text)+strings.Count(string(text), string(old))*(length(args[2])-len(old)) > Text {
		return ErrTooLarge
	}
	return nil
}

func guardSplit(args []ref.Val) error {
	text, _ := args[0].(types.String)
	separator, _ := args[1].(types.String)
	if strings.Count(string(text), string(separator)) > Parts {
		return ErrTooLarge
	}
	return nil
}

func guardSearch(args []ref.Val) error {
	if length(args[0])*length(args[1]) > product {
		return errors.New("strings that are too long to search one in the other")
	}
	return nil
}

// Guarded are the functions of an environment with their guards before them.
func Guarded(env *cel.Env) (cel.ProgramOption, error) {
	var all []*functions.Overload
	for name, guard := range guards {
		declared := env.Functions()[name]
		if declared == nil {
			return nil, fmt.Errorf("function %s: unknown to CEL", name)
		}
		bindings, err := declared.Bindings()
		if err != nil {
			return nil, err
		}
		for _, b := range bindings {
			all = append(all, guardOne(*b, guard))
		}
	}
	//lint:ignore SA1019 a binding of CEL's own can be replaced in no other way: declaring it again is an error
	return cel.Functions(all...), nil
}

func guardOne(b functions.Overload, guard func([]ref.Val) error) *functions.Overload {
	if unary := b.Unary; unary != nil {
		b.Unary = func(arg ref.Val) ref.Val {
			if err := guard([]ref.Val{arg}); err != nil {
				return types.WrapErr(err)
			}
			return unary(arg)
		}
	}
	if binary := b.Binary; binary != nil {
		b.Binary = func(x, y ref.Val) ref.Val {
			if err := guard([]ref.Val{x, y}); err != nil {
				return types.WrapErr(err)
			}
			return binary(x, y)
		}
	}
	if variadic := b.Function; variadic != nil {
		b.Function = func(args ...ref.Val) ref.Val {
			if err := guard(args); err != nil {
				return types.WrapErr(err)
			}
			return variadic(args...)
		}
	}
	return &b
}
