// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swell-sh/swell/sync/rollout"
)

// TestAMaskOfAUnitThatLeft: a team removes the last unit that a mask names. The fleet goes on,
// also after a restart, and a condition says that the mask matches nothing. Who then edits the
// mask has a problem until it matches something again.
func TestAMaskOfAUnitThatLeft(t *testing.T) {
	simulatedWith(t, func(w *world) { w.leaves = true }, testAMaskOfAUnitThatLeft) // its source knows authors, and so the state the commit
}

func testAMaskOfAUnitThatLeft(t *testing.T, w *world) {
	mask := func(units, reason string) {
		w.write("fleet/mask.yaml", "apiVersion: swell.sh/v1\nkind: Mask\nmetadata: {name: old}\n"+
			"spec: {reason: "+reason+", where: {units: ["+units+"]}}\n")
	}
	w.app("old", "1")
	mask("services/old/", "frozen")
	w.commit()
	w.until("the first release", w.is("app", 1, rollout.Done))

	w.must(os.RemoveAll(filepath.Join(w.repo(), "services/old")))
	w.app("app", "2", "one")
	w.commit()
	w.until("the next release", w.is("app", 2, rollout.Done))
	const idle = `spec.where.units[0]: "services/old": no such unit, or folder of units`
	if got := w.condition("fleet"); !strings.Contains(got, idle) {
		t.Errorf("the condition is %q, want %q in it", got, idle)
	}

	w.stop()
	w.app("app", "3", "one")
	w.commit()
	w.start()
	w.until("the release after a restart", w.is("app", 3, rollout.Done))

	mask("services/old", "still frozen")
	w.app("app", "4", "one")
	w.commit()
	w.until("the refusal", func() bool { return strings.Contains(w.heldBy(), idle) })
	w.stop()
	w.start()
	w.until("the refusal after a restart", func() bool { return strings.Contains(w.heldBy(), idle) })
	w.want("image", w.tag("dev-1/a", "app"), "3")

	mask("services/old], optional: true, tenants: [team", "to come back")
	w.commit()
	w.until("the release after that", w.is("app", 4, rollout.Done))
	if got := w.condition("fleet"); got != "" {
		t.Errorf("the condition is still %q", got)
	}
}

// condition is the text of what the state knows about something; empty when there is nothing.
func (w *world) condition(about string) string {
	w.Helper()
	all, err := w.store.Conditions()
	w.must(err)
	for _, c := range all {
		if c.About == about {
			return c.Text
		}
	}
	return ""
}

// heldBy are the problems of the newest commit that hold it as a whole.
func (w *world) heldBy() string {
	if s := w.daemon.Snapshot(); s != nil && s.Held {
		return s.Problems.String()
	}
	return ""
}

// TestCommitsFetchedTogether: a Mask is written, and the unit that it names leaves, both between
// two looks at the branch. What counts is what each commit did, as if it had been seen alone. So
// a name that was mistyped in one of them is a problem, and holds those after it.
func TestCommitsFetchedTogether(t *testing.T) {
	simulatedWith(t, func(w *world) { w.leaves = true }, testCommitsFetchedTogether)
}

func testCommitsFetchedTogether(t *testing.T, w *world) {
	mask := func(unit string) {
		w.write("fleet/"+unit+".yaml", "apiVersion: swell.sh/v1\nkind: Mask\nmetadata: {name: "+unit+"}\n"+
			"spec: {reason: frozen, where: {units: [services/"+unit+"]}}\n")
	}
	w.app("old", "1")
	w.commit()
	w.until("the first release", w.is("app", 1, rollout.Done))

	w.stop()
	mask("old")
	w.commit()
	w.must(os.RemoveAll(filepath.Join(w.repo(), "services/old")))
	w.commit()
	w.app("app", "2", "one")
	w.commit()
	w.start()
	w.until("the next release", w.is("app", 2, rollout.Done))
	w.want("image", w.tag("dev-1/a", "old"), "1")

	w.stop()
	mask("odl")
	w.commit()
	w.app("app", "3", "one")
	w.commit()
	w.start()
	const idle = `spec.where.units[0]: "services/odl": no such unit, or folder of units`
	w.until("the refusal", func() bool { return strings.Contains(w.heldBy(), idle) })
	w.want("image", w.tag("dev-1/a", "app"), "2")
}
