// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/rollout"
)

// TestTwoMonoreposShareClusters: a daemon that begins where another one works, or
// that lost its state, finds its own objects only, and has nothing to delete.
func TestTwoMonoreposShareClusters(t *testing.T) {
	t.Parallel()
	first := newWorld(t)
	first.release()
	before := first.uids()
	t.Run("second", func(t *testing.T) {
		w := newWorldOn(t, realClusters(t))
		w.fresh = true
		w.start()
		w.release()
		own := w.uids()
		w.lose()
		w.release()
		w.until("the end of the rebuilding", w.rebuilt)
		w.idle(time.Hour)
		w.sameUIDs("of its own", own)
		if plans := w.plans(); len(plans) > 0 {
			t.Errorf("it plans %v", plans)
		}
		entries, err := w.store.ClusterInventory("dev-1")
		w.must(err)
		for _, e := range entries {
			if !strings.Contains(e.ID.String(), w.tenant) {
				t.Errorf("it took in %s of unit %s", e.ID, e.Unit)
			}
		}
	})
	first.idle(time.Hour)
	first.sameUIDs("of the first", before)
}

// TestTakenOverByAnotherMonorepo: a release that changes an object which another
// monorepo took over is refused, and put back; the object stays with that one.
func TestTakenOverByAnotherMonorepo(t *testing.T) { simulated(t, testTakenOverByAnotherMonorepo) }

func testTakenOverByAnotherMonorepo(t *testing.T, w *world) {
	w.sweeping(config.Drift{})
	w.release()
	_, err := w.client("dev-1").Resource(configMaps).Namespace(w.tenant+"-a").Patch(t.Context(), "one", types.ApplyPatchType, []byte(`{apiVersion: v1, kind: ConfigMap, metadata: {name: one,
		labels: {app.kubernetes.io/managed-by: swell, swell.sh/repository: elsewhere}, annotations: {swell.sh/unit: services/theirs}}, data: {image: theirs}}`), metav1.PatchOptions{FieldManager: "swell"})
	w.must(err)
	before := w.get("dev-1/a", configMaps, "one").GetResourceVersion()
	w.nextSweep()
	w.app("app", "2", "one")
	w.commit()
	w.until("the rollback", w.is("app", 2, rollout.RolledBack))
	if failure := w.unit("app").Rollout.Failure; !strings.Contains(failure, "it is there already and belongs to swell, from the monorepo elsewhere") {
		t.Errorf("failure %q", failure)
	}
	w.idle(time.Hour)
	w.want("the object", w.get("dev-1/a", configMaps, "one").GetResourceVersion(), before)
}

// TestMonorepoRenamed: all that was applied carries the monorepo's name, so a
// commit with another one is not taken.
func TestMonorepoRenamed(t *testing.T) { simulated(t, testMonorepoRenamed) }

func testMonorepoRenamed(t *testing.T, w *world) {
	w.release()
	named := func(name string) {
		w.Helper()
		w.write("swell.yaml", "apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: "+name+"}\nspec: {}\n")
		w.commit()
	}
	w.app("app", "2", "one")
	named("renamed")
	refused := "swell.yaml: metadata.name: was " + w.tenant + " and is renamed: all that was applied is marked with the old name: put it back"
	for _, when := range []string{"at once", "after a restart"} {
		w.idle(time.Hour)
		w.want("images "+when, w.tags("app"), "1 1 1")
		if got := w.troubles(); !strings.Contains(got, refused) {
			t.Errorf("%s: troubles are %q", when, got)
		}
		w.stop()
		w.start()
	}
	named(w.tenant)
	w.until("the release", w.is("app", 2, rollout.Progressing))
	w.soaked("app", 2)
	w.want("images", w.tags("app"), "2 2 2")
	w.want("troubles", w.troubles(), "")
}
