// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/order"
)

// drawCommit makes a commit with random waves, gates, tiers, budgets and masks.
func drawCommit(t *rapid.T) *Wanted {
	pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "n") }
	w := &Wanted{Commit: "c2c2c2c2", Units: map[config.UnitPath]*WantedUnit{}, Authors: []string{"ada"}}
	w.Release.Tiers = []string{"canary"}
	w.Release.Budget.Units = pick(3)
	if pick(3) == 0 {
		w.Masks = []Mask{{Name: "power", Where: config.Where{Targets: []config.TargetName{"b/2"}}}}
	}
	spec := config.Rollout{Name: "default"}
	gates := []config.Gate{
		{Approval: &config.ApprovalGate{Expires: time.Hour}}, {Approval: &config.ApprovalGate{By: []string{"ada", "zoe"}, Expires: time.Hour}},
		{Window: &config.Timetable{Schedule: "0 14 * * *", Duration: 2 * time.Hour}}, {After: &config.AfterGate{Unit: units[0]}},
		{HTTP: &config.HTTPGate{Every: time.Minute}}, {HTTP: &config.HTTPGate{Start: true, Every: time.Minute}}, {Job: &config.JobGate{Name: "smoke"}},
	}
	for i, ring := range []string{"canary", "main", ""} {
		wave := config.Wave{Name: fmt.Sprint("w", i), Soak: time.Duration(pick(3)) * 7 * time.Minute, MaxConcurrent: config.Amount{Count: pick(3)}}
		if ring != "" {
			wave.Match.Labels = map[string][]string{"ring": {ring}}
		}
		if pick(2) == 0 {
			wave.Gates = append(wave.Gates, gates[pick(len(gates))])
		}
		spec.Waves = append(spec.Waves, wave)
	}
	for i, path := range units {
		spec := spec
		if path == units[0] { // it does not wait for itself
			spec.Waves = slices.Clone(spec.Waves)
			for i := range spec.Waves {
				spec.Waves[i].Gates = slices.DeleteFunc(slices.Clone(spec.Waves[i].Gates), func(g config.Gate) bool { return g.After != nil })
			}
		}
		unit := &WantedUnit{Rollout: &spec, Tier: i % 2, Targets: map[config.TargetName]WantedTarget{}}
		for _, name := range slices.Sorted(maps.Keys(targets)) {
			if pick(4) > 0 {
				unit.Targets[name] = WantedTarget{Labels: targets[name], Digest: object.Digest("d-" + string(path) + string(name)), Objects: 1}
			}
		}
		w.Units[path] = unit
	}
	return w
}

// happens carries a commit out as a daemon does, at the times that the planner asks for, in
// a fleet in which all goes well, until a time. rests says that nothing comes after that.
func happens(t *rapid.T, s *State, w *Wanted, now, ends time.Time) (passed []string, rests bool) {
	for range 20_000 {
		plan := s.Decide(w, now)
		for _, tr := range plan.Transitions {
			if tr.Kind == "passed" || tr.Kind == "cleaned" || tr.Kind == "done" {
				passed = append(passed, fmt.Sprint(tr.Unit, " ", tr.Wave, " ", tr.Kind, " ", tr.Time.Format(time.TimeOnly)))
			}
		}
		for _, a := range plan.Actions {
			s.Record(success(a), now)
		}
		for _, q := range plan.Questions {
			s.Answer(Answer{Question: q, Kind: Yes}, now)
		}
		approved := false
		for _, ask := range s.Asks() {
			o := order.Order{Verb: order.Approve, By: "zoe", At: now, Digest: ask.Digest}
			if !slices.ContainsFunc(w.Standing, func(is order.Order) bool { return is.Digest == o.Digest }) {
				w.Order(append(w.Standing, o))
				approved = true
			}
		}
		switch {
		case len(plan.Actions)+len(plan.Questions) > 0 || approved:
		case plan.Wake.IsZero(), plan.Wake.After(ends):
			return passed, plan.Wake.IsZero()
		default:
			now = plan.Wake
		}
	}
	plan := s.Decide(w, now)
	t.Fatalf("it does not come to rest at %s: %+v", now, plan)
	return nil, false
}

// TestForeseeIsWhatHappens: waves are passed when it was foreseen, in the same order, and
// what is left is the same.
func TestForeseeIsWhatHappens(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ends := now.Add(5 * time.Hour) // what waits for ever is looked at for ever
	rapid.Check(t, func(t *rapid.T) {
		w := drawCommit(t)
		ahead, real := &State{}, &State{}
		seen := ahead.Foresee(w, now, func() bool { return true })
		got := map[string]bool{}
		for path, c := range seen.Courses {
			for _, l := range c.Legs {
				if !l.Passed.IsZero() && !l.Passed.After(ends) {
					got[fmt.Sprint(path, " ", w.Units[path].Rollout.Waves[l.Wave].Name, " passed ", l.Passed.Format(time.TimeOnly))] = true
				}
			}
			if !c.Done.IsZero() && !c.Done.After(ends) {
				got[fmt.Sprint(path, "  done ", c.Done.Format(time.TimeOnly))] = true
			}
		}
		want := map[string]bool{}
		passed, rests := happens(t, real, w, now, ends)
		for _, line := range passed {
			want[line] = true
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("passed: %s", diff)
		}
		for _, path := range units {
			if was, is := ahead.Left(path, w), real.Left(path, w); was != is && rests {
				t.Errorf("%s: %q was foreseen, and it is %q", path, was, is)
			}
		}
	})
}

// TestForeseeIsCut: a forecast that takes too long says that it is not whole.
func TestForeseeIsCut(t *testing.T) {
	spec := config.Rollout{Name: "default", Waves: []config.Wave{{Name: "all", Soak: time.Hour}}}
	w := &Wanted{Units: map[config.UnitPath]*WantedUnit{"cart": {Rollout: &spec, Targets: map[config.TargetName]WantedTarget{"a/1": {Digest: "d"}}}}}
	seen := (&State{}).Foresee(w, time.Unix(0, 0), func() bool { return false })
	if !seen.Cut || len(seen.Courses) != 1 || !seen.Courses["cart"].Done.IsZero() {
		t.Errorf("%+v", seen)
	}
}

// BenchmarkForesee is a change of 2,000 units on 30 targets each, in three waves.
func BenchmarkForesee(b *testing.B) {
	spec := config.Rollout{Name: "default", Waves: []config.Wave{{Name: "one", Share: 10, Soak: time.Hour}, {Name: "two", Share: 50, Soak: 24 * time.Hour}, {Name: "rest", Gates: []config.Gate{{Approval: &config.ApprovalGate{Expires: time.Hour}}}}}}
	w := &Wanted{Commit: "c2c2c2c2", Units: map[config.UnitPath]*WantedUnit{}}
	for i := range 2000 {
		unit := &WantedUnit{Rollout: &spec, Targets: map[config.TargetName]WantedTarget{}}
		for j := range 30 {
			unit.Targets[config.TargetName(fmt.Sprintf("c%d/a", j))] = WantedTarget{Digest: object.Digest(fmt.Sprint(i, j)), Objects: 5}
		}
		w.Units[config.UnitPath(fmt.Sprintf("services/u%04d", i))] = unit
	}
	for b.Loop() {
		if seen := (&State{}).Foresee(w, time.Unix(0, 0), func() bool { return true }); seen.Cut || len(seen.Courses) != 2000 {
			b.Fatal(len(seen.Courses))
		}
	}
}

// TestForeseeAnApprovalThatWaits: a plan of the release under way names the approval that
// its wave already waits for, and goes on behind it.
func TestForeseeAnApprovalThatWaits(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	spec := &config.Rollout{Waves: []config.Wave{{Name: "all", Gates: []config.Gate{{Approval: &config.ApprovalGate{Expires: 24 * time.Hour}}}}}}
	want := &Wanted{Commit: "c", Units: map[config.UnitPath]*WantedUnit{"cart": {Rollout: spec, Targets: map[config.TargetName]WantedTarget{"sas-1": {Digest: "a"}}}}}
	s := &State{}
	for range 3 {
		s.Decide(want, now)
	}
	asks := s.Asks()
	course := s.Foresee(want, now, func() bool { return true }).Courses["cart"]
	if len(asks) != 1 || course == nil || course.Done.IsZero() || len(course.Legs) != 1 || !slices.ContainsFunc(course.Legs[0].Asks, func(a order.Ask) bool { return a.Digest == asks[0].Digest }) {
		t.Errorf("asks %+v, course %+v", asks, course)
	}
}
