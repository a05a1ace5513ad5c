// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/swell-sh/swell/sync/serve"
)

// Exit codes of all verbs; 0 is done.
const (
	exitProblems    = 1   // the input has problems; for diff: there are changes; an order is refused
	exitError       = 2   // what was asked for could not be done
	exitInterrupted = 130 // by a signal, as a shell reports it
)

// exit ends the program with a code and no further words.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// hinted is an error with a word on what to do about it.
type hinted struct {
	error
	hint string
}

func (h hinted) Unwrap() error { return h.error }

// hintOf is what to do about an error; empty where it does not say.
func hintOf(err error) string {
	var ours hinted
	var theirs *serve.Error
	switch {
	case errors.As(err, &ours):
		return ours.hint
	case errors.As(err, &theirs):
		return theirs.Hint
	}
	return ""
}

// exitCode returns the exit code of what came of a verb, and says why where it is no [exit].
func exitCode(ctx context.Context, stderr io.Writer, err error) int {
	var code exit
	if err == nil || errors.As(err, &code) {
		return int(code)
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		fmt.Fprintln(stderr, "swell: interrupted")
		return exitInterrupted
	}
	fmt.Fprintf(stderr, "swell: error: %v\n", err)
	if hint := hintOf(err); hint != "" {
		fmt.Fprintf(stderr, "swell: hint: %s\n", hint)
	}
	var refused *serve.Error
	if errors.As(err, &refused) && (refused.Status == http.StatusConflict || refused.Status == http.StatusForbidden) {
		return exitProblems
	}
	return exitError
}
