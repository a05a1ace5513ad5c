// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/object"
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

// surveys are how well each cluster is known, by its name. It is used by the pass only.
type surveys struct {
	known    map[string]store.ClusterState // as the store has it
	underWay map[string]chan surveyed
	due      map[string]time.Time // when what was unknown is surveyed again
	// compared are the clusters whose objects were held against the state since
	// the daemon began, with the term of the Lease in which that was: no other is
	// written to, see [Daemon.newerThan]. failures says why it did not come about.
	compared map[string]int
	failures map[string]error
	awaits   map[string]awaited // what the rebuilding of a cluster waits for
	// fleet are the clusters of the newest commit that was taken: no others are pinned. It is nil before.
	// Others than the pass read it. tracked are those whose departures the state has.
	fleet   *atomic.Pointer[map[string]bool]
	tracked map[string]bool
	// reported says that the state of rollouts knows where objects were found.
	reported bool
}

func newSurveys(known map[string]store.ClusterState) surveys {
	return surveys{known: known, underWay: map[string]chan surveyed{}, due: map[string]time.Time{}, compared: map[string]int{},
		failures: map[string]error{}, awaits: map[string]awaited{}, fleet: &atomic.Pointer[map[string]bool]{}}
}

// follow lets the clusters of a commit be pinned, and no others. It comes before the transaction that
// has them depart: whoever pins one meanwhile is done before that begins, or refused.
func (s *surveys) follow(w *rollout.Wanted) {
	if w != nil && w.Clusters != nil && w.Refused() == "" {
		s.fleet.Store(&w.Clusters)
	}
}

// surveyed is what a survey found.
type surveyed struct {
	cluster string
	term    int // of the cluster's Lease
	entries []store.Entry
	unknown []string
	err     error
}

const (
	// surveyPatience is how long a pass waits for surveys. They go on in
	// the background after that.
	surveyPatience = 5 * time.Second
	// surveyPause is when a survey that could not see some kinds is made again:
	// there are API services that are down for years.
	surveyPause = time.Hour
	surveyRetry = 10 * time.Second // after one that failed
)

// endedSurveys begins the surveys that are due, and returns what those have found that
// are over.
func (d *Daemon) endedSurveys(ctx context.Context, r *Record) (ended []surveyed) {
	d.distrustTerms()
	d.startSurveys(ctx, r)
	patience := time.NewTimer(surveyPatience)
	defer patience.Stop()
	for _, name := range slices.Sorted(maps.Keys(d.surveys.underWay)) {
		var found surveyed
		select {
		case found = <-d.surveys.underWay[name]: // whether or not the patience is over: nobody tells of it again
		default:
			select {
			case found = <-d.surveys.underWay[name]:
			case <-patience.C:
				patience.Reset(0) // it is over for the others too
				continue
			}
		}
		delete(d.surveys.underWay, name)
		ended = append(ended, found)
		if errors.Is(found.err, apply.ErrUnreachable) {
			d.fleet.Of(name).Lost(ctx, found.err)
		}
	}
	return ended
}

// endRebuilding ends the rebuilding of the clusters that are as the commit wants them.
func (p *pass) endRebuilding() error {
	if !p.monorepo.isConfirmed() {
		return nil
	}
	for name, known := range p.surveys.known {
		if known.Survey != store.Rebuilding {
			continue
		}
		if p.surveys.awaits[name] = p.awaited(name); p.surveys.awaits[name].unit != "" {
			continue
		}
		if err := p.rebuilt(name); err != nil {
			return err
		}
	}
	return nil
}

// startSurveys begins a survey of each cluster that one is due for.
func (d *Daemon) startSurveys(ctx context.Context, r *Record) {
	due := slices.DeleteFunc(d.surveyedClusters(), func(name string) bool {
		if d.fleet.Of(name) == nil || d.surveys.underWay[name] != nil || d.surveyDue(name).After(r.At) {
			return true
		}
		term, _ := d.fleet.Of(name).Term()
		return term == 0
	})
	var reached sync.WaitGroup
	conns := make([]*apply.Cluster, len(due))
	errs := make([]error, len(due))
	for i, name := range due {
		way := d.wayTo(name)
		reached.Go(func() { conns[i], errs[i] = way(ctx) })
	}
	reached.Wait()
	for i, name := range due {
		d.surveys.failures[name] = errs[i] // whoever wants to write there says so
		term, _ := d.fleet.Of(name).Term()
		switch conn := conns[i]; {
		case term == 0: // the Lease was lost meanwhile
		case conn != nil:
			answer := make(chan surveyed, 1)
			d.surveys.underWay[name] = answer
			go d.survey(ctx, conn, surveyed{cluster: name, term: term}, answer)
		case !d.surveys.due[name].IsZero(): // else it is begun as soon as somebody reaches the cluster
			d.surveys.due[name] = r.At.Add(surveyRetry)
		}
	}
}

// surveyedClusters are the clusters that a survey may be due for: those of the fleet. As
// long as that is not known, those that were known before may be compared.
func (d *Daemon) surveyedClusters() (names []string) {
	if d.monorepo.isKnown() {
		for _, c := range d.monorepo.snapshot.Repository.Clusters {
			names = append(names, c.Name)
		}
		return names
	}
	for name, known := range d.surveys.known {
		if known.Survey != store.Unsurveyed && known.Survey != store.Departed && d.surveys.compared[name] == 0 && d.monorepo.name != "" {
			names = append(names, name)
		}
	}
	return names
}

// never is later than any time that a daemon lives to see.
var never = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// surveyDue is when a cluster is to be surveyed.
func (d *Daemon) surveyDue(name string) time.Time {
	if known := d.surveys.known[name]; known.Survey != store.Unsurveyed && known.Unknown == "" && d.surveys.compared[name] != 0 {
		return never
	}
	return d.surveys.due[name]
}

func (d *Daemon) survey(ctx context.Context, conn *apply.Cluster, found surveyed, answer chan<- surveyed) {
	found.entries, found.unknown, found.err = conn.Survey(ctx)
	answer <- found
	d.wake()
}

// takeSurveys takes in what surveys found.
func (p *pass) takeSurveys() error {
	for _, found := range p.in.surveys {
		if err := p.takeSurvey(found); err != nil {
			return err
		}
	}
	return nil
}

func (p *pass) takeSurvey(found surveyed) error {
	name := found.cluster
	if found.err != nil {
		p.surveys.due[name] = p.r.At.Add(surveyRetry)
		p.surveys.failures[name] = fmt.Errorf("cluster %s: survey: %w", name, found.err)
		p.r.went("survey of "+name, p.surveys.failures[name])
		return nil
	}
	p.r.went("survey of "+name, nil)
	inventory, err := p.tx.ClusterInventory(name)
	if err != nil {
		return err
	}
	is, older := p.surveys.known[name], ""
	stranger, err := p.strangeWriter(name)
	if err != nil {
		return err
	}
	if is.Survey != store.Unsurveyed && p.surveys.compared[name] == 0 {
		older = cmp.Or(p.newerThan(inventory, found.entries, strings.Split(is.Unknown, ", "), p.orphaned(name)), stranger)
	}
	strays := unowned(inventory, found.entries)
	if !p.monorepo.isConfirmed() { // what is kept was mostly orphaned
		strays = slices.DeleteFunc(strays, func(e store.Entry) bool { return e.Keep })
	}
	if !p.monorepo.isConfirmed() && (older != "" || len(strays) > 0 || is.Survey == store.Unsurveyed) {
		p.surveys.due[name] = p.r.At.Add(surveyRetry)
		p.surveys.failures[name] = fmt.Errorf("cluster %s: %s; what Git wants of it is not known yet", name, notOnRecord(older, strays))
		isKept := func(e store.Entry) bool { return e.Keep } // it may have been orphaned
		older = cmp.Or(p.newerThan(inventory, found.entries, strings.Split(is.Unknown, ", "), isKept), stranger)
		if older != "" && is.Survey != store.Unsurveyed {
			why := fmt.Sprintf("cluster %s: the state is older than the cluster: %s", name, older)
			p.r.Transitions = append(p.r.Transitions, p.state.Suspect(name, why, p.r.At)...)
		}
		return nil
	}
	p.surveys.due[name] = p.r.At.Add(surveyPause)
	if err := p.putWriters(name); err != nil {
		return err
	}
	if older != "" {
		return p.distrust(name, found, older)
	}
	entries := p.assign(name, strays)
	if unknown := strings.Join(found.unknown, ", "); unknown != is.Unknown && unknown != "" {
		p.fleetEvent("unknown", fmt.Sprintf("cluster %s: it is not known what swell has of %s: they could not be listed", name, unknown))
	}
	is.Name, is.Unknown = name, strings.Join(found.unknown, ", ")
	switch {
	case len(entries) > 0:
		is.Survey = store.Rebuilding
		p.fleetEvent("rebuilding", fmt.Sprintf("cluster %s: %s taken in", name, document.Count(len(entries), "object")))
	case is.Survey == store.Unsurveyed:
		is.Survey = store.Known
	}
	p.guarded.pending = nil
	p.openUp(name, found)
	if len(entries) == 0 && is == p.surveys.known[name] {
		return nil
	}
	p.surveys.known[name] = is
	return errors.Join(p.tx.Adopt(entries), p.tx.Surveyed(name, is.Survey, is.Unknown))
}

// tellFound tells the rollouts where objects were found.
func (p *pass) tellFound() error {
	if p.surveys.reported {
		return nil
	}
	places, err := p.tx.Found()
	p.state.SetFound(places)
	p.surveys.reported = true
	return err
}

// notOnRecord says in which way a cluster holds what the state does not know.
func notOnRecord(older string, strays []store.Entry) string {
	switch {
	case older != "":
		return older
	case len(strays) > 0:
		return fmt.Sprintf("the state does not know %s that swell made there, such as %s", document.Count(len(strays), "object"), strays[0].ID)
	}
	return "the state does not know it"
}

// openUp says that what a survey of the cluster had to tell is in the state: it
// may be written to.
func (d *Daemon) openUp(name string, found surveyed) {
	d.surveys.compared[name], d.surveys.reported = found.term, false
	delete(d.surveys.failures, name)
	d.state.Resume(name)
}

// fleetEvent adds a transition that is about no unit.
func (p *pass) fleetEvent(kind, text string) {
	t := rollout.Transition{Time: p.r.At.UTC().Round(0), Kind: kind, Text: text}
	if p.monorepo.snapshot != nil {
		t.Commit = p.monorepo.snapshot.Commit
	}
	p.r.Transitions = append(p.r.Transitions, t)
}

// unowned are the objects found that the inventory does not hold. What a unit has that was
// about to apply it is of an apply that was cut short: the next one notes its UID.
func unowned(inventory, found []store.Entry) []store.Entry {
	type intended struct {
		unit config.UnitPath
		id   object.ID
	}
	known, begun := make(map[object.ID]bool, len(inventory)), map[intended]bool{}
	for _, e := range inventory {
		known[e.ID] = known[e.ID] || e.UID != ""
		begun[intended{e.Unit, e.ID}] = true
	}
	return slices.DeleteFunc(slices.Clone(found), func(e store.Entry) bool { return known[e.ID] || begun[intended{e.Unit, e.ID}] })
}

// assign gives objects that were found in a cluster to the bundles that want
// them. What is marked to be kept and nobody wants was orphaned, or will be:
// nobody has to look after it.
func (d *Daemon) assign(cluster string, found []store.Entry) (entries []store.Entry) {
	for _, e := range found {
		e.Target = config.TargetName(cluster)
		if by := d.monorepo.mayWant(cluster, e.ID); len(by) > 0 {
			e.Unit, e.Target = by[0].Unit, by[0].Target
		} else if e.Keep {
			continue
		}
		entries = append(entries, e)
	}
	return entries
}

// awaited says what the rebuilding of a cluster waits for; nothing when every unit
// that is placed there is known, applied, healthy and soaked. It names the same unit
// for as long as that is one of them.
func (d *Daemon) awaited(cluster string) (what awaited) {
	before := d.surveys.awaits[cluster].unit
	if unit := d.monorepo.snapshot.Units.Get(before); unit != nil {
		if what = d.lacking(cluster, before, unit); what.unit != "" {
			return what
		}
	}
	for path, unit := range d.monorepo.snapshot.Units.All() {
		if what = d.lacking(cluster, path, unit); what.unit != "" {
			break
		}
	}
	return what
}

// awaited is a unit that the rebuilding of a cluster waits for, and why; the zero
// value is none.
type awaited struct {
	unit config.UnitPath
	why  string
}

// lacking says what a unit lacks in a cluster. What its rollout does elsewhere is
// not waited for: another cluster may be away for days.
func (d *Daemon) lacking(cluster string, path config.UnitPath, unit *render.Unit) awaited {
	for _, on := range unit.Placements {
		switch state := d.state.Units[path]; {
		case on.Target.Name.Cluster() != cluster:
		case !d.monorepo.wanted.Known(path):
			return awaited{path, "which has a problem"}
		case on.Digest == "": // it renders to nothing there, and that is known
		case state == nil || state.Targets[on.Target.Name] == nil || !state.Targets[on.Target.Name].Holds(on.Digest) || state.Soaking():
			return awaited{path, fmt.Sprintf("which is not applied, healthy and soaked on target %s", on.Target.Name)}
		}
	}
	return awaited{}
}

// rebuilt ends the rebuilding of a cluster: what was found there and nobody has
// applied since is handed to the rollouts.
func (p *pass) rebuilt(name string) error {
	inventory, err := p.tx.ClusterInventory(name)
	if err != nil {
		return err
	}
	owners := p.owners(p.tx)
	var owned []store.Entry
	left := map[object.UnitTarget]bool{}
	for _, e := range inventory {
		switch by := p.monorepo.mayWant(name, e.ID); {
		case !e.Found:
		case len(by) > 0 && by[0] != e.Place() && owners.Has(by[0], e.ID):
			owned = append(owned, e) // its unit was not known when it was found
		default:
			left[e.Place()] = true
		}
	}
	for _, at := range slices.SortedFunc(maps.Keys(left), object.UnitTarget.Compare) {
		p.state.Adopt(at.Unit, at.Target, p.monorepo.snapshot.Commit, p.r.At)
	}
	for path, unit := range p.state.Units { // what was put off meanwhile
		for target := range unit.Targets {
			if target.Cluster() == name {
				p.state.Nudge(path)
				break
			}
		}
	}
	is := p.surveys.known[name]
	is.Survey = store.Known
	p.surveys.known[name] = is
	p.guarded.pending, p.guarded.stale = nil, true
	p.fleetEvent("rebuilt", fmt.Sprintf("cluster %s: its inventory is known again", name))
	return errors.Join(p.tx.Forget(owned), p.tx.Surveyed(name, is.Survey, is.Unknown))
}

// nextSurvey is when a survey is due; zero is never.
func (d *Daemon) nextSurvey() time.Time {
	var next time.Time
	for _, name := range d.surveyedClusters() {
		if d.fleet.Of(name) == nil || d.surveys.underWay[name] != nil {
			continue
		}
		if term, _ := d.fleet.Of(name).Term(); term == 0 {
			continue // whoever gets the Lease tells
		}
		if due := d.surveyDue(name); due != never && !due.IsZero() {
			next = earliest(next, due)
		}
	}
	return next
}
