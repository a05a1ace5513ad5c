// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/serve"
	"github.com/swell-sh/swell/sync/store"
)

// TestRejectVerb: what --reject takes, and who tells of it.
func TestRejectVerb(t *testing.T) {
	file := someState(t)
	s, err := store.Open(filepath.Join(filepath.Dir(file), "state"))
	if err != nil {
		t.Fatal(err)
	}
	plan := store.NewPlan("services/shop/cart", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), []store.Deletion{
		{Target: "vla", Unit: "services/shop/cart", ID: object.ID{Kind: "Service", Namespace: "shop", Name: "cart"}, UID: "u-2", Why: "too many"}})
	err = s.Update(t.Context(), func(tx *store.Tx) error { return tx.PutPlans([]store.Plan{plan}) })
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	swell := func(want int, args ...string) string {
		t.Helper()
		var out bytes.Buffer
		if code := execute(t.Context(), writingTo(&out, &out), append(args, "-c", file)); code != want {
			t.Errorf("%q: exit code %d, want %d\n%s", args, code, want, &out)
		}
		return strings.Join(strings.Fields(out.String()), " ")
	}
	tells := func(want string, code int, args ...string) {
		t.Helper()
		if out := swell(code, args...); !strings.Contains(out, want) {
			t.Errorf("%q says %s\nwithout %s", args, out, want)
		}
	}
	short := plan.Digest.Short()
	tells("--reject: want a plan", 2, "approve", "--reject")
	tells("--reject and --yes: want one of them", 2, "approve", short, "--reject", "--yes")
	tells("--reason: want --reject with it", 2, "approve", short, "--reason", "x")
	tells("--reason: want one line without control characters", 2, "approve", short, "--reject", "--reason", "a\nb")
	tells("no such plan, want one of "+short, 2, "approve", "00000000", "--reject")
	tells("swell: rejected: plan "+short+", 1 deletion: they wait until the change is reverted in Git or the plan is approved", 0, "approve", short, "--reject", "--reason", "still read")

	rejected := "rejected by " + whoami(ofProcess(), &config.Daemon{}).Name + ": still read; take the change back in Git, or approve it after all"
	tells("too many; "+rejected, 0, "approve")
	tells("1 deletion of services/shop/cart pending since 2026-01-02T03:04:05Z: "+rejected+": swell approve "+short, 1, "status")
	tells("rejected plan "+short+": 1 deletion, by "+whoami(ofProcess(), &config.Daemon{}).Name+": still read", 0, "history", "services/shop/cart")
	for _, verb := range []string{"approve", "status"} {
		tells(`"reason": "still read"`, map[string]int{"status": 1}[verb], verb, "-o", "json")
	}
	var list struct {
		Items []struct{ Rejected store.Rejection }
	}
	var out bytes.Buffer
	if code := execute(t.Context(), writingTo(&out, io.Discard), []string{"approve", "-o", "json", "-c", file}); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	if err := json.Unmarshal(out.Bytes(), &list); err != nil || len(list.Items) != 1 || list.Items[0].Rejected.By != whoami(ofProcess(), &config.Daemon{}).Name {
		t.Errorf("%v\n%s", err, &out)
	}
	tells(rejected, 2, "approve", short) // before it asks
	tells("swell: approved: plan "+short, 0, "approve", short, "--yes")
	tells("it is approved already", 2, "approve", short, "--reject")
	again := "swell: plan " + short + " is already approved since 20"
	for _, args := range [][]string{{"approve", short}, {"approve", short, "--yes"}, {"approve", string(plan.Digest)}} {
		tells(again, 0, args...)
	}
	tells("too many; approved since 20", 0, "approve")

	// The daemon takes it up, and later it is carried out.
	for _, left := range [][]store.Deletion{plan.Deletions, nil} {
		if s, err = store.Open(filepath.Join(filepath.Dir(file), "state")); err != nil {
			t.Fatal(err)
		}
		err = s.Update(t.Context(), func(tx *store.Tx) error { return errors.Join(tx.PutPlans(nil), tx.KeepApproval(plan.Digest, left)) })
		if err := errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
		for _, digits := range []string{short[:4], short, string(plan.Digest)} {
			tells(again, 0, "approve", digits)
		}
		tells("plan "+short+": it is approved already: approved since 20", 2, "approve", short, "--reject")
		tells(`plan "00000000": no such plan: nothing waits for approval`, 2, "approve", "00000000")
	}

	// The same deletions wait again: the approval of that time does not count.
	if s, err = store.Open(filepath.Join(filepath.Dir(file), "state")); err != nil {
		t.Fatal(err)
	}
	err = s.Update(t.Context(), func(tx *store.Tx) error { return tx.PutPlans([]store.Plan{plan}) })
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	tells("swell: approved: plan "+short, 0, "approve", short, "--yes")
	if out := swell(0, "approve"); strings.Contains(out, "rejected") {
		t.Errorf("approved, and still rejected: %s", out)
	}
}

// TestPlanRows: a row about a plan names no target that only some of it is about.
func TestPlanRows(t *testing.T) {
	row := func(targets ...config.TargetName) string {
		var all []store.Deletion
		for _, target := range targets {
			all = append(all, store.Deletion{Target: target, Unit: "shop", ID: object.ID{Kind: "Service", Name: "a"},
				Why: "the unit deletes more than 10 objects on the target"})
		}
		return planListing(serve.Approvals{Plans: []store.Plan{store.NewPlan("shop", time.Time{}, all)}}).rows[0].cells[4]
	}
	for want, got := range map[string]string{
		"the unit deletes more than 10 objects on target sas-1/a":    row("sas-1/a"),
		"the unit deletes more than 10 objects on each of 3 targets": row("vla", "sas-1/a", "sas-1/b"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
