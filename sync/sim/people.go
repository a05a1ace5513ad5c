// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/store"
)

// draws is how often an event is drawn in the place of one that cannot happen.
const draws = 5

// event is something that the daemon has no hand in.
func (w *world) event() {
	for range draws {
		if w.draw() {
			return
		}
	}
}

// draw draws an event, and reports whether it happened.
func (w *world) draw() bool {
	weight, events := 0, w.events()
	for _, e := range events {
		weight += e.weight
	}
	n := w.rand.IntN(weight)
	i := slices.IndexFunc(events, func(e event) bool { n -= e.weight; return n < 0 })
	text := events[i].do(w)
	if text == "" {
		return false
	}
	w.tell("%s: %s", events[i].name, text)
	w.stats.fault(events[i].name)
	w.stepped()
	return true
}

// event is what may happen, with how often. What do returns is told; nothing is that it
// cannot happen at the moment.
type event struct {
	name   string
	weight int
	do     func(*world) string
}

var events = []event{
	{"commit", 30, (*world).commit},
	{"commit taken back", 12, (*world).takeBack},
	{"edit", 10, (*world).edit},
	{"delete", 5, (*world).deleteByHand},
	{"scale", 4, (*world).scale},
	{"flap", 8, (*world).flap},
	{"heal", 8, (*world).heal},
	{"cluster away", 5, (*world).leave},
	{"cluster back", 12, (*world).comeBack},
	{"cluster sick", 4, (*world).sicken},
	{"cluster well", 8, (*world).cure},
	{"Leases stall", 4, (*world).stall},
	{"cluster anew", 3, (*world).makeAnew},
	{"old cluster again", 8, (*world).bringOldBack},
	{"streams cut", 4, (*world).cutStreams},
	{"compaction", 3, (*world).compact},
	{"kill", 4, (*world).kill},
	{"kill soon", 7, (*world).killSoon},
	{"stop", 3, (*world).stop},
	{"state lost", 2, (*world).loseState},
	{"older state", 3, (*world).putBackState},
	{"approve", 14, (*world).approve},
	{"reject", 2, (*world).reject},
	{"retry", 6, (*world).retry},
	{"order in force", 10, (*world).begin},
	{"order lifted", 10, (*world).lift},
	{"order", 6, (*world).once},
	{"Git away", 3, func(w *world) string { w.git.down = true; return "down" }},
	{"Git back", 12, func(w *world) string {
		if !w.git.down {
			return ""
		}
		w.git.down = false
		return "up"
	}},
	{"clock", 2, (*world).jump},
	{"second daemon", 4, (*world).startRival},
	{"second daemon killed", 2, (*world).killRival},
	{"disk full", 2, func(w *world) string { return w.fill(true) }},
	{"disk has room", 20, func(w *world) string { return w.fill(false) }},
}

// someCluster is one of the clusters.
func (w *world) someCluster() *cluster {
	return w.clusters[w.shape.clusters[w.rand.IntN(len(w.shape.clusters))]]
}

// clusterThat is one of the clusters that something is so of; nil where there is none.
func (w *world) clusterThat(is func(*cluster) bool) *cluster {
	var all []*cluster
	for _, name := range w.shape.clusters {
		if c := w.clusters[name]; is(c) {
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all[w.rand.IntN(len(all))]
}

// someLive is a live object that swell applied; ok says whether there is one.
func (w *world) someLive(kinds ...string) (c *cluster, k key, ok bool) {
	c = w.someCluster()
	w.judge.see(c)
	var all []key
	for k, l := range c.live {
		if l.unit != "" && (len(kinds) == 0 || slices.Contains(kinds, k.kind)) {
			all = append(all, k)
		}
	}
	if len(all) == 0 {
		return c, key{}, false
	}
	slices.SortFunc(all, func(a, b key) int { return strings.Compare(a.String(), b.String()) })
	return c, all[w.rand.IntN(len(all))], true
}

const mergePatch = "application/merge-patch+json"

func (w *world) edit() string {
	c, k, ok := w.someLive("ConfigMap", "Deployment", "Widget")
	if !ok {
		return ""
	}
	w.judge.byHand(c, k)
	return fmt.Sprintf("%s %s %d", c.name, k, w.ask(c, "PATCH", pathOf(k), mergePatch, "kubectl-edit", editOf(k, "by hand")))
}

// editOf is a patch that makes an object another one than its mark says.
func editOf(k key, value string) string {
	switch k.kind {
	case "Deployment":
		return `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"registry.example.com/app:hotfix"}]}}}}`
	case "Widget":
		return fmt.Sprintf(`{"spec":{"v":%q}}`, value)
	}
	return fmt.Sprintf(`{"data":{"v":%q}}`, value)
}

func (w *world) deleteByHand() string {
	c, k, ok := w.someLive("ConfigMap", "Deployment", "Widget", "Secret", "Job")
	if !ok {
		return ""
	}
	w.judge.byHand(c, k)
	return fmt.Sprintf("%s %s %d", c.name, k, w.ask(c, "DELETE", pathOf(k), "", "kubectl", ""))
}

func (w *world) scale() string {
	c, k, ok := w.someLive("Deployment")
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s %s %d", c.name, k, w.ask(c, "PATCH", pathOf(k)+"/scale", mergePatch, "kube-controller-manager", fmt.Sprintf(`{"spec":{"replicas":%d}}`, 1+w.rand.IntN(3))))
}

// flap makes a workload unhealthy.
func (w *world) flap() string {
	c, k, ok := w.someLive("Deployment")
	if !ok {
		return ""
	}
	w.judge.flapped(c, k)
	return fmt.Sprintf("%s %s %d", c.name, k, w.setReady(c, k, false))
}

// heal makes all workloads of a cluster healthy that are not for want of an image.
func (w *world) heal() string {
	c := w.someCluster()
	if n := w.healAll(c); n > 0 {
		return fmt.Sprintf("%s %d", c.name, n)
	}
	return ""
}

func (w *world) healAll(c *cluster) (n int) {
	w.judge.see(c)
	ill := map[key]live{}
	for k, l := range c.live {
		if l.flapped {
			ill[k] = l
		}
	}
	for _, k := range sortedKeys(ill) {
		w.setReady(c, k, true)
		n++
	}
	return n
}

func (w *world) setReady(c *cluster, k key, ready bool) int {
	is, n := "False", 0
	if ready {
		is, n = "True", max(1, c.live[k].replicas)
	}
	now := time.Now().UTC().Format(time.RFC3339)
	body := fmt.Sprintf(`{"status":{"readyReplicas":%d,"availableReplicas":%d,"unavailableReplicas":%d,"conditions":[`+
		`{"type":"Available","status":%q,"reason":"Sim","message":"","lastUpdateTime":%q,"lastTransitionTime":%q},`+
		`{"type":"Progressing","status":"True","reason":"NewReplicaSetAvailable","message":"","lastUpdateTime":%q,"lastTransitionTime":%q}]}}`, n, n, max(1, c.live[k].replicas)-n, is, now, now, now, now)
	return w.ask(c, "PATCH", pathOf(k)+"/status", mergePatch, "kubelet", body)
}

func (w *world) leave() string {
	c := w.someCluster()
	if c.away != "" {
		return ""
	}
	c.away = pick(w.rand, "refuses", "black hole")
	w.gate.cut(c.name)
	return c.name + " " + c.away
}

func (w *world) comeBack() string {
	c := w.clusterThat(func(c *cluster) bool { return c.away != "" })
	if c == nil {
		return ""
	}
	c.away = ""
	return c.name
}

// noLeases is a sickness in which a cluster writes all but Leases.
const noLeases = "etcdserver: request timed out, for Leases"

// tooBusy is a sickness in which a cluster has each write wait.
const tooBusy = "the server has received too many requests"

func (w *world) sicken() string {
	c := w.someCluster()
	if c.sick != "" || c.rightsUp {
		return ""
	}
	if w.rand.IntN(3) == 0 {
		c.rightsUp = true
		return c.name + " takes the rights away"
	}
	if w.rand.IntN(3) == 0 {
		c.sick = noLeases
		return c.name + " takes no Leases"
	}
	c.sick = pick(w.rand, tooBusy, tooBusy, "etcdserver: mvcc: database space exceeded", "etcdserver: no leader", "etcdserver: leader changed")
	return c.name + " " + c.sick
}

// stallTime is longer than a Lease lasts.
const stallTime = 70 * time.Second

// stall has a cluster tell a job's writes to come again until its Lease has run out.
func (w *world) stall() string {
	name := w.writtenTo()
	if name == "" || w.clusters[name].sick != "" {
		return ""
	}
	c := w.clusters[name]
	c.sick = tooBusy
	w.goOn(stallTime, func(g []*call) bool { return g[0].cluster == name })
	c.sick = noLeases
	return name
}

// writtenTo is a cluster that a request waits for that writes; empty when there is none.
func (w *world) writtenTo() string {
	for _, group := range w.gate.groups() {
		if group[0].writes() {
			return group[0].cluster
		}
	}
	return ""
}

func (w *world) cure() string {
	c := w.clusterThat(func(c *cluster) bool { return c.sick != "" || c.rightsUp })
	if c == nil {
		return ""
	}
	c.sick, c.rightsUp = "", false
	return c.name
}

// makeAnew takes a cluster away and brings another one back under its name.
func (w *world) makeAnew() string {
	c := w.someCluster()
	if w.swapped != nil {
		return ""
	}
	if name := w.writtenTo(); w.clusters[name] != nil { // there it matters most
		c = w.clusters[name]
	}
	w.reset(c)
	w.make(c)
	return c.name
}

// reset breaks all connections to a cluster, for another one to stand there.
func (w *world) reset(c *cluster) {
	broken := w.gate.cut(c.name)
	for _, group := range append(w.gate.groups(), w.gate.slow()) {
		for _, call := range group {
			if call.cluster == c.name {
				w.give(call, failing(errReset), false, "")
				broken++
			}
		}
	}
	if broken == 0 {
		c.unnoticed = w.judge.elapsed
	}
	w.settle()
}

// bringOldBack brings back a cluster that another one took the place of.
func (w *world) bringOldBack() string {
	c := w.clusterThat(func(c *cluster) bool { return c.first != c.Cluster })
	if c == nil || w.swapped != nil {
		return ""
	}
	w.reset(c)
	c.Cluster = c.first
	return c.name
}

func (w *world) cutStreams() string {
	c := w.someCluster()
	if n := w.gate.cut(c.name); n > 0 {
		return fmt.Sprintf("%s %d", c.name, n)
	}
	return ""
}

func (w *world) compact() string {
	c := w.someCluster()
	c.Compact()
	return c.name
}

func (w *world) kill() string {
	if w.process == nil {
		return ""
	}
	w.process.struck = "with requests under way"
	w.process.die()
	return fmt.Sprint(w.process.number)
}

func (w *world) killSoon() string {
	p := w.process
	if p == nil {
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.strike = 1 + w.rand.IntN(9)
	return fmt.Sprint(p.strike)
}

func (w *world) stop() string {
	if w.process == nil {
		return ""
	}
	w.process.cancel()
	return fmt.Sprint(w.process.number)
}

// killNow kills the process, if there is one, for what is then done to its state.
func (w *world) killNow() {
	if w.kill() != "" {
		w.reap()
	}
}

func (w *world) loseState() string {
	w.killNow()
	w.disk.lose()
	w.judge.forget()
	return "lost"
}

func (w *world) putBackState() string {
	if len(w.disk.copies) == 0 {
		return ""
	}
	w.killNow()
	n := w.rand.IntN(len(w.disk.copies))
	w.disk.putBack(w.disk.copies[n])
	w.judge.older(w.disk.copies[n])
	return fmt.Sprintf("%d of %d", n, len(w.disk.copies))
}

// fill makes the disk of the state full, or makes room there.
func (w *world) fill(full bool) string {
	if w.disk.full.Swap(full) == full {
		return ""
	}
	return w.disk.dir[len(w.dir):]
}

func (w *world) plans() []store.Plan {
	if w.process == nil || w.disk.full.Load() {
		return nil
	}
	plans, err := w.process.store.Plans()
	if err != nil {
		w.judge.objectf("state", "plans: %v", err)
	}
	return plans
}

// say writes what an operator says beside the process or, where there is none, alone.
func (w *world) say(do func(*store.Tx) error) error {
	if w.process == nil {
		return store.Alone(context.Background(), w.disk.dir, do)
	}
	beside := w.process.store.Beside()
	return errors.Join(beside.Update(context.Background(), do), beside.Close())
}

func (w *world) approve() string {
	plans := w.plans()
	if len(plans) == 0 {
		return ""
	}
	return w.approvePlan(plans[w.rand.IntN(len(plans))])
}

func (w *world) approvePlan(p store.Plan) string {
	w.judge.approved(p)
	if err := w.say(func(tx *store.Tx) error { return tx.Approve(p.Digest, "ann", w.now()) }); err != nil {
		w.judge.objectf("state", "approve: %v", err)
	}
	w.stats.situation("approvals")
	var all []string
	for _, d := range p.Deletions {
		all = append(all, fmt.Sprintf("%s on %s %s", d.ID, d.Target, d.UID))
	}
	return fmt.Sprintf("%q: %s", p.Unit, strings.Join(all, ", "))
}

func (w *world) reject() string {
	plans := w.plans()
	if len(plans) == 0 {
		return ""
	}
	p := plans[w.rand.IntN(len(plans))]
	if err := w.say(func(tx *store.Tx) error { return tx.Reject(p.Digest, store.Rejection{At: w.now(), By: "ben"}) }); err != nil {
		return "refused"
	}
	return fmt.Sprintf("%d deletions of %q", len(p.Deletions), p.Unit)
}

func (w *world) retry() string {
	var unit config.UnitPath
	if units := w.git.head.units; w.rand.IntN(2) == 0 && len(units) > 0 {
		unit = config.UnitPath(units[w.rand.IntN(len(units))].path)
	}
	return w.order(unit)
}

func (w *world) order(unit config.UnitPath) string {
	return w.command(order.Retry, order.Scope{Unit: unit}, 0)
}

func (w *world) jump() string {
	d := pick(w.rand, -time.Hour, -time.Minute, 10*time.Minute, 3*time.Hour)
	w.skew += d
	w.judge.clockIsSet(d)
	return d.String()
}
