// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/swell-sh/swell/render"
)

// step is a part of a bundle that must be over before the next one is sent: the
// objects of a phase healthy, the hooks before or after it complete.
type step struct {
	phase   int
	hook    render.Hook // [render.HookBefore], [render.HookAfter], or none
	numbers []int
}

// order is the place of a step in the bundle.
func (s step) order() int {
	switch s.hook {
	case render.HookBefore:
		return 3 * s.phase
	case render.HookAfter:
		return 3*s.phase + 2
	}
	return 3*s.phase + 1
}

// steps are those of the bundle in order, and the objects that go before them
// all, see [render.ObjectID.IsFoundation]. A bundle without hooks, of one phase,
// is one step with nothing before it.
func (a *applying) steps() (first []int, steps []step) {
	byOrder := map[int]step{}
	for i, o := range a.Objects {
		if o.ID.IsFoundation() {
			first = append(first, i)
			continue
		}
		s := step{phase: o.Phase, hook: o.Hook()}
		if s.hook == render.HookBeforeDelete { // for now it is an object like others
			s.hook = ""
		}
		s.numbers = append(byOrder[s.order()].numbers, i)
		byOrder[s.order()] = s
	}
	for _, order := range slices.Sorted(maps.Keys(byOrder)) {
		steps = append(steps, byOrder[order])
	}
	if len(steps) > 1 || len(steps) == 1 && steps[0].hook != "" {
		return first, steps
	}
	all := make([]int, len(a.Objects))
	for i := range all {
		all[i] = i
	}
	return nil, []step{{numbers: all}}
}

// inSteps brings the bundle as far as it can be brought for now. Whether a step
// is over is only asked for where something behind it is to be sent: a bundle
// that has not changed costs nothing.
func (a *applying) inSteps(ctx context.Context) {
	first, steps := a.steps()
	a.inStages(ctx, first)
	for n, s := range steps {
		if s.hook != "" {
			a.runHooks(ctx, s.numbers)
		} else {
			a.inStages(ctx, s.numbers)
		}
		rest := steps[n+1:]
		if a.unchanged(rest) {
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
		stage := make([]int, len(places))
		for i, place := range places {
			stage[i] = numbers[place]
		}
		a.stage(ctx, stage)
	}
}

// isUnchanged says that there is nothing to do about an object.
func (a *applying) isUnchanged(i int) bool {
	o, entry := a.Objects[i], a.results[i].Entry
	if entry.UID == "" {
		return false
	}
	if isRun(o) {
		return entry.Ran != "" && entry.Ran == a.Bundle && (entry.Digest != "" || timeToLive(o) == nil)
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
	healths := make([]Health, len(a.Objects))
	var ask []int
	for _, i := range s.numbers {
		healths[i].State = Healthy
		if a.Asks(a.Objects[i]) {
			ask = append(ask, i)
		}
	}
	a.each(ask, func(i int) { healths[i] = a.healthNow(ctx, i) })
	if h := a.firstBlocked(s); h != nil {
		return h
	}
	for _, i := range s.numbers {
		if h := healths[i]; h.State != Healthy {
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
func (a *applying) healthNow(ctx context.Context, i int) Health {
	o, r := a.Objects[i], &a.results[i]
	h, drift, err := a.health(ctx, o, r.Entry, a.Work)
	switch {
	case err != nil: // health that cannot be read is not ill health
		r.Action, r.Err = "", err
	case h.State == Failed:
		r.Action, r.Err = "", failed("apply", o.ID, h.Reason)
	case drift != nil:
		r.Entry.Digest = ""
	}
	return h
}

// messageOf is an error's text without the object that it is about.
func messageOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Message
	}
	return err.Error()
}

// failed is the error for what was taken by the server and came to a bad end.
func failed(op string, id render.ObjectID, reason string) *Error {
	return &Error{Op: op, Object: id.String(), class: ErrFailed, Message: reason}
}
