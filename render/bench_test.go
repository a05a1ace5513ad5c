// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/swell-sh/swell/config"
)

// bigMonorepo is a folder with the example's fleet and kinds and n specs of
// the kind Runtime, one per unit, 100 in a folder, each placed on two targets.
func bigMonorepo(tb testing.TB, n int) string {
	tb.Helper()
	dir := tb.TempDir()
	write := func(name string, content []byte) {
		name = filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, content, 0o644)); err != nil {
			tb.Fatal(err)
		}
	}
	for _, file := range []string{"swell.yaml", "fleet/sas-1.yaml", "fleet/rollout.yaml",
		"kinds/runtime/kind.yaml", "kinds/runtime/runtime.proto"} {
		content, err := os.ReadFile("../testdata/monorepo/" + file)
		if err != nil {
			tb.Fatal(err)
		}
		write(file, content)
	}
	for i := range n {
		team := fmt.Sprintf("services/team%03d", i/100)
		write(team+"/swell.yaml", fmt.Appendf(nil, `apiVersion: swell.sh/v1
kind: Defaults
metadata: {name: team%03d}
spec:
  tenant: team%03d
  placement: {match: {labels: {region: sas}}}
`, i/100, i/100))
		unit := fmt.Sprintf("%s/service%05d", team, i)
		write(unit+"/runtime.yaml", bigSpec(i, "1.0.0"))
		write(unit+"/app.toml", fmt.Appendf(nil, "[app]\nname = %q\n", unit))
	}
	return dir
}

func bigSpec(i int, tag string) []byte {
	return fmt.Appendf(nil, `apiVersion: easy.example.com/v1
kind: Runtime
metadata: {name: service%05d}
spec:
  image: registry.example.com/service%05d:%s
  replicas: {sas: 2, vla: 3}
  config: {fromFile: app.toml}
  env: {LOG_LEVEL: info, REGION: sas}
  autoscale: {max: 6, cpuPercent: 70}
`, i, i, tag)
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
func BenchmarkCold(b *testing.B) {
	tree := hashed(b, bigMonorepo(b, 10_000))
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

// cpuTime is the CPU time that this process has used, over all cores.
func cpuTime(tb testing.TB) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkOneChanged renders a commit that changes one of 10,000 specs.
func BenchmarkOneChanged(b *testing.B) {
	dir := bigMonorepo(b, 10_000)
	trees := [2]config.Tree{hashed(b, dir)}
	if err := os.WriteFile(filepath.Join(dir, "services/team042/service04242/runtime.yaml"), bigSpec(4242, "1.0.1"), 0o644); err != nil {
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
