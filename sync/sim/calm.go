// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/simulator"
)

const (
	// patience is how many steps everything may take to arrive, and how long by the
	// daemon's clock.
	patienceSteps = 6000
	patienceTime  = 12 * time.Hour
	// restTime is for how long nothing may be written after that.
	restTime = 25 * time.Minute
	// retryPause is how long an operator waits between two orders for one unit.
	retryPause = 6 * time.Minute
)

// recover has all faults stop, makes a commit with nothing wrong in it, and expects that
// it arrives, and that nothing is written after that.
func (w *world) recover() {
	if w.judge.objection != nil {
		return
	}
	w.calm = true
	w.heals()
	w.othersGoOn()
	w.mendAll()
	w.rollbacksEnd()
	w.cleanCommit()
	before, ordered := w.judge.elapsed, map[string]time.Duration{}
	for i := 0; ; i++ {
		if w.calmly(ordered); w.judge.objection != nil {
			return
		}
		left := w.left()
		if left == "" {
			break
		}
		if i > patienceSteps || w.judge.elapsed-before > patienceTime {
			w.judge.objectf("everything arrives", "after %d steps and %s: %s\n%s", i, w.judge.elapsed-before, left, w.describe())
			return
		}
	}
	w.rest()
	if w.judge.objection == nil && w.process != nil {
		w.judge.carriedOut(w.process)
	}
}

// rollbacksEnd expects that no release is still on its way back.
func (w *world) rollbacksEnd() {
	if len(w.git.head.masks) > 0 {
		return
	}
	before, ordered := w.judge.elapsed, map[string]time.Duration{}
	for i := 0; w.judge.objection == nil; i++ {
		back := ""
		for _, path := range sorted(w.judge.units) {
			if v := w.judge.units[path]; v.status == string(rollout.RollingBack) {
				back = path + ": " + v.reason
			}
		}
		if back == "" {
			return
		}
		if i > patienceSteps || w.judge.elapsed-before > patienceTime {
			w.judge.objectf("a rollback ends", "after %d steps and %s: %s\n%s", i, w.judge.elapsed-before, back, w.describe())
			return
		}
		w.calmly(ordered)
	}
}

// othersGoOn expects that a unit with a problem stays alone with it, be it that a cluster fails
// for a kind of its objects: what the newest commit wants of the others arrives.
func (w *world) othersGoOn() {
	if w.shape.budget.units+w.shape.budget.unitsPerTarget > 0 { // who cannot go on keeps the room
		w.mendAll()
	}
	head := w.git.head
	var well []*unit
	for _, u := range head.apps() {
		if w.judge.goodIn(head, u) && !u.broken && !u.denied && !w.isBroken(u) {
			well = append(well, u)
		}
	}
	if w.firstRollout(head) != "" && !slices.ContainsFunc(well, (*unit).isFirst) {
		return // others wait for it
	}
	if head.held || len(head.masks) > 0 || len(well) == 0 || len(well) == len(head.apps()) {
		return
	}
	before, ordered := w.judge.elapsed, map[string]time.Duration{}
	for i := 0; w.judge.objection == nil; i++ {
		missing := w.missing(well)
		if missing == "" {
			w.stats.situation("others go on beside a unit with a problem")
			return
		}
		if i > patienceSteps || w.judge.elapsed-before > patienceTime {
			w.judge.objectf("one bad unit does not stop the others", "after %d steps and %s: %s\n%s", i, w.judge.elapsed-before, missing, w.describe())
			return
		}
		w.calmly(ordered)
	}
}

// isBroken says that some cluster fails for a kind that the unit has objects of, or renames them.
func (w *world) isBroken(u *unit) bool {
	for _, t := range w.targets(u) {
		for k := range u.objects(t) {
			if c := w.clusters[t.cluster]; c.fails(pathOf(k)) || c.renamesIn(pathOf(k)) {
				return true
			}
		}
	}
	return false
}

// missing says what of units is not there yet.
func (w *world) missing(units []*unit) string {
	for _, u := range units {
		for _, t := range w.targets(u) {
			objects := u.objects(t)
			for _, k := range sortedKeys(objects) {
				l, ok := w.clusters[t.cluster].live[k]
				if isProof(objects[k]) || !ok && w.judge.lastRun(u, t, k) == objects[k] {
					continue
				}
				if !ok || l.mark != objects[k] || !l.ready {
					return fmt.Sprintf("%s: %s on %s is %+v, want %s", u.path, k, t.name, l, objects[k])
				}
			}
		}
	}
	return ""
}

// rest expects that nothing is written, whatever an operator has looked at again.
func (w *world) rest() {
	w.tell("at rest: %s", w.command(pick(w.rand, order.Retry, order.Reconcile), order.Scope{}, 0))
	w.stepped()
	writes, before := w.judge.writes, w.judge.elapsed
	for w.judge.elapsed-before < restTime && w.judge.objection == nil {
		w.calmly(nil)
		if w.judge.writes > writes {
			w.judge.objectf("a second pass writes nothing", "%s", w.judge.lastWrite)
		}
	}
}

// heals ends all that is wrong.
func (w *world) heals() {
	w.git.down, w.says, w.fighters = false, "", nil
	w.swapBack()
	w.killRival()
	w.disk.full.Store(false)
	for _, name := range w.shape.clusters {
		c := w.clusters[name]
		c.away, c.sick, c.rightsUp, c.denies, c.slow = "", "", false, false, false
		w.healAll(c)
	}
	if p := w.process; p != nil {
		p.mu.Lock()
		p.strike = 0
		p.mu.Unlock()
	}
	w.tell("all faults end")
}

// bringBack has the clusters stand under their names that the state knows by them.
func (w *world) bringBack() {
	made := 0
	for _, name := range w.shape.clusters {
		made += len(w.clusters[name].all)
	}
	if w.process == nil || made == len(w.clusters) && !w.shape.hostile {
		return
	}
	known, err := w.process.store.Clusters()
	if err != nil {
		w.judge.objectf("state", "clusters: %v", err)
	}
	for _, name := range w.shape.clusters {
		if pinned := w.everMade(known[name].UID); pinned != nil && pinned != w.clusters[name].Cluster {
			w.standAt(name, pinned)
		}
	}
	for _, name := range w.shape.clusters {
		cluster, other := w.clusters[name], w.clusters[name].lease().name
		switch {
		case other == "" || other == name:
		case known[name].UID == "" && known[other].UID == "": // as the text says: they are swapped back
			w.standAt(other, cluster.Cluster)
		default: // or the annotation is taken away
			w.ask(cluster, http.MethodPatch, "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/swell-sim", mergePatch, "kubectl",
				fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, config.AnnotationCluster))
			w.tell("the Lease of %s does not say %s any more", name, other)
		}
	}
}

// everMade is the cluster with an identity, under whatever name it ever stood; nil where there is
// none.
func (w *world) everMade(uid string) *simulator.Cluster {
	for _, name := range w.shape.clusters {
		if cluster := w.clusters[name].all[uid]; cluster != nil {
			return cluster
		}
	}
	return nil
}

// standAt has a cluster stand at a name. One that it stood at until now gets the other one.
func (w *world) standAt(name string, pinned *simulator.Cluster) {
	c := w.clusters[name]
	for _, other := range w.shape.clusters {
		if w.clusters[other].Cluster == pinned {
			w.gate.cut(other)
			w.clusters[other].Cluster = c.Cluster
			w.tell("cluster %s is the one that stood at %s", other, name)
		}
	}
	w.gate.cut(name)
	c.Cluster = pinned
	w.tell("cluster %s is the one again that the state knows", name)
}

// cleanCommit commits what is wanted with nothing wrong in it.
func (w *world) cleanCommit() {
	next := &commit{units: slices.Clone(w.git.head.units)}
	if next.unit("services/crd") == nil {
		next.units = append(next.units, &unit{path: "services/crd", sort: "crd"})
	}
	taken := map[string]bool{}
	for _, u := range next.apps() {
		next.alter(u, func(u *unit) {
			if !w.shape.keeps || u.broken || u.denied {
				u.v = w.git.version()
			}
			u.broken, u.denied, u.frozen = false, false, false
			u.configs = slices.DeleteFunc(u.configs, func(name string) bool { return taken[name] })
			if len(u.configs) == 0 {
				u.configs = []string{fmt.Sprintf("%s-c%d", u.name, 10+w.git.version())}
			}
			for _, name := range u.configs {
				taken[name] = true
			}
		})
	}
	w.git.push(next)
	w.tell("commit: %s by %s, with nothing wrong", next.id.Short(), next.author)
}

// calmly takes a step in which nothing goes wrong. ordered says when operators gave
// orders; nil: there are none.
func (w *world) calmly(ordered map[string]time.Duration) {
	for _, name := range w.shape.clusters {
		w.healAll(w.clusters[name])
		w.releaseAll(w.clusters[name])
	}
	w.bringBack()
	groups := w.gate.groups()
	switch {
	case w.process == nil:
		w.startAgain()
	case len(groups) > 0:
		w.rand.Uint64()
		w.tell("let %s: %s", w.nameOf(groups[0]), w.let(groups[0]))
		w.stepped()
	case w.liftAll():
	case ordered != nil && w.operate(ordered):
	default:
		w.pass(time.Minute)
	}
}

// operate has an operator do what the texts ask for.
func (w *world) operate(ordered map[string]time.Duration) bool {
	if plans := w.plans(); len(plans) > 0 {
		approved, err := w.process.store.Approvals()
		if err != nil {
			w.judge.objectf("state", "approvals: %v", err)
		}
		for _, p := range plans {
			done := false
			for _, a := range approved {
				done = done || a.Digest == p.Digest
			}
			if !done {
				w.tell("approve: %s", w.approvePlan(p))
				w.stepped()
				return true
			}
		}
	}
	if approval := w.approveAll(); approval != "" {
		w.tell("approve: %s", approval)
		w.stepped()
		return true
	}
	for _, verb := range []order.Verb{order.Promote, order.Retry} { // before what failed is under way again
		for _, path := range sorted(w.judge.units) {
			v := w.judge.units[path]
			at, before := ordered[path]
			named := func(verb order.Verb) bool { return strings.Contains(v.reason+v.blocked, "swell "+string(verb)) }
			if before && w.judge.elapsed-at < retryPause || !named(verb) {
				continue
			}
			if promoted := ordered[path+" promoted"]; verb == order.Promote && promoted > 0 && promoted == at && named(order.Retry) {
				continue // it did not help
			}
			ordered[path] = w.judge.elapsed
			if verb == order.Promote {
				ordered[path+" promoted"] = w.judge.elapsed
			}
			w.tell("as the text says: %s", w.command(verb, order.Scope{Unit: config.UnitPath(path)}, 0))
			w.stepped()
			return true
		}
	}
	return false
}

// left says what is not as the newest commit wants it; empty when all is.
func (w *world) left() string {
	wanted := map[string]map[key]bool{}
	for _, u := range w.git.head.units {
		v, known := w.judge.units[u.path]
		if !known || v.status != string(rollout.Done) || v.reason != "" || v.blocked != "" || v.waiting != "" {
			return fmt.Sprintf("%s is %s: %s", u.path, v.status, v.reason+v.blocked+v.waiting)
		}
		for _, t := range w.targets(u) {
			live := w.clusters[t.cluster].live
			if wanted[t.cluster] == nil {
				wanted[t.cluster] = map[key]bool{}
			}
			objects := u.objects(t)
			for _, k := range sortedKeys(objects) {
				wanted[t.cluster][k] = true
				l, ok := live[k]
				if isProof(objects[k]) || !ok && w.judge.lastRun(u, t, k) == objects[k] {
					continue
				}
				if !ok || l.mark != objects[k] || !l.ready || l.edited || l.going {
					return fmt.Sprintf("%s: %s on %s is %+v, want %s", u.path, k, t.name, l, objects[k])
				}
			}
		}
	}
	for _, name := range w.shape.clusters {
		c := w.clusters[name]
		for _, k := range sortedKeys(c.live) {
			if l := c.live[k]; l.unit != "" && !wanted[name][k] && !w.judge.orphaned[name+" "+k.String()] {
				return fmt.Sprintf("%s of %s is still in %s", k, l.unit, name)
			}
		}
	}
	for _, path := range sorted(w.judge.units) {
		if w.git.head.unit(path) == nil {
			return path + " is still known"
		}
	}
	return w.leased()
}

// leased says which cluster another daemon has the Lease of: it is taken over, and looked at
// as one that was written to meanwhile.
func (w *world) leased() string {
	if w.process == nil || len(w.git.head.masks) > 0 {
		return "" // the Lease of a masked cluster is not kept
	}
	for _, name := range w.shape.clusters {
		own := w.judge.holders[w.process.number][name]
		if holder := w.clusters[name].lease().holder; own == "" || holder != own {
			return fmt.Sprintf("the Lease of %s is held by %q, not %q", name, holder, own)
		} else if w.judge.elapsed-w.judge.handedOver[name] < leaseTime {
			return fmt.Sprintf("the Lease of %s has a new holder", name)
		}
	}
	return ""
}

func (w *world) describe() string {
	var b strings.Builder
	for _, path := range sorted(w.judge.units) {
		v := w.judge.units[path]
		fmt.Fprintf(&b, "%s: %s: %q blocked %q waiting %q %v\n", path, v.status, v.reason, v.blocked, v.waiting, v.targets)
	}
	for _, line := range w.logged.recent[max(0, len(w.logged.recent)-12):] {
		b.WriteString(line)
	}
	return b.String()
}
