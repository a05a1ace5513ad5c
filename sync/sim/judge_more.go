// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/swell-sh/swell/sync/rollout"
)

// again: a release that was turned back does not start again by itself.
func (j *judge) again(t rollout.Transition) {
	c := j.world.git.commits[t.Commit]
	if c == nil || c.unit(string(t.Unit)) == nil {
		return
	}
	content := contentOf(c, t)
	if j.failed[content] != "" && !j.isRetiredFrom(c.unit(string(t.Unit))) {
		j.objectf("what failed is not tried again", "%s of commit %s is rolled back for the second time", t.Unit, t.Commit.Short())
	}
	for _, at := range j.world.targets(c.unit(string(t.Unit))) {
		ran := j.ran[place{string(t.Unit), at.name}]
		if ran == "" && j.lineages > 0 || ran == nameOf(c.unit(string(t.Unit)).objects(at)) {
			return // where it failed it may be what is good, and is not put away
		}
	}
	j.failed[content] = string(t.Unit)
	j.turnedBack[string(t.Unit)] = c.unit(string(t.Unit))
}

func contentOf(c *commit, t rollout.Transition) string {
	return fmt.Sprintf("%s %+v", t.Unit, *c.unit(string(t.Unit)))
}

// startsAgain: nor does another commit bring it again.
func (j *judge) startsAgain(t rollout.Transition) {
	c := j.world.git.commits[t.Commit]
	if c == nil || c.unit(string(t.Unit)) == nil {
		return
	}
	if content := contentOf(c, t); j.failed[content] != "" && !j.isRetiredFrom(c.unit(string(t.Unit))) {
		j.objectf("what failed is not tried again", "%s of commit %s starts, and was rolled back: %s", t.Unit, t.Commit.Short(), content)
	}
}

// isRetiredFrom says that a target of the unit is retired: what failed may have failed there, and
// the release does not go there any more.
func (j *judge) isRetiredFrom(u *unit) bool {
	return slices.ContainsFunc(j.world.targets(u), func(at target) bool { return j.isRetired(at.name) })
}

// ranThere notes what each place of a unit has whose release is done: what the release brings, where it was let.
// Else it is the most that is there.
func (j *judge) ranThere(p *process, t rollout.Transition) {
	incoming := map[place]string{}
	if c := j.world.git.commits[t.Commit]; c != nil && c.unit(string(t.Unit)) != nil {
		u := c.unit(string(t.Unit))
		for _, to := range j.world.targets(u) {
			if position := (place{u.path, to.name}); !j.wasBound(position, p) {
				incoming[position] = nameOf(u.objects(to))
			}
		}
	}
	for at, h := range j.places {
		if at.unit != string(t.Unit) {
			continue
		}
		if s := h.bundles[incoming[at]]; s != nil && s.now {
			j.ran[at] = incoming[at]
			continue
		}
		most := -1
		for _, name := range sorted(h.bundles) {
			if s := h.bundles[name]; s.now && len(s.objects) > most { // one may be a part of another
				j.ran[at], most = name, len(s.objects)
			}
		}
	}
}

// isThere: when a release is done, no place that is well has another content than the
// release brings. What a second daemon, or the one whose older state this is, wrote counts
// for nothing, nor does another cluster under the same name. A wave tolerates some places
// that the release is still on its way to, as the state says.
func (j *judge) isThere(o observed, t rollout.Transition) {
	c := j.world.git.commits[t.Commit]
	if c == nil || c.unit(string(t.Unit)) == nil || j.isOlder || !j.goodIn(c, c.unit(string(t.Unit))) {
		return
	}
	u, late := c.unit(string(t.Unit)), map[int]int{}
	for _, to := range j.world.targets(u) {
		at, cluster := place{u.path, to.name}, j.world.clusters[to.cluster]
		if o.units[u.path].targets[to.name] != "" || j.wasBound(at, o.process) || j.isRetired(at.target) || len(cluster.all) > 1 {
			continue
		}
		if j.dirtyNow()[at] && late[to.wave] < j.world.shape.waves[to.wave].maxFailures {
			late[to.wave]++
			continue
		}
		objects := u.objects(to)
		for _, k := range sortedKeys(objects) {
			if l, there := cluster.live[k]; there && l.unit == u.path && l.mark != objects[k] && !l.going && !isProof(objects[k]) {
				j.objectf("what is done is there", "%s of commit %s is done, and %s on %s is %+v, want %s", u.path, t.Commit.Short(), k, to.name, l, objects[k])
			}
		}
	}
}

// isPutBack: when a release is rolled back, each place that it changed has what it had
// before.
func (j *judge) isPutBack(p *process, t rollout.Transition) {
	c := j.world.git.commits[t.Commit]
	if c == nil || c.unit(string(t.Unit)) == nil {
		return
	}
	u := c.unit(string(t.Unit))
	for _, to := range j.world.targets(u) {
		at := place{u.path, to.name}
		h, ran, brought := j.places[at], j.ran[at], nameOf(u.objects(to))
		if h == nil || ran == "" || ran == brought || j.masked(at, p) != "" || j.isRetired(at.target) {
			continue
		}
		if s, was := h.bundles[brought], h.bundles[ran]; s != nil && s.now && !was.now && !s.within(was) {
			j.objectf("a rollback puts back what ran before", "%v has what commit %s brought: %s", at, t.Commit.Short(), brought)
		}
	}
}

// takesBack: what the newest commit wants, and is there, is not replaced by anything
// older, unless the daemon says that it goes back.
func (j *judge) takesBack(c *call, u *unit, t target, k key, is, mark string) {
	commit := j.known[c.process.number]
	if commit != j.first[c.process.number] || !j.goodIn(commit, u) || j.goesBack(c.process, u.path) {
		return // something from before may be under way
	}
	if j.isBlind(c.process) {
		return // and here, too
	}
	if r := j.rows[u.path]; r != nil && r.Blocked != "" {
		return // it says why that is not released, and what was under way goes on
	}
	if u.objects(t)[k] == is && is != mark {
		j.objectf("nothing is taken back", "%s: %s on %s has %s, which Git wants, and gets %s", c.key(), k, t.name, is, mark)
	}
}

// isBlind says that a process went on without Git a moment ago: what it began then may be under
// way.
func (j *judge) isBlind(p *process) bool {
	since, was := j.blind[p.number]
	return was && j.elapsed-since < jobTime
}

// tooEarly: what the new bundle replaces is deleted when all of that is there and healthy. A unit
// that was renamed may be put back to a bundle that it had under its old name.
func (j *judge) tooEarly(p *process, commit *commit, at place, k key) string {
	if commit.unit(at.unit) == nil || j.places[at] == nil {
		return ""
	}
	before := place{renamedFrom(at.unit), at.target}
	if j.wasWholeWithout(at, k) || j.goesBack(p, at.unit) && j.wasWholeWithout(before, k) {
		return ""
	}
	return fmt.Sprintf("no bundle of %s without it is healthy on %s", at.unit, at.target)
}

// wasWholeWithout says whether a bundle without an object is there, or was a moment ago.
func (j *judge) wasWholeWithout(at place, k key) bool {
	h := j.places[at]
	if h == nil {
		return false
	}
	for _, s := range h.bundles {
		if _, has := s.objects[k]; !has && (s.whole || s.ended > 0 && j.elapsed-s.ended < jobTime) {
			return true
		}
	}
	return false
}

// leaseTime is how long a Lease lasts.
const leaseTime = time.Minute

// takesOver: a Lease is taken from who works with another state only when it ran out.
func (j *judge) takesOver(c *call, before string) {
	for number, by := range j.holders {
		if number == c.process.number || by[c.cluster] != before || before == "" {
			continue
		}
		if since := time.Since(j.renewed[j.world.clusters[c.cluster].identity()]); j.lineage[number] != j.lineage[c.process.number] && since < leaseTime {
			j.objectf("one writer", "%s takes the Lease of process %d, which has another state, %s after its last renewal", c.key(), number, since)
		}
	}
}

// within says that all of a bundle is in another one too.
func (s *span) within(other *span) bool {
	for k, mark := range s.objects {
		if other.objects[k] != mark {
			return false
		}
	}
	return true
}
