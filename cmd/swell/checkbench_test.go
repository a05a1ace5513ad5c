// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/swell-sh/swell/testdata/large"
)

// BenchmarkCheck checks folders with the program itself, with an empty cache and again: one
// of 452 definitions in the folder of schemas or in a unit, and one of 2,000 units of which
// half are refused. It tells the most memory that the first one took, and how much of its
// work the second one does.
func BenchmarkCheck(b *testing.B) {
	swell := filepath.Join(b.TempDir(), "swell")
	if out, err := exec.Command("go", "build", "-o", swell, ".").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	const definitions = 452
	for name, test := range map[string]struct {
		files func(func(name, content string) error) error
		want  string
	}{
		"schemas": {large.Operators{Definitions: definitions}.Files, "swell: 1 unit, 1 bundle, 1 object\n"},
		"unit":    {large.Operators{Definitions: definitions, InUnit: true}.Files, "swell: 2 units, 2 bundles, 453 objects\n"},
		"refused": {large.Refused{Units: 2000}.Files, "1000 problems; frozen: 1000 units\n"},
	} {
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir()
			if err := test.files(large.Into(dir)); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				cache := filepath.Join(b.TempDir(), "cache")
				var cpu [2]float64
				for i, run := range []string{"first", "second"} {
					cmd := exec.Command(swell, "check", "--repo", dir, "--cache", cache)
					out, _ := cmd.CombinedOutput() // refused units are an exit code
					if !strings.HasSuffix(string(out), test.want) {
						b.Fatalf("got %.500s\nwant %s", out, test.want)
					}
					used := cmd.ProcessState.SysUsage().(*syscall.Rusage)
					cpu[i] = cmd.ProcessState.UserTime().Seconds() + cmd.ProcessState.SystemTime().Seconds()
					b.ReportMetric(float64(used.Maxrss>>10), run+"-MiB")
					b.ReportMetric(cpu[i], run+"-cpu-s")
				}
				b.ReportMetric(cpu[1]/cpu[0], "second/first")
				b.ReportMetric(0, "ns/op") // holds all
			}
		})
	}
}
