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
	if out := swell(0, "approve"); strings.Contains(out, "rejected") {
		t.Errorf("approved, and still rejected: %s", out)
	}
}
