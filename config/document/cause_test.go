// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"testing/fstest"
)

// TestCause: the path goes, also out of an error that was wrapped; others stay.
func TestCause(t *testing.T) {
	_, missing := fstest.MapFS{}.ReadFile("no/such.yaml")
	other := errors.New("other")
	for _, c := range []struct{ err, want error }{
		{missing, fs.ErrNotExist},
		{fmt.Errorf("read: %w", missing), fs.ErrNotExist},
		{other, other},
	} {
		if got := Cause(c.err); got != c.want {
			t.Errorf("Cause(%v) = %v, want %v", c.err, got, c.want)
		}
	}
}
