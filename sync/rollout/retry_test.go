// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/order"
)

// retryWorld is a unit on two targets whose second release failed.
func retryWorld(onFailure config.OnFailure) (*State, *Wanted, time.Time) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	spec := &config.Rollout{Name: "default", OnFailure: onFailure, Waves: []config.Wave{
		{Name: "canary", Match: config.Match{Labels: map[string][]string{"ring": {"canary"}}}}, {Name: "rest"}}}
	want := func(version string) *Wanted {
		return &Wanted{Commit: config.Commit("commit" + version), Units: map[config.UnitPath]*WantedUnit{"shop/cart": {Rollout: spec, Targets: map[config.TargetName]WantedTarget{
			"sas-1/a": {Labels: map[string]string{"ring": "canary"}, Digest: object.Digest("a" + version)}, "vla-1": {Digest: object.Digest("b" + version)}}}}}
	}
	s := &State{}
	turn := func(w *Wanted, apply Result) {
		for range 8 {
			for _, a := range s.Decide(w, now).Actions {
				o := Outcome{Action: a, Result: Healthy, Reason: "no", Pruned: true}
				if a.Kind == Apply {
					if o.Result = Applied; a.Why != WhyRollback {
						o.Result = apply
					}
				}
				s.Record(o, now)
			}
		}
	}
	turn(want("1"), Applied)
	turn(want("2"), Refused)
	return s, want("2"), now
}

// TestRetry: what was turned back or held begins again at the first wave, without
// any change in the commit, and what was quarantined is no more.
func TestRetry(t *testing.T) {
	for onFailure, status := range map[config.OnFailure]Status{config.Rollback: RolledBack, config.Hold: Held} {
		s, want, now := retryWorld(onFailure)
		u := s.Units["shop/cart"]
		if u.Rollout.Status != status || u.Rollout.ID != 2 || s.Decide(want, now).Actions != nil {
			t.Fatalf("%s: %+v", onFailure, u.Rollout)
		}
		reason := "wave canary: target sas-1/a: no; swell retry shop/cart tries it again"
		if status == Held {
			reason += ", swell rollback shop/cart puts back what ran before"
		}
		if u.Rollout.Reason != reason {
			t.Errorf("reason %q, want %q", u.Rollout.Reason, reason)
		}
		if diff := cmp.Diff([]Retriable{{Unit: "shop/cart", State: string(status), Reason: "wave canary: target sas-1/a: no"}}, u.Retriable()[:1]); diff != "" {
			t.Error(diff)
		}
		s.Stored()
		if got := s.Retry("shop/other", "", "by ann", now); got != nil {
			t.Errorf("another unit: %+v", got)
		}
		if got := s.Retry("", "fra-1", "by ann", now); got != nil {
			t.Errorf("another target: %+v", got)
		}
		if kept, _ := s.Changed(); len(kept) > 0 {
			t.Errorf("changed for nothing: %+v", kept)
		}
		got := s.Retry("shop", "sas-1", "by ann: why not", now)
		if diff := cmp.Diff([]Transition{{Time: now, Commit: "commit2", Unit: "shop/cart", Rollout: 2, Kind: "retry", Text: "by ann: why not"}}, got); diff != "" {
			t.Error(diff)
		}
		if kept, _ := s.Changed(); len(kept) != 1 || len(u.Quarantine) > 0 {
			t.Errorf("not changed: %+v", u)
		}
		actions := s.Decide(want, now).Actions
		if u.Rollout.ID != 3 || u.Rollout.Status != Progressing || len(actions) != 1 || actions[0].Target != "sas-1/a" || actions[0].Digest != "a2" {
			t.Errorf("%s: %+v, %+v", onFailure, u.Rollout, actions)
		}
	}
}

// TestRetryOfTrouble: a target that waits for its next attempt is due at once; the
// rollout goes on where it is.
func TestRetryOfTrouble(t *testing.T) {
	s, want, now := retryWorld(config.Rollback)
	s.Retry("", "", "by ann", now)
	s.Record(Outcome{Action: s.Decide(want, now).Actions[0], Result: Unavailable, Reason: "full"}, now)
	if plan := s.Decide(want, now); plan.Actions != nil {
		t.Fatalf("%+v", plan)
	}
	u := s.Units["shop/cart"]
	if diff := cmp.Diff([]Retriable{{Unit: "shop/cart", Target: "sas-1/a", State: "unavailable", Reason: "full"}}, u.Retriable()); diff != "" {
		t.Error(diff)
	}
	if got := s.Retry("", "sas-1/a", "by ann", now); len(got) != 1 {
		t.Errorf("%+v", got)
	}
	if plan := s.Decide(want, now); len(plan.Actions) != 1 || u.Rollout.ID != 3 {
		t.Errorf("%+v, %+v", plan, u.Rollout)
	}
}

// TestRollbackToWhatIsGone: a rollback to a commit that the repository does not have any more
// is given up for the target, which keeps what it has; not at the first look. The words say
// why, and what can be done.
func TestRollbackToWhatIsGone(t *testing.T) {
	s, want, now := retryWorld(config.Hold)
	s.Obey(order.Order{Seq: 7, At: now, By: "ann", Verb: order.Rollback}, want, now)
	u := s.Units["shop/cart"]
	for tries := 0; u.Rollout.Status == RollingBack; tries++ {
		if tries > goneAttempts {
			t.Fatalf("still rolling back: %s", u.Rollout.Reason)
		}
		plan := s.Decide(want, now)
		if u.Rollout.Status != RollingBack {
			if tries != goneAttempts {
				t.Errorf("given up after %d", tries)
			}
			break
		}
		if len(plan.Actions) != 1 || plan.Actions[0].Why != WhyRollback {
			t.Fatalf("%+v", plan)
		}
		s.Record(Outcome{Action: plan.Actions[0], Result: Gone, Reason: "commit commit1: it is gone"}, now)
		now = now.Add(maxBackoff)
	}
	if want := "rollback by ann; commit commit1: it is gone; not rolled back, no earlier good version: target sas-1/a; " +
		"swell retry shop/cart tries it again"; u.Rollout.Reason != want {
		t.Errorf("%s: reason %q, want %q", u.Rollout.Status, u.Rollout.Reason, want)
	}
}

// TestNothingToDo: an order that does nothing says why.
func TestNothingToDo(t *testing.T) {
	s, want, now := retryWorld(config.Rollback)
	obey := func(verb order.Verb, wave string) string {
		o := order.Order{Verb: verb, By: "ann", Scope: order.Scope{Unit: "shop/cart", Wave: wave}}
		return s.Obey(o, want, now)[0].Text
	}
	for _, c := range []struct{ got, want string }{
		{obey(order.Rollback, ""), "by ann (there was nothing to do: it is rolled back already)"},
		{obey(order.Promote, ""), "by ann (there was nothing to do: no wave of a release is under way)"},
		{obey(order.Clear, ""), "by ann; 1 bundle is out of quarantine"},
		{obey(order.Clear, ""), "by ann (there was nothing to do: nothing is in quarantine)"},
		{obey(order.Retry, ""), "by ann; tried again"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
	s.Decide(want, now)
	if got := obey(order.Promote, "rest"); got != "by ann (there was nothing to do: the wave under way is canary)" {
		t.Error(got)
	}
	for _, target := range s.Units["shop/cart"].Targets { // as while the release is frozen
		target.Touched = false
	}
	const wanted = "has written nothing so far; --to puts back one before it: swell describe shop/cart lists them"
	if got := obey(order.Rollback, ""); !strings.Contains(got, wanted) {
		t.Error(got)
	}
	s = &State{}
	s.Decide(want, now)
	if got := obey(order.Rollback, ""); got != "by ann (there was nothing to do: no earlier bundle that passed its wave is known)" {
		t.Error(got)
	}
	if got := obey(order.Retry, ""); got != "by ann (there was nothing to do: nothing failed or waits)" {
		t.Error(got)
	}
}

// TestRetryOfWhatCannotBeTaken: while the commit is refused, or the unit is frozen,
// a retry is remembered and nothing is written.
func TestRetryOfWhatCannotBeTaken(t *testing.T) {
	s, want, now := retryWorld(config.Rollback)
	s.Retry("", "", "by ann", now)
	good := *want
	want.Held = "fleet: wrong"
	if plan := s.Decide(want, now); plan.Actions != nil || s.Units["shop/cart"].Rollout.ID != 2 {
		t.Errorf("%+v", plan)
	}
	if plan := s.Decide(&good, now); len(plan.Actions) != 1 || s.Units["shop/cart"].Rollout.ID != 3 {
		t.Errorf("%+v", plan)
	}
}
