// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/rollout"
)

// fleet plays a rollout with the planner itself, so that a description is held against
// what the planner does.
type fleet struct {
	t     *testing.T
	state *rollout.State
	want  *rollout.Wanted
	now   time.Time
	ill   map[config.TargetName]rollout.Result // what comes of an apply or a check there
}

const cart = config.UnitPath("shop/cart")

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// newFleet has a unit on the targets a, b and c of the waves canary, main and rest.
func newFleet(t *testing.T, spec config.Rollout) *fleet {
	f := &fleet{t: t, now: noon, state: &rollout.State{}, ill: map[config.TargetName]rollout.Result{}}
	f.want = &rollout.Wanted{Commit: "c1c1c1c1c1", Units: map[config.UnitPath]*rollout.WantedUnit{}, Authors: []string{"ada@example.com"}}
	f.commit(spec, "one")
	return f
}

func (f *fleet) commit(spec config.Rollout, digest object.Digest) {
	unit := &rollout.WantedUnit{Rollout: &spec, Targets: map[config.TargetName]rollout.WantedTarget{}}
	for _, name := range []config.TargetName{"a", "b", "c"} {
		unit.Targets[name] = rollout.WantedTarget{Digest: digest + object.Digest(name), Objects: 1}
	}
	f.want.Units[cart] = unit
}

// add has a unit with the rollout of cart on a target.
func (f *fleet) add(path config.UnitPath, name config.TargetName) {
	targets := map[config.TargetName]rollout.WantedTarget{name: {Digest: object.Digest(path), Objects: 1}}
	f.want.Units[path] = &rollout.WantedUnit{Rollout: f.want.Units[cart].Rollout, Targets: targets}
}

// play makes passes until nothing is left to do now.
func (f *fleet) play() {
	for range 100 {
		plan := f.state.Decide(f.want, f.now)
		for _, a := range plan.Actions {
			o := rollout.Outcome{Action: a, Result: map[rollout.Kind]rollout.Result{rollout.Apply: rollout.Applied, rollout.Check: rollout.Healthy, rollout.Remove: rollout.Removed}[a.Kind], Pruned: a.Prune}
			if is, ok := f.ill[a.Target]; ok {
				o.Result, o.Reason = is, "Deployment/cart: no such image"
			}
			f.state.Record(o, f.now)
		}
		if len(plan.Actions) == 0 {
			return
		}
	}
	f.t.Fatal("it does not come to rest")
}

func (f *fleet) describe() Description {
	look := f.state.Look(f.want.Bounds, f.want.Standing, f.now)
	return Describe(f.state.Units[cart], Known{Look: look}, f.want.Standing, f.now)
}

// told are the phases, what is waited for and the commands of each wave.
func told(d Description) (lines []string) {
	for _, w := range d.WaveList {
		line := fmt.Sprintf("%s %s", w.Name, w.Phase)
		if w.Waits != "" {
			line += ": " + w.Waits
		}
		for _, h := range w.Holds {
			line += fmt.Sprintf(" [%s: %s]", h.Kind, h.Text)
		}
		for _, c := range w.Commands {
			line += " > " + c.Command
		}
		lines = append(lines, line)
	}
	return lines
}

func (f *fleet) tells(what string, want ...string) {
	f.t.Helper()
	if diff := cmp.Diff(want, told(f.describe())); diff != "" {
		f.t.Errorf("%s:\n%s", what, diff)
	}
}

func waves(gates ...config.Gate) config.Rollout {
	return config.Rollout{Name: "default", OnFailure: config.Rollback, Waves: []config.Wave{
		{Name: "canary", Targets: []config.TargetName{"a"}, Soak: 10 * time.Minute},
		{Name: "main", Targets: []config.TargetName{"b"}, Gates: gates},
		{Name: "rest"},
	}}
}

// TestDescribe: what a wave waits for is told, with what ends it.
func TestDescribe(t *testing.T) {
	f := newFleet(t, waves(config.Gate{Approval: &config.ApprovalGate{By: []string{"zoe"}, Expires: time.Hour}}))
	f.play()
	f.now = f.now.Add(6 * time.Minute)
	f.tells("during the soak",
		"canary under way: soaking until 2026-03-01T12:10:00Z > swell promote shop/cart",
		"main ahead: wave canary is not passed yet",
		"rest ahead: wave main is not passed yet")
	if got := f.describe().WaveList[0].Soak; *got != (Soak{"10m0s", noon, noon.Add(10 * time.Minute)}) {
		t.Errorf("soak %+v", got)
	}
	f.now = f.now.Add(5 * time.Minute)
	f.play()
	d := f.describe()
	gate := d.WaveList[1].Gates[0]
	f.tells("the soak is over",
		"canary passed",
		"main under way: gate approval of wave main: swell approve "+gate.Digest.Short()+"; waiting for 1 of 1 targets: target b: not applied yet > swell approve "+gate.Digest.Short(),
		"rest ahead: wave main is not passed yet")
	if gate.State != rollout.GateWaits || !slices.Equal(gate.By, []string{"zoe"}) || !slices.Equal(gate.Not, []string{"ada@example.com"}) {
		t.Errorf("gate %+v", gate)
	}

	f.want.Order(order.Standing{
		{Seq: 1, At: f.now, By: "zoe", Verb: order.Approve, Digest: gate.Digest},
		{Seq: 2, At: f.now, By: "bob", Verb: order.Freeze, Reason: "holidays", Scope: order.Scope{Unit: "shop"}, Until: noon.Add(time.Hour)},
		{Seq: 3, At: f.now, By: "bob", Verb: order.Mask, Reason: "no power", Scope: order.Scope{Target: "c"}},
		{Seq: 4, At: f.now, By: "bob", Verb: order.Pause, Scope: order.Scope{Unit: "search"}},
	})
	f.play()
	f.tells("frozen",
		"canary passed",
		"main under way: frozen by bob: holidays; waiting for 1 of 1 targets: target b: not applied yet [freeze: frozen by bob: holidays] > swell thaw shop > swell exempt shop/cart --for 2h --reason TEXT",
		"rest ahead: wave main is not passed yet [mask: masked by bob: no power] > swell unmask c")
	if got := f.describe(); len(got.Orders) != 2 || len(got.Debts) != 1 || got.Debts[0].Target != "c" || got.Debts[0].Why != "masked by bob: no power" {
		t.Errorf("orders %v, debts %v", got.Orders, got.Debts)
	}

	f.want.Order(f.want.Standing[:1])
	f.ill["b"] = rollout.Refused
	f.play()
	f.tells("the first release fails, and there is nothing to go back to",
		"canary passed",
		"main held: target b: Deployment/cart: no such image; not rolled back, no earlier good version: it goes on by itself when this is well; swell retry shop/cart tries it again",
		"rest not reached")
	if got := f.describe().Commands; len(got) != 1 || got[0].Command != "swell retry shop/cart" {
		t.Errorf("commands %v", got)
	}
	delete(f.ill, "b")
	f.now = f.now.Add(time.Hour)
	f.play()
	if d := f.describe(); d.Status != Done || d.WaveName != "" || d.Done != 3 {
		t.Errorf("done: %+v", d.UnderWay)
	}

	f.commit(waves(), "two")
	f.want.Commit = "c2c2c2c2c2"
	f.ill["a"] = rollout.Refused
	f.play()
	delete(f.ill, "a")
	f.now = f.now.Add(time.Hour)
	f.play()
	f.tells("rolled back",
		"canary rolled back: target a: Deployment/cart: no such image; swell retry shop/cart tries it again",
		"main not reached",
		"rest not reached")
	if d := f.describe(); len(d.Quarantine) != 1 || d.Status != RolledBack {
		t.Errorf("quarantine %v, status %s", d.Quarantine, d.Status)
	}
}

// TestDoneCountsTheCommit: targets that run an earlier commit are not done by the commit of
// the line, however healthy they are.
func TestDoneCountsTheCommit(t *testing.T) {
	f := newFleet(t, waves())
	counts := func(stage string, done int) {
		t.Helper()
		f.play()
		if d := f.describe(); d.Done != done || d.Targets != 3 {
			t.Errorf("%s: commit %s, %s, %d of %d targets done, want %d of 3", stage, d.Commit, d.Status, d.Done, d.Targets, done)
		}
	}
	f.play()
	f.now = f.now.Add(time.Hour)
	counts("released", 3)

	f.commit(waves(), "two")
	f.want.Units[cart].Targets["c"] = rollout.WantedTarget{Digest: "onec", Objects: 1} // as before
	f.want.Commit = "c2c2c2c2c2"
	f.ill["a"] = rollout.Refused
	f.play()
	delete(f.ill, "a")
	f.now = f.now.Add(time.Hour)
	counts("rolled back", 1)

	f.want.Units["shop/other"] = f.want.Units[cart]
	f.commit(waves(), "three")
	f.want.Commit = "c3c3c3c3c3"
	f.want.Bounds.Release.Tiers = []string{"first", "second"}
	f.want.Units[cart].Tier = 1
	f.ill["a"] = rollout.Deferred
	counts("before its turn", 0)
}

// TestDescribeGates: what gates last answered, and when.
func TestDescribeGates(t *testing.T) {
	f := newFleet(t, config.Rollout{Name: "default", Waves: []config.Wave{{Name: "all", Soak: time.Hour, Gates: []config.Gate{
		{HTTP: &config.HTTPGate{Start: true, Every: time.Minute}},
		{Window: &config.Timetable{Schedule: "0 14 * * *", Duration: time.Hour}},
		{After: &config.AfterGate{Unit: "shop/db"}},
		{Prometheus: &config.PrometheusGate{Every: time.Minute}},
		{Job: &config.JobGate{Name: "smoke"}},
	}}}})
	plan := f.state.Decide(f.want, f.now)
	f.state.Answer(rollout.Answer{Question: plan.Questions[0], Kind: rollout.No, Reason: "503 Service Unavailable"}, f.now)
	var lines []string
	for _, g := range f.describe().WaveList[0].Gates {
		lines = append(lines, strings.Join([]string{g.Gate, g.At, string(g.State), g.Text, g.AskedAt.Format("15:04")}, "|"))
	}
	want := []string{
		"http|start|waits|503 Service Unavailable|12:00",
		"window|start|waits|opens at 2026-03-01T14:00:00Z|00:00",
		"after|start|passed||00:00",
		"prometheus|end|not asked||00:00",
		"job|end|not asked|Job smoke has succeeded on 0 of 0 targets|00:00",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
	commands := f.describe().WaveList[0].Commands
	if !slices.ContainsFunc(commands, func(c Command) bool { return c.Command == "swell promote shop/cart --reason TEXT" }) {
		t.Errorf("commands %+v, want one that is taken: nobody goes past such a gate without a reason", commands)
	}
}

// TestLookChangesNothing: a state that was read is stored as it was.
func TestLookChangesNothing(t *testing.T) {
	f := newFleet(t, waves(config.Gate{Approval: &config.ApprovalGate{Expires: time.Hour}}))
	zero := 0
	f.want.Bounds.Release.Budget = config.Budget{Units: 1, UnitsPerTarget: 1, FailedUnits: &zero}
	f.want.Bounds.Masks = []rollout.Mask{{Name: "power", Where: config.Where{Targets: []config.TargetName{"c"}}}}
	f.play()
	f.state.Stored()
	first := f.describe()
	if diff := cmp.Diff(first, f.describe()); diff != "" {
		t.Error(diff)
	}
	if kept, dropped := f.state.Changed(); len(kept)+len(dropped) > 0 {
		t.Errorf("changed %v, dropped %v", kept, dropped)
	}
}

// TestBudgetHolds: a unit that waits for its turn in a budget says so, and nobody counts
// those that only read.
func TestBudgetHolds(t *testing.T) {
	f := newFleet(t, waves())
	f.want.Bounds.Release.Budget = config.Budget{Units: 1}
	f.want.Units["shop/web"] = f.want.Units[cart]
	f.play()
	look := f.state.Look(f.want.Bounds, nil, f.now)
	web := Describe(f.state.Units["shop/web"], Known{Look: look}, nil, f.now)
	if got := told(web)[0]; !strings.Contains(got, "[budget: budget.units: 1 unit is in change in the fleet]") {
		t.Errorf("web: %s", got)
	}
	if got := f.describe().WaveList[0].Holds; len(got) > 0 {
		t.Errorf("cart, which is in change: %v", got)
	}
}

// TestStopped: a unit of whose commit nothing more is released is not shown as one that goes
// on, and an operator who lets it go on is believed.
func TestStopped(t *testing.T) {
	f, zero := newFleet(t, waves()), 0
	f.play()
	f.now = f.now.Add(time.Hour)
	f.play()
	f.commit(waves(), "two")
	f.want.Commit, f.want.Bounds.Release.Budget = "c2c2c2c2c2", config.Budget{FailedUnits: &zero}
	f.play() // the canary soaks
	f.add("shop/web", "z")
	f.ill["z"] = rollout.Refused
	f.play()
	const broke = "commit c2c2c2c2 broke 1 unit, more than budget.failedUnits 0: shop/web: nothing more of it is released"
	if d := f.describe(); d.Status != Stopped || !strings.Contains(d.Waits, broke) || !strings.HasPrefix(d.Waits, "wave canary: soaking") {
		t.Errorf("while the canary soaks: %s: %s", d.Status, d.Waits)
	}
	f.now = f.now.Add(time.Hour)
	f.play()
	d := f.describe()
	if d.Status != Stopped || strings.Count(d.Waits, broke) != 1 {
		t.Errorf("after it: %s: %s", d.Status, d.Waits)
	}
	if got := d.WaveList[1].Commands; len(got) != 1 || got[0].Command != "swell promote shop/cart" {
		t.Errorf("commands %v", got)
	}

	f.add("shop/late", "a")
	f.play()
	look := f.state.Look(f.want.Bounds, nil, f.now)
	if late := Of(f.state.Units["shop/late"], Known{Look: look}); late.Status != Stopped || !strings.HasPrefix(late.Reason, broke) {
		t.Errorf("a release that has not begun: %s: %s", late.Status, late.Reason)
	}

	f.state.Units[cart].Rollout.Promoted = true
	if d := f.describe(); d.Status != Progressing {
		t.Errorf("promoted: %s", d.Status)
	}
}

// TestWorst: what somebody has to look at comes first.
func TestWorst(t *testing.T) {
	lines := []UnderWay{{Unit: "a", Status: Progressing, Since: noon}, {Unit: "b", Status: Held, Since: noon}, {Unit: "c", Status: Progressing, Since: noon.Add(-time.Hour)}}
	Worst(lines)
	if got := []config.UnitPath{lines[0].Unit, lines[1].Unit, lines[2].Unit}; !slices.Equal(got, []config.UnitPath{"b", "c", "a"}) {
		t.Error(got)
	}
}

// TestDescribeCleaning: a wave that is still to be cleaned is not shown as passed.
func TestDescribeCleaning(t *testing.T) {
	f := newFleet(t, waves())
	f.play()
	f.now = f.now.Add(time.Hour)
	f.play()
	f.want.Commit = "c2c2c2c2c2"
	delete(f.want.Units[cart].Targets, "a")
	delete(f.want.Units[cart].Targets, "c")
	f.want.Units[cart] = &rollout.WantedUnit{Rollout: f.want.Units[cart].Rollout, Targets: f.want.Units[cart].Targets}
	f.ill["a"] = rollout.Deferred
	f.play()
	f.tells("the first wave is cleaned",
		"canary cleaning: waiting for 1 of 1 targets: target a: not cleaned yet: Deployment/cart: no such image",
		"main passed",
		"rest to clean: wave canary is not cleaned yet")
}

// TestOldQuarantine: a bundle that failed is listed as long as it keeps something from being
// released, and no longer.
func TestOldQuarantine(t *testing.T) {
	f := newFleet(t, waves())
	commit := func(name config.Commit, digest object.Digest) {
		f.want.Commit = name
		f.commit(waves(), digest)
		f.play()
	}
	listed := func(stage, want, command string) {
		t.Helper()
		d, got := f.describe(), ""
		for _, q := range d.Quarantine {
			got += string(q.Commit) + " "
		}
		clears := slices.ContainsFunc(d.Commands, func(c Command) bool { return strings.HasPrefix(c.Command, "swell quarantine clear") })
		if strings.TrimSpace(got) != want || clears != (command != "") {
			t.Errorf("%s: %s: quarantine of %q, want %q; commands %v", stage, d.Status, got, want, d.Commands)
		}
	}
	f.play()
	f.now = f.now.Add(time.Hour)
	f.play()
	f.ill["a"] = rollout.Refused
	commit("c2", "two")
	listed("it failed", "c2", "")
	delete(f.ill, "a")
	f.now = f.now.Add(time.Hour)
	f.play()
	listed("it is rolled back", "c2", "")
	commit("c3", "three")
	listed("a newer release has begun", "", "")
	f.now = f.now.Add(time.Hour)
	f.play()
	listed("a newer release is done", "", "")
	commit("c4", "two")
	listed("a commit brings it again", "c2", "clear")
	f.want.Units[cart].Frozen = "cart.yaml:1:1: no"
	f.play()
	listed("a commit has a problem", "", "")
}

// TestWindowsWithoutEnd: a window that is always open has no end in a text, and one that opens
// no more no beginning.
func TestWindowsWithoutEnd(t *testing.T) {
	f := newFleet(t, config.Rollout{Name: "default", Waves: []config.Wave{{Name: "all", Gates: []config.Gate{
		{Window: &config.Timetable{Schedule: "* * * * *", Duration: time.Hour}},
		{Window: &config.Timetable{Schedule: "0 0 31 2 *", Duration: time.Hour}},
	}}}})
	f.play()
	var texts []string
	d := f.describe()
	for _, g := range d.WaveList[0].Gates {
		texts = append(texts, string(g.State)+": "+g.Text)
	}
	if diff := cmp.Diff([]string{"passed: open at all times", "waits: does not open any more"}, texts); diff != "" {
		t.Error(diff)
	}
	if want := "gate window of wave all: the window does not open any more"; !strings.Contains(d.Waits, want) {
		t.Errorf("waits for %q, want %q in it", d.Waits, want)
	}
}
