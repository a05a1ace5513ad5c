// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTracked: what git itself says it tracks, also without a checksum of the index, in a linked
// work tree, and where the index is of a form that is not read.
func TestTracked(t *testing.T) {
	root := t.TempDir()
	git := func(dir string, args ...string) {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_COUNT=2",
			"GIT_CONFIG_KEY_0=user.name", "GIT_CONFIG_VALUE_0=a", "GIT_CONFIG_KEY_1=user.email", "GIT_CONFIG_VALUE_1=a@example.com")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	repo, linked := filepath.Join(root, "repo"), filepath.Join(root, "linked")
	for _, file := range []string{"in/a.yaml", "in/new.yaml"} {
		if err := os.MkdirAll(filepath.Join(repo, "in"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(repo, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(scene, dir string, want ...string) {
		t.Helper()
		files := []string{filepath.Join(dir, "in/a.yaml"), filepath.Join(dir, "in/new.yaml"), filepath.Join(root, "outside.yaml")}
		for i := range want {
			want[i] = filepath.Join(dir, want[i])
		}
		if diff := cmp.Diff(want, Tracked(files)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", scene, diff)
		}
	}
	expect("outside of Git", repo)
	git(root, "init", "-q", "repo")
	expect("nothing added", repo)
	git(repo, "add", "in/a.yaml")
	expect("added", repo, "in/a.yaml")
	git(repo, "commit", "-qm", "x")
	expect("committed", repo, "in/a.yaml")
	git(repo, "worktree", "add", "-q", linked)
	expect("a linked work tree", linked, "in/a.yaml")
	git(repo, "config", "index.skipHash", "true")
	git(repo, "update-index", "--force-write-index")
	expect("no checksum", repo, "in/a.yaml")
	git(repo, "update-index", "--split-index")
	expect("a split index", repo, "in/a.yaml", "in/new.yaml")
}
