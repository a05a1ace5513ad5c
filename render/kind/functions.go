// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/bounds"
	"github.com/swell-sh/swell/render/schema"
)

// ownFunctions are the functions that swell adds to CEL's.
func ownFunctions(templates func(name string) (*textTemplate, error)) []cel.EnvOption {
	text, dyn := cel.StringType, cel.DynType
	return []cel.EnvOption{
		cel.Function("hash", cel.Overload("hash_dyn", []*cel.Type{dyn}, text, cel.UnaryBinding(hash))),
		cel.Function("json.encode", cel.Overload("json_encode_dyn", []*cel.Type{dyn}, text, cel.UnaryBinding(encode("json.encode", appendJSON)))),
		cel.Function("yaml.encode", cel.Overload("yaml_encode_dyn", []*cel.Type{dyn}, text, cel.UnaryBinding(encode("yaml.encode", appendYAML)))),
		cel.Function(fileFunction, cel.Overload(fileFunction+"_string", []*cel.Type{dyn, text}, text, cel.BinaryBinding(readFile))),
		cel.Function(templateFunction, cel.Overload(templateFunction+"_dyn", []*cel.Type{text, dyn, dyn}, text, cel.FunctionBinding(func(args ...ref.Val) ref.Val {
			return executeTemplate(templates, args[0], args[1], args[2])
		}))),
		cel.Macros(
			cel.GlobalMacro("file", 1, func(eh cel.MacroExprFactory, _ ast.Expr, args []ast.Expr) (ast.Expr, *cel.Error) {
				return eh.NewCall(fileFunction, eh.NewIdent(placeName), args[0]), nil
			}),
			cel.GlobalMacro("template", 2, func(eh cel.MacroExprFactory, _ ast.Expr, args []ast.Expr) (ast.Expr, *cel.Error) {
				name, ok := literal(args[0])
				if !ok {
					return nil, eh.NewError(args[0].ID(), "template: want the name of a file beside the kind in quotes, no expression")
				}
				if _, err := templates(name); err != nil {
					return nil, eh.NewError(args[0].ID(), err.Error())
				}
				return eh.NewCall(templateFunction, args[0], args[1], eh.NewIdent(placeName)), nil
			}),
		),
	}
}

func literal(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	text, ok := e.AsLiteral().(types.String)
	return string(text), ok
}

// hashDigits is the length of hash(x): 40 bits tell apart what one unit ever
// renders, and leave room in a name of 63.
const hashDigits = 10

// hash is the function of that name: the first hexadecimal digits of the
// SHA-256 of a value's canonical JSON.
func hash(v ref.Val) ref.Val {
	value, _, err := plain(v)
	if err != nil {
		return types.WrapErr(fmt.Errorf("hash: %w", err))
	}
	sum := sha256.Sum256(schema.AppendJSON(nil, value))
	return types.String(hex.EncodeToString(sum[:])[:hashDigits])
}

func encode(name string, appendTo func([]byte, any) []byte) func(ref.Val) ref.Val {
	return func(v ref.Val) ref.Val {
		value, present, err := plain(v)
		if err == nil && !present {
			err = errors.New("the value is absent")
		}
		var text []byte
		if err == nil {
			text = appendTo(nil, value)
		}
		if err == nil && len(text) > bounds.Text {
			err = bounds.ErrTooLarge
		}
		if err != nil {
			return types.WrapErr(fmt.Errorf("%s: %w", name, err))
		}
		return types.String(text)
	}
}

// readError is that of a file that could not be read, which may pass.
type readError struct{ err error }

func (e *readError) Error() string { return e.err.Error() }
func (e *readError) Unwrap() error { return e.err }

// readFile is the function file(path).
func readFile(at, name ref.Val) ref.Val {
	place, ok := at.Value().(*Place)
	if !ok || place.inputs.File == nil {
		return types.NewErr("file: there are no files here")
	}
	content, err := place.inputs.File(string(name.(types.String)))
	switch {
	case err != nil:
		return types.WrapErr(&readError{fmt.Errorf("file: %w", err)})
	case len(content) > config.MaxFileSize:
		return types.NewErr("file: %q: larger than %d MiB", name, config.MaxFileSize>>20)
	case !utf8.Valid(content):
		return types.NewErr("file: %q: want text in UTF-8; a field of type bytes takes other files with fromFile", name)
	}
	if err := place.budget.spend(uint64(len(content) >> 10)); err != nil {
		return types.WrapErr(err)
	}
	return types.String(content)
}

func executeTemplate(templates func(name string) (*textTemplate, error), name, x, at ref.Val) ref.Val {
	t, err := templates(string(name.(types.String)))
	if err != nil {
		return types.WrapErr(err) // it was found when the kind was loaded
	}
	value, _, err := plain(x)
	if err != nil {
		return types.WrapErr(fmt.Errorf("template: %w", err))
	}
	text, steps, err := t.execute(value)
	if place, ok := at.Value().(*Place); ok && err == nil {
		err = place.budget.spend(uint64(steps + len(text)>>10))
	}
	if err != nil {
		return types.WrapErr(err)
	}
	return types.String(text)
}
