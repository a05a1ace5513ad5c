// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"strings"
	gosync "sync"
	"testing"

	"github.com/swell-sh/swell/config"
)

// TestADepartedClusterIsRenamed: a cluster keeps its inventory when it comes back under another
// name, and is still to be taken in. While the old name is in the fleet, the new one is refused.
func TestADepartedClusterIsRenamed(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	uid := value[string](t)(s.PinCluster(t.Context(), "old", "uid-1", ours))
	cell, whole, other := entry(1), entry(2), entry(3)
	cell.Target, whole.Target, other.Target = "old/a", "old", "older"
	cell.UID, whole.UID, other.UID = "a", "b", "c"
	update(t, s, func(tx *Tx) error {
		return errors.Join(tx.Surveyed("old", Known, ""), tx.Confirm([]Entry{cell, whole, other}), tx.Surveyed("new", Unsurveyed, ""))
	})
	if _, err := s.PinCluster(t.Context(), "new", uid, ours); err == nil || !strings.Contains(err.Error(), "it is cluster old under another name") {
		t.Errorf("the new name was taken: %v", err)
	}
	update(t, s, func(tx *Tx) error { return tx.Surveyed("old", Departed, "") })
	var all gosync.WaitGroup
	for range 8 { // who asks at the same time keeps the row
		all.Go(func() { _, _ = s.PinCluster(t.Context(), "new", uid, ours) })
	}
	all.Wait()
	if pinned := value[string](t)(s.PinCluster(t.Context(), "new", uid, ours)); pinned != uid {
		t.Errorf("pinned %s", pinned)
	}
	var targets []config.TargetName
	for _, e := range value[[]Entry](t)(s.ClusterInventory("new")) {
		targets = append(targets, e.Target)
	}
	same(t, []config.TargetName{"new", "new/a"}, targets)
	if left := value[[]Entry](t)(s.ClusterInventory("older")); len(left) != 1 {
		t.Errorf("%d objects are in cluster older", len(left))
	}
	clusters := value[map[string]ClusterState](t)(s.Clusters())
	if found := clusters["new"]; len(clusters) != 1 || found.Survey != Departed || found.UID != uid {
		t.Errorf("the state knows %v", clusters)
	}
	update(t, s, func(tx *Tx) error { return tx.ForgetCluster("new") })
	if left, n := value[map[string]ClusterState](t)(s.Clusters()), value[int](t)(s.Count()); len(left) > 0 || n != 1 {
		t.Errorf("the state knows %v, and %d objects", left, n)
	}
}
