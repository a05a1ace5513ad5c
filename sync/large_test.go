// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/cache"
	"github.com/swell-sh/swell/sync/source"
	"github.com/swell-sh/swell/testdata/large"
)

// largeTrees are the trees of a large monorepo's branches.
func largeTrees(tb testing.TB, specs int) func(branch string) (config.Commit, config.Tree) {
	tb.Helper()
	dir := filepath.Join(tb.TempDir(), "repo.git")
	if err := large.Repository(dir, "../testdata/monorepo", specs); err != nil {
		tb.Fatal(err)
	}
	return openTrees(tb, dir)
}

func openTrees(tb testing.TB, dir string) func(branch string) (config.Commit, config.Tree) {
	src, err := source.OpenLocal(dir)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { src.Close() })
	return func(branch string) (config.Commit, config.Tree) {
		commit, err := src.Resolve(branch)
		if err != nil {
			tb.Fatal(err)
		}
		tree, err := src.Tree(commit)
		if err != nil {
			tb.Fatal(err)
		}
		return commit, tree
	}
}

func snapshotOf(tb testing.TB, c *render.Compiler, trees func(string) (config.Commit, config.Tree), branch string, rendered int) {
	commit, tree := trees(branch)
	s := c.Snapshot(commit, tree)
	if len(s.Problems) > 0 || s.Rendered != rendered {
		tb.Fatalf("%s: rendered %d units, want %d; %v", branch, s.Rendered, rendered, s.Problems)
	}
}

// BenchmarkSpecChanged: from a new commit that changes one spec to the changed
// bundles, in a small and in a large monorepo.
func BenchmarkSpecChanged(b *testing.B) {
	for _, specs := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(specs), func(b *testing.B) {
			trees := largeTrees(b, specs)
			var c render.Compiler
			snapshotOf(b, &c, trees, "main", specs)
			version := 0
			for b.Loop() {
				version++
				b.StopTimer()
				c.Version = fmt.Sprint(version) // so that the one spec is not in the cache
				b.StartTimer()
				snapshotOf(b, &c, trees, []string{"main", "spec"}[version%2], 1)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N), "ms")
		})
	}
}

// BenchmarkKindChanged: a commit that changes the kind of all specs.
func BenchmarkKindChanged(b *testing.B) {
	const specs = 100_000
	trees := largeTrees(b, specs)
	for b.Loop() {
		b.StopTimer()
		var c render.Compiler
		snapshotOf(b, &c, trees, "main", specs)
		b.StartTimer()
		snapshotOf(b, &c, trees, "kind", specs)
	}
	b.ReportMetric(specs*large.ObjectsPerSpec*float64(b.N)/b.Elapsed().Seconds(), "objects/s")
}

// usage is what a process used.
type usage struct {
	Seconds float64 // from its start to the snapshot
	RSS     int64   // the most bytes that were resident
}

// BenchmarkProcess starts a process that renders 100,000 specs, with an empty
// cache and then with the one that it left.
func BenchmarkProcess(b *testing.B) {
	const specs = 100_000
	dir := filepath.Join(b.TempDir(), "repo.git")
	if err := large.Repository(dir, "../testdata/monorepo", specs); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		cacheDir := b.TempDir()
		for _, run := range []struct {
			name     string
			rendered int
		}{{"cold", specs}, {"warm", 0}} {
			cmd := exec.Command(os.Args[0], "-test.run", "^TestLargeProcess$")
			cmd.Env = append(os.Environ(), "SWELL_LARGE_REPOSITORY="+dir, "SWELL_LARGE_CACHE="+cacheDir, fmt.Sprintf("SWELL_LARGE_RENDERED=%d", run.rendered))
			began := time.Now()
			out, err := cmd.Output()
			if err != nil {
				b.Fatalf("%s: %v\n%s", run.name, err, out)
			}
			var u usage
			_, text, _ := strings.Cut(string(out), "usage ")
			if err := json.NewDecoder(strings.NewReader(text)).Decode(&u); err != nil {
				b.Fatalf("%s: %v\n%s", run.name, err, out)
			}
			u.RSS = cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
			b.ReportMetric(time.Since(began).Seconds(), run.name+"-process-s")
			b.ReportMetric(u.Seconds, run.name+"-ready-s")
			b.ReportMetric(float64(u.RSS>>20), run.name+"-MiB")
		}
		size := int64(0)
		entries, _ := os.ReadDir(cacheDir)
		for _, e := range entries {
			if info, err := e.Info(); err == nil {
				size += info.Size()
			}
		}
		b.ReportMetric(float64(size>>20), "cache-MiB")
	}
}

// TestLargeProcess is the process of [BenchmarkProcess].
func TestLargeProcess(t *testing.T) {
	dir := os.Getenv("SWELL_LARGE_REPOSITORY")
	if dir == "" {
		return // it is a part of a benchmark
	}
	began := time.Now()
	var rendered int
	if _, err := fmt.Sscan(os.Getenv("SWELL_LARGE_RENDERED"), &rendered); err != nil {
		t.Fatal(err)
	}
	kept, err := cache.Open(os.Getenv("SWELL_LARGE_CACHE"), 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	c := render.Compiler{Cache: kept, Version: "1"}
	snapshotOf(t, &c, openTrees(t, dir), "main", rendered)
	text, err := json.Marshal(usage{Seconds: time.Since(began).Seconds()})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("usage %s\n", text)
	if err := kept.Close(); err != nil {
		t.Fatal(err)
	}
}
