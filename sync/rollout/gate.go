// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/order"
)

// GateState is what is known of a gate of a rollout.
type GateState struct {
	Wave int `json:"wave"` // its index
	Gate int `json:"gate"` // its index in the wave
	// Passed says that the gate need not be asked any more, and By who passed it.
	Passed bool   `json:"passed,omitempty"`
	By     string `json:"by,omitempty"`
	// Digest is what has to be approved, and Since since when.
	Digest object.Digest `json:"digest,omitempty"`
	Since  time.Time     `json:"since,omitzero"`
	// AskedAt is when the last answer came, and Reason what it was if it was no yes.
	AskedAt time.Time `json:"askedAt,omitzero"`
	Reason  string    `json:"reason,omitempty"`
	// NoSince is since when the answer is no; zero when it is not.
	NoSince time.Time `json:"noSince,omitzero"`
}

// Question is what a gate has to be asked outside.
type Question struct {
	Unit       config.UnitPath
	Rollout    int // [Rollout.ID]
	Wave, Gate int
	Of         config.Gate
	// Values are what the names in the gate's text stand for.
	Values map[string]string
}

// Answer is what came of a question.
type Answer struct {
	Question
	Kind   AnswerKind
	Reason string // one line; empty for a yes
}

// AnswerKind is what a gate said.
type AnswerKind string

const (
	Yes      AnswerKind = "yes"
	No       AnswerKind = "no"
	NoAnswer AnswerKind = "no answer" // nobody knows
)

// gate is the state of a gate, which is made when there is none.
func (r *Rollout) gate(wave, n int) *GateState {
	for i := range r.Gates {
		if g := &r.Gates[i]; g.Wave == wave && g.Gate == n {
			return g
		}
	}
	r.Gates = append(r.Gates, GateState{Wave: wave, Gate: n})
	return &r.Gates[len(r.Gates)-1]
}

// forgetEnds has the gates at the end of a wave, and of all after it, asked again.
func (r *Rollout) forgetEnds(wave int) {
	r.Gates = slices.DeleteFunc(r.Gates, func(g GateState) bool {
		return g.Wave >= wave && !r.Spec.Waves[g.Wave].Gates[g.Gate].AtStart()
	})
}

// notStarted says why a release may not start at a target because of its wave's gates,
// empty when it may, and until when that holds.
func (p *pass) notStarted(u *Unit, name config.TargetName, t *Target) (text string, until time.Time) {
	r := u.Rollout
	if t.Wave < r.StartsWaived || t.Wave < 0 {
		return "", time.Time{}
	}
	for n := range r.Spec.Waves[t.Wave].Gates {
		gate := &r.Spec.Waves[t.Wave].Gates[n]
		why := ""
		switch {
		case !gate.AtStart():
		case gate.Approval != nil && t.isLive(): // it was approved once
		case gate.Approval != nil:
			why = p.unapproved(u, t.Wave, n)
		case gate.HTTP != nil:
			why = p.unanswered(u, t.Wave, n)
		case gate.After != nil:
			u.restless = true
			if why = p.notAfter(gate.After.Unit, name); why != "" && p.reaches(gate.After.Unit, u.Path, name, nil) {
				why += "; it needs objects of this unit there, so they wait for each other: take the gate away"
			}
		case gate.Window != nil:
			is, changes := gate.Window.At(p.now)
			if until = earlier(until, changes); !is {
				why = "the window " + opensText(changes)
			}
		}
		if why != "" {
			return fmt.Sprintf("gate %s of wave %s: %s", gate.Word(), u.waveName(t), why), until
		}
	}
	return "", until
}

// digestOf is what is approved at a gate for the start of a wave: the unit, the wave, the
// bundles that it brings and, where the wave has several such gates, which one it is.
func (u *Unit) digestOf(wave, n int) object.Digest {
	sum, spec := sha256.New(), &u.Rollout.Spec.Waves[wave]
	fmt.Fprintf(sum, "%d %s\n%d %s\n", len(u.Path), u.Path, len(spec.Name), spec.Name)
	for _, at := range u.list() {
		if at.Wave == wave && at.Wanted != "" {
			fmt.Fprintf(sum, "%d %s %s\n", len(at.name), at.name, at.Wanted)
		}
	}
	for i := range spec.Gates[:n] {
		if spec.Gates[i].Approval != nil {
			fmt.Fprintln(sum, "after another gate")
		}
	}
	return object.Digest(hex.EncodeToString(sum.Sum(nil)))
}

// unapproved says that nobody approved the start of a wave; empty when somebody did.
func (p *pass) unapproved(u *Unit, wave, n int) string {
	g := u.Rollout.gate(wave, n)
	if g.Passed {
		return ""
	}
	if g.Digest == "" {
		g.Digest, g.Since = u.digestOf(wave, n), p.now
		p.state.touch(u.Path)
		p.note(u, "", "waiting", fmt.Sprintf("wave %s waits for approval: swell approve %s", u.Rollout.Spec.Waves[wave].Name, g.Digest.Short()))
	}
	gate, text := u.Rollout.Spec.Waves[wave].Gates[n].Approval, ""
	for i := range p.bounds.standing {
		o := &p.bounds.standing[i]
		if o.Verb != order.Approve || o.Digest != g.Digest {
			continue
		}
		if text = refuses(gate, o, u.authorsOf(wave), p.now); text == "" {
			g.Passed, g.By = true, o.By
			p.state.touch(u.Path)
			p.note(u, "", "approved", fmt.Sprintf("wave %s %s", u.Rollout.Spec.Waves[wave].Name, o.Text()))
			return ""
		}
		text = " (" + text + ")"
	}
	return fmt.Sprintf("swell approve %s%s", g.Digest.Short(), text)
}

// refuses says why an approval does not count; empty when it does.
func refuses(gate *config.ApprovalGate, o *order.Order, authors []string, now time.Time) string {
	switch {
	case slices.Contains(authors, o.By):
		return fmt.Sprintf("%s approved it, and is an author of what it brings", o.By)
	case len(gate.By) > 0 && !slices.Contains(gate.By, o.By):
		return fmt.Sprintf("%s approved it, and may not", o.By)
	case !o.Relative && !now.Before(o.At.Add(gate.Expires)), o.Relative && o.Over(now):
		return fmt.Sprintf("the approval of %s expired after %s", o.By, gate.Expires)
	}
	return ""
}

// Asks are the starts of waves that wait for approval, by unit.
func (s *State) Asks() []order.Ask {
	var asks []order.Ask
	for _, u := range s.Units {
		r := u.Rollout
		if r.Status != Progressing && r.Status != Done {
			continue
		}
		for _, g := range r.Gates {
			gate := r.Spec.Waves[g.Wave].Gates[g.Gate].Approval
			if gate == nil || g.Passed || g.Digest == "" || g.Wave < r.StartsWaived {
				continue
			}
			asks = append(asks, order.Ask{Digest: g.Digest, Unit: u.Path, Wave: r.Spec.Waves[g.Wave].Name, Commit: r.Commit, By: gate.By, Authors: u.authorsOf(g.Wave), Since: g.Since, Expires: gate.Expires.String()})
		}
	}
	slices.SortFunc(asks, func(a, b order.Ask) int { return cmp.Or(cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Wave, b.Wave)) })
	return asks
}

// notAfter says that another unit has not passed its own wave on a target; empty when it
// has, or is not there.
func (p *pass) notAfter(path config.UnitPath, name config.TargetName) string {
	u, w := p.state.Units[path], p.want.Units[path]
	if w == nil && p.held == "" || w != nil && w.frozen() == "" && w.Targets[name].Digest == "" {
		return ""
	}
	switch {
	case u == nil || u.Targets[name] == nil:
		return fmt.Sprintf("unit %s is not there yet", path)
	case w != nil && w.frozen() == "" && (u.Rollout.Release != w.Release() || u.Targets[name].Wanted != w.Targets[name].Digest):
		if u.failed() {
			return fmt.Sprintf("unit %s is %s, and has not begun its release", path, u.Rollout.Status)
		}
		return fmt.Sprintf("unit %s has not begun its release", path)
	case !u.Targets[name].done():
		return fmt.Sprintf("unit %s%s", path, u.Targets[name].why())
	case u.Rollout.Status == Progressing && !u.Rollout.Removing && u.Targets[name].Wave >= u.Rollout.Wave:
		return fmt.Sprintf("unit %s has not passed wave %s", path, u.waveName(u.Targets[name]))
	case u.failed():
		return fmt.Sprintf("unit %s is %s", path, u.Rollout.Status)
	}
	return ""
}

// ask plans a question to a gate when it is due.
func (p *pass) ask(u *Unit, wave, n int, every time.Duration) {
	g := u.Rollout.gate(wave, n)
	if due := g.AskedAt.Add(every); due.After(p.now) && !g.AskedAt.After(p.now) {
		p.wakeAt(due)
		return
	}
	u.restless = true
	p.plan.Questions = append(p.plan.Questions, Question{Unit: u.Path, Rollout: u.Rollout.ID, Wave: wave, Gate: n, Of: u.Rollout.Spec.Waves[wave].Gates[n], Values: u.values(wave)})
}

// values are what names in texts of a wave's gates stand for.
func (u *Unit) values(wave int) map[string]string {
	var targets, clusters []string
	for _, at := range u.list() {
		name := at.name
		if at.Wave != wave {
			continue
		}
		targets = append(targets, string(name))
		if cluster := name.Cluster(); !slices.Contains(clusters, cluster) {
			clusters = append(clusters, cluster)
		}
	}
	return map[string]string{"unit": string(u.Path), "name": path.Base(string(u.Path)), "tenant": u.Tenant, "wave": u.Rollout.Spec.Waves[wave].Name,
		"clusters": strings.Join(clusters, "|"), "targets": strings.Join(targets, "|")}
}

// unanswered says that a gate has not said yes so far; empty when it has. It is asked
// until then.
func (p *pass) unanswered(u *Unit, wave, n int) string {
	g, gate := u.Rollout.gate(wave, n), u.Rollout.Spec.Waves[wave].Gates[n].HTTP
	if g.Passed {
		return ""
	}
	if g.Since.IsZero() {
		g.Since = p.now
		p.state.touch(u.Path)
	}
	p.ask(u, wave, n, gate.Every)
	return cmp.Or(g.Reason, "not asked yet")
}

// ends says what the gates at the end of the wave under way wait for, all of whose
// targets are healthy; empty when they are passed. failed says that one never will be.
func (p *pass) ends(u *Unit, y *tally) (waits string, failed bool) {
	r := u.Rollout
	if r.Wave < r.EndsWaived || y.touched == 0 {
		return "", false
	}
	soaked := y.soaked(false, p.now)
	for n := range y.wave.Gates {
		gate, why := &y.wave.Gates[n], ""
		switch {
		case gate.AtStart():
		case gate.Prometheus != nil:
			why, failed = p.unproved(u, n, y)
		case gate.HTTP != nil && soaked:
			p.asksAnew(u, n, y)
			why, failed = p.overdue(u, n, p.unanswered(u, r.Wave, n))
		case gate.Job != nil && soaked:
			why, failed = p.unfinished(u, gate.Job, y.soakEnd())
		}
		if why != "" {
			waits = fmt.Sprintf("gate %s: %s", gate.Word(), why)
		}
		if failed {
			return waits, true
		}
	}
	return waits, false
}

// overdue says whether the URL of a gate at the end of the wave under way had its time to say yes. why is
// its answer instead; empty when it has said yes.
func (p *pass) overdue(u *Unit, n int, why string) (text string, failed bool) {
	g, gate := u.Rollout.gate(u.Rollout.Wave, n), u.Rollout.Spec.Waves[u.Rollout.Wave].Gates[n].HTTP
	ends := g.Since.Add(gate.Timeout)
	switch {
	case why == "" || gate.Timeout == 0 || p.unasked(g, gate.Every):
		return why, false
	case p.now.Before(ends):
		p.wakeAt(ends)
		return why, false
	}
	return fmt.Sprintf("no yes within %s: %s", gate.Timeout, why), true
}

// askedLate is how much later than it was due a gate may be asked, and its answer arrive, before the time
// counts as one in which nobody asked.
const askedLate = time.Minute

// unasked says that nobody has asked a gate for a while, as after a restart: what it said then, if
// anything, fails nothing now.
func (p *pass) unasked(g *GateState, every time.Duration) bool {
	return g.AskedAt.Add(every + askedLate).Before(p.now)
}

// missed takes the time in which nobody asked, or got an answer, out of what counts against a release.
func (g *GateState) missed(a *Answer, now time.Time) {
	last := g.AskedAt
	if last.IsZero() {
		last = g.Since
	}
	since, every := now.Sub(last), a.Of.Every()
	switch {
	case a.Kind == NoAnswer:
	case since > every+askedLate:
		since -= every
	default:
		return
	}
	for _, begin := range []*time.Time{&g.Since, &g.NoSince} {
		if !begin.IsZero() {
			*begin = begin.Add(since)
		}
	}
}

// asksAnew forgets what a URL said, and since when it was asked, before the soak began again.
func (p *pass) asksAnew(u *Unit, n int, y *tally) {
	if g := u.Rollout.gate(u.Rollout.Wave, n); !g.Since.IsZero() && g.Since.Before(y.last) {
		*g = GateState{Wave: g.Wave, Gate: g.Gate}
		p.state.touch(u.Path)
	}
}

// unproved says what keeps a query from having held through the soak; failed says that it
// was out of its bounds for too long.
func (p *pass) unproved(u *Unit, n int, y *tally) (why string, failed bool) {
	g, gate := u.Rollout.gate(u.Rollout.Wave, n), y.wave.Gates[n].Prometheus
	if g.AskedAt.Before(y.last) { // the soak began again
		g.AskedAt, g.NoSince, g.Reason = time.Time{}, time.Time{}, ""
	}
	switch {
	case !g.NoSince.IsZero() && !g.AskedAt.Before(g.NoSince.Add(gate.Tolerate)):
		if u.Rollout.Stalled { // it goes on when the query is well
			p.ask(u, u.Rollout.Wave, n, gate.Every)
		}
		return g.Reason, true
	case g.Reason == "" && !g.AskedAt.IsZero() && !g.AskedAt.Before(y.soakEnd()):
		return "", false
	}
	p.ask(u, u.Rollout.Wave, n, gate.Every)
	return cmp.Or(g.Reason, "it has held since "+clock(y.last)), false
}

// unfinished says on which targets of the wave under way the Job of a gate has not
// succeeded; failed says that it has failed on one. It plans what starts the Job there.
func (p *pass) unfinished(u *Unit, gate *config.JobGate, soaks time.Time) (why string, failed bool) {
	for _, at := range u.list() {
		name, t := at.name, at.Target
		if t.Wave != u.Rollout.Wave || t.Wanted == "" || !t.Touched || !t.done() || t.Masked != "" || t.Excused || t.proved(gate.Name) {
			continue
		}
		if t.GateFailed != "" {
			return fmt.Sprintf("Job %s on target %s: %s", gate.Name, name, t.GateFailed), true
		}
		stopped := p.stopped(u.at(name, t))
		why = cmp.Or(why, fmt.Sprintf("Job %s on target %s: %s", gate.Name, name, cmp.Or(stopped, t.Reason, "not started")))
		if stopped != "" {
			continue
		}
		if t.RetryAt.After(p.now) {
			p.wakeAt(t.RetryAt)
			continue
		}
		if !p.checkDue(u, name, t, u.watching(t, soaks), soaks).After(p.now) {
			continue // its health comes first
		}
		p.open(u, name)
		if p.proves == nil {
			p.proves = map[object.UnitTarget]bool{}
		}
		p.proves[object.UnitTarget{Unit: u.Path, Target: name}] = true
		a := u.ActionFor(name, t.Applied)
		a.Kind, a.Wave, a.Why, a.Job = Prove, u.waveName(t), WhyRollout, gate.Name
		p.plan.Actions = append(p.plan.Actions, a)
	}
	return why, false
}

// proved says that the Job of a gate has succeeded for what the target has.
func (t *Target) proved(job string) bool { return t.Proved[job] == t.Applied }

// Answer takes in what a gate said. What is about an earlier rollout changes nothing.
func (s *State) Answer(a Answer, now time.Time) {
	u := s.Units[a.Unit]
	if u == nil || u.Rollout.ID != a.Rollout || a.Wave >= len(u.Rollout.Spec.Waves) || a.Gate >= len(u.Rollout.Spec.Waves[a.Wave].Gates) {
		return
	}
	g := u.Rollout.gate(a.Wave, a.Gate)
	g.missed(&a, now)
	g.AskedAt, g.Reason = instant(now), a.Reason
	switch {
	case a.Kind == Yes:
		g.NoSince, g.Reason = time.Time{}, ""
		g.Passed = a.Of.HTTP != nil
	case a.Kind == No && g.NoSince.IsZero():
		g.NoSince = instant(now)
	}
	s.touch(u.Path)
}
