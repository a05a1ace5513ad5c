// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/fluxcd/pkg/ssa"
	"github.com/fluxcd/pkg/ssa/utils"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply/health"
)

// # An object's way
//
// Four files, in this order: what is sent, skipped, or waits (here); the bytes
// (body.go); the request, and who is in the way (send.go); what the server's answer
// means for the inventory (result.go).

// applying is one Apply under way. Its maps are only written between stages.
type applying struct {
	*call
	Work
	results []Result
	// blocked holds what others need and what failed, or waits.
	blocked map[need]Result
	// changed holds the custom kinds whose definition was just written.
	changed map[schema.GroupKind]bool
}

// need is a namespace or a kind that an object cannot be applied without; the
// other half is zero.
type need struct {
	namespace string
	kind      schema.GroupKind
}

func (a *applying) gvk(i int) schema.GroupVersionKind {
	return kindOf(a.Objects[i].ID, a.Objects[i].Version)
}

// step is a part of a bundle that must be over before the next one is sent: the
// objects of a phase healthy, the hooks before or after it complete.
type step struct {
	// first: it goes before all phases, see [object.ID.IsFoundation], and
	// nothing waits for its health.
	first   bool
	phase   int
	hook    object.Hook // [object.HookBefore], [object.HookAfter], or none
	numbers []int
}

// order is the place of a step in the bundle.
func (s step) order() int {
	switch {
	case s.first:
		return -1 // no phase is below zero
	case s.hook == object.HookBefore:
		return 3 * s.phase
	case s.hook == object.HookAfter:
		return 3*s.phase + 2
	}
	return 3*s.phase + 1
}

// plan are the steps of the bundle, in order. A bundle without hooks, of one phase,
// is one step.
func (a *applying) plan() []step {
	byOrder := map[int]step{}
	for i, o := range a.Objects {
		s := step{first: true}
		if !o.ID.IsFoundation() {
			s = step{phase: o.Phase, hook: o.Hook().During(a.Event)}
		}
		switch s.hook {
		case object.HookBeforeDelete, object.HookOnce: // for now it is an object like others
			s.hook = ""
		case object.HookGate: // it comes alone
			s.hook = object.HookAfter
		}
		s.numbers = append(byOrder[s.order()].numbers, i)
		byOrder[s.order()] = s
	}
	var steps []step
	plain := true
	for n, order := range slices.Sorted(maps.Keys(byOrder)) {
		s := byOrder[order]
		plain = plain && s.hook == "" && (n == 0 || n == 1 && steps[0].first)
		steps = append(steps, s)
	}
	if !plain {
		return steps
	}
	all := make([]int, len(a.Objects))
	for i := range all {
		all[i] = i
	}
	return []step{{numbers: all}}
}

// carryOut brings the bundle as far as it can be brought for now. Whether a step is
// over is only asked for where something behind it is to be sent: a bundle that
// has not changed costs nothing.
func (a *applying) carryOut(ctx context.Context, steps []step) {
	for n, s := range steps {
		if s.hook != "" {
			a.runHooks(ctx, s.numbers)
		} else {
			a.inStages(ctx, s.numbers)
		}
		rest := steps[n+1:]
		if s.first || a.unchanged(rest) {
			continue
		}
		if h := a.passed(ctx, s); h != nil {
			a.hold(rest, *h)
			return
		}
	}
}

// inStages brings objects stage by stage.
func (a *applying) inStages(ctx context.Context, numbers []int) {
	for _, places := range stages(len(numbers), func(i int) schema.GroupVersionKind { return a.gvk(numbers[i]) }) {
		var send []int
		for _, place := range places {
			i := numbers[place]
			switch o, r := a.Objects[i], &a.results[i]; {
			case a.isUnchanged(i):
				r.Action, r.Entry.Keep, r.Entry.Phase = Unchanged, keeps(o), o.Phase
			case a.skip(i):
			default:
				send = append(send, i)
			}
		}
		a.each(send, func(i int) { a.one(ctx, i) })
		a.settle(ctx, send)
	}
}

// skip marks an object that lacks something that could not be brought.
func (a *applying) skip(i int) bool {
	id, r := a.Objects[i].ID, &a.results[i]
	for _, n := range []need{{namespace: id.Namespace}, {kind: a.gvk(i).GroupKind()}} {
		if lacking, ok := a.blocked[n]; ok {
			r.Action, r.Waits, r.Reason = Skipped, lacking.Waits, lacking.Reason
			if lacking.Waits != "" {
				return true
			}
			r.Reason = lacking.ID.String() + " was not applied"
			r.Err = &Error{Op: "apply", Object: id.String(), Message: "skipped: " + r.Reason, cause: lacking.Err, unsent: true}
			return true
		}
	}
	return false
}

// settle waits until the definitions just written are served, and notes what
// later stages have to do without.
func (a *applying) settle(ctx context.Context, numbers []int) {
	served := make([]definition, len(a.Objects))
	a.each(numbers, func(i int) {
		if r := &a.results[i]; r.ID.IsDefinition() {
			served[i] = a.establish(ctx, a.Objects[i], r)
		}
	})
	for _, i := range numbers {
		r := &a.results[i]
		switch {
		case r.ID.IsDefinition():
			kind := served[i].groupKind()
			a.changed[kind] = true
			if r.Err != nil || r.Waits != "" {
				a.blocked[need{kind: kind}] = *r
			}
		case r.ID.IsNamespace() && (r.Err != nil || r.Waits != ""):
			a.blocked[need{namespace: r.ID.Name}] = *r
		}
	}
}

// isUnchanged says that there is nothing to do about an object.
func (a *applying) isUnchanged(i int) bool {
	o, entry := a.Objects[i], a.results[i].Entry
	if entry.UID == "" {
		return false
	}
	if o.IsRun() {
		return a.ran(i) && entry.Digest != ""
	}
	return entry.Digest != "" && entry.Digest == o.Digest
}

func (a *applying) unchanged(steps []step) bool {
	for _, s := range steps {
		for _, i := range s.numbers {
			if !a.isUnchanged(i) {
				return false
			}
		}
	}
	return true
}

// held is why the steps after one are not sent.
type held struct {
	// waits becomes [Result.Waits]. It is empty when the error of an object is
	// to blame.
	waits  string
	reason string
}

// hold skips what is to be sent in the steps.
func (a *applying) hold(steps []step, h held) {
	for _, s := range steps {
		for _, i := range s.numbers {
			r := &a.results[i]
			if a.isUnchanged(i) {
				r.Action = Unchanged
				continue
			}
			r.Action, r.Waits, r.Reason = Skipped, h.waits, h.reason
		}
	}
}

// passed says whether a step is over; nil when it is.
func (a *applying) passed(ctx context.Context, s step) *held {
	if h := a.firstBlocked(s); h != nil || s.hook != "" {
		return h
	}
	healths := make([]health.Health, len(a.Objects))
	var ask []int
	for _, i := range s.numbers {
		healths[i].State = health.Healthy
		if a.Asks(a.Objects[i]) {
			ask = append(ask, i)
		}
	}
	a.each(ask, func(i int) { healths[i] = a.healthNow(ctx, i) })
	if h := a.firstBlocked(s); h != nil {
		return h
	}
	for _, i := range s.numbers {
		if h := healths[i]; h.State != health.Healthy {
			name := fmt.Sprintf("phase %d", s.phase)
			return &held{name, fmt.Sprintf("waits for %s: %s: %s", name, a.Objects[i].ID, h.Reason)}
		}
	}
	return nil
}

// firstBlocked finds an object of the step that could not be brought, or that waits
// for something itself.
func (a *applying) firstBlocked(s step) *held {
	var waits *held
	for _, i := range s.numbers {
		r := &a.results[i]
		switch {
		case r.Err != nil:
			name := fmt.Sprintf("phase %d", s.phase)
			if s.hook != "" {
				name = "hook " + r.ID.String()
			}
			return &held{"", fmt.Sprintf("waits for %s: %s", name, messageOf(r.Err))}
		case r.Waits != "" && waits == nil:
			waits = &held{r.Waits, r.Reason}
		}
	}
	return waits
}

// healthNow is the health of an object that the bundle's next step waits for.
// An object that will not become healthy, or that the cluster does not answer
// for, gets an error. One that was changed is sent again by the next apply.
func (a *applying) healthNow(ctx context.Context, i int) health.Health {
	o, r := a.Objects[i], &a.results[i]
	found, err := a.inspect(ctx, o, r.Entry, a.Work)
	h := found.health
	r.Freed = found.freed
	switch {
	case err != nil: // health that cannot be read is not ill health
		r.Action, r.Err = "", err
	case h.State == health.Failed:
		r.Action, r.Err = "", failed("apply", o.ID, h.Reason)
	case found.drift != nil:
		r.Entry.Digest = ""
	}
	return h
}

// stage is a part of a bundle whose objects do not need each other, so that
// they can be sent at the same time. A stage starts when the one before it has
// been answered for.
type stage int

const (
	// definitions are what others are instances of or live in: custom resource
	// definitions, namespaces, cluster roles, classes.
	definitions stage = iota
	// foundations are the other kinds that ssa puts before the workloads:
	// quotas, service accounts, roles, config. A pod that starts without them
	// fails or, with limits and quotas, starts as it should not.
	foundations
	// workloads are all kinds not named elsewhere.
	workloads
	// interceptors are the webhook configurations. They come last, because they
	// may refuse the very objects that make them work.
	interceptors

	stageCount
)

var kindRanks = rankKinds()

// rankKinds numbers the kinds of ssa's order: below zero before all others,
// above zero after them. Ssa's own comparison builds this for each pair.
func rankKinds() map[string]int {
	ranks := map[string]int{}
	for i, kind := range ssa.ReconcileOrder.First {
		ranks[kind] = i - len(ssa.ReconcileOrder.First)
	}
	for i, kind := range ssa.ReconcileOrder.Last {
		ranks[kind] = i + 1
	}
	return ranks
}

func stageOf(gvk schema.GroupVersionKind) stage {
	var u unstructured.Unstructured
	u.SetGroupVersionKind(gvk)
	rank := kindRanks[gvk.Kind]
	switch {
	case utils.IsClusterDefinition(&u), utils.IsClassDefinition(&u):
		return definitions
	case rank < kindRanks["Deployment"]:
		return foundations
	case rank > 0:
		return interceptors
	}
	return workloads
}

// stages sorts the numbers of n objects into stages and, within a stage, into
// ssa's order of kinds; what is of one kind keeps its order.
func stages(n int, kind func(i int) schema.GroupVersionKind) [stageCount][]int {
	var all [stageCount][]int
	known := map[schema.GroupVersionKind]stage{}
	rank := make([]int, n)
	for i := range n {
		gvk := kind(i)
		s, ok := known[gvk]
		if !ok {
			s = stageOf(gvk)
			known[gvk] = s
		}
		all[s] = append(all[s], i)
		rank[i] = kindRanks[gvk.Kind]
	}
	for _, numbers := range all {
		slices.SortStableFunc(numbers, func(a, b int) int { return cmp.Compare(rank[a], rank[b]) })
	}
	return all
}

// each runs do for every number, as many at a time as requests may be, starting
// them in order.
func (c *call) each(numbers []int, do func(i int)) {
	var group sync.WaitGroup
	next := make(chan int)
	for range min(len(numbers), c.options.Concurrency) {
		group.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for _, i := range numbers {
		next <- i
	}
	close(next)
	group.Wait()
}

// all runs do for 0 to n-1, like each.
func (c *call) all(n int, do func(i int)) {
	numbers := make([]int, n)
	for i := range numbers {
		numbers[i] = i
	}
	c.each(numbers, do)
}
