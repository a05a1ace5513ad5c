// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/rollout"
)

// TestRolloutChanged: a unit that did not change itself kept the waves that it
// had, whatever became of its Rollout.
func TestRolloutChanged(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../testdata/monorepo")); err != nil {
		t.Fatal(err)
	}
	d := &Daemon{state: &rollout.State{}}
	want := func() (soak time.Duration, unit any) {
		d.snapshot = d.Compiler.Snapshot("", config.Files(os.DirFS(dir)))
		u := d.want().Units["services/shop/cart"]
		return u.Rollout.Waves[0].Soak, u
	}
	soak, first := want()
	if again, same := want(); again != soak || same != first {
		t.Errorf("unchanged: soak %s and then %s, the same unit: %t", soak, again, same == first)
	}
	file := filepath.Join(dir, "fleet/rollout.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.Replace(text, []byte("soak: 10m"), []byte("soak: 99m"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if soak, _ := want(); soak != 99*time.Minute {
		t.Errorf("soak %s, want 1h39m", soak)
	}
}
