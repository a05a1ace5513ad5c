// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
)

func TestDriftAndFights(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	at := time.Date(2026, 3, 1, 12, 0, 0, 987, time.UTC)
	one, two := entry(1), entry(2)
	drifts := []Drift{
		{Object: one.Of(), Found: at, Mode: "report", Changes: []Change{{Field: ".spec.replicas", Manager: "kubectl", Operation: "Update", Time: at}, {Note: "x"}}},
		{Object: two.Of(), Mode: "fight", Deep: true, Missing: true},
	}
	fights := []Fight{
		{Object: one.Of(), Digest: "d", Losses: []Loss{{Field: ".a", Manager: "m", At: at}, {At: at}}},
		{Object: two.Of(), Field: ".b", Manager: "n", Rounds: 2, Until: at, Tried: at.Add(time.Second)},
	}
	update(t, s, func(tx *Tx) error { return errors.Join(tx.PutDrifts(drifts), tx.PutFights(fights)) })
	check := func() {
		t.Helper()
		same(t, drifts, value[[]Drift](t)(s.Drifts()))
		same(t, fights, value[[]Fight](t)(s.Fights()))
		if until := value[[]Drift](t)(s.DriftsUntil()); len(until) == 2 && (!until[0].Until.IsZero() || !until[1].Until.Equal(at)) {
			t.Errorf("drifts until %s and %s, want never and %s", until[0].Until, until[1].Until, at)
		}
	}
	check()
	drifts[0].Mode, fights[1].Rounds = "correct", 3
	update(t, s, func(tx *Tx) error { return errors.Join(tx.PutDrifts(drifts[:1]), tx.PutFights(fights[1:])) })
	s.Close()
	s = open(t, dir)
	check()
	update(t, s, func(tx *Tx) error {
		return errors.Join(tx.DropDrifts([]Object{one.Of()}), tx.DropFights([]Object{two.Of()}))
	})
	drifts, fights = drifts[1:], fights[:1]
	check()
}

func TestDeepAfter(t *testing.T) {
	s := open(t, t.TempDir())
	same(t, Object{}, value[Object](t)(s.DeepAfter("dev")))
	one := entry(1)
	update(t, s, func(tx *Tx) error {
		return errors.Join(tx.SetDeepAfter("dev", one.Of()), tx.Swept("other", time.Now()))
	})
	same(t, one.Of(), value[Object](t)(s.DeepAfter("dev")))
	same(t, Object{}, value[Object](t)(s.DeepAfter("other")))
	update(t, s, func(tx *Tx) error { return tx.SetDeepAfter("dev", Object{}) })
	same(t, Object{}, value[Object](t)(s.DeepAfter("dev")))
}

func TestHolders(t *testing.T) {
	s := open(t, t.TempDir())
	one, two, other, elsewhere := entry(1), entry(1), entry(2), entry(1)
	two.Unit, two.Target, elsewhere.Target = "b", "dev", "dev2/a"
	update(t, s, func(tx *Tx) error { return tx.Intend([]Entry{one, two, other, elsewhere}) })
	same(t, []Entry{two, one}, value[[]Entry](t)(s.Holders("dev", one.ID)))
	same(t, []Entry(nil), value[[]Entry](t)(s.Holders("dev", object.ID{Kind: "ConfigMap", Namespace: "shop", Name: one.ID.Name})))
}

// TestSchemaOneIsBroughtUpToDate: a state of the first version keeps all it
// has; before a writer has opened it, a reader finds no drift in it.
func TestSchemaOneIsBroughtUpToDate(t *testing.T) {
	dir := t.TempDir()
	db, err := sql.Open("sqlite", filepath.Join(dir, fileName))
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Exec(schemas[0] + fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = 1;", applicationID) +
		`INSERT INTO units VALUES ('a', x'78'); INSERT INTO clusters (name, uid) VALUES ('dev', 'u');`)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	r, err := OpenReadOnly(dir)
	if err != nil {
		t.Fatal(err)
	}
	same(t, []Drift(nil), value[[]Drift](t)(r.Drifts()))
	same(t, []Fight(nil), value[[]Fight](t)(r.Fights()))
	r.Close()
	for range 2 { // the second time nothing is left to do
		s := open(t, dir)
		same(t, "x", string(value[map[string][]byte](t)(unitsAsText(s))["a"]))
		same(t, "u", value[string](t)(s.PinCluster(t.Context(), "dev", "other", ours)))
		one := entry(1)
		update(t, s, func(tx *Tx) error {
			return errors.Join(tx.PutDrifts([]Drift{{Object: one.Of(), Mode: "report"}}), tx.SetDeepAfter("dev", one.Of()))
		})
		same(t, 1, len(value[[]Drift](t)(s.Drifts())))
		s.Close()
	}
}

func unitsAsText(s *Store) (map[string][]byte, error) {
	units, err := s.Units()
	text := map[string][]byte{}
	for path, state := range units {
		text[string(path)] = state
	}
	return text, err
}

// TestInventoryAfter: parts of any size, one after another, are the whole.
func TestInventoryAfter(t *testing.T) {
	s := open(t, t.TempDir())
	var all []Entry
	for i := range 25 {
		e := entry(i)
		e.Target = config.TargetName([]string{"dev", "dev/a", "dev/b"}[i%3])
		e.Unit = config.UnitPath([]string{"a", "b"}[i%2])
		all = append(all, confirmed(e, "d"))
	}
	elsewhere := entry(1)
	elsewhere.Target = "dev2/a"
	update(t, s, func(tx *Tx) error { return errors.Join(tx.Confirm(all), tx.Intend([]Entry{elsewhere})) })
	whole := value[[]Entry](t)(s.ClusterInventory("dev"))
	for _, n := range []int{1, 4, 25, 100} {
		var got []Entry
		for after := (Object{}); ; after = got[len(got)-1].Of() {
			part := value[[]Entry](t)(s.InventoryAfter("dev", after, n))
			if len(part) == 0 {
				break
			}
			got = append(got, part...)
		}
		same(t, whole, got)
	}
}
