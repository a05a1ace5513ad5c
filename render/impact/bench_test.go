// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package impact

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/testdata/large"
)

// BenchmarkCompat judges a kind with 10,000 specs, from nothing: a rule of the message is
// narrower, and every object comes out otherwise.
func BenchmarkCompat(b *testing.B) {
	const specs = 10_000
	dir := b.TempDir()
	if err := (large.Monorepo{Example: "../../testdata/monorepo", Specs: specs}).Folder(dir); err != nil {
		b.Fatal(err)
	}
	base := config.Files(os.DirFS(dir))
	top := b.TempDir()
	for name, change := range map[string][2]string{
		"kinds/runtime/kind.yaml":     {`"{'app': name}"`, `"{'app': name, 'release': 'two'}"`},
		"kinds/runtime/runtime.proto": {"int32 max = 1;", "int32 max = 1 [(buf.validate.field).int32.lte = 1000];"},
	} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			b.Fatal(err)
		}
		text := strings.Replace(string(content), change[0], change[1], 1)
		if text == string(content) {
			b.Fatalf("%s: nothing changes", name)
		}
		if err := os.MkdirAll(filepath.Join(top, filepath.Dir(name)), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(top, name), []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	head := config.Overlay(base, config.Files(os.DirFS(top)), "kinds")
	began := cpuTime(b)
	for b.Loop() {
		var c render.Compiler
		was := c.Snapshot("", base)
		is := config.Load(head, nil)
		if !Touched(was.Repository, is) {
			b.Fatal("nothing changed")
		}
		mixed := c.Snapshot("", Tree(was.Repository, is))
		now := c.Snapshot("", head)
		report, err := Judge(was, mixed, now)
		if err != nil {
			b.Fatal(err)
		}
		changed, err := Changes(was, mixed)
		if err != nil {
			b.Fatal(err)
		}
		if len(report.Refused()) != 1 || len(report.Broken) > 0 || len(changed) == 0 || len(changed[0].Units) != specs {
			b.Fatalf("%+v, %d changes", report, len(changed))
		}
	}
	// Elapsed time on a shared machine also holds what others take.
	b.ReportMetric((cpuTime(b)-began).Seconds()/float64(b.N), "cpu-s/op")
	b.ReportMetric(specs, "specs")
}

// cpuTime is what the process has taken of all cores.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
