// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/swell-sh/swell/sync/rollout"
)

// known has the daemon know who wrote commits, and with it which one was taken last.
func known(w *world) { w.leaves = true }

// TestASoakThatACommitEnds: a commit that changes a unit and ends the soak of its canary is
// released by the soak that there was, also after a restart. The commit after it is not.
func TestASoakThatACommitEnds(t *testing.T) { simulatedWith(t, known, testASoakThatACommitEnds) }

func testASoakThatACommitEnds(t *testing.T, w *world) {
	w.release()
	w.replace("fleet/fleet.yaml", "soak: 10m", "soak: 0s")
	w.app("app", "2", "one", "two")
	w.commit()
	w.until("the canary", w.canary("app", 2))
	w.stop()
	w.start()
	w.idle(5 * time.Minute)
	w.want("images while the canary soaks", w.tags("app"), "2 1 1")
	w.soaked("app", 2)
	before := w.pass().Commit
	w.stop() // what a commit brings that is made meanwhile is since the last one that was taken
	w.app("app", "3", "one", "two")
	w.commit()
	w.start()
	if r := w.pass(); !r.NewCommit || r.Since != before || r.Commit == before {
		t.Errorf("after a restart: new %t, %s since %s, want since %s", r.NewCommit, r.Commit, r.Since, before)
	}
	w.until("the next release, without a soak", w.is("app", 3, rollout.Done))
	w.want("images", w.tags("app"), "3 3 3")
}

// TestASoakThatACommitAloneEnds: a commit of rules alone counts for what comes after it.
func TestASoakThatACommitAloneEnds(t *testing.T) {
	simulatedWith(t, known, testASoakThatACommitAloneEnds)
}

func testASoakThatACommitAloneEnds(t *testing.T, w *world) {
	w.release()
	w.replace("fleet/fleet.yaml", "soak: 10m", "soak: 0s")
	w.commit()
	w.pass()
	w.app("app", "2", "one", "two")
	w.commit()
	w.until("the release, without a soak", w.is("app", 2, rollout.Done))
}

// TestATenantThatACommitOpens: a commit that lets its Tenant have what it brings is held at the
// unit, by the rules that there were, also after a restart. The next commit releases it.
func TestATenantThatACommitOpens(t *testing.T) { simulatedWith(t, known, testATenantThatACommitOpens) }

func testATenantThatACommitOpens(t *testing.T, w *world) {
	w.write("fleet/tenants.yaml", fmt.Sprintf("apiVersion: swell.sh/v1\nkind: Tenant\nmetadata: {name: %s}\n"+
		"spec: {clusterKinds: [\"*\"], podSecurity: privileged, images: [registry.example.com/app]}\n", w.tenant))
	w.commit()
	w.release()
	w.replace("fleet/tenants.yaml", "registry.example.com/app", "registry.example.com/app, other.example.com/app")
	w.replace("services/app/app.yaml", "registry.example.com", "other.example.com")
	w.commit()
	w.until("the problem", func() bool { return strings.Contains(w.unit("app").Blocked, "by the rules that the change goes to") })
	w.stop()
	w.start()
	w.idle(time.Minute)
	w.want("the release after a restart", string(w.unit("app").Rollout.Status), string(rollout.Done))
	if blocked := w.unit("app").Blocked; !strings.Contains(blocked, "by the rules that the change goes to") {
		t.Errorf("after a restart: %q", blocked)
	}
	w.write("README.md", "a commit of somebody else\n")
	w.commit()
	w.soaked("app", 2)
}
