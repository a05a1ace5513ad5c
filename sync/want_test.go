// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/sync/rollout"
)

// TestRolloutChanged: a unit that did not change itself kept the waves that it
// had, whatever became of its Rollout.
func TestRolloutChanged(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../testdata/monorepo")); err != nil {
		t.Fatal(err)
	}
	m := &monorepo{compiler: &render.Compiler{}}
	want := func() (soak time.Duration, unit any) {
		m.snapshot = m.compiler.Snapshot("", config.Files(os.DirFS(dir)))
		u := m.want(&rollout.State{}).Units["services/shop/cart"]
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

// TestUnitThatANeighbourNames: a unit was deleted when a kustomization beside it
// named its folder as a base.
func TestUnitThatANeighbourNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../testdata/monorepo")); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		file := filepath.Join(dir, "services/shop", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const path = "services/shop/one"
	m := &monorepo{compiler: &render.Compiler{}}
	there := &rollout.State{Units: map[config.UnitPath]*rollout.Unit{path: {Path: path}}}
	frozen := func() string {
		m.snapshot = m.compiler.Snapshot("", config.Files(os.DirFS(dir)))
		if unit := m.want(there).Units[path]; unit != nil {
			return unit.Frozen
		}
		return "gone"
	}
	write("one/kustomization.yaml", "resources: [x.yaml]\n")
	write("swell.yaml", "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: shop}\nspec: {tenant: shop, placement: {topology: cluster}}\n")
	write("one/x.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: shop-rz00a}\n")
	if got := frozen(); got != "" {
		t.Errorf("at first: %q", got)
	}
	write("two/kustomization.yaml", "resources: [../one]\n")
	if got := frozen(); !strings.HasPrefix(got, "services/shop/two/kustomization.yaml:1: names the folder") {
		t.Errorf("named: got %q, want a reason", got)
	}
	if err := os.RemoveAll(filepath.Join(dir, path)); err != nil {
		t.Fatal(err)
	}
	if got := frozen(); got != "gone" {
		t.Errorf("removed: got %q, want it gone", got)
	}
}
