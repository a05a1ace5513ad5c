// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"

	"github.com/swell-sh/swell/config/bounds"
)

// zoned are the functions that take a part of a time, in a zone if they are
// given one.
var zoned = map[string]bool{
	overloads.TimeGetFullYear: true, overloads.TimeGetMonth: true, overloads.TimeGetDayOfYear: true, overloads.TimeGetDayOfMonth: true,
	overloads.TimeGetDate: true, overloads.TimeGetDayOfWeek: true, overloads.TimeGetHours: true, overloads.TimeGetMinutes: true,
	overloads.TimeGetSeconds: true, overloads.TimeGetMilliseconds: true,
}

// refuseZones finds where a rule would go by the time zones of the machine, and
// protovalidate's CEL cannot be told otherwise: named zones come from its files,
// and a time that is read from a text with the offset of the machine is one of
// the machine's zone, which its text may show once a duration is added.
func refuseZones(checked *ast.AST) (found error) {
	reads, shows := false, ""
	ast.PreOrderVisit(checked.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind {
			return
		}
		call := e.AsCall()
		switch name := call.FunctionName(); {
		case zoned[name] && call.IsMemberFunction() && len(call.Args()) == 1:
			if zone := bounds.Literal(call.Args()[0]); zone == nil || *zone != "UTC" && !strings.Contains(*zone, ":") {
				found = fmt.Errorf(`%s: want the zone "UTC" or an offset like "+02:00", written out: other zones differ from machine to machine`, name)
			}
		case name == overloads.TypeConvertTimestamp && len(call.Args()) == 1:
			text := bounds.Literal(call.Args()[0])
			reads = reads || text == nil || !strings.HasSuffix(*text, "Z")
		case name == "format" || name == overloads.TypeConvertString:
			if slices.ContainsFunc(shown(call), func(e ast.Expr) bool { return mayBeTime(checked.GetType(e.ID())) }) {
				shows = name
			}
		}
	}))
	if found == nil && reads && shows != "" {
		found = errors.New(shows + ": a rule that reads a time from a string may not make a string of one: which offset that shows differs from machine to machine")
	}
	return found
}

// shown are the values that a call makes a text of; those of format stand in a
// list, or are it.
func shown(call ast.CallExpr) []ast.Expr {
	args := call.Args()
	if len(args) == 1 && args[0].Kind() == ast.ListKind {
		return args[0].AsList().Elements()
	}
	return args
}

func mayBeTime(t *types.Type) bool {
	switch t.Kind() {
	case types.TimestampKind, types.DynKind, types.AnyKind:
		return true
	case types.ListKind, types.MapKind, types.OpaqueKind:
		return slices.ContainsFunc(t.Parameters(), mayBeTime)
	}
	return false
}
