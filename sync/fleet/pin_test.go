// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"testing"
)

// TestIdentityIsPinnedWithoutTheLock: pinning the identity of a new cluster waits for the
// transaction of a pass, and a pass in its transaction asks for the condition of each cluster.
// Both waited for each other for ever, and the daemon stood still.
func TestIdentityIsPinnedWithoutTheLock(t *testing.T) {
	c := &Cluster{name: "dev-1"}
	pins := 0
	c.pin = func(_ context.Context, _, uid string) (string, error) {
		pins++
		if !c.mu.TryLock() {
			t.Fatal("the lock is held meanwhile: a pass that asks for the condition would wait for ever")
		}
		c.mu.Unlock()
		return uid, nil
	}
	for _, uid := range []string{"u-1", "u-2"} {
		if pinned, err := c.identity(t.Context(), nil, uid); err != nil || pinned != "u-1" {
			t.Errorf("pinned %q, %v", pinned, err)
		}
	}
	if pins != 1 {
		t.Errorf("pinned %d times", pins)
	}
}
