// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"fmt"
	"runtime"
	"strings"
)

// Recover, when it is deferred, makes a panic one more problem of the unit or
// kind at place, so that it stops no other.
func Recover(place string, problems *Problems) {
	cause := recover()
	if cause == nil {
		return
	}
	text, _, _ := strings.Cut(fmt.Sprint(cause), "\n")
	*problems = append(*problems, Problem{Position: Position{File: place}, Code: CodeInternal,
		Message: fmt.Sprintf("internal error, please report: %s: %s", panicking(), text)})
}

// panicking is the innermost function of swell's own that led to the panic.
func panicking() string {
	const module = "github.com/swell-sh/swell/"
	var callers [64]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(3, callers[:])]) // without itself and Recover
	for {
		frame, more := frames.Next()
		if name, ok := strings.CutPrefix(frame.Function, module); ok {
			return name
		}
		if !more {
			return "unknown place"
		}
	}
}
