// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/cache"
	"github.com/swell-sh/swell/sync/source"
	"github.com/swell-sh/swell/sync/store"
)

// TestCacheOff: a cache that could not be written was off for the daemon's life,
// and nothing said so. The log says it once.
func TestCacheOff(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	repo := filepath.Join(dir, "repo")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.CopyFS(repo, os.DirFS("../testdata/monorepo")))
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", repo, "-c", "user.name=Ada", "-c", "user.email=ada@example.com"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v: %s", args, err, out)
		}
	}
	git("init", "--quiet", "--initial-branch=main")
	git("add", "--all")
	git("commit", "--quiet", "-m", "change")
	state, err := store.Open(filepath.Join(dir, "state"))
	must(err)
	defer state.Close()
	src, err := source.Open(source.Config{URL: repo, Branch: "main", Dir: filepath.Join(dir, "git")})
	must(err)
	defer src.Close()
	kept, err := cache.Open(filepath.Join(dir, "cache"), 1<<30)
	must(err)
	defer kept.Close()
	var log strings.Builder
	d, err := Open(Options{Source: src, Store: state, Log: slog.New(slog.NewTextHandler(&log, nil)), Compiler: render.Compiler{Cache: kept}})
	must(err)
	pass := func() {
		t.Helper()
		r := d.Once(t.Context())
		must(errors.Join(append(r.Errors, r.Err)...))
	}
	warnings := func() int { return strings.Count(log.String(), "level=WARN msg=\"cache: nothing more is stored") }
	d.checkCache()
	if n := warnings(); n != 0 {
		t.Errorf("%d warnings of a cache that is good", n)
	}
	must(os.RemoveAll(filepath.Join(dir, "cache"))) // as a disk that is full: nothing can be written
	for range 3 {
		pass()
	}
	if n := warnings(); d.Snapshot() == nil || kept.Err() == nil || n != 1 {
		t.Errorf("snapshot %v, error %v, %d warnings, want one:\n%s", d.Snapshot() != nil, kept.Err(), n, log.String())
	}
}
