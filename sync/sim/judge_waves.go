// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/swell-sh/swell/sync/rollout"
)

// held is what a place holds: for each bundle that was ever offered there, since when
// all of it is there and healthy, and until when it was.
type held struct {
	target  target
	bundles map[string]*span
	last    map[key]string  // what each object was when a bundle with it was last there as a whole
	ever    map[sent]bool   // the same of all bundles that were there
	ran     map[key]string  // of a Job, the last one that ran to its end: nothing needs it any more
	proved  map[string]bool // the marks of Jobs of gates that succeeded
}

// sent is an object as a bundle has it.
type sent struct {
	key
	mark string
}

// span is how long a bundle is there as a whole.
type span struct {
	objects map[key]string
	now     bool // it is there, and healthy
	whole   bool // it was there, and healthy, some time since something else was written
	first   time.Duration
	latest  time.Duration
	// ended is when it was overwritten, and lasted how long it had been there.
	ended, lasted time.Duration
	// evident: since then something but a Job was written, which shows that the state is older.
	evident bool
}

// jobTime is how long a job goes on that began when a wave was over, whatever
// becomes of that wave's targets meanwhile.
const jobTime = 2 * time.Minute

// offer has the judge know of the bundles of a commit.
func (j *judge) offer(c *commit) {
	for _, u := range c.units {
		for _, t := range j.world.targets(u) {
			at := place{u.path, t.name}
			if j.places[at] == nil {
				j.places[at] = &held{target: t, bundles: map[string]*span{},
					last: map[key]string{}, ever: map[sent]bool{}, ran: map[key]string{}, proved: map[string]bool{}}
			}
			objects := u.objects(t)
			if name := nameOf(objects); j.places[at].bundles[name] == nil {
				s := &span{objects: objects}
				j.places[at].bundles[name] = s
				j.measure(j.world.clusters[t.cluster], at.unit, j.places[at], s)
			}
		}
	}
}

func nameOf(objects map[key]string) string {
	var b strings.Builder
	for _, k := range sortedKeys(objects) {
		fmt.Fprintf(&b, "%s=%s ", k, objects[k])
	}
	return b.String()
}

// hold looks which bundles a cluster holds now.
func (j *judge) hold(c *cluster) {
	for at, h := range j.places {
		if h.target.cluster == c.name {
			for _, s := range h.bundles {
				j.measure(c, at.unit, h, s)
			}
		}
	}
}

func (j *judge) measure(c *cluster, unit string, h *held, s *span) {
	s.now = true
	isOurs := true // and not another unit's with the same content
	for k, mark := range s.objects {
		l, ok := c.live[k]
		if k.kind == "Job" && ok {
			h.ran[k] = ""
			if l.ready {
				h.ran[k] = l.mark
			}
		}
		if isProof(mark) { // it is started when all others have soaked
			h.proved[mark] = h.proved[mark] || ok && l.mark == mark && l.ready
			continue
		}
		if !ok && h.ran[k] == mark {
			continue
		}
		if !ok || l.mark != mark || !l.ready || l.going {
			s.now = false
		}
		isOurs = isOurs && ok && l.unit == unit
	}
	if s.now && !s.whole {
		s.whole, s.first = true, j.elapsed
	}
	if s.now && isOurs {
		maps.Copy(h.last, s.objects)
		for k, mark := range s.objects {
			h.ever[sent{k, mark}] = true
		}
	}
	if s.now {
		s.latest = j.elapsed
	}
}

// lastRun is the content of the Job that ran last at a place: it may be gone since, deleted for a
// next one that was never made.
func (j *judge) lastRun(u *unit, t target, k key) string {
	if h := j.places[place{u.path, t.name}]; h != nil {
		return h.ran[k]
	}
	return ""
}

// note lets the spans grow in which nothing changed.
func (j *judge) note() {
	for _, name := range j.world.shape.clusters {
		if _, there := j.world.clusters[name].live[key{"CustomResourceDefinition", "", "widgets.example.com"}]; there {
			continue
		}
		for _, c := range j.known {
			for _, u := range c.units {
				if u.widget {
					j.cause(u.path, "its kind is not there")
				}
			}
		}
	}
	for _, at := range j.places {
		for _, s := range at.bundles {
			if s.now {
				s.latest = j.elapsed
			}
		}
	}
}

// overwritten ends the spans of the bundles that a write takes something away from.
func (j *judge) overwritten(cluster string, k key, mark string) {
	for _, at := range j.places {
		if at.target.cluster != cluster {
			continue
		}
		for _, s := range at.bundles {
			if was, in := s.objects[k]; in && was != mark && !isProof(was) {
				s.evident = s.evident && !s.whole || k.kind != "Job"
				if lasted := s.latest - s.first; s.whole && (lasted > s.lasted || j.elapsed-s.ended > jobTime) {
					s.ended, s.lasted = j.elapsed, s.latest-s.first
				}
				s.whole, s.now = false, false
			}
		}
	}
}

// passed says whether a bundle was applied, healthy and soaked on a target. An older state
// knows that it was, and what came after it shows where something but a Job was written, to
// a process that has the Lease of the cluster.
func (j *judge) passed(at place, objects map[key]string, soak time.Duration, p *process) bool {
	h := j.places[at]
	if h == nil {
		return false
	}
	s := h.bundles[nameOf(objects)]
	switch {
	case s == nil:
		return false
	case s.whole:
		return s.latest-s.first >= soak
	}
	unseen := !s.evident || j.holders[p.number][h.target.cluster] != j.world.clusters[h.target.cluster].lease().holder
	return s.ended > 0 && (j.isOlder && unseen || j.elapsed-s.ended < jobTime) && s.lasted >= soak
}

// applies judges an apply.
func (j *judge) applies(c *call, at *cluster, k key) {
	b := bodyOf(c)
	path, mark := b.unit(), b.mark()
	if k.kind == "" || path == "" {
		j.objectf("a write is of an object of a unit", "%s: %s", c.key(), k)
		return
	}
	known := false
	for _, e := range j.entries(c.process) {
		known = known || string(e.Unit) == path && e.Target.Cluster() == c.cluster && e.ID.Kind == k.kind && e.ID.Namespace == k.namespace && e.ID.Name == k.name
	}
	if !known {
		j.objectf("write ahead", "%s: %s of %s is in no inventory", c.key(), k, path)
	}
	offered, why := j.order(c, path, k, mark)
	if !offered && j.offeredBefore(renamedFrom(path), c.cluster, k, mark) {
		return // a unit that was renamed is put back to what it had under its old name
	}
	if !offered {
		j.objectf("only good commits are written", "%s: no good commit has %s with %s for %s", c.key(), k, mark, path)
		return
	}
	l, there := at.live[k]
	if there && l.mark == mark {
		return // nothing new
	}
	if !there {
		for _, t := range j.world.targets(&unit{}) {
			if t.cluster == c.cluster && k.namespace == "shop-"+t.cell {
				j.made[place{path, t.name}]++
			}
		}
	}
	if newest := j.known[c.process.number]; there && newest != nil && newest.unit(path) != nil && !l.going && l.unit == path {
		for _, t := range j.world.targets(newest.unit(path)) {
			if t.cluster == c.cluster {
				j.takesBack(c, newest.unit(path), t, k, l.mark, mark)
			}
		}
	}
	if why != "" && !c.inOrder && !j.goesBack(c.process, path) && !j.wasThere(path, c.cluster, k, mark, there) {
		j.objectf("waves", "%s: %s of %s is written with %s while %s\n%s", c.key(), k, path, mark, why, j.spans(path))
	}
	if j.objection == nil {
		j.overwritten(c.cluster, k, mark)
	}
}

// wasThere says that an object was like this when a bundle with it was last there as a
// whole: that is drift which is corrected, whatever the newest release is doing. An older
// state knows an older bundle, and nothing tells it that the object was deleted since.
func (j *judge) wasThere(path, cluster string, k key, mark string, existing bool) bool {
	for at, h := range j.places {
		if at.unit != path || h.target.cluster != cluster {
			continue
		}
		if h.last[k] == mark || j.isOlder && !existing && h.ever[sent{k, mark}] {
			return true
		}
	}
	return false
}

// order says whether a good commit has an object as it is written, and which earlier wave is not
// over by any that does.
func (j *judge) order(c *call, path string, k key, mark string) (offered bool, why string) {
	for _, commit := range j.world.git.order {
		u := commit.unit(path)
		if !commit.fetched || u == nil || !j.goodIn(commit, u) {
			continue
		}
		for _, t := range j.world.targets(u) {
			if t.cluster != c.cluster || u.objects(t)[k] != mark {
				continue
			}
			offered = true
			if why = j.early(u, t, c.process); why == "" {
				return true, ""
			}
		}
	}
	return offered, why
}

// delayed notes of a write that a webhook keeps whether it came in its wave's turn: it is
// carried out later, whatever became of its release.
func (j *judge) delayed(c *call) {
	if b := bodyOf(c); c.method == http.MethodPatch && b.unit() != "" {
		offered, why := j.order(c, b.unit(), keyOf(c.path), b.mark())
		c.inOrder = offered && why == ""
	}
}

// early says which earlier wave is not over before a target gets its bundle; empty when all are.
func (j *judge) early(u *unit, t target, p *process) string {
	missing := make([]string, len(j.world.shape.waves))
	lacking := make([]int, len(j.world.shape.waves))
	for _, other := range j.world.targets(u) {
		at := place{u.path, other.name}
		if other.wave >= t.wave || j.wasBound(at, p) || j.hasMoved(u, other) {
			continue
		}
		soak := j.world.shape.waves[other.wave].soak
		if j.promoted[u.path] {
			soak = 0
		}
		if !j.passed(at, u.objects(other), soak, p) {
			lacking[other.wave]++
			missing[other.wave] = other.name
		}
	}
	for i, n := range lacking {
		if wave := j.world.shape.waves[i]; n > wave.maxFailures {
			return fmt.Sprintf("%s of wave %s is not done", missing[i], wave.name)
		}
	}
	return ""
}

// hasMoved says that a bundle has an object that was another unit's in some commit: until
// that unit has given it up, the bundle is applied without it.
func (j *judge) hasMoved(u *unit, t target) bool {
	objects := u.objects(t)
	for _, c := range j.world.git.order {
		for _, other := range c.units {
			if !c.fetched || other.path == u.path {
				continue
			}
			for k := range other.objects(t) {
				if _, both := objects[k]; both {
					return true
				}
			}
		}
	}
	return false
}

// spans describes what was where for how long, of a unit.
func (j *judge) spans(path string) string {
	var lines []string
	for at, h := range j.places {
		for name, s := range h.bundles {
			if at.unit == path && (s.whole || s.ended > 0) {
				lines = append(lines, fmt.Sprintf("%s holds %s: now %t, whole %t from %s to %s; before for %s until %s; it is %s", at.target, name, s.now, s.whole, s.first, s.latest, s.lasted, s.ended, j.elapsed))
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// goesBack says whether a unit's release is being taken back, or held, as the process
// has stored it: that is before it writes anything for it. A job that began meanwhile
// goes on.
func (j *judge) goesBack(p *process, path string) bool {
	j.readRows(p) // of the same moment
	if r := j.rows[path]; r == nil || r.goesBack() || r.Rollout.Status == rollout.Held {
		return r != nil
	}
	at, was := j.wentBack[path]
	return was && j.elapsed-at < jobTime
}

// renamedFrom is the name that a unit had before, if it was renamed.
func renamedFrom(path string) string {
	if before, found := strings.CutSuffix(path, "-2"); found {
		return before
	}
	return path + "-2"
}

// offeredBefore says whether a good commit has an object with a mark for a unit.
func (j *judge) offeredBefore(path, cluster string, k key, mark string) bool {
	for _, commit := range j.world.git.order {
		u := commit.unit(path)
		if !commit.fetched || u == nil || !j.goodIn(commit, u) {
			continue
		}
		for _, t := range j.world.targets(u) {
			if t.cluster == cluster && u.objects(t)[k] == mark {
				return true
			}
		}
	}
	return false
}
