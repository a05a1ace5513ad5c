// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

// BenchmarkChart renders a chart with subcharts in a process that waits for it, and reports
// how many times as long `helm template` takes.
func BenchmarkChart(b *testing.B) {
	archive, err := txtar.ParseFile("testdata/charts/subcharts.txtar")
	if err != nil {
		b.Fatal(err)
	}
	g := given{chart: filepath.Join(b.TempDir(), "chart"), kubernetes: "1.36"}
	for _, f := range packInside(b, archive.Files) {
		write(b, filepath.Join(g.chart, f.Name), string(f.Data))
	}
	asked := g.request(b)
	warm(b, shared)
	var byHelm time.Duration
	for b.Loop() {
		if answer := shared.Render(asked); len(answer.Problems) > 0 {
			b.Fatal(problemsOf(answer))
		}
		b.StopTimer()
		_, took, err := g.template(b)
		if err != nil {
			b.Fatal(err)
		}
		byHelm += took
		b.StartTimer()
	}
	b.ReportMetric(byHelm.Seconds()/b.Elapsed().Seconds(), "helm/swell")
}
