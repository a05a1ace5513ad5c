// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/order"
)

// firstOfGates is the first seed whose history may have gates of waves and orders by wave. Kept
// seeds are smaller, see [firstOfDeletions].
const firstOfGates = 100_000_000

// people are operators. All but the last are authors of commits.
var people = []string{"ann", "ben", "cal", "dan"}

// authorOf is who writes the nth commit.
func (w *world) authorOf(n int) string {
	return people[rand.New(rand.NewPCG(w.seed, uint64(n))).IntN(len(people)-1)]
}

func emailOf(person string) string { return person + "@example.com" }

func operators() (all []config.Operator) {
	for _, person := range people {
		all = append(all, config.Operator{User: person, Emails: []string{emailOf(person)}})
	}
	return all
}

// drawGates gives waves gates, in one of two histories.
func drawGates(seed uint64, s *shape) {
	r := rand.New(rand.NewPCG(seed, 4))
	if seed < firstOfGates || r.IntN(2) == 0 {
		return
	}
	s.gated = true
	s.approvalTime = pick(r, 10*time.Minute, 24*time.Hour)
	if r.IntN(3) > 0 {
		s.waves[r.IntN(len(s.waves))].approval = true
	}
	if r.IntN(3) > 0 {
		wave := &s.waves[r.IntN(len(s.waves))]
		wave.asks, wave.askTime = pick(r, "start", "end", "end"), pick(r, 0, 0, 10*time.Minute)
	}
}

// firstOfSorts is the first seed whose history may have gates of the other sorts too.
const firstOfSorts = 1_000_000_000

// drawSorts gives waves such gates, in one of two histories.
func drawSorts(seed uint64, s *shape) {
	r := rand.New(rand.NewPCG(seed, 7))
	if seed < firstOfSorts || r.IntN(2) == 0 {
		return
	}
	s.gated = true
	if s.approvalTime == 0 {
		s.approvalTime = time.Hour
	}
	some := func() *wave { return &s.waves[r.IntN(len(s.waves))] }
	if wave := some(); r.IntN(3) > 0 && wave.soak > 0 {
		wave.query, wave.tolerate = true, pick(r, 0, 0, time.Minute)
	}
	if r.IntN(3) == 0 {
		some().job = true
	}
	if r.IntN(3) == 0 {
		some().after = true
	}
	if r.IntN(3) == 0 {
		some().window = true
	}
}

// proves says that a gate asks for a Job of the unit with the name [first].
func (s *shape) proves() bool {
	return slices.ContainsFunc(s.waves, func(w wave) bool { return w.job })
}

// hasAfter says that a gate has others wait for the application [first].
func (s *shape) hasAfter() bool {
	return slices.ContainsFunc(s.waves, func(w wave) bool { return w.after })
}

const (
	// first is the name of the application that others wait for, and whose Job a gate asks for.
	first = "cart"
	// proof is the end of the mark of such a Job, which is started after the soak.
	proof = "-proof"
)

func isProof(mark string) bool { return strings.HasSuffix(mark, proof) }

// isFirst says that others wait for a unit. It is in a Rollout without that gate.
func (u *unit) isFirst() bool { return u.path == "services/"+first }

// hookOf is what a Job of an application is for: that of the first one may be a gate's.
func (s *shape) hookOf(name, hook string) string {
	if name == first && hook == "after" && s.proves() {
		return "gate"
	}
	return hook
}

// opens says that gates let a wave start, by their window.
func opens(now time.Time) bool { return now.UTC().Minute() >= 5 && now.UTC().Minute() < 45 }

// gates are those of a wave, as a Rollout has them; empty where it has none.
func (s *shape) gates(w wave, after bool) string {
	text := ""
	if w.approval {
		text += fmt.Sprintf("{approval: {expires: %s}}, ", s.approvalTime)
	}
	if w.asks != "" {
		text += fmt.Sprintf("{http: {endpoint: %s, path: \"/?unit=${unit}&wave=${wave}\", at: %s", checks, w.asks)
		if w.askTime > 0 {
			text += fmt.Sprintf(", timeout: %s", w.askTime)
		}
		text += "}}, "
	}
	if w.query {
		query := "errors{unit=\"${unit}\",wave=\"${wave}\"}"
		text += fmt.Sprintf("{prometheus: {endpoint: %s, query: '%s', atMost: 1, tolerate: %s}}, ", checks, query, w.tolerate)
	}
	if w.job {
		text += fmt.Sprintf("{job: {name: %s}}, ", first)
	}
	if w.window {
		text += "{window: {schedule: \"5 * * * *\", duration: 40m}}, "
	}
	if w.after && after {
		text += fmt.Sprintf("{after: {unit: services/%s}}, ", first)
	}
	if text == "" {
		return ""
	}
	return ", gates: [" + text[:len(text)-2] + "]"
}

// gateEvents are those about gates.
var gateEvents = []event{
	{"gate approved", 14, (*world).approveGate},
	{"checks say", 8, (*world).turnChecks},
	{"order by wave", 6, (*world).orderByWave},
	{"order by wave lifted", 4, (*world).liftByWave},
}

// authors are the emails of who wrote what one commit has and another has not.
func (g *git) authors(from, to config.Commit) (emails []string, err error) {
	if g.gone {
		return nil, errGone
	}
	first, last := g.index(from)+1, g.index(to)
	if from == "" {
		first = last
	}
	for i := first; i <= last; i++ {
		emails = append(emails, emailOf(g.order[i].author))
	}
	return emails, nil
}

func (g *git) index(id config.Commit) int {
	return slices.IndexFunc(g.order, func(c *commit) bool { return c.id == id })
}

// approveGate has somebody approve the start of a wave, be it an author of what it brings.
func (w *world) approveGate() string {
	asks := w.asks()
	if len(asks) == 0 {
		return ""
	}
	return w.approveAsk(asks[w.rand.IntN(len(asks))], pick(w.rand, people...))
}

func (w *world) asks() []order.Ask {
	if w.process == nil || w.disk.full.Load() {
		return nil
	}
	asks, err := w.process.store.Asks()
	if err != nil {
		w.judge.objectf("state", "asks: %v", err)
	}
	return asks
}

func (w *world) approveAsk(ask order.Ask, by string) string {
	w.judge.approvesGate(w.process, ask, by)
	o := order.Order{By: by, Verb: order.Approve, Scope: order.Scope{Unit: ask.Unit, Wave: ask.Wave}, Digest: ask.Digest}
	return w.issue(o, w.shape.approvalTime)
}

// approveAll has somebody who may approve what waits for it; empty when nothing waits.
func (w *world) approveAll() string {
	asks := w.asks()
	if len(asks) == 0 {
		return ""
	}
	standing := w.standing()
	for _, ask := range asks {
		i := slices.IndexFunc(people, func(person string) bool { return !slices.Contains(ask.Authors, person) })
		if i < 0 || slices.ContainsFunc(standing, func(o order.Order) bool {
			return o.Digest == ask.Digest && o.By == people[i] && !o.Over(w.now())
		}) {
			continue
		}
		return w.approveAsk(ask, people[i])
	}
	return ""
}

// orderByWave gives an order that is about a wave.
func (w *world) orderByWave() string {
	scope := w.waveScope()
	switch verb := pick(w.rand, order.Pause, order.Freeze, order.Mask, order.Promote); verb {
	case order.Promote:
		if scope.Unit == "" {
			return ""
		}
		return w.issue(order.Order{By: pick(w.rand, people...), Verb: verb, Scope: scope}, 0)
	default:
		return w.command(verb, scope, pick(w.rand, 0, 0, 5*time.Minute))
	}
}

// liftByWave ends orders of a wave alone.
func (w *world) liftByWave() string {
	return w.command(pick(w.rand, order.Resume, order.Thaw, order.Unmask), w.waveScope(), 0)
}

func (w *world) waveScope() order.Scope {
	scope := order.Scope{Wave: w.shape.waves[w.rand.IntN(len(w.shape.waves))].name}
	if units := w.git.head.units; w.rand.IntN(2) == 0 && len(units) > 0 {
		scope.Unit = config.UnitPath(units[w.rand.IntN(len(units))].path)
	}
	return scope
}
