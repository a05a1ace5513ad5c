// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// fighter is a controller that changes an object back whenever swell has corrected it.
type fighter struct {
	fought
	edits int
}

// fought is an object that somebody fights for.
type fought struct {
	cluster string
	key     key
}

// hostileEvents are those about others who undo what swell does, and about clusters that are not
// the ones that they seem to be.
var hostileEvents = []event{
	{"fighter", 6, (*world).fight},
	{"fighters leave", 6, (*world).endFights},
	{"clusters swapped", 3, (*world).swap},
	{"clusters swapped back", 12, (*world).swapBack},
	{"kind broken", 5, (*world).breakKind},
	{"kind well", 8, (*world).mendKinds},
}

// drawHostile has such things happen in one of two histories.
func drawHostile(seed uint64, s *shape) {
	s.hostile = seed >= firstOfGates && rand.New(rand.NewPCG(seed, 6)).IntN(2) == 0
}

// fight has a controller begin to fight for an object.
func (w *world) fight() string {
	c, k, ok := w.someLive("ConfigMap", "Deployment", "Widget")
	if !ok || slices.ContainsFunc(w.fighters, func(f *fighter) bool { return f.fought == fought{c.name, k} }) {
		return ""
	}
	w.fighters = append(w.fighters, &fighter{fought: fought{c.name, k}})
	return fmt.Sprintf("for %s on %s", k, c.name)
}

func (w *world) endFights() string {
	n := len(w.fighters)
	w.fighters = nil
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// fightOn has each fighter change what swell has corrected. The values differ.
func (w *world) fightOn() {
	for _, f := range w.fighters {
		c := w.clusters[f.cluster]
		w.judge.see(c)
		l, exists := c.live[f.key]
		if !exists || l.edited || l.going || l.unit == "" {
			continue
		}
		f.edits++
		w.judge.byHand(c, f.key)
		w.ask(c, "PATCH", pathOf(f.key), mergePatch, "fighter", editOf(f.key, fmt.Sprintf("fought %d", f.edits)))
		w.judge.fights(f)
	}
}

const (
	// fightTime is over how long the corrections of an object are counted, and mostCorrections how
	// many there may be: a dozen before it counts as a fight, one after each pause of 1, 2, 4 and more
	// minutes, and those that begin anew with another bundle, an order to retry, or a daemon.
	fightTime       = 10 * time.Minute
	mostCorrections = 60
)

// fights: what somebody fights for is not corrected all the time.
func (j *judge) fights(f *fighter) {
	times := append(j.fought[f.fought], j.elapsed)
	times = slices.DeleteFunc(times, func(edit time.Duration) bool { return j.elapsed-edit > fightTime })
	if j.fought[f.fought] = times; len(times) > mostCorrections {
		j.objectf("a fight is paused", "%s on %s was corrected %d times within %s", f.key, f.cluster, len(times), fightTime)
	}
}

// swap has two clusters stand at each other's address.
func (w *world) swap() string {
	if w.swapped != nil {
		return ""
	}
	names := slices.Clone(w.shape.clusters)
	w.rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	w.swapped = names[:2]
	w.exchange()
	return strings.Join(w.swapped, " and ")
}

func (w *world) exchange() {
	a, b := w.clusters[w.swapped[0]], w.clusters[w.swapped[1]]
	w.reset(a)
	w.reset(b)
	a.Cluster, b.Cluster = b.Cluster, a.Cluster
}

func (w *world) swapBack() string {
	if w.swapped == nil {
		return ""
	}
	w.exchange()
	text := strings.Join(w.swapped, " and ")
	w.swapped = nil
	return text
}

// brokenKind is what a server answers to each call about a kind whose stored objects it cannot
// convert.
var brokenKind = refusal(500, "InternalError",
	`conversion webhook for example.com/v1, Kind=Widget failed: Post "https://x": no endpoints available`, "")

// breakKind has a cluster fail for one kind.
func (w *world) breakKind() string {
	c := w.someCluster()
	if c.broken != "" {
		return ""
	}
	c.broken = pick(w.rand, "widgets", "widgets", "secrets", "jobs")
	w.gate.cut(c.name)
	for _, u := range w.git.head.units {
		w.judge.cause(u.path, c.broken+" cannot be read or written on "+c.name)
	}
	return c.name + " " + c.broken
}

func (w *world) mendKinds() string {
	c := w.clusterThat(func(c *cluster) bool { return c.broken != "" })
	if c == nil {
		return ""
	}
	c.broken = ""
	return c.name
}

// mendAll has no cluster fail for a kind, or rename its objects, any more.
func (w *world) mendAll() {
	for _, c := range w.clusters {
		c.broken, c.renames = "", ""
	}
}

// fails says whether a path is about the kind that the cluster fails for.
func (c *cluster) fails(path string) bool {
	return c.broken != "" && slices.Contains(strings.Split(path, "/"), c.broken)
}
