// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/rapidtest"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/store"
)

// ids reads "Deployment/ns/name" with the groups that tests need.
func ids(texts string) (all []object.ID) {
	groups := map[string]string{"Deployment": "apps", "StatefulSet": "apps", "Job": "batch", "CronJob": "batch", "Cart": "easy.example.com", "Till": "easy.example.com"}
	for _, text := range strings.Fields(texts) {
		part := strings.Split(text, "/")
		all = append(all, object.ID{Group: groups[part[0]], Kind: part[0], Namespace: part[1], Name: part[2]})
	}
	return all
}

// lossOf is what a unit loses that goes from some objects to others.
func lossOf(unit, target, from, to string) Loss {
	was, is := ids(from), ids(to)
	l := Loss{UnitTarget: object.UnitTarget{Unit: config.UnitPath(unit), Target: config.TargetName(target)}, Stays: true, Have: len(was), Remains: is, Made: map[Sort]int{}}
	for _, id := range was {
		if !slices.Contains(is, id) {
			l.Gone = append(l.Gone, Object{ID: id, UID: "u-" + id.Name})
		}
	}
	for _, id := range is {
		if !slices.Contains(was, id) {
			l.Made[SortOf(id)]++
		}
	}
	return l
}

// configMaps are some that are numbered.
func configMaps(from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, "ConfigMap/ns/c%04d ", i)
	}
	return b.String()
}

func reasons(v Verdict) string {
	found := map[string]bool{}
	for _, why := range v.Held {
		found[why] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(found)), "; ")
}

func TestOneUnit(t *testing.T) {
	const everything = "the unit stays, and loses all workloads that it has on the target in namespace ns"
	for _, c := range []struct {
		name, from, to string
		want           string // why something is held
		withheld       bool
	}{
		{"nothing", "Deployment/ns/a ConfigMap/ns/a", "Deployment/ns/a ConfigMap/ns/a", "", false},
		{"the only workload", "Deployment/ns/a ConfigMap/ns/a", "ConfigMap/ns/a", everything, true},
		{"one of two", "Deployment/ns/a Deployment/ns/b", "Deployment/ns/a", "", false},
		{"another kind of workload remains", "Deployment/ns/a CronJob/ns/b", "CronJob/ns/b", "", false},
		{"renamed", "Deployment/ns/a-1", "Deployment/ns/a-2", "", false},
		{"to another namespace", "Deployment/ns/a ConfigMap/ns/a", "Deployment/other/a ConfigMap/other/a", everything, true},
		{"one namespace of two", "Deployment/ns/a Deployment/two/a", "Deployment/two/a", everything, true},
		{"the last Job", "Job/ns/a ConfigMap/ns/a", "ConfigMap/ns/a", everything, true},
		{"a StatefulSet", "StatefulSet/ns/a ConfigMap/ns/a", "ConfigMap/ns/a", "deleting a StatefulSet needs approval", true},
		{"a custom resource beside a workload", "Deployment/ns/a Cart/ns/a", "Deployment/ns/a", "", false},
		{"the last custom resource of a kind", "Cart/ns/a Till/ns/a", "Till/ns/a", "the unit stays, and loses every Cart that it has on the target in namespace ns", true},
		{"one custom resource of two", "Cart/ns/a Cart/ns/b", "Cart/ns/b", "", false},
		{"configuration alone", "ConfigMap/ns/a ConfigMap/ns/b Role/ns/a", "Role/ns/a", "", false},
		{"three of four", configMaps(0, 4), configMaps(3, 4), "", false},
		{"four of four", configMaps(0, 4), "", "the unit deletes more than 10 objects or 10 % of what it has on the target", false},
		{"ten of a hundred", configMaps(0, 100), configMaps(10, 100), "", false},
		{"eleven of a thousand", configMaps(0, 1000), configMaps(11, 1000), "the unit deletes more than 10 objects or 10 % of what it has on the target", false},
		{"all renamed", configMaps(0, 40), configMaps(40, 80), "", false},
		{"half of them renamed", configMaps(0, 40), configMaps(40, 60), "the unit deletes more than 10 objects or 10 % of what it has on the target", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := lossOf("shop", "a/1", c.from, c.to)
			v := Judge(Input{Limits: config.DefaultGuard, Losses: []Loss{l}, Fleet: 2000})
			if got := reasons(v); got != c.want || len(v.Withheld) > 0 != c.withheld {
				t.Errorf("held because %q, withheld %v; want %q, %t", got, v.Withheld, c.want, c.withheld)
			}
			if c.want != "" && len(v.Held) != len(l.Gone) {
				t.Errorf("%d of %d deletions are held", len(v.Held), len(l.Gone))
			}
			l.Stays = false
			if v := Judge(Input{Limits: config.DefaultGuard, Losses: []Loss{l}, Fleet: 2000}); len(v.Withheld) > 0 {
				t.Errorf("a unit that is removed is withheld: %v", v.Withheld)
			}
		})
	}
}

// spread is a commit that takes one Service from each of some units on two targets.
func spread(units int) []Loss {
	var losses []Loss
	for i := range units {
		for _, target := range []string{"a/1", "b/1"} {
			losses = append(losses, lossOf(fmt.Sprintf("unit-%06d", i), target, "Deployment/ns/a Service/ns/a", "Deployment/ns/a"))
		}
	}
	return losses
}

// TestFleetsOfAllSizes: one object of each unit goes. In a fleet of five objects
// nobody is asked, in any larger one somebody is, before the canary.
func TestFleetsOfAllSizes(t *testing.T) {
	for _, units := range []int{1, 2, 3, 4, 5, 10, 50, 500, 5000, 25_000} {
		v := Judge(Input{Limits: config.DefaultGuard, Losses: spread(units), Fleet: 4 * units})
		want := 0
		if units > config.DefaultGuard.Units {
			want = 2 * units
		}
		if len(v.Held) != want || len(v.Withheld) != want/2 || len(v.Together) != want/2 {
			t.Errorf("%d units, %d objects: %d deletions held, %d units withheld, together: %d; want %d", units, 4*units, len(v.Held), len(v.Withheld), len(v.Together), want)
		}
	}
	for _, c := range []struct{ fleet, lost, held int }{
		{5, 3, 0}, {100, 10, 0}, {378, 10, 0}, {378, 11, 11}, {2000, 20, 0}, {2000, 21, 21}, {5000, 50, 0}, {5000, 51, 51}, {500_000, 50, 0}, {500_000, 51, 51},
	} {
		l := lossOf("gone", "a/1", configMaps(0, c.lost), "")
		l.Stays = false
		limits := config.DefaultGuard
		limits.Unit.Objects = 1000
		if v := Judge(Input{Limits: limits, Losses: []Loss{l}, Fleet: c.fleet}); len(v.Held) != c.held {
			t.Errorf("%d of %d: %d are held, want %d", c.lost, c.fleet, len(v.Held), c.held)
		}
	}
}

// TestUnitsThatGoAreNoSpread: units that are removed do not count among those that stay and lose
// something.
func TestUnitsThatGoAreNoSpread(t *testing.T) {
	losses := spread(config.DefaultGuard.Units)
	for i := range 3 {
		l := lossOf(fmt.Sprintf("gone-%d", i), "a/1", configMaps(0, 2), "")
		l.Stays = false
		losses = append(losses, l)
	}
	if v := Judge(Input{Limits: config.DefaultGuard, Losses: losses, Fleet: 10_000}); len(v.Held)+len(v.Withheld) > 0 {
		t.Errorf("%d deletions are held: %s", len(v.Held), reasons(v))
	}
}

// TestReplacedOverManyUnits: an edit of what 200 units share gives each ConfigMap
// another name. Nothing is lost.
func TestReplacedOverManyUnits(t *testing.T) {
	var losses []Loss
	for i := range 200 {
		losses = append(losses, lossOf(fmt.Sprintf("unit-%d", i), "a/1", "Deployment/ns/a ConfigMap/ns/a-1234 Job/ns/migrate-1234", "Deployment/ns/a ConfigMap/ns/a-9876 Job/ns/migrate-9876"))
	}
	if v := Judge(Input{Limits: config.DefaultGuard, Losses: losses, Fleet: 600}); len(v.Held)+len(v.Withheld) > 0 {
		t.Errorf("%d held, %d withheld: %s", len(v.Held), len(v.Withheld), reasons(v))
	}
	for i := range losses {
		losses[i].Made = nil
	}
	if v := Judge(Input{Limits: config.DefaultGuard, Losses: losses, Fleet: 600}); len(v.Held) != 400 {
		t.Errorf("without new ones: %d held", len(v.Held))
	}
}

// TestApprovedAndDone: what is approved goes, and counts; what was deleted before
// by the same commit counts too.
func TestApprovedAndDone(t *testing.T) {
	losses := spread(3)
	v := Judge(Input{Limits: config.DefaultGuard, Losses: losses, Fleet: 1000})
	if len(v.Held) > 0 {
		t.Fatalf("three units: %v", v.Held)
	}
	v = Judge(Input{Limits: config.DefaultGuard, Losses: losses, Fleet: 1000, LostBy: map[config.UnitPath]bool{"other": true}, Lost: 1})
	if len(v.Held) != 6 {
		t.Errorf("three units and one that is done: %v", v.Held)
	}
	approved := map[Deletion]bool{}
	for deletion := range v.Held {
		approved[deletion] = true
	}
	again := Input{Limits: config.DefaultGuard, Losses: append(slices.Clone(losses), lossOf("more", "a/1", "Deployment/ns/a Service/ns/a", "Deployment/ns/a")), Fleet: 1000, Approved: approved}
	if v = Judge(again); len(v.Held) != 1 || len(v.Withheld) != 1 || v.Withheld["more"] == "" {
		t.Errorf("one more than what was approved: %v, %v", v.Held, v.Withheld)
	}
	big := lossOf("big", "a/1", configMaps(0, 100), configMaps(60, 100))
	small := lossOf("small", "a/1", configMaps(0, 5), configMaps(2, 5))
	if v := Judge(Input{Limits: config.DefaultGuard, Losses: []Loss{big, small}, Fleet: 105}); len(v.Held) != 60 || len(v.Together) > 0 {
		t.Errorf("a large deletion stands in the way of another unit's: %d held", len(v.Held))
	}
	l := lossOf("shop", "a/1", configMaps(0, 100), configMaps(6, 100))
	l.Done = 5
	if v := Judge(Input{Limits: config.DefaultGuard, Losses: []Loss{l}, Fleet: 10_000}); len(v.Held) != 6 {
		t.Errorf("six after five: %v", v.Held)
	}
}

// TestTheBoundOfAUnitThatGoes: a unit that is removed deletes as many objects as the bound says, and
// no more of them.
func TestTheBoundOfAUnitThatGoes(t *testing.T) {
	most := config.DefaultGuard.Unit.Objects
	for lost, held := range map[int]int{most: 0, most + 1: most + 1} {
		l := lossOf("gone", "a/1", configMaps(0, lost), "")
		l.Stays = false
		if v := Judge(Input{Limits: config.DefaultGuard, Losses: []Loss{l}, Fleet: 10_000}); len(v.Held) != held {
			t.Errorf("%d objects: %d are held, want %d", lost, len(v.Held), held)
		}
	}
}

// TestTheBoundOfTheFleetInSmallPieces: what a commit deleted before counts for the bound of the fleet.
func TestTheBoundOfTheFleetInSmallPieces(t *testing.T) {
	l := lossOf("gone", "a/1", configMaps(0, 6), "")
	l.Stays = false
	for lost, held := range map[int]int{4: 0, 5: 6} {
		if v := Judge(Input{Limits: config.DefaultGuard, Losses: []Loss{l}, Fleet: 100, Lost: lost}); len(v.Held) != held {
			t.Errorf("six after %d: %d are held, want %d", lost, len(v.Held), held)
		}
	}
}

// TestWhatIsReplacedIsNotHeldForTheFleet: a unit that loses nothing is not held because of what others lose.
func TestWhatIsReplacedIsNotHeldForTheFleet(t *testing.T) {
	gone, renamed := lossOf("gone", "a/1", configMaps(0, 6), ""), lossOf("renamed", "a/1", configMaps(0, 3), configMaps(3, 6))
	gone.Stays = false
	v := Judge(Input{Limits: config.DefaultGuard, Losses: []Loss{gone, renamed}, Fleet: 100, Lost: 5})
	if len(v.Held) != 6 || !v.Together["gone"] || v.Together["renamed"] {
		t.Errorf("%d are held of %v, want six of the unit that goes", len(v.Held), v.Together)
	}
}

// TestWhatStaysForNowIsNotCounted: what may belong to a unit with a problem is not deleted, so it holds
// nothing of others. Its own unit's release is judged by it all the same.
func TestWhatStaysForNowIsNotCounted(t *testing.T) {
	gone, later := lossOf("gone", "a/1", configMaps(0, 6), ""), lossOf("later", "a/1", configMaps(0, 10), configMaps(0, 5))
	gone.Stays = false
	for isLater, held := range map[bool]int{false: 11, true: 0} {
		later.Later = isLater
		limits := config.DefaultGuard
		limits.Unit = config.DeletionLimit{Objects: 1000, Percent: 100}
		if v := Judge(Input{Limits: limits, Losses: []Loss{gone, later}, Fleet: 100}); len(v.Held) != held {
			t.Errorf("later %t: %d are held, want %d", isLater, len(v.Held), held)
		}
	}
	workload := lossOf("later", "a/1", "Deployment/ns/a Service/ns/a", "Service/ns/a")
	workload.Later = true
	if v := Judge(Input{Limits: config.DefaultGuard, Losses: []Loss{workload}, Fleet: 100}); v.Withheld["later"] == "" {
		t.Errorf("a release that ends its last workload later begins")
	}
}

// TestTalliesAreOfOneCommit: what was deleted since one commit does not count for the next one.
func TestTalliesAreOfOneCommit(t *testing.T) {
	unitTarget := object.UnitTarget{Unit: "shop", Target: "a/1"}
	l := &Ledger{deleted: map[object.UnitTarget]store.Tally{}}
	l.Count(unitTarget, "c1", 5)
	l.Count(unitTarget, "c1", 2)
	if n := l.Done(unitTarget, "c1"); n != 7 {
		t.Errorf("%d objects since c1, want 7", n)
	}
	l.Count(unitTarget, "c2", 3)
	if old, n := l.Done(unitTarget, "c1"), l.Done(unitTarget, "c2"); old != 0 || n != 3 {
		t.Errorf("%d objects since c1, and %d since c2, want 0 and 3", old, n)
	}
	if old, units := l.LostBy("c1"), l.LostBy("c2"); len(old) > 0 || !slices.Equal(units, []config.UnitPath{"shop"}) {
		t.Errorf("%q lost something since c1, and %q since c2, want none and shop", old, units)
	}
}

// TestNothingSlips: whatever goes, a unit that stays keeps a workload wherever it
// has one, unless its deletion is held, with its whole release.
func TestNothingSlips(t *testing.T) {
	kinds := []string{"Deployment", "Job", "ConfigMap", "Service", "Cart", "Till"}
	rapidtest.Check(t, 100, 300*time.Millisecond, func(t *rapid.T) {
		var losses []Loss
		draw := func(n int) string {
			var b strings.Builder
			for range rapid.IntRange(0, n).Draw(t, "n") {
				fmt.Fprintf(&b, "%s/%s/%d ", rapid.SampledFrom(kinds).Draw(t, "kind"), rapid.SampledFrom([]string{"ns", "two"}).Draw(t, "ns"), rapid.IntRange(0, 5).Draw(t, "i"))
			}
			return b.String()
		}
		for i := range rapid.IntRange(1, 6).Draw(t, "units") {
			l := lossOf(fmt.Sprint(i), "a/1", draw(8), draw(8))
			l.Stays = rapid.Bool().Draw(t, "stays")
			losses = append(losses, l)
		}
		in := Input{Limits: config.DefaultGuard, Losses: losses, Fleet: 10_000}
		v := Judge(in)
		for _, l := range losses {
			for _, o := range l.Gone {
				held := v.Held[Deletion{UnitTarget: l.UnitTarget, ID: o.ID, UID: o.UID}] != ""
				left := slices.ContainsFunc(l.Remains, func(id object.ID) bool { return IsWorkload(id) && id.Namespace == o.Namespace })
				if l.Stays && IsWorkload(o.ID) && !left && (!held || v.Withheld[l.Unit] == "") {
					t.Errorf("%s of %s: held %t, withheld %q", o.ID, l.Unit, held, v.Withheld[l.Unit])
				}
			}
		}
		in.Approved = map[Deletion]bool{}
		for deletion := range v.Held {
			in.Approved[deletion] = true
		}
		if after := Judge(in); len(after.Held)+len(after.Withheld) > 0 {
			t.Errorf("all is approved: %v, %v", after.Held, after.Withheld)
		}
	})
}

// TestAServiceGetsAnotherName: whoever calls it by its name finds nothing, so no other one
// replaces it. One that goes alone is asked for by the bounds, like all else.
func TestAServiceGetsAnotherName(t *testing.T) {
	const why = "another Service comes in its place: whoever calls this one by its name finds nothing"
	for _, c := range []struct{ name, from, to, want string }{
		{"renamed", "Deployment/ns/a Service/ns/a", "Deployment/ns/a Service/ns/b", why},
		{"dropped", "Deployment/ns/a Service/ns/a", "Deployment/ns/a", ""},
		{"renamed in another namespace", "Deployment/ns/a Service/ns/a", "Deployment/ns/a Service/two/b", ""},
	} {
		l := lossOf("shop", "a/1", c.from, c.to)
		v := Judge(Input{Limits: config.DefaultGuard, Losses: []Loss{l}, Fleet: 2000})
		if got := reasons(v); got != c.want || len(v.Withheld) > 0 {
			t.Errorf("%s: held because %q, withheld %v; want %q", c.name, got, v.Withheld, c.want)
		}
		l.Stays = false
		if v := Judge(Input{Limits: config.DefaultGuard, Losses: []Loss{l}, Fleet: 2000}); len(v.Held) > 0 {
			t.Errorf("%s, of a unit that goes: %v", c.name, v.Held)
		}
	}
}

// TestAUnitGoesWithItsNamespace: of a unit that is removed, and has something that takes approval on a target, nothing
// goes there before it; where it has nothing of that sort, or stays, the light ones go.
func TestAUnitGoesWithItsNamespace(t *testing.T) {
	const asks, along = "deleting a Namespace needs approval", "the unit goes with Namespace/ns/ns, and deleting that needs approval"
	for _, c := range []struct {
		name, from string
		stays      bool
		want       string
		held       int
	}{
		{"removed", "Namespace/ns/ns Deployment/ns/a ConfigMap/ns/a", false, asks + "; " + along, 3},
		{"without one", "Deployment/ns/a ConfigMap/ns/a", false, "", 0},
		{"it stays", "Namespace/ns/ns ConfigMap/ns/a Deployment/ns/b", true, asks, 1},
	} {
		to := ""
		if c.stays {
			to = "Deployment/ns/b"
		}
		l := lossOf("shop", "a/1", c.from, to)
		l.Stays = c.stays
		v := Judge(Input{Limits: config.DefaultGuard, Losses: []Loss{l}, Fleet: 2000})
		if got := reasons(v); got != c.want || len(v.Held) != c.held {
			t.Errorf("%s: %d held because %q; want %d, %q", c.name, len(v.Held), got, c.held, c.want)
		}
	}
}

// TestADepartedCluster: all that it has is one plan, whatever else is deleted; and an approval
// of it approves no deletion.
func TestADepartedCluster(t *testing.T) {
	gone := lossOf("gone", "b/1", configMaps(0, 100), "")
	gone.Departed = true
	other := lossOf("other", "b", "StatefulSet/ns/a", "")
	other.Departed = true
	deletes := lossOf("shop", "a/1", configMaps(0, 100), configMaps(2, 100))
	in := Input{Limits: config.DefaultGuard, Losses: []Loss{gone, other, deletes}, Fleet: 300, Approved: map[Deletion]bool{}}
	v := Judge(in)
	plans := new(Ledger).PlansOf(v, time.Time{})
	if len(plans) != 1 || plans[0].Forgets() != "b" || len(plans[0].Deletions) != 101 || len(v.Withheld)+len(v.Ends)+len(v.Together) > 0 {
		t.Fatalf("%d plans, withheld %v: %v", len(plans), v.Withheld, plans)
	}
	for deletion := range v.Held {
		in.Approved[deletion] = true
	}
	if v = Judge(in); len(v.Held) > 0 {
		t.Errorf("all is approved, and held: %v", v.Held)
	}
	in.Losses[0].Departed, in.Losses[1].Departed = false, false
	if v = Judge(in); len(v.Held) != 101 {
		t.Errorf("%d deletions are held, want 101: they were approved to be forgotten", len(v.Held))
	}
	more := lossOf("more", "c", configMaps(0, 1), "")
	more.Departed, in.Losses[0].Departed = true, true
	v = Judge(Input{Limits: config.DefaultGuard, Losses: []Loss{in.Losses[0], more}, Fleet: 300})
	if plans := new(Ledger).PlansOf(v, time.Time{}); len(plans) != 2 || plans[0].Forgets() != "b" || plans[1].Forgets() != "c" {
		t.Errorf("%d plans, want one for each of two clusters", len(plans))
	}
}

// TestReasonsNameTheirTarget: a deletion is not held with the name of a target that it is not on,
// unless only that one holds it; what keeps the release back names the target.
func TestReasonsNameTheirTarget(t *testing.T) {
	const works = "Deployment/ns/a ConfigMap/ns/a"
	losses := []Loss{
		lossOf("shop", "a/1", configMaps(0, 40), ""), lossOf("shop", "b/1", configMaps(0, 40), ""),
		lossOf("shop", "c/1", configMaps(0, 40), configMaps(1, 40)),
		lossOf("work", "a/1", works, "ConfigMap/ns/a"), lossOf("work", "b/1", works, "ConfigMap/ns/a"),
	}
	v := Judge(Input{Limits: config.DefaultGuard, Losses: losses, Fleet: 200})
	found := map[string]bool{}
	for d, why := range v.Held {
		found[string(d.Unit)+" "+string(d.Target)+": "+why] = true
	}
	want := []string{
		"shop a/1: the unit deletes more than 10 objects or 10 % of what it has on the target",
		"shop b/1: the unit deletes more than 10 objects or 10 % of what it has on the target",
		"shop c/1: the unit deletes more than 10 objects or 10 % of what it has on target a/1",
		"work a/1: the unit stays, and loses all workloads that it has on the target in namespace ns",
		"work b/1: the unit stays, and loses all workloads that it has on the target in namespace ns",
	}
	if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if got := v.Withheld["work"]; got != "the unit stays, and loses all workloads that it has on target a/1 in namespace ns" {
		t.Errorf("withheld: %s", got)
	}
}
