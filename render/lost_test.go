// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/cache"
	"github.com/swell-sh/swell/render/object"
)

// closing is a tree that gives out nothing once it is closed.
type closing struct {
	config.Tree
	closed *bool
}

func (t closing) gone(name string) error {
	if *t.closed {
		return &fs.PathError{Op: "read", Path: name, Err: fs.ErrClosed}
	}
	return nil
}

func (t closing) ReadFile(name string) ([]byte, error) {
	if err := t.gone(name); err != nil {
		return nil, err
	}
	return t.Tree.ReadFile(name)
}

func (t closing) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := t.gone(name); err != nil {
		return nil, err
	}
	return t.Tree.ReadDir(name)
}

func (t closing) Hash(name string) (string, error) {
	if err := t.gone(name); err != nil {
		return "", err
	}
	return t.Tree.Hash(name)
}

// bundlesOf are the digests of all bundles as they come from the cache, or are
// made again.
func bundlesOf(s *Snapshot) (map[object.UnitTarget]object.Digest, error) {
	digests := map[object.UnitTarget]object.Digest{}
	for path, unit := range s.Units.All() {
		for _, on := range unit.Placements {
			b, err := s.Bundle(path, on.Target.Name)
			if err != nil {
				return nil, err
			}
			if b == nil && on.Digest != "" {
				return nil, fmt.Errorf("%s on %s: nothing", path, on.Target.Name)
			}
			if b != nil {
				if b.Digest != on.Digest || len(b.Objects) != on.Objects {
					return nil, fmt.Errorf("%s on %s: %d objects of %s, want %d of %s", path, on.Target.Name, len(b.Objects), b.Digest, on.Objects, on.Digest)
				}
				digests[object.UnitTarget{Unit: path, Target: on.Target.Name}] = b.Digest
			}
		}
	}
	return digests, nil
}

// TestCacheLost: without the cache, bundles are rendered again, to the same
// digests; without the commit's files too, that is an error. What an old
// snapshot could not read does no harm to a later one.
func TestCacheLost(t *testing.T) {
	var c Compiler
	closed := false
	tree := closing{config.Files(richFiles()), &closed}
	s := c.Snapshot("", tree)
	want, err := bundlesOf(s)
	if err != nil || len(want) < 20 {
		t.Fatal(len(want), err)
	}
	lose := func(s *Snapshot) {
		s.world.cache = cache.Memory()
		c.Cache = s.world.cache
	}
	lose(s)
	got, err := bundlesOf(s)
	if err != nil || len(got) != len(want) {
		t.Fatalf("%d bundles, want %d: %v", len(got), len(want), err)
	}
	lose(s)
	closed = true
	for path, unit := range s.Units.All() {
		for _, on := range unit.Placements {
			b, err := s.Bundle(path, on.Target.Name)
			if (err == nil || b != nil) && on.Digest != "" {
				t.Errorf("%s on %s without its files: got %v %v, want an error", path, on.Target.Name, b, err)
			}
		}
	}
	// The next commit, which shares much of the world with that one.
	later := c.Snapshot("", config.Files(with(richFiles(), map[string]string{"services/pay/pipe/pipe.yaml": easySpec("Pipe", "ledger", "{source: other}")})))
	if _, err := bundlesOf(later); err != nil || len(later.Problems) > 0 {
		t.Error(err, later.Problems)
	}
	vector, err := later.Bundle("services/platform/vector", "one")
	if err != nil || !strings.Contains(string(vector.Objects[0].JSON), "ledger=other,services/shop/cart:cart=cart,") {
		t.Errorf("%v: %s", err, vector.Objects[0].JSON)
	}
}

// TestBundlesWhileRendering: snapshots are read while the compiler makes the
// next ones, and bundles are made again that fell out of the cache.
func TestBundlesWhileRendering(t *testing.T) {
	dir := t.TempDir()
	small, err := cache.Open(dir, 20_000) // holds a part of it
	if err != nil {
		t.Fatal(err)
	}
	defer small.Close()
	c := Compiler{Cache: small}
	var group sync.WaitGroup
	files := richFiles()
	steps := []map[string]string{
		{"services/pay/pipe/pipe.yaml": easySpec("Pipe", "ledger", "{source: other}")},
		{"bases/web/x.yaml": configMapOf("web", "boxes", "2")},
		{"kinds/app/app.tmpl": "net: {{.net}}\n"},
		{"data/quotas.yaml": "shop: {pods: 6}\npay: {pods: 7}\nunused: 1\n"},
		{"services/platform/crds/tube.yaml": strings.Replace(richTexts["services/platform/crds/tube.yaml"], "integer", "number", 1)},
	}
	for _, step := range steps {
		files = with(files, step)
		s := snapshot(&c, files)
		if len(s.Problems) > 0 {
			t.Fatal(s.Problems)
		}
		for range 2 {
			group.Go(func() {
				for range 2 {
					if _, err := bundlesOf(s); err != nil {
						t.Error(err)
					}
				}
			})
		}
		if err := os.RemoveAll(filepath.Join(dir, "00000001.seg")); err != nil {
			t.Fatal(err)
		}
	}
	group.Wait()
}

// manyCommits lets a compiler follow commits that change a file at random.
func manyCommits(c *Compiler, random *rand.Rand, files fstest.MapFS, n int) {
	names := []string{"services/shop/cart/conf/cart.toml", "services/pay/ledger/app.yaml", "services/shop/swell.yaml", "services/swell.yaml", "services/pay/pipe/pipe.yaml",
		"kinds/app/app.tmpl", "data/quotas.yaml", "bases/web/x.yaml", "fleet/two.yaml", "services/platform/crds/tube.yaml", "services/shop/stack/stack.yaml"}
	for range n {
		name := names[random.IntN(len(names))]
		text := fmt.Sprintf("# %d\n", random.Uint64())
		if strings.HasSuffix(name, ".tmpl") {
			text = "x"
		}
		files[name] = &fstest.MapFile{Data: []byte(richTexts[name] + text)}
		snapshot(c, files)
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestManyCommits: what a compiler holds on to does not grow with the commits
// it has seen. SWELL_COMMITS is how many those are.
func TestManyCommits(t *testing.T) {
	commits := 300
	if text := os.Getenv("SWELL_COMMITS"); text != "" {
		if _, err := fmt.Sscan(text, &commits); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := cache.Open(t.TempDir(), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	c := Compiler{Cache: kept}
	files := richFiles()
	random := rand.New(rand.NewPCG(1, 2))
	manyCommits(&c, random, files, commits/10)
	first := heap()
	manyCommits(&c, random, files, commits-commits/10)
	last := heap()
	t.Logf("%d KiB after %d commits, %d KiB after %d", first>>10, commits/10, last>>10, commits)
	if last > first+first/2 {
		t.Errorf("%d bytes held after %d commits, %d after %d", first, commits/10, last, commits)
	}
	runtime.KeepAlive(&c)
}
