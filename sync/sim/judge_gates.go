// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/order"
)

// gateMemory is what the judge knows of the gates of a state.
type gateMemory struct {
	approvals []approval
	promotes  map[string][]string // who promoted a unit, since a release of its began
	oldest    *commit             // the first one that was taken
	newest    *commit             // the last one that was looked at
	taken     map[config.Commit]bool
	done      map[string]unit // as it was when its release was last done
}

func (m gateMemory) clone() gateMemory {
	m.approvals = slices.Clone(m.approvals)
	promotes, done := map[string][]string{}, map[string]unit{}
	for path, by := range m.promotes {
		promotes[path] = slices.Clone(by)
	}
	for path, u := range m.done {
		done[path] = u
	}
	m.promotes, m.done, m.taken = promotes, done, maps.Clone(m.taken)
	return m
}

// approval is that of the start of a wave with certain bundles.
type approval struct {
	unit, wave, bundles, by string
}

// finding is what an endpoint said about a wave.
type finding struct {
	unit, wave string
	text       string // yes or no
	isQuery    bool
	process    int           // that asked
	asked      time.Duration // since the world began
}

// rolloutKey is one release of a unit, whichever state knows it.
type rolloutKey struct {
	unit            string
	id              int
	commit, release string
}

func keyOfRollout(unit string, r *row) rolloutKey {
	return rolloutKey{unit, r.Rollout.ID, r.Rollout.Commit, r.Rollout.Release}
}

// approvesGate notes who approves which bundles.
func (j *judge) approvesGate(p *process, ask order.Ask, by string) {
	j.readRows(p)
	if r := j.rows[string(ask.Unit)]; r != nil {
		j.approvals = append(j.approvals, approval{string(ask.Unit), ask.Wave, j.bundlesOf(r, ask.Wave), by})
	}
}

// bundlesOf is what a release brings in a wave.
func (j *judge) bundlesOf(r *row, wave string) string {
	var all []string
	for _, name := range sorted(r.Targets) {
		if t := r.Targets[name]; t.Wanted != "" && j.waveName(t.Wave) == wave {
			all = append(all, name+" "+t.Wanted)
		}
	}
	return strings.Join(all, ", ")
}

func (j *judge) waveName(n int) string {
	if n < 0 || n >= len(j.world.shape.waves) {
		return ""
	}
	return j.world.shape.waves[n].name
}

func (j *judge) answered(c *call, text string) {
	s := finding{text: text, isQuery: c.isQuery(), process: c.process.number, asked: c.since}
	s.unit, s.wave = c.asked()
	j.answers = append(j.answers, s)
}

// takes notes the first and the newest commit of the state that a process works with. A pass that
// was interrupted stores none.
func (m *gateMemory) takes(c *commit, p *process) {
	m.newest = c
	if m.oldest == nil && !p.hasTaken() {
		return
	}
	if m.taken == nil {
		m.taken = map[config.Commit]bool{}
	}
	m.taken[c.id] = m.taken[c.id] || !c.held
	if m.oldest == nil && !c.held {
		m.oldest = c
	}
}

// authorsOf are those of the commits whose changes a release carries: since the unit was last
// done, as it is then, or was not there. What changed and went back between two commits that were
// taken, with no problem in the unit, no release carries; nor what went back to the last release
// that began.
func (j *judge) authorsOf(path string, release config.Commit) []string {
	order := j.world.git.order
	last := j.world.git.index(release)
	var all []string
	for i := last; i >= 0 && j.oldest != nil && i >= j.world.git.index(j.oldest.id); i-- {
		u, done := order[i].unit(path), j.done[path]
		if u == nil || u.sameAs(&done) && !u.frozen {
			break
		}
		if back := j.wentBackTo(i, path); back >= 0 {
			i = back + 1
			continue
		}
		if i == 0 || !u.sameAs(order[i-1].unit(path)) {
			all = append(all, order[i].author)
		}
	}
	return all
}

// wentBackTo is the number of the commit before the nth one that was taken last, by its unit or at
// all, if the unit is the same in it; -1 where it is not.
func (j *judge) wentBackTo(n int, path string) int {
	order := j.world.git.order
	for _, takes := range []func(*commit) bool{
		func(c *commit) bool { return j.takesUnit(c, path) }, func(c *commit) bool { return j.taken[c.id] },
	} {
		before := n - 1
		for before >= 0 && !takes(order[before]) {
			before--
		}
		if before >= 0 && order[n].unit(path).sameAs(order[before].unit(path)) {
			return before
		}
	}
	if began := j.beganBefore(n, path); began >= 0 && j.takesUnit(order[n], path) && order[n].unit(path).sameAs(order[began].unit(path)) {
		return began
	}
	return -1
}

// beganBefore is the number of the commit of the last release of a unit that began before the nth
// commit; -1 for none.
func (j *judge) beganBefore(n int, path string) int {
	began := -1
	for k := range j.rolloutSince {
		if i := j.world.git.index(config.Commit(k.commit)); k.unit == path && i < n {
			began = max(began, i)
		}
	}
	return began
}

// takesUnit says that a commit was taken, and has no problem in a unit.
func (j *judge) takesUnit(c *commit, path string) bool {
	u := c.unit(path)
	return j.taken[c.id] && (u == nil || j.goodIn(c, u))
}

// sameAs says that two units stand for the same objects; a mistake says nothing.
func (u *unit) sameAs(other *unit) bool { return other != nil && u.content() == other.content() }

func (u *unit) content() string {
	isBroken, isDenied := u.broken && u.workload, u.denied && (u.workload || u.hashed)
	return fmt.Sprintf("%s broken %t, denied %t", nameOf(u.objects(target{cell: "x"})), isBroken, isDenied)
}

// gated: a release starts on a target when the gates before it let it, each as it is asked.
func (j *judge) gated(p *process, where place, r *row, t *rowTarget) {
	if !j.world.shape.gated || t.Wanted == "" || t.Wave < 0 || t.Fast || j.isHere(where) {
		return
	}
	authors := j.authorsOf(where.unit, config.Commit(r.Rollout.Commit))
	may := func(by string) bool { return !slices.Contains(authors, by) }
	if wave := j.world.shape.waves[t.Wave]; wave.approval && !slices.ContainsFunc(j.promotes[where.unit], may) {
		j.isApproved(where, r, wave.name, authors)
	}
	if len(j.promotes[where.unit]) > 0 {
		return // with a reason: each order has one
	}
	for i, wave := range j.world.shape.waves[:t.Wave+1] {
		if wave.asks == "start" && i == t.Wave || wave.asks == "end" && i < t.Wave && r.wrote(i) {
			j.isAnswered(where, r, wave)
		}
		if wave.query && i < t.Wave && r.wrote(i) {
			j.hasHeld(p, where, r, wave)
		}
		if wave.job && i < t.Wave {
			j.isProved(where, r, i)
		}
	}
	if wave := j.world.shape.waves[t.Wave]; wave.window && !opens(t.TriedAt) {
		j.objectf("a gate opens at its time", "%v begins at %s, outside of the window of wave %s", where, t.TriedAt, wave.name)
	} else if wave.after {
		j.isAfter(p, where, r)
	}
}

// hasHeld: a query has held since the wave of this release was written. The last that its server
// said to this process is a number in bounds, unless it is one that may be out of them for a time.
func (j *judge) hasHeld(p *process, where place, r *row, wave wave) {
	since, held := j.rolloutSince[keyOfRollout(where.unit, r)], false
	for _, s := range j.answers {
		if s.isQuery && s.unit == where.unit && s.wave == wave.name && s.asked >= since && (s.text == "yes" || s.process == p.number) {
			held = s.text == "yes"
		}
	}
	if !held {
		j.objectf("a query holds", "%v begins, and the query of wave %s did not hold since %s: %v", where, wave.name, since, j.answers)
	}
}

// isProved: the Job of a gate has succeeded for the bundle of each target that the release wrote
// in the wave.
func (j *judge) isProved(where place, r *row, wave int) {
	if j.world.shape.waves[wave].maxFailures > 0 {
		return
	}
	for _, name := range sorted(r.Targets) {
		t, h := r.Targets[name], j.places[place{where.unit, name}]
		if t.Wave != wave || !r.isWritten(t) || h == nil {
			continue
		}
		c := j.world.git.commit(config.Commit(r.Rollout.Commit))
		if c == nil || c.unit(where.unit) == nil {
			return
		}
		for k, mark := range c.unit(where.unit).objects(h.target) {
			if isProof(mark) && !h.proved[mark] {
				j.objectf("the Job of a gate succeeds", "%v begins, and %s with %s has not succeeded on %s", where, k, mark, name)
			}
		}
	}
}

// isAfter: the unit that others wait for has there what a commit wants of it, the one in force or
// the one that the process has just fetched.
func (j *judge) isAfter(p *process, where place, r *row) {
	wanted, missing := j.world.git.commit(config.Commit(r.Rollout.Commit)), ""
	if wanted == nil || wanted.unit("services/"+first) == nil {
		return
	}
	for _, c := range []*commit{j.inForce[p.number], j.known[p.number]} {
		if c == nil {
			continue
		}
		if u := c.unit("services/" + first); !j.isMissing(p, where, c, wanted) {
			return
		} else if missing == "" {
			missing = fmt.Sprintf("%v begins before %s has what %s wants: %s", where, u.path, c.id.Short(), j.spans(u.path))
		}
	}
	if missing != "" {
		j.objectf("a unit waits for another one", "%s", missing)
	}
}

// isMissing says that a commit wants something there of the unit that others wait for, which it
// has not got.
func (j *judge) isMissing(p *process, where place, c, wanted *commit) bool {
	u, waits := c.unit("services/"+first), wanted.unit(where.unit)
	if u == nil || !j.goodIn(c, u) || waits == nil || waits.isFirst() || waits.sort != "app" {
		return false
	}
	return slices.ContainsFunc(j.world.targets(u), func(t target) bool {
		return t.name == where.target && !j.hasMoved(u, t) && !j.passed(place{u.path, t.name}, u.objects(t), 0, p)
	})
}

// isHere says that the place had the whole bundle of some commit already: after a state was lost,
// it is found there, and nothing has to be approved for that.
func (j *judge) isHere(where place) bool {
	h := j.places[where]
	if h == nil {
		return false
	}
	for _, s := range h.bundles {
		if s.now || s.whole || s.ended > 0 {
			return j.lineages > 0
		}
	}
	return false
}

// wrote says that the release has written a target of a wave.
func (r *row) wrote(wave int) bool {
	for _, t := range r.Targets {
		if t.Wave == wave && r.isWritten(t) {
			return true
		}
	}
	return false
}

func (r *row) isWritten(t *rowTarget) bool {
	isWritten := t.Wanted != "" && t.Wanted == t.Applied && !t.Dirty && t.Touched
	return isWritten && t.Masked == "" && !t.Fast && t.Trouble == ""
}

func (j *judge) isApproved(where place, r *row, wave string, authors []string) {
	bundles, refused := j.bundlesOf(r, wave), ""
	for _, a := range j.approvals {
		if a.unit != where.unit || a.wave != wave || a.bundles != bundles {
			continue
		}
		if !slices.Contains(authors, a.by) {
			return
		}
		refused = fmt.Sprintf("; %s approved it, and is among the authors %v", a.by, authors)
	}
	j.objectf("a gate lets through what was approved", "%v begins with %s%s; approved is %v", where, bundles, refused, j.approvals)
}

// isAnswered: a yes counts for the release that it was asked for, and that wrote nothing more in
// its wave since.
func (j *judge) isAnswered(where place, r *row, wave wave) {
	since := j.rolloutSince[keyOfRollout(where.unit, r)]
	for _, s := range j.answers {
		if !s.isQuery && s.text == "yes" && s.unit == where.unit && s.wave == wave.name && s.asked >= since {
			return
		}
	}
	j.objectf("a gate says yes", "%v begins, and the gate at the %s of wave %s said no yes since %s: %v",
		where, wave.asks, wave.name, since, j.answers)
}

// readRollouts notes since when there is each release: since the last look at the state at the
// earliest.
func (j *judge) readRollouts(next map[string]*row) {
	for path, r := range next {
		k := keyOfRollout(path, r)
		if _, known := j.rolloutSince[k]; !known {
			j.rolloutSince[k] = j.rowsAt
		}
	}
}
