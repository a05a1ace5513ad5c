// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"encoding/json"
	"path"
	"slices"
)

// release is what one document of the other tool brings to one cluster: what a folder
// comes to, or a chart.
type release struct {
	of      *object
	name    string
	cluster string
	keys    []string // that needs of other releases of the cluster name

	folder  string // from the root
	deep    bool   // of a folder without a kustomization, also what is below it
	changes []change
	leaves  []string // files and folders in a plain folder that bring nothing, from there
	chart   *helmChart
	// namespaces are made by the unit, which has no folder then.
	namespaces []string

	settings settings
	needs    []string // keys of releases of the cluster
	objects  []*object
}

// settings are what Defaults say of a unit.
type settings struct {
	Namespace string
	Keep      bool   // nothing is deleted
	Off       string // why; empty when the unit is released
	Drift     string // the mode; empty for the default
	Ignore    []ignored
}

// ignored are fields that belong to others.
type ignored struct {
	Kind   string   `json:"kind"`
	Object string   `json:"object,omitempty"`
	Fields []string `json:"fields"`
}

// helmChart is a HelmChart document to be. Paths are from the root.
type helmChart struct {
	Chart, Release, Namespace string
	ValuesFrom                []string
	Values                    map[string]any
}

// group are releases of the same content: one unit, on all of their clusters.
type group struct {
	*release   // the first
	clusters   []string
	from       []*object
	members    []*release
	called     string // a name for the unit
	unit       string // the folder of the unit; empty for none
	generated  bool   // it is not the folder of the release
	rollout    string
	everywhere bool // on all clusters of the fleet
}

// isFolder says whether a release is what a folder comes to.
func (r *release) isFolder() bool { return r.chart == nil && len(r.namespaces) == 0 }

// content is what tells releases apart that are not one unit. Those of one folder may have
// several names, as an ApplicationSet gives one for each cluster.
func (r *release) content() string {
	name := r.name
	if r.isFolder() {
		name = ""
	}
	text, _ := json.Marshal([]any{name, r.folder, r.deep, r.changes, r.leaves, r.chart, r.namespaces, r.settings, r.needs}) // plain values: no error
	return string(text)
}

// grouped are the releases as units to be, in the order in which they were found.
func (r *reader) grouped() (groups []*group) {
	byContent := map[string]*group{}
	for _, one := range r.releases {
		slices.Sort(one.needs)
		one.needs = slices.Compact(one.needs)
		key := one.content()
		g := byContent[key]
		if g == nil {
			g = &group{release: one, called: one.name}
			byContent[key] = g
			groups = append(groups, g)
		}
		g.members = append(g.members, one)
		if !slices.Contains(g.clusters, one.cluster) {
			g.clusters = append(g.clusters, one.cluster)
		}
		if !slices.Contains(g.from, one.of) {
			g.from = append(g.from, one.of)
		}
	}
	for _, g := range groups {
		slices.Sort(g.clusters)
		if slices.ContainsFunc(g.members, func(one *release) bool { return one.name != g.name }) {
			g.called = path.Base(g.folder)
		}
		g.everywhere = len(g.clusters) == len(r.clusters)
	}
	return groups
}
