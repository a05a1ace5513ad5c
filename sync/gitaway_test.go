// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/rollout"
)

// TestGitAwayAfterARestart: a daemon that starts while Git does not answer goes on with the
// commit that it had: the release under way, and drift, which is corrected.
func TestGitAwayAfterARestart(t *testing.T) {
	simulatedWith(t, func(w *world) { w.leaves = true }, testGitAwayAfterARestart)
}

func testGitAwayAfterARestart(t *testing.T, w *world) {
	w.sweeping(config.Drift{})
	w.release()
	w.app("app", "2", "one", "two")
	w.commit()
	w.until("the canary", func() bool { return w.tag("dev-1/a", "app") == "2" })
	w.stop()
	w.gitAway.Store(true)
	w.start()
	w.until("the release", w.soon(w.is("app", 2, rollout.Done)))
	w.edit("dev-2/c", configMaps, "one", `{"data": {"image": "theirs"}}`, "kubectl-edit")
	w.nextSweep()
	w.until("the correction", func() bool {
		data, _ := w.get("dev-2/c", configMaps, "one").Object["data"].(map[string]any)
		return data["image"] == "registry.example.com/app:2"
	})
	if conditions, err := w.store.Conditions(); err != nil || len(conditions) != 1 || conditions[0].Text != "git: connection refused" {
		t.Errorf("conditions %v, %v", conditions, err)
	}
	w.gitAway.Store(false)
	w.app("app", "3", "one", "two")
	w.commit()
	w.now = w.now.Add(time.Hour)
	w.until("the next release", w.soon(w.is("app", 3, rollout.Done)))
}

// TestGitAwayAndAnOlderState: where the state is older than a cluster, nothing of its commit is
// released before Git is seen.
func TestGitAwayAndAnOlderState(t *testing.T) {
	simulatedWith(t, func(w *world) { w.leaves = true }, testGitAwayAndAnOlderState)
}

func testGitAwayAndAnOlderState(t *testing.T, w *world) {
	w.release()
	w.stop()
	w.copyState("old")
	w.start()
	w.app("app", "2", "one", "two")
	w.commit()
	w.until("the release", w.soon(w.is("app", 2, rollout.Done)))
	w.stop()
	w.restore("old")
	w.gitAway.Store(true)
	w.start()
	w.idle(2 * time.Hour)
	w.want("what runs", w.tags("app"), "2 2 2")
	w.gitAway.Store(false)
	w.now = w.now.Add(time.Hour)
	w.until("the release", w.soon(w.is("app", 2, rollout.Done)))
	w.want("what runs in the end", w.tags("app"), "2 2 2")
}

// TestGitAwayAndARefusedCommit: a commit that nothing may be taken from keeps deletions of the one
// before it back after a restart, too, although Git does not answer.
func TestGitAwayAndARefusedCommit(t *testing.T) {
	simulatedWith(t, func(w *world) { w.leaves = true }, testGitAwayAndARefusedCommit)
}

func testGitAwayAndARefusedCommit(t *testing.T, w *world) {
	all := names(15)
	w.app("app", "1", all...)
	w.commit()
	w.release()
	w.app("app", "2", all[12:]...)
	w.commit()
	w.until("the plan", func() bool { return len(w.plans()) > 0 })
	w.soaked("app", 2)
	w.write("fleet/wrong.yaml", "apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: wrong}\nspec: {cels: []}\n")
	w.commit()
	w.idle(time.Minute)
	w.stop()
	w.gitAway.Store(true)
	w.start()
	w.approve(w.plan())
	w.idle(time.Hour)
	w.gitAway.Store(false)
	w.must(os.Remove(filepath.Join(w.repo(), "fleet/wrong.yaml")))
	w.commit()
	w.now = w.now.Add(time.Hour)
	w.until("the deletions", func() bool { w.pass(); return w.there(all[:12]...) == 0 })
}
