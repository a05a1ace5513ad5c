// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"fmt"
	"strings"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/swell-sh/swell/config/timezone"
)

// zoned are the functions that take a part of a time in a zone.
var zoned = map[string]string{
	overloads.TimeGetFullYear:     overloads.TimestampToYearWithTz,
	overloads.TimeGetMonth:        overloads.TimestampToMonthWithTz,
	overloads.TimeGetDayOfYear:    overloads.TimestampToDayOfYearWithTz,
	overloads.TimeGetDayOfMonth:   overloads.TimestampToDayOfMonthZeroBasedWithTz,
	overloads.TimeGetDate:         overloads.TimestampToDayOfMonthOneBasedWithTz,
	overloads.TimeGetDayOfWeek:    overloads.TimestampToDayOfWeekWithTz,
	overloads.TimeGetHours:        overloads.TimestampToHoursWithTz,
	overloads.TimeGetMinutes:      overloads.TimestampToMinutesWithTz,
	overloads.TimeGetSeconds:      overloads.TimestampToSecondsWithTz,
	overloads.TimeGetMilliseconds: overloads.TimestampToMillisecondsWithTz,
}

// timestamps are the functions on times that depend on the machine in CEL's own
// library: named zones are read from its files, "Local" is its own zone, and a
// time whose offset happens to be that of the machine gets the machine's zone,
// so that adding a duration may move it to summer time.
func timestamps() []cel.EnvOption {
	options := []cel.EnvOption{
		cel.Function(overloads.TypeConvertTimestamp, cel.Overload(overloads.StringToTimestamp, []*cel.Type{cel.StringType}, cel.TimestampType,
			cel.UnaryBinding(func(text ref.Val) ref.Val {
				read := text.(types.String).ConvertToType(types.TimestampType)
				t, ok := read.(types.Timestamp)
				if !ok {
					return read
				}
				_, offset := t.Zone()
				return types.Timestamp{Time: t.In(time.FixedZone("", offset))}
			}))),
	}
	for function, overload := range zoned {
		options = append(options, cel.Function(function, cel.MemberOverload(overload, []*cel.Type{cel.TimestampType, cel.StringType}, cel.IntType,
			cel.BinaryBinding(func(ts, zone ref.Val) ref.Val {
				t, name := ts.(types.Timestamp), string(zone.(types.String))
				if strings.Contains(name, ":") { // an offset
					return t.Receive(function, overload, []ref.Val{zone})
				}
				location, err := timezone.Load(name)
				if err != nil {
					return types.WrapErr(err)
				}
				return types.Timestamp{Time: t.In(location)}.Receive(function, overload, nil)
			}))))
	}
	return options
}

// checkZones finds zones that are written out and do not exist.
func checkZones(checked *ast.AST) (err error) {
	ast.PreOrderVisit(checked.Expr(), ast.NewExprVisitor(func(x ast.Expr) {
		if x.Kind() != ast.CallKind || zoned[x.AsCall().FunctionName()] == "" || len(x.AsCall().Args()) != 1 || err != nil {
			return
		}
		if name, ok := literal(x.AsCall().Args()[0]); ok && !strings.Contains(name, ":") {
			if _, wrong := timezone.Load(name); wrong != nil {
				err = fmt.Errorf("%s: %w", x.AsCall().FunctionName(), wrong)
			}
		}
	}))
	return err
}
