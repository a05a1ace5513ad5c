// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
)

func deletion(n int) Deletion {
	e := entry(n)
	return Deletion{Target: e.Target, Unit: e.Unit, ID: e.ID, UID: fmt.Sprint("uid-", n), Why: "too many"}
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestPlanDigest(t *testing.T) {
	plan := func(deletions ...Deletion) object.Digest { return NewPlan("a", noon, deletions).Digest }
	one, two := deletion(1), deletion(2)
	base := plan(one, two)
	same(t, base, plan(two, one))
	why := one
	why.Why = "another reason"
	same(t, base, plan(why, two))
	seen := map[object.Digest]string{base: "base"}
	for name, change := range map[string]func(*Deletion){
		"target": func(d *Deletion) { d.Target = "dev/b" }, "unit": func(d *Deletion) { d.Unit = "x" }, "uid": func(d *Deletion) { d.UID = "x" },
		"group": func(d *Deletion) { d.Group = "x" }, "kind": func(d *Deletion) { d.Kind = "x" }, "namespace": func(d *Deletion) { d.Namespace = "x" },
		"name": func(d *Deletion) { d.Name = "x" }, "no uid": func(d *Deletion) { d.UID = "" },
		"shifted": func(d *Deletion) { d.Namespace, d.Name = "", d.Namespace+d.Name },
	} {
		changed := one
		change(&changed)
		digest := plan(changed, two)
		if other, ok := seen[digest]; ok {
			t.Errorf("%s has the digest of %s", name, other)
		}
		seen[digest] = name
	}
	if digest := plan(one); digest == base {
		t.Error("one deletion less has the same digest")
	}
}

// approve approves a plan beside a store, as the daemon's API does.
func approve(t *testing.T, s *Store, digest object.Digest, by string, at time.Time) error {
	b := s.Beside()
	return errors.Join(b.Update(t.Context(), func(tx *Tx) error { return tx.Approve(digest, by, at) }), b.Close())
}

func reject(t *testing.T, s *Store, digest object.Digest, r Rejection) error {
	b := s.Beside()
	return errors.Join(b.Update(t.Context(), func(tx *Tx) error { return tx.Reject(digest, r) }), b.Close())
}

// TestApproveBesideTheDaemon: an approval waits for no pass, what it says is what
// the plan holds, and the daemon hears of it and of nothing else.
func TestApproveBesideTheDaemon(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	unit, fleet := NewPlan("shop/cart", noon, []Deletion{deletion(1), deletion(2)}), NewPlan("", noon.Add(time.Second), []Deletion{deletion(3)})
	update(t, s, func(tx *Tx) error { return tx.PutPlans([]Plan{unit, fleet}) })
	same(t, []Plan{fleet, unit}, value[[]Plan](t)(s.Plans()))
	before := value[int64](t)(s.Changes())
	update(t, s, func(tx *Tx) error { return tx.PutUnit("a", []byte("x")) })
	same(t, before, value[int64](t)(s.Changes()))

	if err := approve(t, s, unit.Digest, "ada", noon.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if after := value[int64](t)(s.Changes()); after == before {
		t.Error("the daemon hears nothing")
	}
	want := Approval{Digest: unit.Digest, At: noon.Add(time.Hour), By: "ada", Deletions: unit.Deletions}
	same(t, []Approval{want}, value[[]Approval](t)(s.Approvals()))
	same(t, []Event{{Time: noon.Add(time.Hour), Unit: "shop/cart", Kind: "approved", Text: "plan " + unit.Digest.Short() + ": 2 deletions, by ada"}},
		value[[]Event](t)(s.History("shop/cart", 10)))

	update(t, s, func(tx *Tx) error {
		return errors.Join(tx.PutPlans([]Plan{fleet}), tx.KeepApproval(unit.Digest, unit.Deletions[1:]))
	})
	want.Deletions = unit.Deletions[1:]
	same(t, []Approval{want}, value[[]Approval](t)(s.Approvals()))
	if err := approve(t, s, unit.Digest, "ada", noon); !errors.Is(err, ErrNoPlan) {
		t.Errorf("a plan that is gone: %v", err)
	}
	update(t, s, func(tx *Tx) error { return tx.KeepApproval(unit.Digest, nil) })
	same(t, 0, len(value[[]Approval](t)(s.Approvals())))

	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Alone(t.Context(), dir, func(tx *Tx) error { return tx.Approve(fleet.Digest, "ada", noon) }); err != nil { // without a daemon
		t.Fatal(err)
	}
	same(t, 1, len(value[[]Approval](t)(open(t, dir).Approvals())))
	if err := Alone(t.Context(), t.TempDir(), func(tx *Tx) error { return tx.Approve(fleet.Digest, "ada", noon) }); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no state: %v", err)
	}
}

// TestApproveWhileWriting: an approval waits for the daemon's transactions, and
// they for it.
func TestApproveWhileWriting(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	var plans []Plan
	for n := range 20 {
		plans = append(plans, NewPlan(config.UnitPath(fmt.Sprintf("unit-%02d", n)), noon, []Deletion{deletion(n)}))
	}
	update(t, s, func(tx *Tx) error { return tx.PutPlans(plans) })
	var all sync.WaitGroup
	for _, p := range plans {
		all.Go(func() {
			if err := approve(t, s, p.Digest, "ada", noon); err != nil {
				t.Error(err)
			}
		})
	}
	for n := range 50 {
		update(t, s, func(tx *Tx) error { return tx.Intend(batch(n)) })
	}
	all.Wait()
	same(t, 20, len(value[[]Approval](t)(s.Approvals())))
	same(t, 50*batchSize, value[int](t)(s.Count()))
}

func TestDeleted(t *testing.T) {
	s := open(t, t.TempDir())
	at := object.UnitTarget{Unit: "a", Target: "dev/a"}
	update(t, s, func(tx *Tx) error {
		return errors.Join(tx.PutDeleted(at, Tally{"c1", 3}), tx.PutDeleted(at, Tally{"c2", 1}), tx.PutDeleted(object.UnitTarget{}, Tally{"c2", 7}))
	})
	same(t, map[object.UnitTarget]Tally{at: {"c2", 1}, {}: {"c2", 7}}, value[map[object.UnitTarget]Tally](t)(s.Deleted()))
	update(t, s, func(tx *Tx) error { return tx.PutDeleted(at, Tally{}) })
	same(t, map[object.UnitTarget]Tally{{}: {"c2", 7}}, value[map[object.UnitTarget]Tally](t)(s.Deleted()))
}

// TestTakeIn: what is live fills what was only intended, and replaces nothing.
func TestTakeIn(t *testing.T) {
	s := open(t, t.TempDir())
	known, intended, fresh := confirmed(entry(1), "d"), entry(2), confirmed(entry(3), "")
	known.Keep = true
	update(t, s, func(tx *Tx) error { return errors.Join(tx.Confirm([]Entry{known}), tx.Intend([]Entry{intended})) })
	other := known
	other.UID, other.Keep = "other", false
	live := confirmed(intended, "")
	fresh.Keep = true
	update(t, s, func(tx *Tx) error { return tx.Adopt([]Entry{other, live, fresh}) })
	intended.UID, intended.Found = live.UID, true
	fresh.Found = true
	same(t, []Entry{known, intended, fresh}, value[[]Entry](t)(s.ClusterInventory("dev")))
	var seen []Entry
	if err := s.Census(func(e Entry) { seen = append(seen, e) }); err != nil {
		t.Fatal(err)
	}
	known.Fields, fresh.Fields = "", ""
	same(t, []Entry{known, intended, fresh}, seen)
	fresh.Found = false
	update(t, s, func(tx *Tx) error { return tx.Confirm([]Entry{fresh}) })
	same(t, fresh, value[[]Entry](t)(s.ClusterInventory("dev"))[2])
}

func TestSurveyed(t *testing.T) {
	s := open(t, t.TempDir())
	value[string](t)(s.PinCluster(t.Context(), "dev", "uid", ours))
	same(t, map[string]ClusterState{"dev": {Name: "dev", UID: "uid"}}, value[map[string]ClusterState](t)(s.Clusters()))
	update(t, s, func(tx *Tx) error {
		return errors.Join(tx.Surveyed("dev", Rebuilding, "x.example.com/v1"), tx.Surveyed("new", Known, ""))
	})
	same(t, map[string]ClusterState{"dev": {Name: "dev", UID: "uid", Survey: Rebuilding, Unknown: "x.example.com/v1"}, "new": {Name: "new", Survey: Known}},
		value[map[string]ClusterState](t)(s.Clusters()))
	same(t, "later", value[string](t)(s.PinCluster(t.Context(), "new", "later", ours)))
}

// TestOlderSchema: a state of version 1 can be looked at, cannot be approved in,
// and is brought up to date when it is opened: nothing of it is lost, and its
// clusters need no survey.
func TestOlderSchema(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, fileName)
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Exec(schemas[0] + fmt.Sprintf(`PRAGMA application_id = %d; PRAGMA user_version = 1;
		INSERT INTO units VALUES ('a', 'x'); INSERT INTO clusters (name, uid) VALUES ('dev', 'uid'), ('swept', '');
		INSERT INTO inventory VALUES ('dev/a', 'shop/cart', 'apps', 'Deployment', 'shop', 'cart-0001', 'v1', 'u', 'd', 'f', NULL);`, applicationID))
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	r := value[*Store](t)(OpenReadOnly(dir))
	same(t, map[config.UnitPath][]byte{"a": []byte("x")}, value[map[config.UnitPath][]byte](t)(r.Units()))
	same(t, 0, len(value[[]Plan](t)(r.Plans())))
	same(t, 0, len(value[[]Approval](t)(r.Approvals())))
	same(t, Known, value[map[string]ClusterState](t)(r.Clusters())["dev"].Survey)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	err = Alone(t.Context(), dir, func(tx *Tx) error { return tx.Approve("abc", "ada", noon) })
	if err == nil || !regexp.MustCompile(`made by an older version of swell: schema 1, this one knows \d+: swell run brings it up to date`).MatchString(err.Error()) {
		t.Errorf("approve: %v", err)
	}
	for range 2 {
		s := open(t, dir)
		e := entry(1)
		e.UID, e.Digest, e.Fingerprint = "u", "d", "f"
		same(t, []Entry{e}, value[[]Entry](t)(s.ClusterInventory("dev")))
		same(t, map[string]ClusterState{"dev": {Name: "dev", UID: "uid", Survey: Known}, "swept": {Name: "swept"}}, value[map[string]ClusterState](t)(s.Clusters()))
		update(t, s, func(tx *Tx) error { return tx.PutPlans([]Plan{NewPlan("a", noon, []Deletion{deletion(1)})}) })
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReject: a rejection stands beside its plan and in the history, over a
// restart, until the plan changes or is approved after all.
func TestReject(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	one, other := NewPlan("shop/cart", noon, []Deletion{deletion(1), deletion(2)}), NewPlan("shop/till", noon, []Deletion{deletion(3)})
	update(t, s, func(tx *Tx) error { return tx.PutPlans([]Plan{one, other}) })
	before := value[int64](t)(s.Changes())
	first := Rejection{At: noon.Add(time.Hour), By: "ada", Reason: "still read"}
	if err := reject(t, s, one.Digest, first); err != nil {
		t.Fatal(err)
	}
	if after := value[int64](t)(s.Changes()); after == before {
		t.Error("the daemon hears nothing")
	}
	again := Rejection{At: noon.Add(2 * time.Hour), By: "bob"}
	if err := errors.Join(reject(t, s, one.Digest, again), reject(t, s, other.Digest, first)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	one.Rejected, other.Rejected = &again, &first
	same(t, []Plan{one, other}, value[[]Plan](t)(s.Plans()))
	same(t, "rejected by bob; take the change back in Git, or approve it after all: swell approve "+one.Digest.Short(), one.Ask())
	same(t, "rejected by ada: still read; take the change back in Git, or approve it after all", first.Text())
	var told []string
	for _, e := range value[[]Event](t)(s.History("shop/cart", 10)) {
		told = append(told, e.Kind+" "+e.Text)
	}
	same(t, []string{"rejected plan " + one.Digest.Short() + ": 2 deletions, by bob", "rejected plan " + one.Digest.Short() + ": 2 deletions, by ada: still read"}, told)

	if err := approve(t, s, one.Digest, "eve", noon); err != nil {
		t.Fatal(err)
	}
	one.Rejected = nil
	same(t, []Plan{one, other}, value[[]Plan](t)(s.Plans()))
	if err := reject(t, s, one.Digest, first); !errors.Is(err, ErrApproved) {
		t.Errorf("a plan that is approved: %v", err)
	}
	changed := NewPlan("shop/till", noon, []Deletion{deletion(3), deletion(4)})
	update(t, s, func(tx *Tx) error { return tx.PutPlans([]Plan{changed}) })
	other.Rejected = nil
	update(t, s, func(tx *Tx) error { return tx.PutPlans([]Plan{other}) })
	same(t, []Plan{other}, value[[]Plan](t)(s.Plans()))
	if err := reject(t, s, changed.Digest, first); !errors.Is(err, ErrNoPlan) {
		t.Errorf("a plan that is gone: %v", err)
	}
}

// TestPlansOfAnOlderSchema: plans are read from a state that knows no rejections.
func TestPlansOfAnOlderSchema(t *testing.T) {
	dir := t.TempDir()
	db := connect(filepath.Join(dir, fileName), "mode=rwc", 1)
	_, err := db.Exec(strings.Join(schemas[:rejectionsSchema-1], "") + fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d;", applicationID, rejectionsSchema-1) +
		`INSERT INTO plans (digest, unit, deletions) VALUES ('d', 'shop/cart', '[]')`)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	want := []Plan{{Digest: "d", Unit: "shop/cart", Deletions: []Deletion{}}}
	old := value[*Store](t)(OpenReadOnly(dir))
	same(t, want, value[[]Plan](t)(old.Plans()))
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	same(t, want, value[[]Plan](t)(open(t, dir).Plans()))
}
