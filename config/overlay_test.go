// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// TestOverlay: replaced folders hold what is laid over and nothing else, all
// others what they held, and hashes follow.
func TestOverlay(t *testing.T) {
	under := fstest.MapFS{
		"swell.yaml": {Data: []byte("s")}, "fleet/a.yaml": {Data: []byte("under")}, "apps/eu/one/x.yaml": {Data: []byte("1")},
		"apps/us/two/y.yaml": {Data: []byte("2")}, "kinds/k/kind.yaml": {Data: []byte("k")},
	}
	lay := func(content string) Tree {
		top := fstest.MapFS{"fleet/b.yaml": {Data: []byte(content)}, "apps/eu/new/z.yaml": {Data: []byte("3")}, "jobs/j.yaml": {Data: []byte("4")}}
		return Overlay(Files(under), Files(top), "fleet", "apps/eu", "jobs")
	}
	tree := lay("b")
	var files []string
	err := fs.WalkDir(tree, ".", func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			files = append(files, name)
			if _, err := tree.ReadFile(name); err != nil {
				t.Errorf("%s: listed, but %v", name, err)
			}
		}
		return err
	})
	want := []string{"apps/eu/new/z.yaml", "apps/us/two/y.yaml", "fleet/b.yaml", "jobs/j.yaml", "kinds/k/kind.yaml", "swell.yaml"}
	if diff := cmp.Diff(want, files); diff != "" || err != nil {
		t.Error(diff, err)
	}
	for _, gone := range []string{"fleet/a.yaml", "apps/eu/one/x.yaml", "apps/eu/one"} {
		_, err := tree.Hash(gone)
		if _, readErr := tree.ReadFile(gone); !errors.Is(readErr, fs.ErrNotExist) || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v, %v, want it not to be there", gone, err, readErr)
		}
	}
	other := lay("other")
	for name, changes := range map[string]bool{".": true, "fleet": true, "fleet/b.yaml": true, "apps": false, "apps/eu": false, "kinds": false, "swell.yaml": false} {
		a, errA := tree.Hash(name)
		b, errB := other.Hash(name)
		if errA != nil || errB != nil || (a != b) != changes {
			t.Errorf("hash of %s: changes %v, want %v (%v, %v)", name, a != b, changes, errA, errB)
		}
	}
}
