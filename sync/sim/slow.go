// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"math/rand/v2"
	"time"
)

// slowEvents are about clusters that take their time, and about a store of Git that goes away.
var slowEvents = []event{
	{"webhook slow", 5, (*world).slowDown},
	{"webhook quick", 10, (*world).speedUp},
	{"store of Git gone", 4, (*world).loseGit},
}

// drawSlow has such things happen in one of two histories.
func drawSlow(seed uint64, s *shape) {
	s.slow = seed >= firstOfSorts && rand.New(rand.NewPCG(seed, 8)).IntN(2) == 0
}

// webhookTime is how long a slow webhook takes. An API server waits for one for 30 s at most.
const webhookTime = 20 * time.Second

// slowDown has a webhook of a cluster take its time with each write.
func (w *world) slowDown() string {
	c := w.someCluster()
	if c.slow {
		return ""
	}
	c.slow = true
	for _, u := range w.git.head.units {
		w.judge.cause(u.path, "a webhook of "+c.name+" is slow")
	}
	return c.name
}

func (w *world) speedUp() string {
	c := w.clusterThat(func(c *cluster) bool { return c.slow })
	if c == nil {
		return ""
	}
	c.slow = false
	return c.name
}

// letSlow lets the calls through that a slow webhook has had for its time.
func (w *world) letSlow() {
	for _, c := range w.gate.slow() {
		if !c.due.After(time.Now()) {
			w.tell("let %s: %s", c.key(), w.letOne(c))
			c.due = time.Time{} // nobody answers one that waits on
			w.settle()
		}
	}
}

// errGone is what a store says whose folder was deleted.
var errGone = errors.New("git: open objects/pack: no such file or directory")

// loseGit deletes what was fetched. It is fetched anew when Git is asked next.
func (w *world) loseGit() string {
	if w.git.gone {
		return ""
	}
	w.git.gone = true
	return "gone"
}
