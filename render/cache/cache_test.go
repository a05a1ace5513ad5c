// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func keyOf(i int) Key { return sha256.Sum256(fmt.Append(nil, i)) }

// valueOf is some bytes that tell which entry they are of: half of them pack
// well, half do not at all.
func valueOf(i, size int) []byte {
	value := fmt.Appendf(nil, "value %d ", i)
	random := rand.New(rand.NewPCG(uint64(i), 1))
	for len(value) < size {
		if len(value) < size/2 {
			value = append(value, "again and again "...)
		} else {
			value = append(value, byte(random.Uint32()))
		}
	}
	return value
}

func open(t testing.TB, dir string, limit int64) *Cache {
	t.Helper()
	c, err := Open(dir, limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// count is how many of n entries are there. A wrong value is an error.
func count(t testing.TB, c *Cache, n, size int) int {
	t.Helper()
	found := 0
	for i := range n {
		value, ok := c.Get(keyOf(i))
		if !ok {
			continue
		}
		found++
		if !bytes.Equal(value, valueOf(i, size)) {
			t.Fatalf("entry %d: got %.40q..., %d bytes", i, value, len(value))
		}
	}
	return found
}

func segments(t testing.TB, dir string) []string {
	t.Helper()
	names, err := segmentNames(dir)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestRoundTrip(t *testing.T) {
	for name, c := range map[string]*Cache{"memory": Memory(), "disk": open(t, t.TempDir(), 1<<30)} {
		for i, value := range [][]byte{{}, {0}, []byte("x"), valueOf(3, 100), valueOf(4, 1<<20), make([]byte, 1<<22)} {
			if _, ok := c.Get(keyOf(i)); ok {
				t.Errorf("%s: entry %d is there before it was put", name, i)
			}
			c.Put(keyOf(i), value)
			if got, ok := c.Get(keyOf(i)); !ok || !bytes.Equal(got, value) {
				t.Errorf("%s: entry %d: got %d bytes %t, want %d", name, i, len(got), ok, len(value))
			}
		}
		c.Put(keyOf(2), []byte("another"))
		got, _ := c.Get(keyOf(2))
		if string(got) != "another" {
			t.Errorf("%s: got %q, want the later value", name, got)
		}
		got[0] = 'X' // it is the caller's
		if again, _ := c.Get(keyOf(2)); string(again) != "another" {
			t.Errorf("%s: got %q, want what was put", name, again)
		}
	}
}

// TestReopen: what one process wrote the next one has, whatever the folder is
// called. A folder with [ in its name had no segments for those who looked.
func TestReopen(t *testing.T) {
	for _, name := range []string{"plain", "new/below", "[x]", "a*b?"} {
		dir := filepath.Join(t.TempDir(), name)
		for run := range 3 {
			c := open(t, dir, 1<<30)
			if n := count(t, c, 100, 50); n != run*10 {
				t.Errorf("%s, run %d: %d entries, want %d", name, run, n, run*10)
			}
			for i := range 10 {
				c.Put(keyOf(run*10+i), valueOf(run*10+i, 50))
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestForeignFiles: what others put into the folder is left alone.
func TestForeignFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"README", "x.seg", "99999999.seg", "empty.seg"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.Repeat(name, len(name)%6)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "folder.seg"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "00000007.seg"), nil, 0o000); err != nil {
		t.Fatal(err)
	}
	for run := range 3 {
		c := open(t, dir, 1<<20)
		if n := count(t, c, 3, 10); n != run {
			t.Errorf("run %d: %d entries", run, n)
		}
		c.Put(keyOf(run), valueOf(run, 10))
		if c.Err() != nil {
			t.Error(c.Err())
		}
	}
}

// written is a segment with n entries.
func written(t testing.TB, n, size int) []byte {
	t.Helper()
	dir := t.TempDir()
	c := open(t, dir, 1<<30)
	for i := range n {
		c.Put(keyOf(i), valueOf(i, size))
	}
	data, err := os.ReadFile(filepath.Join(dir, segments(t, dir)[0]))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func withSegment(t testing.TB, data []byte) *Cache {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "00000001.seg"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	return open(t, dir, 1<<30)
}

// TestTornTail: of a segment that ends anywhere, all whole records are there,
// and it can be written on.
func TestTornTail(t *testing.T) {
	whole := written(t, 4, 60)
	most := 4
	for length := len(whole); length >= 0; length-- {
		c := withSegment(t, whole[:length])
		n := count(t, c, 4, 60)
		if n > most || n < most-1 {
			t.Fatalf("%d of %d bytes: %d entries after %d", length, len(whole), n, most)
		}
		most = n
		c.Put(keyOf(9), valueOf(9, 60))
		if _, ok := c.Get(keyOf(9)); !ok {
			t.Fatalf("%d of %d bytes: nothing can be put", length, len(whole))
		}
	}
	if most != 0 {
		t.Errorf("%d entries in an empty file", most)
	}
}

// TestFlippedBits: an entry with any bit changed is the entry or nothing; the
// others before it are there. It takes no more memory than a good one.
func TestFlippedBits(t *testing.T) {
	whole := written(t, 3, 120)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for at := range whole {
		for bit := range 8 {
			data := bytes.Clone(whole)
			data[at] ^= 1 << bit
			count(t, withSegment(t, data), 3, 120)
		}
	}
	runtime.ReadMemStats(&after)
	if mean := (after.TotalAlloc - before.TotalAlloc) / uint64(8*len(whole)); mean > 64<<20 {
		t.Errorf("%d MiB allocated for each", mean>>20)
	} else {
		t.Logf("%d KiB allocated for each of %d", mean>>10, 8*len(whole))
	}
}

// TestEviction: the size stays below the limit, but for the segment that is
// being written; what is used stays, what is not goes.
func TestEviction(t *testing.T) {
	const limit, size, all = 1 << 20, 4000, 3000
	dir := t.TempDir()
	c := open(t, dir, limit)
	for i := range all {
		c.Put(keyOf(i), valueOf(i, size))
		count(t, c, 5, size) // in use
		if c.size > limit+limit/4 {
			t.Fatalf("after %d entries: %d bytes, want at most %d", i, c.size, limit)
		}
	}
	if n := count(t, c, 5, size); n != 5 {
		t.Errorf("%d of 5 entries in use are there", n)
	}
	if _, ok := c.Get(keyOf(all / 2)); ok {
		t.Error("an old entry that nobody used is there")
	}
	if n := sizeOf(t, dir); n != c.size {
		t.Errorf("%d bytes on disk, %d by its own account", n, c.size)
	}
	open(t, dir, limit/4)
	if n := sizeOf(t, dir); n > limit/4+limit/8 {
		t.Errorf("with a smaller limit: %d bytes on disk", n)
	}
}

func sizeOf(t testing.TB, dir string) (n int64) {
	t.Helper()
	for _, name := range segments(t, dir) {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		n += info.Size()
	}
	return n
}

// TestReadingDoesNotGrow: reading alone moved entries on and on to new segments.
func TestReadingDoesNotGrow(t *testing.T) {
	const limit, size, all = 1 << 20, 4000, 330
	c := open(t, t.TempDir(), limit)
	for i := range all {
		c.Put(keyOf(i), valueOf(i, size))
	}
	for range 20 {
		count(t, c, all, size)
		if c.size > limit+limit/4 {
			t.Fatalf("%d bytes, want at most %d", c.size, limit)
		}
	}
}

// TestMemoryLimit: a cache in memory forgets what was not used for long.
func TestMemoryLimit(t *testing.T) {
	c := newCache("", 1<<20)
	for i := range 2000 {
		c.Put(keyOf(i), valueOf(i, 4000))
		count(t, c, 5, 4000)
	}
	if n := count(t, c, 5, 4000); n != 5 {
		t.Errorf("%d of 5 entries in use are there", n)
	}
	total := 0
	for _, packed := range c.memory.young {
		total += len(packed)
	}
	for _, packed := range c.memory.old {
		total += len(packed)
	}
	if total > 1<<20+1<<18 || total < 1<<18 {
		t.Errorf("%d bytes in memory, want about 1 MiB", total)
	}
}

// TestGather: many small segments become one at the next start.
func TestGather(t *testing.T) {
	dir := t.TempDir()
	for i := range 2 * manySegments {
		c := open(t, dir, 1<<30)
		if n := count(t, c, i, 100); n != i {
			t.Fatalf("run %d: %d entries", i, n)
		}
		c.Put(keyOf(i), valueOf(i, 100))
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(segments(t, dir)); n > manySegments+1 {
		t.Errorf("%d segments", n)
	}
}

// TestFolderGone: a cache whose folder was deleted goes on with what it has
// open, or without.
func TestFolderGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	c := open(t, dir, 1<<20)
	for i := range 100 {
		if i == 50 {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}
		c.Put(keyOf(i), valueOf(i, 20_000))
		count(t, c, i, 20_000)
	}
	fresh := open(t, dir, 1<<20)
	fresh.Put(keyOf(1), valueOf(1, 10))
	if n := count(t, fresh, 100, 10); n != 1 || fresh.Err() != nil {
		t.Errorf("a new cache in its place: %d entries, %v", n, fresh.Err())
	}
}

// TestClosed: after Close there is nothing, and nothing is written.
func TestClosed(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []*Cache{Memory(), open(t, dir, 1<<20)} {
		c.Put(keyOf(1), valueOf(1, 10))
		for range 2 {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			c.Put(keyOf(2), valueOf(2, 10))
			if n := count(t, c, 3, 10); n != 0 {
				t.Errorf("%d entries", n)
			}
		}
	}
	if n := len(segments(t, dir)); n != 1 {
		t.Errorf("%d segments, want the 1 of before", n)
	}
}

// TestManyAtOnce uses one folder from several caches and goroutines, with
// eviction going on.
func TestManyAtOnce(t *testing.T) {
	const limit, size, all = 200_000, 1500, 300
	dir := t.TempDir()
	var group sync.WaitGroup
	for worker := range 3 {
		c := open(t, dir, limit)
		for part := range 3 {
			group.Go(func() {
				random := rand.New(rand.NewPCG(uint64(worker), uint64(part)))
				for range 1000 {
					i := random.IntN(all)
					if value, ok := c.Get(keyOf(i)); ok && !bytes.Equal(value, valueOf(i, size)) {
						t.Errorf("entry %d: got %.40q", i, value)
					} else if !ok {
						c.Put(keyOf(i), valueOf(i, size))
					}
				}
			})
		}
		if worker == 1 { // one comes and goes
			group.Go(func() {
				for range 20 {
					short := open(t, dir, limit)
					count(t, short, all, size)
					if err := short.Close(); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	group.Wait()
}

// TestClosedWhileUsed: Close may come at any time, also in the middle of many
// readings. A Get that never returns ends with the test's time.
func TestClosedWhileUsed(t *testing.T) {
	want := valueOf(1, 50_000)
	for range 20 {
		c := open(t, t.TempDir(), 10<<20)
		var group, begun sync.WaitGroup
		for range 8 {
			begun.Add(1)
			group.Go(func() {
				for i := range 50 {
					c.Put(keyOf(i%20), want)
					if value, ok := c.Get(keyOf(i % 20)); ok && !bytes.Equal(value, want) {
						t.Errorf("entry %d: got %.40q", i%20, value)
					}
					if i == 0 {
						begun.Done()
					}
				}
			})
		}
		begun.Wait()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		group.Wait()
	}
}

// TestDiskErrors: in a process that may not write, or whose files may not grow,
// what was there before is read, and nothing goes wrong but the storing.
func TestDiskErrors(t *testing.T) {
	const size = 2000
	if dir := os.Getenv("SWELL_CACHE_DIR"); dir != "" {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 30_000, Max: 30_000}); err != nil {
			t.Fatal(err)
		}
		c := open(t, dir, 1<<20)
		for i := range 100 {
			c.Put(keyOf(i), valueOf(i, size))
		}
		if c.Err() == nil {
			t.Error("no error of a file that may not grow")
		}
		if n := count(t, c, 100, size); n < 20 || n == 100 {
			t.Errorf("%d entries are there, want those before the error and those of the process before", n)
		}
		return
	}
	dir := t.TempDir()
	before := open(t, dir, 1<<20)
	for i := 90; i < 100; i++ {
		before.Put(keyOf(i), valueOf(i, size))
	}
	child := exec.Command(os.Args[0], "-test.run=^TestDiskErrors$")
	child.Env = append(os.Environ(), "SWELL_CACHE_DIR="+dir)
	if out, err := child.CombinedOutput(); err != nil {
		t.Fatalf("%s\n%s", err, out)
	}
	after := open(t, dir, 1<<20) // the last record is there in part
	if n := count(t, after, 100, size); n < 20 || n == 100 {
		t.Errorf("later: %d entries", n)
	}
}

// TestReadOnly: a folder that may not be written to is read.
func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir, 1<<20)
	c.Put(keyOf(0), valueOf(0, 10))
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o700)
	reader := open(t, dir, 1<<20)
	if os.Getuid() == 0 { // may write all the same: take the folder's place
		reader.dir = "/proc/self"
	}
	reader.Put(keyOf(1), valueOf(1, 10))
	if reader.Err() == nil {
		t.Error("no error of a folder that may not be written to")
	}
	if n := count(t, reader, 2, 10); n != 1 {
		t.Errorf("%d entries, want the one that was there", n)
	}
	if _, err := Open(filepath.Join(dir, "00000001.seg", "below"), 1<<20); err == nil {
		t.Error("a folder below a file: no error")
	}
}

// FuzzSegment: whatever a segment holds, an entry has the value that was put.
func FuzzSegment(f *testing.F) {
	whole := written(f, 3, 60)
	f.Add(whole)
	f.Add(whole[:100])
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "00000001.seg"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		c := open(t, dir, 1<<30)
		c.Get(keyOf(0))
		c.Put(keyOf(1), valueOf(1, 60))
		if value, ok := c.Get(keyOf(1)); !ok || !bytes.Equal(value, valueOf(1, 60)) {
			t.Errorf("got %q %t", value, ok)
		}
		if _, ok := c.Get(keyOf(77)); ok && !bytes.Contains(data, keyOf(77).bytes()) {
			t.Error("an entry that is not in the file")
		}
	})
}

func (k Key) bytes() []byte { return k[:] }

// FuzzGet: an entry whose bytes are changed at a place is the entry or nothing.
func FuzzGet(f *testing.F) {
	whole := written(f, 2, 200)
	f.Add(uint16(20), []byte{1})
	f.Add(uint16(60), []byte{0xff, 0x80})
	f.Fuzz(func(t *testing.T, at uint16, change []byte) {
		data := bytes.Clone(whole)
		for i, b := range change {
			if i += int(at); i < len(data) {
				data[i] ^= b
			}
		}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "00000001.seg"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		count(t, open(t, dir, 1<<30), 2, 200)
	})
}
