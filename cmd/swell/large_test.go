// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/swell-sh/swell/testdata/large"
)

// BenchmarkProcess checks 100,000 specs of a Git repository with the program
// itself: with an empty cache, and again with the one that this left.
func BenchmarkProcess(b *testing.B) {
	const specs = 100_000
	dir := b.TempDir()
	repo, swell := filepath.Join(dir, "repo.Git"), filepath.Join(dir, "swell")
	if out, err := exec.Command("go", "build", "-o", swell, ".").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	if err := (large.Monorepo{Example: "../../testdata/monorepo", Specs: specs}).Repository(repo); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		cache := filepath.Join(b.TempDir(), "cache")
		for _, run := range []string{"cold", "warm"} {
			cmd := exec.Command(swell, "check", "--repo", repo, "main", "--cache", cache)
			began := time.Now()
			out, err := cmd.CombinedOutput()
			elapsed := time.Since(began).Seconds()
			if err != nil || !strings.Contains(string(out), "100000 units, 200000 bundles, 1000000 objects") {
				b.Fatalf("%v: %s", err, out)
			}
			used := cmd.ProcessState.SysUsage().(*syscall.Rusage)
			b.ReportMetric(elapsed, run+"-s")
			b.ReportMetric(cmd.ProcessState.UserTime().Seconds()+cmd.ProcessState.SystemTime().Seconds(), run+"-cpu-s")
			b.ReportMetric(float64(used.Maxrss>>10), run+"-MiB")
		}
	}
}
