// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"pgregory.net/rapid"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/rapidtest"
	"github.com/swell-sh/swell/render/cache"
	"github.com/swell-sh/swell/render/object"
)

// TestClaims holds the claims against a list, with few hashes, so that bundles
// have several objects of one.
func TestClaims(t *testing.T) {
	rapidtest.Check(t, 100, 200*time.Millisecond, func(t *rapid.T) {
		type bundle struct {
			by   object.UnitTarget
			ids  []uint64
			slot uint32
		}
		c := newClaims()
		var live []bundle
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if len(live) > 0 && rapid.Bool().Draw(t, "drop") {
				i := rapid.IntRange(0, len(live)-1).Draw(t, "which")
				c.drop(live[i].slot, live[i].ids)
				live = slices.Delete(live, i, i+1)
			} else {
				b := bundle{by: object.UnitTarget{Unit: config.UnitPath(rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "unit")), Target: config.TargetName(rapid.SampledFrom([]string{"x/1", "x/2", "y"}).Draw(t, "target"))}}
				b.ids = rapid.SliceOfN(rapid.Uint64Range(0, 3), 0, 5).Draw(t, "ids")
				b.slot = c.add(b.by, b.ids)
				live = append(live, b)
			}
			rivals := map[config.UnitPath]bool{}
			for _, cluster := range []string{"x", "y"} {
				for id := range uint64(4) {
					var want []object.UnitTarget
					for _, b := range live {
						if b.by.Target.Cluster() == cluster && slices.Contains(b.ids, id) {
							want = append(want, b.by)
						}
					}
					slices.SortFunc(want, object.UnitTarget.Compare)
					if got := c.of(cluster, id); !slices.Equal(got, want) {
						t.Fatalf("%s %d: got %v, want %v", cluster, id, got, want)
					}
					if got := c.isContested(cluster, id); got != (len(want) > 1) {
						t.Fatalf("%s %d: contested %t, want it for %v", cluster, id, got, want)
					}
					for _, by := range want {
						rivals[by.Unit] = rivals[by.Unit] || len(want) > 1
					}
				}
			}
			for path, is := range rivals {
				if slices.Contains(c.rivals(), path) != is {
					t.Fatalf("rivals %v, want %v", c.rivals(), rivals)
				}
			}
		}
		for _, b := range live {
			c.drop(b.slot, b.ids)
		}
		if len(c.one)+len(c.more) > 0 || len(c.free) != len(c.slots) {
			t.Errorf("left over: %v %v", c.one, c.more)
		}
	})
}

// TestWeakHash renders with a cache in which all objects have few hashes, as if
// the hash were a bad one: no problem comes of it, and no bundle wants what is
// another object.
func TestWeakHash(t *testing.T) {
	files := richFiles()
	twin := with(files, map[string]string{"services/pay/twin/x.yaml": configMapOf("shared", "shared", "1"), "services/pay/twin/swell.yaml": richTexts["services/pay/shared/swell.yaml"]})
	var c Compiler
	snapshot(&c, twin)
	twinResult, twinStatic := c.entries["services/pay/twin"].result(), c.entries["services/pay/twin"].static
	s := snapshot(&c, files)
	asked := map[object.ID]bool{}
	all(&c, s, asked)
	some := slices.SortedFunc(func(yield func(object.ID) bool) {
		for id := range asked {
			if !yield(id) {
				return
			}
		}
	}, object.ID.Compare)
	for _, few := range []int{1, 3} {
		weak := Compiler{Cache: cache.Memory()}
		weaken := func(static cache.Key, r result, bundles []*object.Bundle) {
			r.heads = slices.Clone(r.heads)
			for i := range r.heads {
				r.heads[i].ids = slices.Clone(r.heads[i].ids)
				for j := range r.heads[i].ids {
					r.heads[i].ids[j] = some[j%few].Hash()
				}
			}
			r.bundles = bundles
			(&world{cache: weak.Cache}).keep(static, &r, nil)
		}
		bundlesOf := func(path config.UnitPath) []*object.Bundle {
			bundles, err := s.Bundles(s.Units.Get(path))
			if err != nil {
				t.Fatal(err)
			}
			return bundles
		}
		for path, e := range c.entries {
			weaken(e.static, *e.result(), bundlesOf(path))
		}
		if twinResult == nil {
			t.Fatal("not rendered")
		}
		weaken(twinStatic, *twinResult, nil) // its objects are made again
		w := snapshot(&weak, files)
		if w.Rendered > 0 || len(w.Problems) > 0 {
			t.Errorf("%d hashes: %d units rendered, problems: %v", few, w.Rendered, w.Problems)
		}
		for _, cluster := range w.Repository.Clusters {
			for _, id := range some {
				for _, by := range weak.Wants(cluster.Name, id) {
					if !slices.Contains(c.Wants(cluster.Name, id), by) {
						t.Errorf("%d hashes: %s is wanted by %v", few, id, by)
					}
				}
			}
		}
		contested := snapshot(&weak, twin)
		if n := strings.Count(contested.Problems.String(), "wanted by unit"); n != 4 || len(contested.Problems) != 4 {
			t.Errorf("%d hashes: got %v, want an object that two units want in two clusters", few, contested.Problems)
		}
		if again := snapshot(&weak, files); len(again.Problems) > 0 {
			t.Errorf("%d hashes, made up: %v", few, again.Problems)
		}
	}
}

// TestContestedUnitsStay: a unit with a contested object is the same pointer
// for as long as nothing changes, and the same as ever once they make up.
func TestContestedUnitsStay(t *testing.T) {
	files := richFiles()
	var c Compiler
	before := snapshot(&c, files)
	twin := with(files, map[string]string{"services/pay/twin/x.yaml": configMapOf("shared", "shared", "1"), "services/pay/twin/swell.yaml": richTexts["services/pay/shared/swell.yaml"]})
	first := snapshot(&c, twin)
	second := snapshot(&c, with(twin, map[string]string{"services/shop/cart/pipe.yaml": easySpec("Pipe", "cart", "{source: other}")}))
	for _, path := range []config.UnitPath{"services/pay/shared", "services/pay/twin"} {
		if u := first.Units.Get(path); len(u.Problems) != 2 || u != second.Units.Get(path) || u.Placements[0].Digest != "" {
			t.Errorf("%s: %v, the same unit: %t", path, u.Problems, u == second.Units.Get(path))
		}
	}
	if after := snapshot(&c, files); after.Units.Get("services/pay/shared").Placements[0].Digest != before.Units.Get("services/pay/shared").Placements[0].Digest || len(after.Problems) > 0 {
		t.Errorf("made up: %v", after.Problems)
	}
}

// contestedFiles are units that want the same objects, in one of several ways.
func contestedFiles(way string, n int) fstest.MapFS {
	files := with(richFiles(), map[string]string{"services/swell.yaml": defaultsOf("placement: {topology: cluster, match: {labels: {region: a}}}")})
	unit := func(name string, texts ...string) {
		files["services/"+name+"/x.yaml"] = &fstest.MapFile{Data: []byte(strings.Join(texts, "---\n"))}
	}
	var texts []string
	for i := range n {
		own := configMapOf(fmt.Sprintf("x%d", i), "a", "1")
		texts = append(texts, own)
		switch way {
		case "pairs of units":
			unit(fmt.Sprintf("one%d", i), own)
			unit(fmt.Sprintf("two%d", i), own)
		case "one unit against many":
			unit(fmt.Sprintf("one%d", i), own)
		case "one namespace":
			unit(fmt.Sprintf("one%d", i), own, "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n")
		}
	}
	if way == "two units" {
		unit("one", texts...)
	}
	if way == "two units" || way == "one unit against many" {
		unit("two", texts...)
	}
	return files
}

// TestManyContested: what many contested objects cost grows with their number.
func TestManyContested(t *testing.T) {
	for _, way := range []string{"two units", "pairs of units", "one unit against many", "one namespace"} {
		files := contestedFiles(way, 300)
		var c Compiler
		s := snapshot(&c, files)
		if n := strings.Count(s.Problems.String(), "wanted by unit"); n < 300 {
			t.Errorf("%s: %d problems", way, n)
		}
		if again := snapshot(&c, files); again.Problems.String() != s.Problems.String() || again.Rendered != 0 {
			t.Errorf("%s: another time %d units are rendered, with %d problems", way, again.Rendered, len(again.Problems))
		}
	}
}

// BenchmarkContested tells what a commit costs with 10,000 contested objects:
// the first one, and one that changes nothing.
func BenchmarkContested(b *testing.B) {
	for _, way := range []string{"two units", "pairs of units", "one unit against many", "one namespace"} {
		b.Run(way, func(b *testing.B) {
			tree := hashed(b, onDisk(b, contestedFiles(way, 10_000)))
			var c Compiler
			b.Run("first", func(b *testing.B) {
				for b.Loop() {
					c = Compiler{}
					c.Snapshot("", tree)
				}
			})
			b.Run("again", func(b *testing.B) {
				for b.Loop() {
					c.Snapshot("", tree)
				}
			})
		})
	}
}
