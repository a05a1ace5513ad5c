// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"net/http"
	"strings"
)

// firstOfDeletions is the first seed whose history has deletions that are denied, or wait for
// finalizers. Kept seeds are smaller: they go on to play what they were kept for.
const firstOfDeletions = 10_000_000

// deletionEvents are those about deletions that do not come about at once.
var deletionEvents = []event{
	{"deletions denied", 4, (*world).deny},
	{"deletions allowed", 8, (*world).allow},
	{"finalizer", 5, (*world).hold},
	{"finalizers gone", 8, (*world).release},
}

// events are those of the history.
func (w *world) events() []event {
	if w.seed < firstOfDeletions {
		return events
	}
	all := append(events[:len(events):len(events)], deletionEvents...)
	if w.shape.gated {
		all = append(all, gateEvents...)
	}
	if w.shape.hostile {
		all = append(all, hostileEvents...)
	}
	if w.shape.slow {
		all = append(all, slowEvents...)
	}
	if w.shape.renames {
		all = append(all, renameEvents...)
	}
	return all
}

// denied says whether the cluster denies a call because it deletes something of an application.
func (c *cluster) denied(call *call) bool {
	return c.denies && call.method == http.MethodDelete && !call.isLease()
}

var denyDeletion = refusal(403, "Forbidden", `admission webhook "sim.example.com" denied the request: deletions are denied`, "")

func (w *world) deny() string {
	c := w.clusterThat(func(c *cluster) bool { return !c.denies })
	if c == nil {
		return ""
	}
	c.denies = true
	return c.name
}

func (w *world) allow() string {
	c := w.clusterThat(func(c *cluster) bool { return c.denies })
	if c == nil {
		return ""
	}
	c.denies = false
	return c.name
}

// denied notes a deletion that was denied. Only a Job is deleted to be made anew, and only its
// release may fail for that: objects that Git dropped turn nothing back.
func (j *judge) denied(c *cluster, k key) {
	if j.see(c); k.kind != "Job" {
		return
	}
	text, path := "the deletion of "+k.String()+" was denied", "services/"+k.name
	j.cause(path, text)
	j.cause(renamedFrom(path), text)
}

const finalizer = "sim.example.com/hold"

// hold has somebody hold a live object.
func (w *world) hold() string {
	c, k, ok := w.someLive("ConfigMap", "Deployment", "Widget")
	if !ok {
		return ""
	}
	body := fmt.Sprintf(`{"metadata":{"finalizers":[%q]}}`, finalizer)
	return fmt.Sprintf("%s %s %d", c.name, k, w.ask(c, "PATCH", pathOf(k), mergePatch, "sim-operator", body))
}

// release ends all holds in a cluster.
func (w *world) release() string {
	c := w.someCluster()
	names := w.releaseAll(c)
	if len(names) == 0 {
		return ""
	}
	return c.name + " " + strings.Join(names, ", ")
}

func (w *world) releaseAll(c *cluster) (names []string) {
	w.judge.see(c)
	held := map[key]live{}
	for k, l := range c.live {
		if l.held {
			held[k] = l
		}
	}
	for _, k := range sortedKeys(held) {
		w.ask(c, "PATCH", pathOf(k), mergePatch, "sim-operator", `{"metadata":{"finalizers":null}}`)
		names = append(names, k.String())
	}
	return names
}
