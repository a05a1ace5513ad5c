// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
)

func open(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func update(t testing.TB, s *Store, do func(*Tx) error) {
	t.Helper()
	if err := s.Update(t.Context(), do); err != nil {
		t.Fatal(err)
	}
}

func same(t testing.TB, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
}

// value fails the test on an error.
func value[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestUnitsSurviveReopening(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "odd?name#with %41")
	s := open(t, dir)
	update(t, s, func(tx *Tx) error {
		return errors.Join(tx.PutUnit("a", []byte(`{"path":"a"}`)), tx.PutUnit("b", []byte("x")), tx.PutUnit("c", []byte("x")))
	})
	update(t, s, func(tx *Tx) error {
		return errors.Join(tx.PutUnit("b", []byte("y")), tx.DeleteUnit("c"), tx.DeleteUnit("never there"))
	})
	want := map[config.UnitPath][]byte{"a": []byte(`{"path":"a"}`), "b": []byte("y")}
	same(t, want, value[map[config.UnitPath][]byte](t)(s.Units()))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	same(t, want, value[map[config.UnitPath][]byte](t)(open(t, dir).Units()))

	for _, name := range []string{fileName, lockName} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, mode %v, want 0600", name, err, info.Mode())
		}
	}
}

func TestUpdateIsAllOrNothing(t *testing.T) {
	s := open(t, t.TempDir())
	put := func(tx *Tx) error {
		return errors.Join(tx.PutUnit("a", []byte("x")), tx.Intend([]Entry{entry(1)}), tx.Swept("dev", time.Now()))
	}
	stop := errors.New("stop")
	if err := s.Update(t.Context(), func(tx *Tx) error { return errors.Join(put(tx), stop) }); !errors.Is(err, stop) {
		t.Fatalf("got %v, want the function's own error", err)
	}
	ended, end := context.WithCancel(t.Context())
	if err := s.Update(ended, func(tx *Tx) error {
		defer end()
		return put(tx)
	}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want a cancelled context", err)
	}
	func() {
		defer func() { recover() }()
		s.Update(t.Context(), func(tx *Tx) error {
			put(tx)
			panic("killed")
		})
	}()
	same(t, map[config.UnitPath][]byte{}, value[map[config.UnitPath][]byte](t)(s.Units()))
	same(t, []Entry(nil), value[[]Entry](t)(s.ClusterInventory("dev")))
	update(t, s, put) // the connection is free again
	same(t, 1, len(value[[]Entry](t)(s.ClusterInventory("dev"))))
}

func entry(n int) Entry {
	return Entry{
		Unit: "shop/cart", Target: "dev/a", Version: "v1",
		ID: object.ID{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: fmt.Sprintf("cart-%04d", n)},
	}
}

func confirmed(e Entry, digest object.Digest) Entry {
	e.UID, e.Digest = "uid of "+e.ID.Name, digest
	e.Fingerprint, e.Fields = "fingerprint of "+e.ID.Name, `{"f:metadata":{"f:labels":{}}}`
	return e
}

func TestInventory(t *testing.T) {
	s := open(t, t.TempDir())
	got := func() []Entry { return value[[]Entry](t)(s.ClusterInventory("dev")) }
	one, two, three := entry(1), entry(2), entry(3)

	// the intent comes first, and claims nothing
	intended := one
	intended.Digest = "d1"
	update(t, s, func(tx *Tx) error { return tx.Intend([]Entry{intended, two}) })
	same(t, []Entry{one, two}, got())

	one, two, three = confirmed(one, "d1"), confirmed(two, "d2"), confirmed(three, "d3")
	update(t, s, func(tx *Tx) error { return tx.Confirm([]Entry{one, two, three}) })
	same(t, []Entry{one, two, three}, got())

	// an intent keeps what is known, but for a digest that will change
	update(t, s, func(tx *Tx) error {
		first, second := entry(1), entry(2)
		first.Digest, first.Version = "other", "v2"
		second.Digest = "d2"
		return tx.Intend([]Entry{first, second})
	})
	one.Digest = ""
	same(t, []Entry{one, two, three}, got())

	// drift clears the digest, unless the object was made anew since
	update(t, s, func(tx *Tx) error {
		stranger := three
		stranger.UID = "another"
		return tx.MarkDirty([]Entry{two, stranger})
	})
	two.Digest = ""
	same(t, []Entry{one, two, three}, got())

	// what is confirmed again replaces all
	two.UID, two.Version, two.Digest, two.Fields, two.Fingerprint = "new", "v2", "d4", "", ""
	two.Ran = "bundle"
	update(t, s, func(tx *Tx) error { return tx.Confirm([]Entry{two}) })
	same(t, []Entry{one, two, three}, got())

	// what is about to be sent has run all the same
	update(t, s, func(tx *Tx) error { return errors.Join(tx.Intend([]Entry{two}), tx.MarkDirty([]Entry{two})) })
	two.Digest = ""
	same(t, []Entry{one, two, three}, got())

	update(t, s, func(tx *Tx) error { return tx.Forget([]Entry{one, entry(9)}) })
	same(t, []Entry{two, three}, got())

	if err := s.Update(t.Context(), func(tx *Tx) error { return tx.Confirm([]Entry{entry(4)}) }); err == nil {
		t.Error("an entry without a UID was confirmed")
	}
}

func TestInventoryOfOnePlace(t *testing.T) {
	s := open(t, t.TempDir())
	var all []Entry
	for _, target := range []config.TargetName{"dev", "dev/a", "dev/b", "dev-2", "dev-2/a", "dev0", "deva/a", "DEV/a", "d%/a", "dev\x00/a"} {
		for _, unit := range []config.UnitPath{"shop/cart", "shop/car"} {
			e := entry(1)
			e.Target, e.Unit = target, unit
			all = append(all, e)
		}
	}
	update(t, s, func(tx *Tx) error { return tx.Intend(all) })
	var targets []string
	for _, e := range value[[]Entry](t)(s.ClusterInventory("dev")) {
		targets = append(targets, string(e.Target)+" "+string(e.Unit))
	}
	same(t, []string{"dev shop/car", "dev shop/cart", "dev/a shop/car", "dev/a shop/cart", "dev/b shop/car", "dev/b shop/cart"}, targets)

	e := entry(1)
	same(t, map[object.ID]Entry{e.ID: e}, value[map[object.ID]Entry](t)(s.Inventory("shop/cart", "dev/a")))
	same(t, map[object.ID]Entry{}, value[map[object.ID]Entry](t)(s.Inventory("shop", "dev/a")))
}

// TestInventoryOfAnOlderSchema: a file that an older version left is read as it
// is, and brought up to date when it is opened for writing.
func TestInventoryOfAnOlderSchema(t *testing.T) {
	for schema := range len(schemas) - 1 {
		dir := t.TempDir()
		file := filepath.Join(dir, fileName)
		db := connect(file, "mode=rwc", 1)
		_, err := db.Exec(strings.Join(schemas[:schema+1], "") + fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d;", applicationID, schema+1) +
			`INSERT INTO inventory (target, unit, "group", kind, namespace, name, version, uid, digest, fingerprint)
				VALUES ('dev/a', 'shop/cart', 'apps', 'Deployment', 'shop', 'cart-0001', 'v1', 'u', 'd', 'f')`)
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
		want := entry(1)
		want.UID, want.Digest, want.Fingerprint = "u", "d", "f"
		old, err := OpenReadOnly(dir)
		if err != nil {
			t.Fatal(err)
		}
		same(t, []Entry{want}, value[[]Entry](t)(old.ClusterInventory("dev")))
		if err := old.Close(); err != nil {
			t.Fatal(err)
		}
		s := open(t, dir)
		same(t, []Entry{want}, value[[]Entry](t)(s.ClusterInventory("dev")))
		want.Ran = "bundle"
		update(t, s, func(tx *Tx) error { return tx.Confirm([]Entry{want}) })
		same(t, []Entry{want}, value[[]Entry](t)(s.ClusterInventory("dev")))
	}
}

// TestFieldsAreStoredOnce: managed fields are the largest part of an entry, and
// the same for all objects of a kind's template.
func TestFieldsAreStoredOnce(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	var entries []Entry
	for i := range 100 {
		e := confirmed(entry(i), "d")
		e.Fields = strings.Repeat("x", i%3)
		entries = append(entries, e)
	}
	count := func() (n int) {
		if err := s.reader.QueryRow(`SELECT count(*) FROM fieldsets`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	update(t, s, func(tx *Tx) error { return tx.Confirm(entries) })
	same(t, 2, count())
	same(t, entries, value[[]Entry](t)(s.ClusterInventory("dev")))
	update(t, s, func(tx *Tx) error { return tx.Forget(entries[1:]) })
	s.Close()
	s = open(t, dir) // drops those that nothing refers to
	same(t, 0, count())
	same(t, entries[:1], value[[]Entry](t)(s.ClusterInventory("dev")))
}

// ours is of a cluster that belongs to the fleet.
func ours() bool { return true }

func TestPinCluster(t *testing.T) {
	s := open(t, t.TempDir())
	pin := func(uid string) string { return value[string](t)(s.PinCluster(t.Context(), "dev", uid, ours)) }
	at := time.Date(2026, 3, 1, 12, 0, 0, 987654321, time.FixedZone("", 3600))
	update(t, s, func(tx *Tx) error { return tx.Swept("dev", at) })
	same(t, "one", pin("one"))
	same(t, "one", pin("another"))
	update(t, s, func(tx *Tx) error { return tx.Swept("dev", at.Add(time.Second)) })
	same(t, "one", pin("another"))
	same(t, map[string]time.Time{"dev": at.Add(time.Second).UTC()}, value[map[string]time.Time](t)(s.SweptAt()))
	if _, err := s.PinCluster(t.Context(), "other", "", ours); err == nil {
		t.Error("pinned without a UID")
	}
	if _, err := s.PinCluster(t.Context(), "other", "one", ours); err == nil {
		t.Error("one cluster has two names")
	}
	if _, err := s.PinCluster(t.Context(), "left", "two", func() bool { return false }); err == nil {
		t.Error("pinned what is not of the fleet")
	}
}

func TestDisplace(t *testing.T) {
	s := open(t, t.TempDir())
	entry := func(unit config.UnitPath, target config.TargetName, name string) Entry {
		return Entry{Unit: unit, Target: target, ID: object.ID{Kind: "ConfigMap", Namespace: "ns", Name: name}, Version: "v1", UID: "u", Digest: "d"}
	}
	moving := entry("b", "dev/two", "moved")
	update(t, s, func(tx *Tx) error {
		return tx.Confirm([]Entry{entry("a", "dev/one", "moved"), entry("a", "dev/one", "stays"), entry("a", "dev", "moved"), entry("a", "dev2/one", "moved"), moving})
	})
	update(t, s, func(tx *Tx) error { return tx.MarkOthersDirty("dev", []Entry{moving}) })
	var left []string
	for _, cluster := range []string{"dev", "dev2"} {
		for _, e := range value[[]Entry](t)(s.ClusterInventory(cluster)) {
			if e.Digest != "" {
				left = append(left, string(e.Target)+" "+string(e.Unit)+" "+e.ID.Name)
			}
		}
	}
	same(t, []string{"dev/one a stays", "dev/two b moved", "dev2/one a moved"}, left)
}

func TestPinClusterTwiceAtOnce(t *testing.T) {
	s := open(t, t.TempDir())
	pinned := make([]string, 8)
	var all sync.WaitGroup
	for i := range pinned {
		all.Go(func() { pinned[i], _ = s.PinCluster(t.Context(), "dev", fmt.Sprint("uid", i), ours) })
	}
	all.Wait()
	for _, uid := range pinned {
		if uid != pinned[0] || uid == "" {
			t.Fatalf("different answers: %q", pinned)
		}
	}
}

func TestHistory(t *testing.T) {
	s := open(t, t.TempDir())
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	events := []Event{
		{Time: at, Commit: "c1", Unit: "a", Rollout: 1, Kind: "started", Text: "2 targets"},
		{Time: at.Add(time.Second), Unit: "b", Target: "dev", Wave: "canary", Kind: "failed", Text: `it's "bad"`},
		{Time: at.Add(time.Millisecond), Unit: "a", Kind: "done"},
		{Kind: "stopped"},
	}
	update(t, s, func(tx *Tx) error {
		return errors.Join(tx.AddHistory(events[:2]), tx.AddHistory(nil), tx.AddHistory(events[2:]))
	})
	history := func(unit config.UnitPath, limit int) []Event { return value[[]Event](t)(s.History(unit, limit)) }
	same(t, []Event{events[3], events[2], events[1], events[0]}, history("", 10))
	same(t, []Event{events[3], events[2]}, history("", 2))
	same(t, []Event{events[2], events[0]}, history("a", 10))

	// Orders about folders of a unit, and about everything, are about the unit too.
	orders := []Event{{Kind: "pause", Unit: "x"}, {Kind: "freeze", Unit: "x/y"}, {Kind: "mask", Target: "dev"}, {Kind: "pause", Unit: "xx"}, {Kind: "thaw", Unit: "x/y/z"},
		{Kind: "rebuilt"}, {Kind: "drifted", Unit: "x"}}
	update(t, s, func(tx *Tx) error { return tx.AddHistory(orders) })
	same(t, []Event{orders[4], orders[2], orders[1], orders[0]}, history("x/y/z", 10))
	same(t, []Event{orders[4], orders[2], orders[1], orders[0]}, history("x/y", 10))
	same(t, []Event{orders[6], orders[4], orders[2], orders[1], orders[0]}, history("x", 10))

	// as if 100,000 more had come
	if _, err := s.writer.Exec(`UPDATE history SET seq = seq + ? WHERE kind = 'drifted'`, maxHistory-1); err != nil {
		t.Fatal(err)
	}
	update(t, s, func(tx *Tx) error { return tx.AddHistory([]Event{{Kind: "newest"}}) })
	var kinds []string
	for _, e := range history("", 10) {
		kinds = append(kinds, e.Kind)
	}
	same(t, []string{"newest", "drifted"}, kinds)
}

func TestOneWriter(t *testing.T) {
	dir := t.TempDir()
	if _, err := OpenReadOnly(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v for a folder without a state, want one that is fs.ErrNotExist", err)
	}
	s := open(t, dir)
	if _, err := Open(dir); !errors.Is(err, ErrLocked) {
		t.Errorf("got %v for a second writer, want ErrLocked", err)
	}
	update(t, s, func(tx *Tx) error { return tx.PutUnit("a", []byte("x")) })

	look := func(written bool) {
		t.Helper()
		r, err := OpenReadOnly(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if used, err := r.InUse(); err != nil || used != written {
			t.Errorf("in use: %t, %v, want %t", used, err, written)
		}
		same(t, map[config.UnitPath][]byte{"a": []byte("x")}, value[map[config.UnitPath][]byte](t)(r.Units()))
		if err := r.Update(t.Context(), func(tx *Tx) error { return nil }); err == nil {
			t.Error("a reader may write")
		}
	}
	look(true) // beside the writer
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	look(false) // without one
	open(t, dir)
}

func TestConcurrentUse(t *testing.T) {
	s := open(t, t.TempDir())
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for k := range 20 {
				e := confirmed(entry(i*100+k), "d")
				if err := s.Update(t.Context(), func(tx *Tx) error { return tx.Confirm([]Entry{e}) }); err != nil {
					t.Error(err)
				}
			}
		})
		all.Go(func() {
			for range 20 {
				if _, err := s.ClusterInventory("dev"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	same(t, 80, len(value[[]Entry](t)(s.ClusterInventory("dev"))))
}

func BenchmarkIntendAndConfirm2000(b *testing.B) {
	s := open(b, b.TempDir())
	intended := make([]Entry, 2000)
	answers := make([]Entry, len(intended))
	for b.Loop() {
		b.StopTimer()
		for i := range intended {
			intended[i] = entry(i)
			intended[i].Target = config.TargetName(fmt.Sprintf("dev/%d", b.N))
			answers[i] = confirmed(intended[i], object.Digest(strings.Repeat("d", 64)))
			answers[i].Fields = strings.Repeat("f", 2000+i%10)
		}
		if err := s.Update(b.Context(), func(tx *Tx) error { return tx.Forget(intended) }); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if err := s.Update(b.Context(), func(tx *Tx) error { return tx.Intend(intended) }); err != nil {
			b.Fatal(err)
		}
		if err := s.Update(b.Context(), func(tx *Tx) error { return tx.Confirm(answers) }); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkClusterInventory10000(b *testing.B) {
	s := open(b, b.TempDir())
	entries := make([]Entry, 10_000)
	for i := range entries {
		entries[i] = confirmed(entry(i), object.Digest(strings.Repeat("d", 64)))
		entries[i].Fields = strings.Repeat("f", 2000+i%10)
	}
	if err := s.Update(b.Context(), func(tx *Tx) error { return tx.Confirm(entries) }); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if got, err := s.ClusterInventory("dev"); err != nil || len(got) != len(entries) {
			b.Fatal(len(got), err)
		}
	}
}
