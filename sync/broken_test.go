// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"testing"

	"github.com/swell-sh/swell/render/checker"
)

// busy judges no text: the machine is busy, or a program is missing for now.
type busy struct{}

func (busy) Identity(string) (identity, missing string) { return "busy", "" }

func (busy) Judge(checker.Request) checker.Verdict {
	return checker.Verdict{Findings: []checker.Finding{{Text: "it took too long", Retry: true}}}
}

// TestBrokenForAWhile: a commit that is rendered again, because something could not be found
// out, breaks what it broke before.
func TestBrokenForAWhile(t *testing.T) { simulated(t, testBrokenForAWhile) }

func testBrokenForAWhile(t *testing.T, w *world) {
	w.release()
	w.stop()
	w.checkers = busy{}
	w.start()
	w.pass()
	w.write("fleet/checker.yaml", "apiVersion: swell.sh/v1\nkind: Checker\nmetadata: {name: words}\nspec: {program: words, from: [{kind: ConfigMap, key: \"*\"}]}\n")
	w.commit()
	for _, when := range []string{"at first", "once more", "and once more"} {
		if r := w.pass(); !r.NewCommit || r.Broken != 1 {
			t.Errorf("%s: new %t, %d units broken; want a commit that breaks one", when, r.NewCommit, r.Broken)
		}
	}
}
