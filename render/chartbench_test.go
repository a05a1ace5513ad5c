// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/helm"
	sync "github.com/swell-sh/swell/sync/helm"
	"github.com/swell-sh/swell/testdata/large"
)

// timedCharts counts the time that charts take to be rendered.
type timedCharts struct {
	Charts
	took atomic.Int64
}

func (c *timedCharts) Render(request helm.Request) helm.Answer {
	began := time.Now()
	defer func() { c.took.Add(int64(time.Since(began))) }()
	return c.Charts.Render(request)
}

// BenchmarkLargeChart renders and checks a chart of the size of argo-cd's, on one cluster and
// on ten with a value of their own each. It reports how many times as long all of it takes as
// Helm's engine takes for its part.
func BenchmarkLargeChart(b *testing.B) {
	charts := &sync.Renderer{}
	defer charts.Close()
	for _, clusters := range []int{1, 10} {
		b.Run(fmt.Sprintf("clusters=%d", clusters), func(b *testing.B) {
			dir := b.TempDir()
			if err := (large.Chart{Clusters: clusters}).Files(large.Into(dir)); err != nil {
				b.Fatal(err)
			}
			tree := config.Files(os.DirFS(dir))
			timed := &timedCharts{Charts: charts}
			for b.Loop() {
				c := Compiler{Charts: timed}
				if s := c.Snapshot("", tree); len(s.Problems) > 0 {
					b.Fatal(s.Problems[0])
				}
			}
			b.ReportMetric(b.Elapsed().Seconds()/time.Duration(timed.took.Load()).Seconds(), "swell/helm")
		})
	}
}

// BenchmarkSameProblem checks the chart where all of its objects are refused on each of 1,000
// clusters, and reports how many times as long that takes as on one.
func BenchmarkSameProblem(b *testing.B) {
	charts := &sync.Renderer{}
	defer charts.Close()
	var took [2]time.Duration
	var trees [2]config.Tree
	for i, clusters := range []int{1, 1000} {
		dir := b.TempDir()
		if err := (large.Chart{Clusters: clusters, Refused: true}).Files(large.Into(dir)); err != nil {
			b.Fatal(err)
		}
		trees[i] = config.Files(os.DirFS(dir))
	}
	for b.Loop() {
		for i, tree := range trees {
			began := time.Now()
			c := Compiler{Charts: charts}
			if s := c.Snapshot("", tree); len(s.Problems) != 200 {
				b.Fatal(len(s.Problems), s.Problems)
			}
			took[i] += time.Since(began)
		}
	}
	b.ReportMetric(took[1].Seconds()/took[0].Seconds(), "thousand/one")
}
