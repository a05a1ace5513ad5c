// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/sync/source"
	"github.com/swell-sh/swell/testdata/large"
)

// largeTrees are the trees of a large monorepo's branches.
func largeTrees(tb testing.TB, m large.Monorepo) func(branch string) (config.Commit, config.Tree) {
	tb.Helper()
	m.Example = "../testdata/monorepo"
	dir := filepath.Join(tb.TempDir(), "repo.git")
	if err := m.Repository(dir); err != nil {
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
// bundles, in a small and in a large monorepo, and with tenants and policies.
func BenchmarkSpecChanged(b *testing.B) {
	for _, m := range []large.Monorepo{{Specs: 1_000}, {Specs: 100_000}, {Specs: 100_000, Checked: true}} {
		b.Run(fmt.Sprintf("%d/checked=%t", m.Specs, m.Checked), func(b *testing.B) {
			trees := largeTrees(b, m)
			var c render.Compiler
			snapshotOf(b, &c, trees, "main", m.Specs)
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
	trees := largeTrees(b, large.Monorepo{Specs: specs})
	for b.Loop() {
		b.StopTimer()
		var c render.Compiler
		snapshotOf(b, &c, trees, "main", specs)
		b.StartTimer()
		snapshotOf(b, &c, trees, "kind", specs)
	}
	b.ReportMetric(specs*large.ObjectsPerSpec*float64(b.N)/b.Elapsed().Seconds(), "objects/s")
}
