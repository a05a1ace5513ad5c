// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"cmp"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/diff"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/approval"
	"github.com/swell-sh/swell/sync/executor"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/ownership"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// Preview tells what the daemon would do with head in a fleet that has all of
// base: what it writes and deletes, what it holds for approval, lets go of, forgets
// or keeps. compiler is the one that made head, as the last of the two. What only
// the clusters know is not in it: marks on live objects, a server's refusal.
func Preview(base, head *render.Snapshot, compiler *render.Compiler, guard config.Guard) (*diff.Report, error) {
	report, err := newPreview(base, head, affectedBy(base, head), compiler).report(guard)
	if err == nil && report.Refused == "" {
		report.Joining = Joining(base, head, nil)
	}
	return report, err
}

// PreviewPlan is [Preview], and the way of the release through waves and gates. fleet says how the
// fleet differs from one that has all of base: of the zero value nothing is known, and no order of
// operators holds.
func PreviewPlan(base, head *render.Snapshot, compiler *render.Compiler, guard config.Guard, fleet rollout.Now, now time.Time,
) (*diff.Report, *Forecast, error) {
	units := affectedBy(base, head)
	concerned := maps.Clone(units)
	live, err := fleet.Decode()
	if err != nil {
		return nil, nil, err
	}
	maps.DeleteFunc(live, func(path config.UnitPath, _ *rollout.Unit) bool {
		return base.Units.Get(path) == nil && head.Units.Get(path) == nil
	})
	for path := range live {
		units[path] = true
	}
	p := newPreview(base, head, units, compiler)
	p.live, p.concerned, p.standing, p.clusters = live, concerned, fleet.Standing, fleet.Clusters
	return p.plan(guard, now)
}

// PreviewLater returns the changes of head in units that have problems only by the rules of the base: they
// are released with the next commit. alone is head without those rules, which compiler made last. Nil
// where there are none.
func PreviewLater(base, head, alone *render.Snapshot, compiler *render.Compiler, guard config.Guard) (*diff.Report, error) {
	units := map[config.UnitPath]bool{}
	for _, unit := range ownership.Broken(head) {
		if same := alone.Units.Get(unit.Path); !alone.Held && same != nil && len(same.Problems) == 0 {
			units[unit.Path] = true
		}
	}
	if len(units) == 0 {
		return nil, nil
	}
	report, err := Preview(base, alone, compiler, guard)
	if err != nil {
		return nil, err
	}
	return report.Only(units), nil
}

func (p *preview) plan(guard config.Guard, now time.Time) (*diff.Report, *Forecast, error) {
	report, err := p.report(guard)
	if err != nil || report.Refused != "" {
		return report, nil, err
	}
	f := &forecast{prospect: p.prospect, now: now, withheld: p.verdict.Withheld}
	f.concerns = func(path config.UnitPath) bool { return p.concerned[path] }
	f.Commit = p.snapshot.Commit
	was, is := *p.baseWanted, *p.wanted
	was.Bounds, is.Bounds = boundsOf(p.base.Repository, nil), boundsOf(p.snapshot.Repository, p.snapshot.Base)
	is.Approved = p.verdict.Ends
	f.state, f.wanted = rollout.Settled(&was), &is
	is.Order(p.standing)
	stood := p.standings(&is, now)
	maps.Copy(f.state.Units, p.live)
	ends := time.Now().Add(previewFor)
	f.run(func() bool { return time.Now().Before(ends) })
	report.Now, report.Joining = p.tellNow(report, stood, &f.Forecast), Joining(p.base, p.snapshot, p.clusters)
	return report, &f.Forecast, nil
}

// previewFor is how long the way of the releases may take to work out.
const previewFor = 5 * time.Second

func (p *preview) report(guard config.Guard) (*diff.Report, error) {
	if why := p.wanted.Refused(); why != "" {
		return &diff.Report{Changes: []diff.Change{}, Refused: why}, nil
	}
	if err := p.findMoved(); err != nil {
		return nil, err
	}
	losses, err := p.losses(nil)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(losses, func(place object.UnitTarget, _ approval.Loss) bool { return p.quarantined(place.Unit) != "" })
	if p.verdict, err = p.judge(guard, new(approval.Ledger), losses); err != nil {
		return nil, err
	}
	p.simulate()
	return diff.Compare(p.base, p.snapshot, diff.Outlook{
		Kept: p.kept, Forgotten: p.forgotten, Stays: p.staysAsIs, Had: p.had, Was: p.was, Gone: p.gone, Along: p.along, Skips: p.skips, Withheld: p.withheld,
	})
}

// preview is the prospect of a fleet that has what base wants.
type preview struct {
	prospect
	base       *render.Snapshot
	baseWanted *rollout.Wanted
	verdict    approval.Verdict
	// moved are objects of base that only other bundles of head want, and where they
	// are.
	moved map[clusterObject]object.UnitTarget
	// without and with are the fleet after head is carried out without and with the
	// approvals that it takes; nil where all comes about.
	without, with *rollout.State
	// live are the units that are not as base wants them, as they are now, and standing the orders in
	// force. concerned are the units that the change affects.
	live      map[config.UnitPath]*rollout.Unit
	standing  order.Standing
	clusters  []string // that the daemon can reach; nil: nobody knows
	concerned affected
	contents  contents // see [contentsBetween]; nil before somebody asks
	unread    error    // why they cannot be told
}

// plainly is all that a commit wants of its units. known is the state of the fleet.
func plainly(s *render.Snapshot, known *rollout.State, before earlier) *rollout.Wanted {
	before = before.once()
	return wantOf(s, known, before, plainUnit(s, known, before))
}

func plainUnit(s *render.Snapshot, known *rollout.State, before earlier) func(*render.Unit) *rollout.WantedUnit {
	rollouts := config.NewRollouts(s.Repository.Rollouts, s.Repository, s.Base)
	return func(unit *render.Unit) *rollout.WantedUnit {
		return before.wantUnit(s, unit, rollouts.For(unit.Path, unit.Rollout), known.Units[unit.Path])
	}
}

// simulate finds out which units wait for others, where there are some that do not
// come: those with a problem, and those that are to be approved.
func (p *preview) simulate() {
	if len(p.broken)+len(p.verdict.Withheld) == 0 {
		return
	}
	p.with = rollout.Settled(p.baseWanted)
	p.with.Simulate(p.wanted)
	if p.without = p.with; len(p.verdict.Withheld) == 0 {
		return
	}
	unapproved := *p.wanted
	unapproved.Withheld = p.verdict.Withheld
	p.without = rollout.Settled(p.baseWanted)
	p.without.Simulate(&unapproved)
}

func newPreview(base, head *render.Snapshot, units affected, compiler *render.Compiler) *preview {
	p := &preview{base: base, moved: map[clusterObject]object.UnitTarget{}}
	p.baseWanted = units.want(base, &rollout.State{}, nil)
	p.state = rollout.Settled(p.baseWanted)
	if why := refused(head, base.Repository.Name); why != "" {
		p.wanted = &rollout.Wanted{Commit: head.Commit, Held: why}
	} else {
		p.wanted = units.want(head, p.state, func(config.Commit) (config.Tree, error) { return base.Repository.Tree, nil })
	}
	p.snapshot, p.compiler, p.broken, p.has = head, compiler, ownership.Broken(head), brought{base, p.moved}
	p.rebuilding = func(string) bool { return false }
	return p
}

func (p *preview) findMoved() error {
	changed := map[object.UnitTarget]bool{}
	for path, u := range p.state.Units {
		for name := range u.Targets {
			if !u.Settled(p.wanted) {
				changed[object.UnitTarget{Unit: path, Target: name}] = true
			}
		}
	}
	return p.has.each(changed, func(e store.Entry) {
		cluster := e.Target.Cluster()
		if by := p.compiler.MayWant(cluster, e.ID); len(by) > 0 && !slices.Contains(by, e.Place()) {
			p.moved[clusterObject{cluster, e.ID}] = e.Place()
		}
	})
}

// unit is the state of a unit, or that of one which is new.
func (p *preview) unit(path config.UnitPath) *rollout.Unit {
	if u := p.state.Units[path]; u != nil {
		return u
	}
	return &rollout.Unit{Path: path, Rollout: &rollout.Rollout{}}
}

// kept says why all that a unit has stays as it is.
func (p *preview) kept(path config.UnitPath) string {
	return cmp.Or(p.wanted.WhyFrozen(path), p.quarantined(path))
}

// quarantined says which bundle of head, that failed before, keeps a unit from being released.
func (p *preview) quarantined(path config.UnitPath) string {
	if u := p.live[path]; u != nil {
		return u.InQuarantineFor(p.wanted)
	}
	return ""
}

// forgotten says that the unit's cluster left the fleet.
func (p *preview) forgotten(at object.UnitTarget) bool {
	return p.had(at) && p.wanted.FateOf(p.unit(at.Unit), at.Target) == rollout.Forgotten
}

// staysAsIs says why what a unit has on a target, if anything, stays as it is.
func (p *preview) staysAsIs(at object.UnitTarget) string {
	if p.with != nil {
		if why := p.with.Waits(at, p.wanted); why != "" {
			return why
		}
	}
	if p.wanted.FateOf(p.unit(at.Unit), at.Target) != rollout.Stays {
		return ""
	}
	if unit := p.wanted.Units[at.Unit]; unit.Targets[at.Target].Digest != "" {
		return fmt.Sprintf("no wave of rollout %s picks it", unit.Rollout.Name)
	}
	return "the unit renders to nothing there: nothing is deleted"
}

// had says whether the fleet has base's bundle of the unit on the target.
func (p *preview) had(at object.UnitTarget) bool { return p.unit(at.Unit).Targets[at.Target] != nil }

// gone says what becomes of an object of base that head's bundle does not have; no
// action where another bundle takes it over.
func (p *preview) gone(at object.UnitTarget, o *object.Object) (diff.Action, string) {
	e := entryOf(at, o)
	switch {
	case p.wanted.FateOf(p.unit(at.Unit), at.Target) == rollout.Forgotten:
		return diff.Forgotten, rollout.ForgottenText
	case p.isTakenOver(at, o.ID):
		return "", ""
	}
	why := p.verdict.Held[approval.Of(e)]
	if broken := ownership.Blocking(p.snapshot, p.broken, at.Unit); broken != "" && (why == "" || p.begins(at.Unit)) {
		return diff.Left, ownership.MayBelong(broken)
	}
	switch {
	case ownership.Orphaned(p.snapshot, e.Unit, e):
		return diff.Released, apply.KeptText
	case o.ID.IsSystem():
		return diff.Released, apply.SystemText
	case why != "":
		return diff.Held, why
	}
	return diff.Deleted, ""
}

// isTakenOver says whether another bundle of head, or another one of the unit, has an object of
// base: not where that is a Job which does not run there.
func (p *preview) isTakenOver(unitTarget object.UnitTarget, id object.ID) bool {
	return slices.ContainsFunc(p.compiler.MayWant(unitTarget.Target.Cluster(), id), func(by object.UnitTarget) bool {
		return by == unitTarget || !p.leavesOut(by, id)
	})
}

// leavesOut says that an object of head's bundle is a Job that does not run on the target.
func (p *preview) leavesOut(unitTarget object.UnitTarget, id object.ID) bool {
	if !id.IsJob() {
		return false // a bundle is read for few objects only
	}
	bundle, err := p.snapshot.Bundle(unitTarget.Unit, unitTarget.Target)
	if err != nil || bundle == nil {
		return false
	}
	job := bundle.Find(id)
	switch {
	case job == nil:
		return false
	case job.Hook() == object.HookGate:
		unit := p.wanted.Units[unitTarget.Unit]
		return unit != nil && unit.Rollout != nil && !unit.Asks(unitTarget.Target, id.Name)
	}
	return p.skips(unitTarget, job) != ""
}

// begins says whether the release of a unit begins before anybody approves anything. What
// it deletes is judged once more when nothing stands in its way.
func (p *preview) begins(path config.UnitPath) bool {
	unit := p.without.Units[path] // there is one, since a unit has a problem
	return unit != nil && unit.Begun(p.wanted)
}

// withheld says why nothing of a unit is written to a target before somebody
// approves what it deletes, or what a unit deletes that it waits for.
func (p *preview) withheld(at object.UnitTarget) string {
	if why := p.verdict.Withheld[at.Unit]; why != "" || p.without == nil {
		return why
	}
	return p.without.Waits(at, p.wanted)
}

// was is the object as another bundle of base has it in the cluster.
func (p *preview) was(at object.UnitTarget, id object.ID) (*object.Object, object.UnitTarget) {
	from, there := p.moved[clusterObject{at.Target.Cluster(), id}]
	if !there || from == at {
		return nil, from
	}
	bundle, err := p.base.Bundle(from.Unit, from.Target)
	if err != nil || bundle == nil {
		return nil, from
	}
	return bundle.Find(id), from
}

// skips says why a hook of head does not run on a target.
func (p *preview) skips(unitTarget object.UnitTarget, hook *object.Object) string {
	if !hook.Hook().DiffersByEvent() {
		return ""
	}
	if event := p.eventOf(unitTarget); hook.Skips(event) {
		return executor.SkippedText(event)
	}
	return ""
}

// eventOf returns the event that head's bundle is to a unit on a target. A unit that takes
// over what another one has there is no install.
func (p *preview) eventOf(unitTarget object.UnitTarget) object.Event {
	event, _ := p.state.EventOf(unitTarget, "")
	bundle, err := p.snapshot.Bundle(unitTarget.Unit, unitTarget.Target)
	if err != nil || bundle == nil {
		return event
	}
	for _, o := range executor.Landmarks(bundle) {
		if from, isMoved := p.moved[clusterObject{unitTarget.Target.Cluster(), o.ID}]; isMoved && from != unitTarget {
			return object.Upgrade
		}
	}
	return event
}

type clusterObject struct {
	cluster string
	id      object.ID
}

// brought is the inventory of a fleet that has all bundles of a snapshot. moved are
// the objects of it that only other bundles of the next one want.
type brought struct {
	*render.Snapshot
	moved map[clusterObject]object.UnitTarget
}

func entryOf(at object.UnitTarget, o *object.Object) store.Entry {
	e := store.Entry{Unit: at.Unit, Target: at.Target, ID: o.ID, Version: o.Version, Digest: o.Digest, Keep: o.Annotation(config.AnnotationPrune) == config.PruneDisabled}
	if o.IsRun() {
		e.Ran = o.Digest // it has run
	}
	return e
}

func (b brought) Inventory(path config.UnitPath, target config.TargetName) (map[object.ID]store.Entry, error) {
	bundle, err := b.Bundle(path, target)
	if err != nil || bundle == nil {
		return nil, err
	}
	entries := make(map[object.ID]store.Entry, len(bundle.Objects))
	for _, o := range bundle.Objects {
		entries[o.ID] = entryOf(object.UnitTarget{Unit: path, Target: target}, o)
	}
	return entries, nil
}

// each decodes bundles on all processors: a commit may change very many. It hands entries
// over one at a time.
func (b brought) each(places map[object.UnitTarget]bool, see func(store.Entry)) error {
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for at := range places {
		group.Go(func() error {
			entries, err := b.Inventory(at.Unit, at.Target)
			mu.Lock()
			defer mu.Unlock()
			for _, e := range entries {
				see(e)
			}
			return err
		})
	}
	return group.Wait()
}

func (b brought) Elsewhere(at object.UnitTarget, ids []object.ID) (map[object.ID]bool, error) {
	found := map[object.ID]bool{}
	for _, id := range ids {
		if from, there := b.moved[clusterObject{at.Target.Cluster(), id}]; there && from != at {
			found[id] = true
		}
	}
	return found, nil
}

func (b brought) Count() (n int, err error) {
	for _, unit := range b.Units.All() {
		for i := range unit.Placements {
			n += unit.Placements[i].Objects
		}
	}
	return n, nil
}
