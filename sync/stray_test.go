// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"testing"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/sync/store"
)

// TestStrayClusters: a cluster of the daemon's configuration that the fleet does not
// have is told of, for it may be mistyped.
func TestStrayClusters(t *testing.T) {
	d := &Daemon{Options: Options{Clusters: map[string]config.ClusterAccess{"sas-1": {}, "vla1": {}, "x": {}}}}
	if got := d.strayClusters(); got != "" {
		t.Errorf("before a commit was taken: %q", got)
	}
	d.monorepo.snapshot = &render.Snapshot{Repository: &config.Repository{Fleet: config.Fleet{Clusters: []*config.Cluster{{Name: "sas-1"}, {Name: "vla-1"}}}}}
	want := `cluster "vla1": the fleet has no cluster of this name, did you mean "vla-1"?; cluster "x": the fleet has no cluster of this name, want one of sas-1, vla-1`
	if got := d.strayClusters(); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	d.surveys.known = map[string]store.ClusterState{"x": {Name: "x"}}
	want = `cluster "vla1": the fleet has no cluster of this name, did you mean "vla-1"?; ` +
		`cluster "x": it left the fleet: its access may go from here, too`
	if got := d.strayClusters(); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	d.monorepo.snapshot.Held = true
	if got := d.strayClusters(); got != "" {
		t.Errorf("of a commit whose fleet has a problem: %q", got)
	}
}
