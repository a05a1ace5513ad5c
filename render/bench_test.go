// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/testdata/large"
)

// bigMonorepo is a folder with a monorepo.
func bigMonorepo(tb testing.TB, m large.Monorepo) string {
	tb.Helper()
	dir := tb.TempDir()
	m.Example = "../testdata/monorepo"
	if err := m.Folder(dir); err != nil {
		tb.Fatal(err)
	}
	return dir
}

// hashed is the folder with its hashes taken, which a Git tree has at no cost.
func hashed(tb testing.TB, dir string) config.Tree {
	tree := config.Files(os.DirFS(dir))
	if _, err := tree.Hash("."); err != nil {
		tb.Fatal(err)
	}
	return tree
}

func countObjects(s *Snapshot) int {
	n := 0
	for _, unit := range s.Units.All() {
		for _, on := range unit.Placements {
			n += on.Objects
		}
	}
	return n
}

// BenchmarkCold renders 10,000 specs from nothing, with strict decoding and
// every object checked against its schema.
func BenchmarkCold(b *testing.B) { benchmarkCold(b, large.Monorepo{Specs: 10_000}) }

// BenchmarkChecked is BenchmarkCold with a Tenant for each team and four admission
// policies, of which each object matches at least one.
func BenchmarkChecked(b *testing.B) {
	benchmarkCold(b, large.Monorepo{Specs: 10_000, Checked: true})
}

func benchmarkCold(b *testing.B, m large.Monorepo) {
	tree := hashed(b, bigMonorepo(b, m))
	objects := 0
	began := cpuTime(b)
	for b.Loop() {
		var c Compiler
		s := c.Snapshot("", tree)
		if len(s.Problems) > 0 {
			b.Fatal(s.Problems[0])
		}
		objects = countObjects(s)
	}
	// CPU time, garbage collection included, is what a core gives; elapsed
	// time on a shared machine also holds what others take.
	cpu := cpuTime(b) - began
	b.ReportMetric(float64(objects*b.N)/cpu.Seconds(), "objects/s/core")
	b.ReportMetric(float64(objects*b.N)/b.Elapsed().Seconds(), "objects/s")
	b.ReportMetric(float64(objects), "objects")
}

// BenchmarkScaling renders 10,000 specs on one core and then on all.
func BenchmarkScaling(b *testing.B) {
	tree := hashed(b, bigMonorepo(b, large.Monorepo{Specs: 10_000}))
	var elapsed [2]time.Duration
	for b.Loop() {
		for i, cores := range []int{1, runtime.NumCPU()} {
			old := runtime.GOMAXPROCS(cores)
			began := time.Now()
			var c Compiler
			s := c.Snapshot("", tree)
			elapsed[i] += time.Since(began)
			runtime.GOMAXPROCS(old)
			if len(s.Problems) > 0 {
				b.Fatal(s.Problems[0])
			}
		}
	}
	b.ReportMetric(elapsed[0].Seconds()/elapsed[1].Seconds(), "times-faster")
	b.ReportMetric(float64(runtime.NumCPU()), "cores")
}

// cpuTime is the CPU time that this process has used, over all cores.
func cpuTime(tb testing.TB) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkOneChanged renders a commit that changes one of 10,000 specs, as it is and
// with tenants and policies.
func BenchmarkOneChanged(b *testing.B) {
	for _, checked := range []bool{false, true} {
		b.Run(fmt.Sprintf("checked=%t", checked), func(b *testing.B) { benchmarkOneChanged(b, large.Monorepo{Specs: 10_000, Checked: checked}) })
	}
}

func benchmarkOneChanged(b *testing.B, m large.Monorepo) {
	dir := bigMonorepo(b, m)
	trees := [2]config.Tree{hashed(b, dir)}
	if err := os.WriteFile(filepath.Join(dir, large.SpecFile(4242)), []byte(large.Spec(4242, "1.0.1")), 0o644); err != nil {
		b.Fatal(err)
	}
	trees[1] = hashed(b, dir)
	var c Compiler
	c.Snapshot("", trees[1])
	i := 0
	for b.Loop() {
		i++
		s := c.Snapshot("", trees[i%2])
		if len(s.Problems) > 0 {
			b.Fatal(s.Problems[0])
		}
	}
}
