// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"crypto/sha256"
	"fmt"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/helm"
)

// atOnce calls something by several goroutines.
func atOnce(do func(n int)) {
	var finished sync.WaitGroup
	for n := range 8 {
		finished.Go(func() { do(n) })
	}
	finished.Wait()
}

// TestCommitAtOnce: bundles of one commit are asked for by the jobs of several clusters. With the
// race detector, it shows that each has its own or waits.
func TestCommitAtOnce(t *testing.T) {
	t.Parallel()
	files := richFiles()
	var compiler Compiler
	s := snapshot(&compiler, files)
	commit, err := NewCommit(config.Files(files), nil, "", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	atOnce(func(int) {
		for _, unit := range s.Units.Sorted() {
			for _, placement := range unit.Placements {
				if placement.Digest == "" || len(unit.Problems) > 0 {
					continue
				}
				if b, err := commit.Bundle(unit.Path, placement.Target.Name, placement.Digest); err != nil || b.Digest != placement.Digest {
					t.Errorf("%s on %s: %v", unit.Path, placement.Target.Name, err)
				}
			}
		}
	})
}

// TestLastFileAtOnce: problems of several files are told at the same time.
func TestLastFileAtOnce(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for n := range 3 {
		files[fmt.Sprintf("%d.yaml", n)] = fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d}\n", n)
	}
	tree := config.Files(with(fstest.MapFS{}, files))
	var last lastFile
	atOnce(func(n int) {
		for i := range 50 {
			name := fmt.Sprintf("c%d", (n+i)%3)
			doc := last.at(tree, document.Position{File: fmt.Sprintf("%d.yaml", (n+i)%3), Line: 1, Column: 1})
			if doc == nil || doc.Name != name {
				t.Errorf("want %s, got %v", name, doc)
			}
			if i%10 == 0 {
				last.clear()
			}
		}
	})
}

// TestChartAtOnce: a chart is asked for the same on several targets, and rendered once.
func TestChartAtOnce(t *testing.T) {
	t.Parallel()
	c := &chart{answers: map[[sha256.Size]byte]*charted{}}
	e := &expansion{unitRenderer: &unitRenderer{world: &world{}}}
	first := e.ask(c, helm.Request{Release: "0"})
	atOnce(func(n int) {
		for i := range 20 {
			answer := e.ask(c, helm.Request{Release: fmt.Sprint((n + i) % 4)})
			if isFirst := (n+i)%4 == 0; isFirst != (answer == first) || len(answer.Problems) != 1 {
				t.Errorf("%d: another answer than before, or none: %v", (n+i)%4, answer.Problems)
			}
		}
	})
}
