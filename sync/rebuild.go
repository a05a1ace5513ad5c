// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/diff"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// A cluster that the state knows nothing of is surveyed before anything is
// written to it: the state may have been lost, and then what swell has there is
// found by its labels and taken in. Objects that a bundle of the commit wants
// become entries of that bundle, and are applied. For all others it is noted
// that their unit, as their annotation names it, has them in the cluster; a
// target that has only the cluster's name stands for "nobody knows which".
//
// Nothing is deleted in the cluster until every unit that is placed there is
// known, applied and healthy. Then those that nobody wants are handed to the
// rollouts to be removed, which takes approval: another swell may have made
// them, from another monorepo of the same name.

const rebuildingText = "the inventory of its cluster is being rebuilt"

// surveyed is what a survey found.
type surveyed struct {
	entries []store.Entry
	unknown []string
	err     error
}

const (
	// surveyPatience is how long a pass waits for surveys. They go on beside
	// the passes after that.
	surveyPatience = 5 * time.Second
	// surveyPause is when a survey that could not see some kinds is made again:
	// there are API services that are down for years.
	surveyPause = time.Hour
	surveyRetry = 10 * time.Second // after one that failed
)

// rebuild surveys the clusters that nothing is known of, and ends the rebuilding
// of those that are as the commit wants them.
func (d *Daemon) rebuild(ctx context.Context, r *Record) {
	if d.snapshot == nil || d.wanted.Refused() != "" || r.Err != nil {
		d.dropSurveys()
		return
	}
	d.startSurveys(ctx, r)
	patience := time.NewTimer(surveyPatience)
	defer patience.Stop()
	for _, name := range slices.Sorted(maps.Keys(d.surveying)) {
		var found surveyed
		select {
		case found = <-d.surveying[name]: // whether or not the patience is over: nobody tells of it again
		default:
			select {
			case found = <-d.surveying[name]:
			case <-patience.C:
				patience.Reset(0) // it is over for the others too
				continue
			}
		}
		delete(d.surveying, name)
		if ctx.Err() == nil {
			d.takeSurvey(ctx, r, name, found)
		}
	}
	for name, known := range d.surveys {
		if known.Survey == store.Rebuilding && r.Err == nil && d.asWanted(name) {
			d.rebuilt(ctx, r, name)
		}
	}
}

// dropSurveys forgets those that are over: what they found belongs to bundles
// that are not known now. They are made again.
func (d *Daemon) dropSurveys() {
	for name, answer := range d.surveying {
		select {
		case <-answer:
			delete(d.surveying, name)
		default:
		}
	}
}

// startSurveys begins a survey of each cluster that one is due for.
func (d *Daemon) startSurveys(ctx context.Context, r *Record) {
	due := slices.DeleteFunc(slices.Clone(d.snapshot.Repository.Clusters), func(c *config.Cluster) bool {
		return d.clusters[c.Name] == nil || d.surveying[c.Name] != nil || d.surveyDue(c.Name).After(r.At)
	})
	var reached sync.WaitGroup
	conns := make([]*apply.Cluster, len(due))
	for i, c := range due {
		known := d.clusters[c.Name]
		reached.Go(func() {
			conns[i], _ = d.reach(ctx, c.Name, known) // whoever writes to it says what is wrong
		})
	}
	reached.Wait()
	for i, c := range due {
		switch conn := conns[i]; {
		case conn != nil:
			answer := make(chan surveyed, 1)
			d.surveying[c.Name] = answer
			go d.survey(ctx, conn, answer)
		case !d.surveyAt[c.Name].IsZero(): // else it is begun as soon as somebody reaches the cluster
			d.surveyAt[c.Name] = r.At.Add(surveyRetry)
		}
	}
}

// never is later than any time that a daemon lives to see.
var never = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// surveyDue is when a cluster is to be surveyed.
func (d *Daemon) surveyDue(name string) time.Time {
	if known := d.surveys[name]; known.Survey != store.Unsurveyed && known.Unknown == "" {
		return never
	}
	return d.surveyAt[name]
}

func (d *Daemon) survey(ctx context.Context, conn *apply.Cluster, answer chan<- surveyed) {
	var found surveyed
	found.entries, found.unknown, found.err = conn.Survey(ctx)
	answer <- found
	d.wake()
}

// takeSurvey stores what a survey found.
func (d *Daemon) takeSurvey(ctx context.Context, r *Record, name string, found surveyed) {
	if found.err != nil {
		d.surveyAt[name] = r.At.Add(surveyRetry)
		r.fail(fmt.Errorf("cluster %s: survey: %w", name, found.err))
		if errors.Is(found.err, apply.ErrUnreachable) {
			d.clusters[name].Lost(ctx, found.err)
		}
		return
	}
	d.surveyAt[name] = r.At.Add(surveyPause)
	entries, err := d.strangers(name, found.entries)
	if err != nil {
		r.Err = err
		return
	}
	is := d.surveys[name]
	if unknown := strings.Join(found.unknown, ", "); unknown != is.Unknown && unknown != "" {
		r.Transitions = append(r.Transitions, rollout.Transition{Time: r.At, Commit: d.snapshot.Commit, Kind: "unknown",
			Text: fmt.Sprintf("cluster %s: it is not known what swell has of %s: they could not be listed", name, unknown)})
	}
	is.Name, is.Unknown = name, strings.Join(found.unknown, ", ")
	event := rollout.Transition{Time: r.At, Commit: d.snapshot.Commit, Kind: "rebuilding",
		Text: fmt.Sprintf("cluster %s: %s taken in", name, diff.Count(len(entries), "object"))}
	switch {
	case len(entries) > 0:
		is.Survey = store.Rebuilding
		r.Transitions = append(r.Transitions, event)
	case is.Survey == store.Unsurveyed:
		is.Survey = store.Known
	}
	r.Err = d.Store.Update(ctx, func(tx *store.Tx) error {
		return errors.Join(tx.TakeIn(entries), tx.Surveyed(name, is.Survey, is.Unknown))
	})
	d.surveys[name] = is
	d.guarded.pending = nil
}

// strangers are the entries that the inventory does not hold, with the bundle
// that each belongs to. What is marked to be kept and nobody wants was let go of,
// or will be: nobody has to look after it.
func (d *Daemon) strangers(cluster string, found []store.Entry) ([]store.Entry, error) {
	inventory, err := d.Store.ClusterInventory(cluster)
	if err != nil {
		return nil, err
	}
	known := make(map[render.ObjectID]bool, len(inventory))
	for _, e := range inventory {
		known[e.ID] = known[e.ID] || e.UID != ""
	}
	var entries []store.Entry
	for _, e := range found {
		if known[e.ID] {
			continue
		}
		e.Target = config.TargetName(cluster)
		if by := d.Compiler.MayWant(cluster, e.ID); len(by) > 0 {
			e.Unit, e.Target = by[0].Unit, by[0].Target
		} else if e.Keep {
			continue
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// asWanted says whether every unit that is placed in the cluster is known,
// applied, healthy and soaked there. What a rollout does elsewhere is not waited
// for: another cluster may be away for days.
func (d *Daemon) asWanted(cluster string) bool {
	for path, unit := range d.snapshot.Units.All() {
		for _, on := range unit.Placements {
			if on.Target.Name.Cluster() != cluster {
				continue
			}
			if !d.wanted.Known(path) {
				return false
			}
			state := d.state.Units[path]
			if on.Digest == "" { // it renders to nothing there, and that is known
				continue
			}
			if state == nil || state.Targets[on.Target.Name] == nil || !state.Targets[on.Target.Name].Holds(on.Digest) || state.Soaking() {
				return false
			}
		}
	}
	return true
}

// rebuilt ends the rebuilding of a cluster: what was found there and nobody has
// applied since is handed to the rollouts.
func (d *Daemon) rebuilt(ctx context.Context, r *Record, name string) {
	inventory, err := d.Store.ClusterInventory(name)
	if err != nil {
		r.Err = err
		return
	}
	var owned []store.Entry
	left := map[render.Placed]bool{}
	for _, e := range inventory {
		switch by := d.Compiler.MayWant(name, e.ID); {
		case !e.Found:
		case len(by) > 0 && by[0] != e.Place() && d.has(by[0], e.ID):
			owned = append(owned, e) // its unit was not known when it was found
		default:
			left[e.Place()] = true
		}
	}
	for _, at := range slices.SortedFunc(maps.Keys(left), comparePlaced) {
		d.state.TakeIn(at.Unit, at.Target, d.snapshot.Commit, r.At)
	}
	for path, unit := range d.state.Units { // what was put off meanwhile
		for target := range unit.Targets {
			if target.Cluster() == name {
				d.state.Nudge(path)
				break
			}
		}
	}
	is := d.surveys[name]
	is.Survey = store.Known
	r.Err = d.Store.Update(ctx, func(tx *store.Tx) error {
		return errors.Join(tx.Forget(owned), tx.Surveyed(name, is.Survey, is.Unknown), d.putState(tx))
	})
	if r.Err != nil {
		return
	}
	d.state.Stored()
	d.surveys[name] = is
	d.guarded.pending, d.guarded.stale = nil, true
	r.Transitions = append(r.Transitions, rollout.Transition{Time: r.At, Commit: d.snapshot.Commit, Kind: "rebuilt",
		Text: fmt.Sprintf("cluster %s: its inventory is known again", name)})
}

// nextSurvey is when a survey is due; zero is never.
func (d *Daemon) nextSurvey() time.Time {
	var next time.Time
	if d.snapshot == nil {
		return next
	}
	for _, c := range d.snapshot.Repository.Clusters {
		if due := d.surveyDue(c.Name); d.clusters[c.Name] != nil && d.surveying[c.Name] == nil && due != never && !due.IsZero() {
			next = earliest(next, due)
		}
	}
	return next
}
