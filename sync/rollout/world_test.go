// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
)

// world is a small fleet, a Git history and a daemon that is killed now and
// then. It plays the part of everything that rollout does not know, and hands
// what it sees to a judge.
type world struct {
	t     *rapid.T
	wrong mutation

	now    time.Time
	state  State
	disk   map[config.UnitPath][]byte
	want   *Wanted
	agenda Agenda
	plan   Plan // with what is due of all units
	count  int  // of commits
	passes int
	calm   bool
	cured  bool // no bundle has anything wrong with it

	live     map[object.UnitTarget]*live
	down     map[config.TargetName]bool
	distress map[config.TargetName]bool
	ill      map[object.UnitTarget]bool
	watched  map[object.UnitTarget]bool
	underway map[object.UnitTarget]Action
	// orphans are what was live when the state was lost: nobody here finds it.
	orphans map[object.UnitTarget]bool

	judge  *judge
	step   time.Duration // by which the clock was set and that is not stored
	stored *judge        // the judge as of the last time that the state was stored
}

// live is what a target really holds of a unit.
type live struct {
	digest    object.Digest
	mixed     bool // a write stopped in the middle
	leftovers bool
	drifted   bool
	// next is the bundle that is being applied in steps, and how many of them
	// are healthy by now.
	next  object.Digest
	steps int
}

// mutation breaks a rule from outside, to prove that the judge notices.
type mutation struct {
	beforeDecide, afterRestart func(*State)
}

// tamper breaks a rule. That the state was changed behind its back is not what
// the judge is to notice.
func (w *world) tamper(do func(*State)) {
	if do == nil {
		return
	}
	do(&w.state)
	for path := range w.state.Units {
		w.state.touch(path)
	}
}

var targets = map[config.TargetName]map[string]string{
	"a/1": {"ring": "canary"}, "a/2": {"ring": "canary"},
	"b/1": {"ring": "main"}, "b/2": {"ring": "main"}, "b/3": {"ring": "main"},
	"c": {"ring": "rest"},
}

var units = []config.UnitPath{"cart", "ns", "shop"}

func newWorld(t *rapid.T, m mutation) *world {
	w := &world{
		t: t, wrong: m, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		disk: map[config.UnitPath][]byte{}, want: &Wanted{Held: "nothing fetched yet"},
		live: map[object.UnitTarget]*live{}, down: map[config.TargetName]bool{}, distress: map[config.TargetName]bool{}, ill: map[object.UnitTarget]bool{}, watched: map[object.UnitTarget]bool{}, underway: map[object.UnitTarget]Action{}, orphans: map[object.UnitTarget]bool{},
		judge: newJudge(),
	}
	w.stored = w.judge.clone()
	return w
}

func (w *world) draw(n int) int { return rapid.IntRange(0, n-1).Draw(w.t, "n") }

// one in n.
func (w *world) rarely(n int) bool { return !w.calm && w.draw(n) == n-1 }

// play makes things happen, and returns what the judge objected to.
func play(t *rapid.T, m mutation) error {
	w := newWorld(t, m)
	if err := w.playOn(); err != nil {
		return err
	}
	return w.calmDown()
}

// playToRecovery makes things happen as play does, and then lets all faults end.
func playToRecovery(t *rapid.T) error {
	w := newWorld(t, mutation{})
	if err := w.playOn(); err != nil {
		return err
	}
	return w.cure()
}

func (w *world) playOn() error {
	if w.draw(2) == 0 { // there is something to go back to
		w.calm = true
		w.commit(true)
		if err := w.converge(true); err != nil {
			return err
		}
		w.calm = false
	}
	for range 15 + w.draw(60) {
		w.happen()
		w.pass()
		if w.judge.objection != nil {
			return fmt.Errorf("%w\n%s", w.judge.objection, w.dump())
		}
	}
	return nil
}

// happen is one thing that the daemon has no hand in.
func (w *world) happen() {
	names := slices.Sorted(maps.Keys(targets))
	name := names[w.draw(len(names))]
	at := object.UnitTarget{Unit: units[w.draw(len(units))], Target: name}
	if w.rarely(30) {
		w.lose()
		return
	}
	switch w.draw(15) {
	case 14:
		w.distress[name] = !w.distress[name]
	case 0, 1:
		w.commit(false)
	case 2:
		w.down[name] = !w.down[name]
	case 3:
		w.ill[at] = !w.ill[at]
	case 4:
		if l := w.live[at]; l != nil && l.digest != "" && !l.mixed {
			l.drifted = true
			w.record(Outcome{Action: Action{Kind: Sweep, Unit: at.Unit, Target: at.Target}, Result: Drifted})
			w.save()
		}
	case 5:
		w.restart()
	case 12:
		w.state.Requeue(at, w.now.Add(time.Duration(w.draw(2))*time.Second))
	case 13:
		if w.watched[at] = true; w.draw(2) == 0 {
			delete(w.watched, at)
		}
		for at := range w.state.notices.requeueAt {
			if _, known := w.watched[at]; !known {
				w.watched[at] = false
			}
		}
		w.state.Watch(w.watched)
	case 6:
		w.setClock([]time.Duration{-time.Hour, -time.Minute, 3 * time.Hour}[w.draw(3)])
	default:
		w.elapse([]time.Duration{time.Second, 7 * time.Second, 45 * time.Second, 3 * time.Minute, 11 * time.Minute}[w.draw(5)])
	}
}

func (w *world) elapse(d time.Duration) {
	w.now = w.now.Add(d)
	w.judge.elapsed += d
}

// setClock sets the clock; no time passes.
func (w *world) setClock(step time.Duration) {
	w.now = w.now.Add(step)
	w.state.Shift(step)
	w.step += step
}

// fate of a bundle: what becomes of it wherever it goes, as long as nobody cures
// all that was wrong around it.
func (w *world) fate(digest object.Digest) Result {
	if w.cured {
		return Healthy
	}
	switch digest[len(digest)-1] {
	case '3':
		return Waiting
	case '4':
		return Failed
	case '5':
		return Unhealthy
	case '6':
		return Refused
	}
	return Healthy
}

// commit makes the next commit. A good one wants bundles that were never seen
// before and have nothing wrong with them.
func (w *world) commit(good bool) {
	w.count++
	w.want = &Wanted{Commit: config.Commit(fmt.Sprintf("commit%d", w.count)), Units: map[config.UnitPath]*WantedUnit{}}
	if !good && w.rarely(12) {
		w.want.Held = "fleet: wrong"
	}
	spec := w.spec()
	for _, path := range units {
		if !good && w.rarely(8) {
			continue
		}
		u := &WantedUnit{Rollout: spec, Targets: map[config.TargetName]WantedTarget{}}
		w.want.Units[path] = u
		if !good && w.rarely(10) {
			u.Frozen = "unit: wrong"
			continue
		}
		version := fmt.Sprint(w.draw(7))
		if good {
			version = fmt.Sprintf("good%d-0", w.count)
		}
		for _, name := range slices.Sorted(maps.Keys(targets)) {
			if !good && w.rarely(6) {
				continue
			}
			v := version
			if !good && w.rarely(10) {
				v = fmt.Sprint(w.draw(7))
			}
			u.Targets[name] = WantedTarget{Labels: targets[name], Digest: object.Digest(fmt.Sprintf("%s-%s-%s", path, name, v))}
		}
	}
	if cart := w.want.Units["cart"]; cart != nil {
		cart.Needs = map[config.TargetName][]config.UnitPath{}
		for _, at := range []object.UnitTarget{{Unit: "ns", Target: "b/1"}, {Unit: "ns", Target: "c"}, {Unit: "shop", Target: "c"}} {
			if need := w.want.Units[at.Unit]; need != nil && need.Targets[at.Target].Digest != "" {
				cart.Needs[at.Target] = append(cart.Needs[at.Target], at.Unit)
			}
		}
	}
	w.judge.offer(w.want)
}

func (w *world) spec() *config.Rollout {
	amounts := []config.Amount{{}, {Count: 1}, {Percent: 50}}
	spec := &config.Rollout{Name: "default"}
	if w.rarely(4) {
		spec.OnFailure = config.Hold
	}
	for _, ring := range []string{"canary", "main", ""} {
		wave := config.Wave{
			Name: ring + "wave", Timeout: 5 * time.Minute,
			Soak:          []time.Duration{0, time.Minute, 10 * time.Minute}[w.draw(3)],
			MaxConcurrent: amounts[w.draw(3)], MaxFailures: amounts[w.draw(3)],
		}
		if ring != "" {
			wave.Match.Labels = map[string][]string{"ring": {ring}}
		}
		spec.Waves = append(spec.Waves, wave)
	}
	return spec
}

// pass is one turn of the daemon. It may die at any point of it.
func (w *world) pass() {
	w.tamper(w.wrong.beforeDecide)
	w.decide()
	w.judge.plan(w)
	if w.rarely(25) {
		w.restart() // before anything was stored: the plan is lost
		return
	}
	w.save()
	for _, a := range w.plan.Actions {
		at := object.UnitTarget{Unit: a.Unit, Target: a.Target}
		if _, busy := w.underway[at]; busy {
			continue
		}
		w.state.Begins(at)
		if w.underway[at] = a; w.rarely(6) {
			continue // takes longer
		}
		if w.rarely(40) {
			w.restart()
			return
		}
		w.finish(at)
	}
	if w.rarely(3) {
		for _, at := range slices.SortedFunc(maps.Keys(w.underway), comparePlaces) {
			w.finish(at)
		}
	}
	if w.rarely(25) {
		w.restart() // what was recorded is lost
		return
	}
	w.save()
}

func comparePlaces(a, b object.UnitTarget) int {
	return cmp.Or(cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Target, b.Target))
}

// decide also asks a daemon that was started just now.
func (w *world) decide() {
	if w.passes++; w.calm && w.passes%8 != 0 { // it is expensive
		w.plan = w.agenda.all(w.state.Decide(w.want, w.now))
		return
	}
	twin := reload(w.t, &w.state)
	twin.notices = w.state.notices
	w.plan = w.agenda.all(w.state.Decide(w.want, w.now))
	var agenda Agenda
	if plan := agenda.all(twin.Decide(w.want, w.now)); !reflect.DeepEqual(plan, w.plan) {
		w.judge.objectf("a restart decides differently:\n%s", gocmp.Diff(plan, w.plan))
	}
}

// all takes a plan in, and returns it with what is due of all units.
func (a *Agenda) all(plan Plan) Plan {
	a.Take(&plan)
	plan.Looked, plan.Actions, plan.Open = nil, nil, a.Open()
	for _, cluster := range a.Clusters() {
		plan.Actions = append(plan.Actions, a.At(cluster)...)
	}
	sortByPlace(plan.Actions, Action.place)
	sortByPlace(plan.Open, func(at object.UnitTarget) object.UnitTarget { return at })
	return plan
}

func (w *world) save() {
	kept, dropped := w.state.Changed()
	for _, u := range kept {
		w.disk[u.Path] = marshal(w.t, u)
	}
	for _, path := range dropped {
		delete(w.disk, path)
	}
	w.state.Stored()
	w.step = 0
	if !w.calm || w.passes%8 == 0 {
		w.judge.disk(w)
	}
	w.stored = w.judge.clone()
}

// restart kills the daemon: what was under way may or may not have happened,
// and nobody was told.
func (w *world) restart() {
	for _, at := range slices.SortedFunc(maps.Keys(w.underway), comparePlaces) {
		if w.draw(2) == 0 {
			w.carryOut(w.underway[at])
		}
	}
	clear(w.underway)
	w.state, w.agenda = State{Units: map[config.UnitPath]*Unit{}}, Agenda{}
	for path, row := range w.disk {
		w.state.Units[path] = unmarshal(w.t, row)
	}
	if ahead := w.state.Latest().Sub(w.now); ahead > 0 { // the clock was set back since
		w.state.Shift(-ahead)
	}
	w.judge.elapsed += max(0, w.step) // to the new process it is time that passed
	w.step = 0
	w.tamper(w.wrong.afterRestart)
	offered, elapsed, objection := w.judge.offered, w.judge.elapsed, w.judge.objection
	w.judge = w.stored.clone()
	w.judge.offered, w.judge.elapsed, w.judge.objection = offered, elapsed, objection
}

// lose kills the daemon, and takes its state away.
func (w *world) lose() {
	w.restart()
	clear(w.disk)
	w.state, w.agenda = State{Units: map[config.UnitPath]*Unit{}}, Agenda{}
	fresh := newJudge()
	fresh.offered, fresh.elapsed, fresh.objection = w.judge.offered, w.judge.elapsed, w.judge.objection
	w.judge, w.stored = fresh, fresh.clone()
	for at := range w.live {
		w.orphans[at] = true
	}
}

func (w *world) finish(at object.UnitTarget) {
	a, ok := w.underway[at]
	if !ok {
		return
	}
	delete(w.underway, at)
	w.record(w.carryOut(a))
}

func (w *world) record(o Outcome) {
	w.judge.outcome(o, w.state.Units[o.Unit])
	w.judge.transitions(w, w.state.Record(o, w.now))
}

// carryOut does to the fleet what the action says.
func (w *world) carryOut(a Action) Outcome {
	at := object.UnitTarget{Unit: a.Unit, Target: a.Target}
	l := w.live[at]
	if l == nil {
		l = &live{}
		w.live[at] = l
	}
	delete(w.orphans, at)
	o := Outcome{Action: a, Reason: "because"}
	switch {
	case w.down[a.Target]:
		o.Result = Unreachable
		if w.draw(2) == 0 || a.Kind == Check { // else only the answer was lost
			return o
		}
	case w.distress[a.Target]:
		o.Result = Unavailable
		l.mixed = l.mixed || a.Kind != Check
		return o
	case a.Kind != Check && w.rarely(10):
		o.Result = Deferred
		l.mixed = true
		return o
	}
	switch a.Kind {
	case Apply:
		l.leftovers = l.leftovers || l.digest != a.Digest || l.mixed
		switch {
		case w.fate(a.Digest) == Refused:
			l.mixed = true
			return w.unless(o, Refused)
		case w.fate(a.Digest) == Failed && w.draw(2) == 0: // in a phase before the last
			l.mixed = true
			return w.unless(o, Failed)
		case w.steps(l, a.Digest):
			l.mixed = true
			o.Step = fmt.Sprintf("phase %d", l.steps)
			return w.unless(o, Waiting)
		}
		l.next, l.steps = "", 0
		l.digest, l.mixed, l.drifted = a.Digest, false, false
		return w.unless(o, Applied)
	case Remove:
		if w.rarely(4) {
			o.Step = "hook"
			return w.unless(o, Waiting)
		}
		*l = live{}
		return w.unless(o, Removed)
	}
	if l.mixed || l.digest != a.Digest {
		w.judge.objectf("%s on %s is taken for %s, but is %+v", a.Unit, a.Target, a.Digest, *l)
	}
	o.Result = w.fate(a.Digest)
	if w.ill[at] && o.Result == Healthy {
		o.Result = Unhealthy
	}
	if a.Prune && o.Result == Healthy && !w.rarely(5) {
		l.leftovers, o.Pruned = false, true
	}
	return o
}

// steps says whether an apply has to wait before it goes on, after it may have
// come a step further.
func (w *world) steps(l *live, digest object.Digest) bool {
	if l.next != digest {
		l.next, l.steps = digest, 0
	}
	switch {
	case w.fate(digest) == Waiting:
		return true
	case w.rarely(4):
		l.steps += w.draw(2)
		return true
	}
	return false
}

func (w *world) unless(o Outcome, r Result) Outcome {
	if o.Result == "" {
		o.Result = r
	}
	return o
}

// cure lets all faults end, those of bundles too. Every unit then becomes done within
// a bounded number of passes: by itself, or by the retry that its text names.
func (w *world) cure() error {
	w.calm, w.cured = true, true
	clear(w.down)
	clear(w.distress)
	clear(w.ill)
	for _, at := range slices.SortedFunc(maps.Keys(w.underway), comparePlaces) {
		w.finish(at)
	}
	if err := w.recovers(false); err != nil {
		return err
	}
	w.judge.transitions(w, w.state.Retry("", "", "by hand", w.now))
	w.save()
	if err := w.recovers(true); err != nil {
		return err
	}
	return w.calmDown()
}

// recovers makes passes until all has recovered.
func (w *world) recovers(retried bool) error {
	for i := 0; ; i++ {
		w.pass()
		if w.judge.objection != nil {
			return fmt.Errorf("%w\n%s", w.judge.objection, w.dump())
		}
		left := w.unrecovered(retried)
		if left == "" {
			return nil
		}
		if i == 3000 {
			return fmt.Errorf("does not recover: %s\n%s", left, w.dump())
		}
		if len(w.plan.Actions) == 0 && !w.plan.Wake.IsZero() {
			w.elapse(max(0, w.plan.Wake.Sub(w.now)))
		}
	}
}

// unrecovered names a unit that is not done and should be; empty when there is none.
// A commit or a unit with a problem, or a commit without units, waits for another commit, and whoever needs that
// unit with it; what is to be retried waits for that.
func (w *world) unrecovered(retried bool) string {
	for path, wanted := range w.want.Units {
		if w.want.Refused() == "" && wanted.frozen() == "" && w.state.Units[path] == nil {
			return string(path) + " is not begun"
		}
	}
	waits := func(path config.UnitPath) bool {
		u, wanted := w.state.Units[path], w.want.Units[path]
		frozen := w.want.Refused() != "" || wanted != nil && wanted.frozen() != ""
		return frozen || u == nil || !retried && strings.Contains(u.Rollout.Reason+u.Blocked, "swell retry "+string(path))
	}
	for path, u := range w.state.Units {
		told := waits(path)
		for other := range w.want.Units {
			told = told || waits(other) && strings.Contains(u.Rollout.Reason, ": waits for unit "+string(other)+" ")
		}
		if r := u.Rollout; !told && (r.Status != Done || r.Reason != "" || u.Blocked != "") {
			return fmt.Sprintf("%s: %s: %s", path, r.Status, r.Reason)
		}
	}
	return ""
}

// calmDown lets all faults stop, and expects everything to come to an end:
// first with the commit that is there, whatever it is, then with a good one.
func (w *world) calmDown() error {
	w.calm = true
	clear(w.down)
	clear(w.distress)
	clear(w.ill)
	for _, at := range slices.SortedFunc(maps.Keys(w.underway), comparePlaces) {
		w.finish(at)
	}
	if err := w.converge(false); err != nil {
		return err
	}
	w.commit(true)
	if err := w.converge(true); err != nil {
		return err
	}
	for _, path := range units {
		if u := w.state.Units[path]; u.Rollout.Status != Done || u.Blocked != "" || u.Rollout.Reason != "" {
			return fmt.Errorf("a good commit leaves %s %s: %s%s", path, u.Rollout.Status, u.Blocked, u.Rollout.Reason)
		}
		for name := range targets {
			if l := w.live[object.UnitTarget{Unit: path, Target: name}]; l == nil || *l != (live{digest: w.want.Units[path].Targets[name].Digest}) {
				return fmt.Errorf("a good commit leaves %s on %s at %+v", path, name, l)
			}
		}
	}
	return nil
}

// converge passes until nothing is left to do. Bundles that will never be
// healthy are tried for ever where the wave tolerates them, so unless nothing
// may stay behind, that is an end as well.
func (w *world) converge(wholly bool) error {
	for i := range 2000 {
		w.pass()
		if w.judge.objection != nil {
			return fmt.Errorf("%w\n%s", w.judge.objection, w.dump())
		}
		switch {
		case len(w.plan.Actions) > 0:
		case w.plan.Wake.IsZero():
			return w.judge.atRest(w)
		case !w.plan.Wake.After(w.now):
			return fmt.Errorf("wakes at %s for nothing, now is %s", w.plan.Wake, w.now)
		default:
			w.elapse(w.plan.Wake.Sub(w.now))
		}
		if i >= 150 && !wholly && w.hopeless() {
			return nil
		}
	}
	return fmt.Errorf("does not come to rest: %+v\n%s", w.plan, w.dump())
}

// hopeless says that something is wanted that cannot be had, or that nothing may be taken
// from the commit, so that leftovers are looked at for ever.
func (w *world) hopeless() bool {
	for _, u := range w.state.Units {
		if u.Blocked != "" || u.Rollout.Status == Held {
			return true
		}
		for _, t := range u.Targets {
			if t.Wanted != "" && w.fate(t.Wanted) != Healthy {
				return true
			}
		}
	}
	return w.want.Refused() != ""
}

// dump is the state for people.
func (w *world) dump() string {
	text := fmt.Sprintf("now %s, commit %s, plan %+v\n", w.now, w.want.Commit, w.plan.Actions)
	for _, path := range units {
		if u := w.state.Units[path]; u != nil {
			text += fmt.Sprintf("%s: %s\n", path, marshal(w.t, u))
		}
	}
	return text
}
