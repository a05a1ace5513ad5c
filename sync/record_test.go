// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"errors"
	"io"
	"testing"
)

// TestErrorsOfSeveralPasses: the last try counts where something is tried again, and all else stays.
func TestErrorsOfSeveralPasses(t *testing.T) {
	var all, next Record
	all.fail(errors.New("a commit is refused"))
	all.went(ofGit, io.ErrUnexpectedEOF)
	all.went(watching("dev-1"), io.ErrNoProgress)
	all.went(watching("dev-2"), io.ErrClosedPipe)
	next.went(watching("dev-1"), nil)
	next.went(watching("dev-2"), io.ErrShortWrite)
	all.add(next)
	if got, want := errors.Join(all.Errors...).Error(), "a commit is refused\nunexpected EOF\nshort write"; got != want {
		t.Errorf("after the second pass %q, want %q", got, want)
	}
	if !errors.Is(all.Errors[1], io.ErrUnexpectedEOF) {
		t.Error("the cause is lost")
	}
	next = Record{}
	next.went(ofGit, nil)
	next.fail(errors.New("another"))
	all.add(next)
	if got, want := errors.Join(all.Errors...).Error(), "a commit is refused\nshort write\nanother"; got != want {
		t.Errorf("after the third pass %q, want %q", got, want)
	}
}
