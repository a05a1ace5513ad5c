// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"reflect"
	"runtime"
	"testing"

	"github.com/swell-sh/swell/render/cache"
)

// richWorld is what the compiler has of richFiles.
func richWorld(tb testing.TB) (*Compiler, *Snapshot) {
	tb.Helper()
	var c Compiler
	s := snapshot(&c, richFiles())
	if len(s.Problems) > 0 {
		tb.Fatal(s.Problems)
	}
	return &c, s
}

// FuzzResult decodes any bytes as an entry of the cache: that ends without a
// panic and takes memory as the bytes do; what comes out can be looked up, and
// is the same when it is encoded and decoded again.
func FuzzResult(f *testing.F) {
	c, s := richWorld(f)
	for _, e := range c.entries {
		entry, ok := c.Cache.Get(e.static)
		if !ok {
			f.Fatal("not in the cache")
		}
		f.Add(entry)
	}
	f.Fuzz(func(t *testing.T, entry []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		d := decoding{rest: entry}
		var first []*result
		for range d.count() {
			r, err := d.result()
			if err != nil {
				break
			}
			first = append(first, r)
		}
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20+uint64(len(entry))*1000 {
			t.Errorf("%d bytes allocated for %d", used, len(entry))
		}
		for _, r := range first {
			r.reads.unchanged(s.world)
			var e, again encoding
			e.result(r)
			d := decoding{rest: e}
			second, err := d.result()
			if err != nil || len(d.rest) > 0 {
				t.Fatalf("encoded, it does not decode: %v, %d bytes left", err, len(d.rest))
			}
			if again.result(second); !bytes.Equal(e, again) {
				t.Errorf("encoded, decoded and encoded:\n%q\nwant\n%q", again, e)
			}
		}
	})
}

// FuzzBundles does the same for objects: they come out as they went in, or not
// at all.
func FuzzBundles(f *testing.F) {
	_, s := richWorld(f)
	unit := s.Units.Get("services/shop/cart")
	bundles, err := s.Bundles(unit)
	if err != nil {
		f.Fatal(err)
	}
	whole := encodeBundles(bundles)
	f.Add([]byte(whole))
	f.Add(whole[:len(whole)/2])
	f.Fuzz(func(t *testing.T, packed []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := decodeBundles(unit, packed)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20+uint64(len(packed))*1000 {
			t.Errorf("%d bytes allocated for %d", used, len(packed))
		}
		for _, b := range got {
			if err == nil && unit.On(b.Target).Digest != b.Digest {
				t.Errorf("a bundle of digest %s", b.Digest)
			}
		}
		for _, on := range unit.Placements {
			if b, err := decodeBundle(unit, packed, on.Target.Name); err == nil && b != nil && b.Digest != on.Digest {
				t.Errorf("a bundle of digest %s", b.Digest)
			}
		}
	})
}

// TestOneBundle: what one target gets is what it gets among all, and nothing of
// the others is kept for it.
func TestOneBundle(t *testing.T) {
	_, s := richWorld(t)
	several := 0
	for _, unit := range s.Units.All() {
		bundles, err := s.Bundles(unit)
		if err != nil {
			t.Fatal(err)
		}
		if len(bundles) > 1 {
			several++
		}
		for _, want := range bundles {
			packed := encodeBundles(bundles)
			got, err := decodeBundle(unit, packed, want.Target)
			if err != nil || got == nil {
				t.Fatalf("%s on %s: %v, %v", unit.Path, want.Target, got, err)
			}
			clear(packed)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s on %s: got\n%+v\nwant\n%+v", unit.Path, want.Target, got, want)
			}
		}
		if b, err := decodeBundle(unit, encodeBundles(bundles), "no/where"); b != nil || err != nil {
			t.Errorf("%s on no target: %v, %v", unit.Path, b, err)
		}
	}
	if several == 0 {
		t.Error("no unit is on several targets")
	}
}

// TestOddEntries: entries of the cache that no program of this version wrote
// are as good as none.
func TestOddEntries(t *testing.T) {
	good, _ := richWorld(t)
	for name, change := range map[string]func(*result){
		"an unknown sort of read":     func(r *result) { r.reads = append(r.reads, read{what: '?', name: "x"}) },
		"a broken collection":         func(r *result) { r.reads = append(r.reads, read{what: readCollection, name: "x"}) },
		"a version that is not known": func(r *result) { r.reads = append(r.reads, read{what: readHard, name: "9.99 v1 X"}) },
		"too few places":              func(r *result) { r.heads = nil },
		"too many places":             func(r *result) { r.heads = append(r.heads, head{}) },
	} {
		c := Compiler{Cache: cache.Memory()}
		for _, e := range good.entries {
			r := *e.result()
			r.reads = append(reads(nil), r.reads...)
			change(&r)
			(&world{cache: c.Cache}).keep(e.static, &r, nil)
		}
		if s := snapshot(&c, richFiles()); s.Rendered != s.Units.Len() || len(s.Problems) > 0 {
			t.Errorf("%s: %d of %d units rendered, %v", name, s.Rendered, s.Units.Len(), s.Problems)
		}
	}
}
