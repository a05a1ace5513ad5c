// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

// TestExplanations lays the example of each explanation over the example monorepo: it
// gives a problem of that code, with that message.
func TestExplanations(t *testing.T) {
	var c Compiler
	for _, code := range slices.Sorted(maps.Keys(document.Codes)) {
		t.Run(string(code), func(t *testing.T) {
			explained := document.Explanations[code]
			if explained.Cause == "" || explained.WayOut == "" {
				t.Fatal("no explanation")
			}
			if explained.Example.File == "" {
				return
			}
			files := exampleFiles(t, ".")
			files[explained.Example.File] = &fstest.MapFile{Data: []byte(explained.Example.Text)}
			problems := c.Snapshot("", config.Files(files)).Problems
			if !slices.ContainsFunc(problems, func(p document.Problem) bool {
				return p.Code == code && strings.Contains(p.Message, explained.Example.Message)
			}) {
				t.Errorf("no such problem:\n%s", problems)
			}
		})
	}
	if extra := len(document.Explanations) - len(document.Codes); extra != 0 {
		t.Errorf("%d explanations more than codes", extra)
	}
}
