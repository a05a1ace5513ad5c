// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/google/go-cmp/cmp"
)

// fakeServer says that main is at tip and sends pack whatever it is asked for.
func fakeServer(t *testing.T, tip, pack string) *server {
	t.Helper()
	s := &server{}
	line := func(w io.Writer, text string) { fmt.Fprintf(w, "%04x%s", len(text)+4, text) }
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.seen = append(s.seen, r.Method)
		s.mu.Unlock()
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			line(w, "# service=git-upload-pack\n")
			io.WriteString(w, "0000")
			line(w, tip+" HEAD\x00ofs-delta symref=HEAD:refs/heads/main\n")
			line(w, tip+" refs/heads/main\n")
			io.WriteString(w, "0000")
			return
		}
		w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		line(w, "NAK\n")
		io.WriteString(w, pack)
	}))
	t.Cleanup(s.Close)
	return s
}

// packObject is one of a pack made by hand.
type packObject struct {
	kind    int // 1 commit, 2 tree, 3 blob, 7 delta with the hash of its base
	base    string
	size    int // as the header says; 0 is the length of content
	content string
}

func makePack(objects ...packObject) string {
	var pack bytes.Buffer
	pack.WriteString("PACK")
	binary.Write(&pack, binary.BigEndian, []uint32{2, uint32(len(objects))})
	for _, o := range objects {
		size := o.size
		if size == 0 {
			size = len(o.content)
		}
		first := byte(o.kind<<4 | size&15)
		for size >>= 4; size > 0; size >>= 7 {
			pack.WriteByte(first | 0x80)
			first = byte(size & 0x7f)
		}
		pack.WriteByte(first)
		base, _ := hex.DecodeString(o.base)
		pack.Write(base)
		w := zlib.NewWriter(&pack)
		io.WriteString(w, o.content)
		w.Close()
	}
	sum := sha1.Sum(pack.Bytes())
	pack.Write(sum[:])
	return pack.String()
}

func hashObject(kind, content string) string {
	return fmt.Sprintf("%x", sha1.Sum(fmt.Appendf(nil, "%s %d\x00%s", kind, len(content), content)))
}

func treeObject(mode, name, hash string) string {
	raw, _ := hex.DecodeString(hash)
	return mode + " " + name + "\x00" + string(raw)
}

func commitObject(tree string) string {
	const who = "Ann <ann@example.com> 1700000000 +0000"
	return "tree " + tree + "\nauthor " + who + "\ncommitter " + who + "\n\nhello\n"
}

// Packs that no honest server sends: one clear error each, in little memory,
// and nothing of them is kept.
func TestReceiveRefuses(t *testing.T) {
	blob := hashObject("blob", "content")
	tree := treeObject("100644", "file", blob)
	commit := commitObject(hashObject("tree", tree))
	tip := hashObject("commit", commit)
	good := []packObject{{kind: 1, content: commit}, {kind: 2, content: tree}, {kind: 3, content: "content"}}
	uvarint := func(n ...uint64) string {
		var b []byte
		for _, n := range n {
			b = binary.AppendUvarint(b, n)
		}
		return string(b)
	}
	const limit = 1 << 20
	for name, test := range map[string]struct {
		pack string
		want string
	}{
		"good":                      {makePack(good...), ""},
		"checksum":                  {makePack(good...)[:len(makePack(good...))-1] + "x", `checksum mismatch`},
		"cut":                       {makePack(good...)[:60], `ends early`},
		"no trailer":                {strings.TrimSuffix(makePack(good...), makePack(good...)[len(makePack(good...))-20:]), `ends early: unexpected EOF$`},
		"count too high":            {strings.Replace(makePack(good...), "\x00\x00\x00\x03", "\x00\x00\x00\x09", 1), `downloaded pack: `},
		"count absurd":              {strings.Replace(makePack(good...), "\x00\x00\x00\x03", "\xff\xff\xff\xff", 1), `downloaded pack: `},
		"version":                   {strings.Replace(makePack(good...), "\x00\x00\x00\x02", "\x00\x00\x00\x03", 1), `unsupported packfile version`},
		"large":                     {makePack(append(good, packObject{kind: 3, content: strings.Repeat("0", limit+1)})...), `an object of 1048577 bytes; at most 1 MiB are allowed`},
		"large by its header":       {makePack(append(good, packObject{kind: 3, size: 1 << 40, content: "small"})...), `an object of 1099511627776 bytes`},
		"more than its header says": {makePack(append(good, packObject{kind: 3, size: 5, content: "too many bytes"})...), `inflated object exceeds declared size`},
		"delta of a large result":   {makePack(append(good, packObject{kind: 7, base: blob, content: uvarint(7, limit+1) + "\x90\x07"})...), `an object of 1048577 bytes`},
		"delta without a base":      {makePack(append(good, packObject{kind: 7, base: strings.Repeat("12", 20), content: uvarint(7, 7) + "\x90\x07"})...), `downloaded pack: .*(not found|reference)`},
		"delta beyond its base":     {makePack(append(good, packObject{kind: 7, base: blob, content: uvarint(7, 9) + "\x90\x09"})...), `downloaded pack: `},
		"delta of nothing":          {makePack(append(good, packObject{kind: 7, base: blob, content: ""})...), `delta: size of base`},
		"unknown kind":              {makePack(append(good, packObject{kind: 5, content: "x"})...), `downloaded pack: `},
		"without the commit":        {makePack(good[1:]...), `object ` + tip + `: not in the repository`},
		"without the root folder":   {makePack(good[0], good[2]), `not in the repository`},
		"no objects":                {makePack(), `object ` + tip + `: not in the repository`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := follow(t, Config{URL: fakeServer(t, tip, test.pack).url(), Dir: dir, MaxObject: limit})
			got, err := s.Fetch(t.Context())
			if test.want == "" {
				if diff := cmp.Diff(map[string]string{"file": "content"}, files(t, s, got)); err != nil || diff != "" {
					t.Error(err, diff)
				}
				return
			}
			if err == nil {
				t.Fatalf("Fetch = %s, want an error", got)
			}
			checkMessage(t, err, test.want)
			if left := leftovers(t, dir); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			if last := s.last("main"); !last.IsZero() {
				t.Errorf("accepted %s", last)
			}
		})
	}
}

func TestReceiveTooMuch(t *testing.T) {
	c := newClone(t)
	good := c.commit("a", "1")
	c.push()
	srv := serve(t, c)
	dir := t.TempDir()
	s := follow(t, Config{URL: srv.url(), Dir: dir, MaxFetch: 4 << 10})
	fetch(t, s)
	c.commit("b", incompressible(16<<10))
	c.push()
	_, err := s.Fetch(t.Context())
	checkMessage(t, err, `fetch: download: the server sends more than is allowed$`)
	files(t, s, good)
	if left := leftovers(t, dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// incompressible is n digits or a few more, which take half as many bytes.
func incompressible(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%x", sha1.Sum(fmt.Appendf(nil, "%d", i)))
	}
	return b.String()
}

// The same repository gives the same store whether its deltas name their base
// by hash or by place, and whether it comes as a pack or loose.
func TestReceiveDeltas(t *testing.T) {
	c := newClone(t)
	text := incompressible(4 << 10)
	want := map[string]string{}
	var list []string
	for i := range 150 {
		name := fmt.Sprintf("f%03d", i)
		want[name] = text + name
		list = append(list, name, want[name])
	}
	tip := string(c.commit(list...))
	revs := git(t, c.dir, "rev-list", "--objects", "--no-object-names", "HEAD")
	for name, args := range map[string][]string{
		"by place": {"--delta-base-offset"},
		"by hash":  {},
		"no delta": {"--window=0"},
	} {
		t.Run(name, func(t *testing.T) {
			pack := gitOutput(t, c.dir, revs, append([]string{"pack-objects", "--stdout", "-q"}, args...)...)
			dir := t.TempDir()
			s := follow(t, Config{URL: fakeServer(t, tip, pack).url(), Dir: dir})
			if diff := cmp.Diff(want, files(t, s, fetch(t, s))); diff != "" {
				t.Error(diff)
			}
			git(t, dir, "--git-dir", dir, "fsck", "--full", "--strict")
		})
	}
}

// Whatever is sent, it is an error or a set of objects, and takes no more
// memory than its objects may.
func FuzzStore(f *testing.F) {
	blob := hashObject("blob", "content")
	tree := treeObject("100644", "file", blob)
	commit := commitObject(hashObject("tree", tree))
	want := plumbing.NewHash(hashObject("commit", commit))
	objects := []packObject{{kind: 1, content: commit}, {kind: 2, content: tree}, {kind: 3, content: "content"}}
	f.Add([]byte(makePack(objects...)), true)
	f.Add([]byte(makePack(append(objects, packObject{kind: 7, base: blob, content: "\x07\x07\x90\x07"})...)), false)
	f.Add([]byte(makePack(append(objects, packObject{kind: 6, base: "10", content: "\x07\x07\x90\x07"})...)), true)
	f.Fuzz(func(t *testing.T, pack []byte, keep bool) {
		// Most changes make the checksum wrong, which hides what is behind it.
		if len(pack) > 32 {
			sum := sha1.Sum(pack[:len(pack)-20])
			copy(pack[len(pack)-20:], sum[:])
		}
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "pack"), 0o755); err != nil {
			t.Fatal(err)
		}
		file, err := os.Create(filepath.Join(dir, "pack", "tmp_pack"))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if _, err := file.Write(pack); err != nil {
			t.Fatal(err)
		}
		at := packFile{file, t.Context().Err}
		if _, err := at.Seek(0, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		if !keep {
			if store(at, want, dir, 1<<16) != nil {
				return
			}
		} else {
			if _, _, err := measure(at, 1<<16); err != nil {
				return
			}
			at.Seek(0, io.SeekStart)
			if index(at, dir) != nil {
				return
			}
		}
		o := newObjects([]string{dir})
		defer o.close()
		hashes, err := o.withPrefix("00")
		for _, h := range hashes {
			o.read(h, plumbing.AnyObject, 1<<16)
		}
		if err != nil {
			t.Error(err)
		}
		o.read(want, plumbing.CommitObject, 1<<16)
	})
}
