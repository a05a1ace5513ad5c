// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"slices"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/schema"
)

// defineCharts gathers the definitions of custom resources that the Helm charts of a unit
// render to. They stand where the chart is named. The charts are rendered before the
// definitions of the tree are known: what a chart asks of those has no say in its own.
func (w *world) defineCharts(hard *hardKinds, e *entry) {
	if !slices.Contains(e.holds, config.HelmChartKind) || w.charts == nil {
		return
	}
	docs, _, _ := w.documents(e.source, &recorder{world: w}) // rendering tells the problems
	bare := &world{repository: w.repository, charts: w.charts, rules: w.rules, cache: w.cache, version: w.version, places: w.places, data: w.data,
		hard: &hardKinds{clusters: hard.clusters, versions: hard.versions, sets: map[string]*schema.Set{}, within: map[string]*schema.Set{}}}
	u := &unitRenderer{world: bare, unit: e.source, reads: recorder{world: bare}, on: w.places.clustersOf(e.placed)}
	for _, doc := range docs {
		if config.IsHelmChart(doc) {
			u.readChart(doc)
		}
	}
	known := map[string]*definition{} // by content
	read := map[writtenIn]*definition{}
	for _, src := range u.sources {
		if !src.chart.files.MayDefine() {
			continue
		}
		at := src.doc.At(document.NodeAt(src.doc.Node, []any{"spec", "chart"}))
		for _, place := range e.placed {
			x := u.expansion(place)
			x.space = u.namespaceFor(x.templates)
			request, ok := x.request(src.chart)
			if !ok {
				continue // rendering tells
			}
			answer := x.ask(src.chart, request)
			for i, object := range answer.objects {
				if object["kind"] != definitionKind || object["apiVersion"] != definitionVersion {
					continue
				}
				from := writtenIn{answer.texts[i], answer.Answer.Objects[i].Item}
				d := read[from]
				if d == nil {
					d = newDefinition(at, object)
					read[from] = d
				}
				if known[d.hash] == nil {
					known[d.hash] = d
					d.unit, d.on = e.source.Path, map[string]bool{}
					hard.definitions = append(hard.definitions, d)
				}
				known[d.hash].on[place.cluster.Name] = true
			}
		}
	}
}
