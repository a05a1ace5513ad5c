// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/swell-sh/swell/config/document"
)

// TestNotesAreLogged: what is worth knowing of the fleet is a line of the log.
func TestNotesAreLogged(t *testing.T) {
	var text bytes.Buffer
	r := &Record{Commit: "0123456789", Notes: document.Problems{{Position: document.Position{File: "facts/sas-1.yaml", Line: 1}, Message: "facts of cluster sas-1 are 8 days old"}}}
	r.log(slog.New(slog.NewTextHandler(&text, nil)))
	if !strings.Contains(text.String(), `level=INFO msg=note commit=01234567 at=facts/sas-1.yaml:1 text="facts of cluster sas-1 are 8 days old"`) {
		t.Error(text.String())
	}
}
