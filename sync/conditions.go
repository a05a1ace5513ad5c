// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/sync/store"
)

// told is what the daemon has said of what keeps it from its work. It is used by the pass
// only.
type told struct {
	conditions map[string]store.Condition // that the store knows, by what they are about
	unreached  []string                   // clusters that the store knows as such
	warned     map[string]string          // what was last said about a cluster, or about the folder of kubeconfigs
	cacheOff   bool                       // the log says that the cache stores nothing more
}

// maxConditions bounds how many units that were never released are told of.
const maxConditions = 100

// currentConditions is what keeps the daemon from its work at the moment, by what it is
// about; see [store.Condition].
func (d *Daemon) currentConditions() map[string]string {
	now := map[string]string{}
	if d.branch.failure != "" {
		now["git"] = d.branch.failure
	}
	if text := d.clock.condition(); text != "" {
		now[store.AboutClock] = text
	}
	if text := d.configurationProblem(); text != "" {
		now[store.AboutChange] = text
	}
	if refused := d.monorepo.wanted.Refused(); refused != "" && d.monorepo.snapshot != nil {
		short := "commit " + d.monorepo.snapshot.Commit.Short()
		now[short] = "not taken: " + strings.TrimPrefix(refused, short+": ")
	}
	if d.monorepo.snapshot != nil && !d.monorepo.snapshot.Held {
		if idle := d.monorepo.snapshot.Idle; len(idle) > 0 {
			now[store.AboutFleet] = "a document of the fleet names what Git does not have any more: " + someProblems(idle)
		}
		for _, unit := range d.monorepo.broken[:min(len(d.monorepo.broken), maxConditions)] {
			if d.state.Units[unit.Path] == nil { // else its state says so
				now["unit "+string(unit.Path)] = "not released yet: " + someProblems(unit.Problems)
			}
		}
	}
	for _, name := range d.clustersOfFleet() {
		if text := d.sweeps.failures[name]; text != "" {
			now[store.AboutCluster(name)] = text
		}
		if what := d.surveys.awaits[name]; what.unit != "" && d.rebuilding(name) {
			now[store.AboutCluster(name)] = fmt.Sprintf("the rebuilding of its inventory waits for unit %s, %s", what.unit, what.why)
		}
		if _, why := d.barred(name); why != nil {
			now[store.AboutCluster(name)] = why.Error()
		}
		if err := d.fleet.Of(name).Condition(); err != nil {
			now[store.AboutCluster(name)] = err.Error()
		}
	}
	for name := range d.unconfiguredClusters() {
		now[store.AboutCluster(name)] = d.fleet.Unknown(name).Error()
	}
	if stray := d.strayClusters(); stray != "" {
		now[store.AboutConfiguration] = stray
	}
	if d.Conditions != nil {
		maps.Copy(now, d.Conditions())
	}
	for about, text := range now {
		now[about] = strings.ReplaceAll(text, "\n", "; ")
	}
	return now
}

// clustersOfFleet are the configured clusters that the fleet has, sorted; before the first commit, all. One that
// left is not asked any more: how it was at last is nobody's trouble.
func (d *Daemon) clustersOfFleet() []string {
	names := d.fleet.Names()
	if w := d.monorepo.wanted; w != nil && w.Clusters != nil {
		names = slices.DeleteFunc(names, func(name string) bool { return !w.Clusters[name] })
	}
	return names
}

// unconfiguredClusters are those in which units have something, or are to have it, and which the
// daemon's configuration does not say how to reach.
func (d *Daemon) unconfiguredClusters() map[string]bool {
	names := map[string]bool{}
	for name := range d.monorepo.wanted.Clusters {
		if d.fleet.Of(name) == nil {
			names[name] = true
		}
	}
	if len(names) == 0 {
		return nil
	}
	used := map[string]bool{}
	for _, u := range d.state.Units {
		for target := range u.Targets {
			if names[target.Cluster()] {
				used[target.Cluster()] = true
			}
		}
	}
	return used
}

// strayClusters says which clusters of the daemon's configuration the fleet does
// not have. It may be that the fleet gets them later, so it stops nothing.
func (d *Daemon) strayClusters() string {
	if d.monorepo.snapshot == nil || d.monorepo.snapshot.Held || d.monorepo.snapshot.Repository == nil {
		return ""
	}
	var names, stray []string
	for _, c := range d.monorepo.snapshot.Repository.Clusters {
		names = append(names, c.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(d.Clusters)) {
		if slices.Contains(names, name) {
			continue
		}
		if _, had := d.surveys.known[name]; had { // no typing mistake, and nothing to correct
			stray = append(stray, fmt.Sprintf("cluster %q: it left the fleet: its access may go from here, too", name))
		} else {
			stray = append(stray, fmt.Sprintf("cluster %q: the fleet has no cluster of this name%s", name, document.DidYouMean(name, names)))
		}
	}
	return strings.Join(stray, "; ")
}

// unreached returns the clusters of which nothing new is known, sorted: they do not answer,
// or something keeps the jobs out that look at them.
func (d *Daemon) unreached() (clusters []string) {
	for _, name := range d.clustersOfFleet() {
		if _, why := d.barred(name); why != nil || d.fleet.Of(name).IsDown() {
			clusters = append(clusters, name)
		}
	}
	return clusters
}

// saveUnreached stores which clusters cannot be looked at, where others could not before.
func (p *pass) saveUnreached() error {
	now := p.unreached()
	if slices.Equal(now, p.told.unreached) {
		return nil
	}
	p.told.unreached = now
	return p.tx.PutUnreached(now)
}

// saveConditions stores what keeps the daemon from its work, where that changed.
func (p *pass) saveConditions() error {
	now := p.currentConditions()
	if maps.EqualFunc(now, p.told.conditions, func(text string, known store.Condition) bool { return text == known.Text }) {
		return nil
	}
	conditions := make(map[string]store.Condition, len(now))
	for about, text := range now {
		since := p.r.At
		if known, ok := p.told.conditions[about]; ok {
			since = known.Since
		}
		conditions[about] = store.Condition{About: about, Since: since.UTC().Round(time.Second), Text: text}
	}
	for about := range p.told.conditions {
		if cluster, ok := strings.CutPrefix(about, "cluster "); ok && conditions[about].Text == "" {
			p.state.Resume(cluster) // the next pass goes on there
			p.wake()
		}
	}
	if stray := now[store.AboutConfiguration]; stray != "" && stray != p.told.conditions[store.AboutConfiguration].Text {
		p.Log.Warn("configuration", "text", stray)
	}
	p.told.conditions = conditions
	return p.tx.SetConditions(slices.Collect(maps.Values(conditions)))
}

// openConditions are those that an earlier daemon left.
func openConditions(s Store) (map[string]store.Condition, error) {
	known, err := s.Conditions()
	conditions := map[string]store.Condition{}
	for _, t := range known {
		conditions[t.About] = t
	}
	return conditions, err
}
