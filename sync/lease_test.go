// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/fleet"
	"github.com/swell-sh/swell/sync/store"
)

var leases = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

// holder is who holds the world's Lease in a cluster.
func (w *world) holder(cluster string) string {
	w.Helper()
	list, err := w.client(cluster).Resource(leases).Namespace("kube-system").List(w.Context(), metav1.ListOptions{FieldSelector: "metadata.name=swell-" + w.tenant})
	w.must(err)
	if len(list.Items) == 0 {
		return ""
	}
	spec := list.Items[0].Object["spec"].(map[string]any)
	return fmt.Sprint(spec["holderIdentity"])
}

// twin is a second daemon for the same monorepo and clusters, with a state of its
// own. It is not started yet.
func (w *world) twin() *world {
	w.Helper()
	other := &world{TB: w.TB, clusters: w.clusters, tenant: w.tenant, dir: w.TempDir(), patience: w.patience, now: w.now, access: w.access,
		times: w.times, drift: w.drift, fresh: true}
	w.must(os.Symlink(w.repo(), other.repo()))
	w.Cleanup(other.stop)
	return other
}

// writes makes passes, and counts the objects that they wrote or deleted.
func (w *world) writes(passes int) (n int) {
	w.Helper()
	for range passes {
		r := w.pass()
		n += r.Objects["created"] + r.Objects["configured"] + r.Objects["deleted"] + r.Objects["recreated"]
		w.now = w.now.Add(time.Minute)
		pause(w.TB)
	}
	return n
}

// trouble is what the daemon says of a cluster.
func (w *world) trouble(about string) string {
	w.Helper()
	troubles, err := w.store.Conditions()
	w.must(err)
	for _, t := range troubles {
		if t.About == about {
			return t.Text
		}
	}
	return ""
}

// TestASecondDaemonStaysPassive: with another state, it writes nothing as long as
// the first one is there, says who that is, and takes over when that one ends.
func TestASecondDaemonStaysPassive(t *testing.T) {
	t.Parallel()
	w := newSurveyor(t)
	w.release()
	first := w.holder("dev-1")
	second := w.twin()
	second.start()
	w.app("app", "2", "one")
	w.commit()
	w.want("writes of the second", fmt.Sprint(second.writes(5)), "0")
	if text := second.trouble("cluster dev-1"); !strings.Contains(text, "another swell writes there: lease kube-system/swell-"+w.tenant+" is held by "+first+" since ") ||
		!strings.Contains(text, "one daemon follows one monorepo") {
		t.Errorf("the second says %q", text)
	}
	w.until("the canary", w.canary("app", 2))
	w.want("writes of the second", fmt.Sprint(second.writes(5)), "0")
	w.want("images", w.tags("app"), "2 1 1")
	w.want("the holder", w.holder("dev-1"), first)
	w.stop()
	second.until("the canary of the second", second.canary("app", 1))
	if is := w.holder("dev-1"); is == first || is == "" {
		t.Errorf("it is held by %q", is)
	}
	second.soaked("app", 1)
	w.want("images", w.tags("app"), "2 2 2")
}

// TestACopiedState: a copy of the state of a daemon that is at work is used by a
// second one, which is not taken for the first one started again.
func TestACopiedState(t *testing.T) {
	t.Parallel()
	w := newSurveyor(t)
	w.release()
	w.copyState("copy")
	second := w.twin()
	w.must(os.CopyFS(filepath.Join(second.dir, "state"), os.DirFS(filepath.Join(w.dir, "copy"))))
	second.start()
	w.app("app", "2", "one")
	w.commit()
	w.want("writes of the second", fmt.Sprint(second.writes(5)), "0")
	if text := second.trouble("cluster dev-1"); !strings.Contains(text, "it works with a copy of this state") {
		t.Errorf("the second says %q", text)
	}
	w.soaked("app", 2)
	w.want("writes of the second", fmt.Sprint(second.writes(5)), "0")
}

// TestKilledAndStartedAgain: on the same file, the next daemon does not wait.
func TestKilledAndStartedAgain(t *testing.T) {
	t.Parallel()
	w := newSurveyor(t)
	w.release()
	for range 3 { // the second and third may be killed before they had the Leases
		w.daemon.Freeze()
		w.must(errors.Join(w.source.Close(), w.store.Close()))
		w.daemon = nil
		w.start()
	}
	before := w.holder("dev-1")
	w.app("app", "2", "one")
	w.commit()
	w.pass()
	if is := w.holder("dev-1"); is == before {
		t.Errorf("after the first pass, the Lease is still of %s", is)
	}
	w.soaked("app", 2)
}

// TestFrozen: a daemon that was stopped for longer than its Lease lasts writes
// nothing when it goes on, because somebody else came; and compares the cluster
// with its state when it is its turn again.
func TestFrozen(t *testing.T) {
	t.Parallel()
	w := newWorldOn(t, realClusters(t))
	w.fresh, w.times = true, fleet.LeaseTimes{Duration: 6 * time.Second, Renew: time.Second}
	w.start()
	w.release()
	w.daemon.Freeze()
	second := w.twin()
	second.start()
	second.until("the takeover", second.canary("app", 1))
	second.soaked("app", 1)
	w.app("app", "2", "one")
	w.commit()
	w.want("writes of the first, which wakes", fmt.Sprint(w.writes(5)), "0")
	w.want("images", w.tags("app"), "1 1 1")
	second.until("the canary of the second", second.canary("app", 2))
	w.want("writes of the first", fmt.Sprint(w.writes(5)), "0")
}

// TestNoRightToKeepLeases: nothing is written, and the text says which right is
// missing; with Leases switched off, all goes on.
func TestNoRightToKeepLeases(t *testing.T) {
	t.Parallel()
	w := newWorldOn(t, realClusters(t))
	w.fresh = true
	name := strings.ToLower(t.Name())
	w.create("dev-1", clusterRoles, `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %s}
rules: [{apiGroups: ["", apps], resources: ["*"], verbs: ["*"]}]
`, name)
	_, token := w.account("dev-1", name, name)
	file := filepath.Join(w.dir, "no-leases")
	w.place(file, w.kubeconfig("dev-1", token))
	w.access["dev-1"] = config.ClusterAccess{Name: "dev-1", Kubeconfig: file}
	w.start()
	w.writes(3)
	w.want("images", w.tag("dev-1/a", "app"), "")
	text := w.trouble("cluster dev-1")
	for _, want := range []string{"lease kube-system/swell-" + w.tenant + " cannot be kept, so nothing is written there", "forbidden", "allow get, create and update of leases", "lease: {enabled: false}"} {
		if !strings.Contains(text, want) {
			t.Errorf("it says %q, want %q in it", text, want)
		}
	}
	w.stop()
	w.lease.Off = true
	w.start()
	w.until("the canary", w.canary("app", 1))
	w.want("the holder", w.holder("dev-1"), "")
}

// TestTheStateGoesAway while the daemon is at work: it stops, and says how to go
// on. A second daemon on what is there now takes over, and nobody else writes.
func TestTheStateGoesAway(t *testing.T) {
	t.Parallel()
	for name, take := range map[string]func(w *world, dir string) error{
		"removed":        func(_ *world, dir string) error { return os.RemoveAll(dir) },
		"renamed":        func(_ *world, dir string) error { return os.Rename(dir, dir+"-away") },
		"a file removed": func(_ *world, dir string) error { return os.Remove(filepath.Join(dir, "state.db")) },
		"a copy put back": func(_ *world, dir string) error {
			file := filepath.Join(dir, "state.db")
			content, err := os.ReadFile(file)
			return errors.Join(err, os.Remove(file), os.WriteFile(file, content, 0o600))
		},
		"written over": func(w *world, dir string) error {
			content, err := os.ReadFile(filepath.Join(w.dir, "copy", "state.db"))
			return errors.Join(err, os.WriteFile(filepath.Join(dir, "state.db"), content, 0o600))
		},
		"the lock removed": func(_ *world, dir string) error { return os.Remove(filepath.Join(dir, "state.lock")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newSurveyor(t)
			w.release()
			w.stop()
			w.copyState("copy")
			w.start()
			w.pass()
			w.must(take(w, filepath.Join(w.dir, "state")))
			w.app("app", "2", "one")
			w.commit()
			r := w.daemon.Once(t.Context())
			var replaced *store.Replaced
			if !errors.As(r.Err, &replaced) || len(r.Actions) > 0 {
				t.Errorf("the pass: error %v, actions %v", r.Err, r.Actions)
			}
			w.want("images", w.tags("app"), "1 1 1")
			second := w.twin()
			second.start()
			second.pass() // the first one has not given up its Leases yet
			w.want("images", w.tags("app"), "1 1 1")
			w.must(errors.Join(w.daemon.Finish(t.Context()), w.source.Close()))
			_ = w.store.Close() // of a file that is another one by now
			w.daemon = nil
			second.until("the canary of the second", second.canary("app", 1))
			w.want("images", w.tags("app"), "2 1 1")
		})
	}
}
