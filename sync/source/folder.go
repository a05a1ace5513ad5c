// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"container/list"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/swell-sh/swell/config/document"
)

// folder is a decoded tree object. It is never changed.
type folder struct {
	entries []entry // sorted by name, no two of one name
	// odd is set when there is an entry with an odd name. One that cannot be
	// in a path is not among the entries.
	odd error
}

type entry struct {
	name string
	hash plumbing.Hash
	mode fs.FileMode // type and permissions
}

// find returns nil when there is no such entry.
func (f folder) find(name string) *entry {
	i, ok := slices.BinarySearchFunc(f.entries, name, func(e entry, name string) int { return strings.Compare(e.name, name) })
	if !ok {
		return nil
	}
	return &f.entries[i]
}

// maxName is what file systems take, in bytes.
const maxName = 255

// decodeFolder reads the content of a tree object: for each entry an octal
// mode, a space, the name, a NUL and the 20 bytes of the hash.
//
// A work tree made by Git cannot hold the names refused here either: one of
// them makes the whole folder unreadable. Odd names are those that break the
// one line of a message or cannot be in a path. To leave only such an entry
// out would release something else than what was written, so the folder says
// that it has one.
func decodeFolder(content string) (folder, error) {
	var f folder
	for rest := content; rest != ""; {
		digits, after, ok := strings.Cut(rest, " ")
		name, after, ok2 := strings.Cut(after, "\x00")
		if !ok || !ok2 || len(after) < len(plumbing.ZeroHash) {
			return folder{}, errors.New("malformed tree object")
		}
		mode, err := decodeMode(digits)
		if err != nil {
			return folder{}, fmt.Errorf("entry %q: %w", name, err)
		}
		if err := checkName(name); err != nil {
			return folder{}, err
		}
		rest = after[20:]
		if odd := oddName(name); odd.What != "" {
			if f.odd == nil || !odd.Listed {
				f.odd = odd
			}
			if !odd.Listed {
				continue
			}
		}
		f.entries = append(f.entries, entry{name: name, mode: mode, hash: plumbing.Hash([]byte(after[:20]))})
	}
	// Git sorts a folder as if its name ended in a slash.
	slices.SortFunc(f.entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	for i := 1; i < len(f.entries); i++ {
		if f.entries[i].name == f.entries[i-1].name {
			return folder{}, fmt.Errorf("entry %q: listed twice", f.entries[i].name)
		}
	}
	return f, nil
}

func decodeMode(digits string) (fs.FileMode, error) {
	mode := 0
	for _, d := range digits {
		if d < '0' || d > '7' || len(digits) > 7 {
			return 0, fmt.Errorf("malformed mode %q", digits)
		}
		mode = mode<<3 | int(d-'0')
	}
	switch mode & 0o170000 {
	case 0o040000:
		return fs.ModeDir | 0o555, nil
	case 0o100000:
		return 0o444 | fs.FileMode(mode&0o111), nil
	case 0o120000:
		return fs.ModeSymlink | 0o444, nil
	case 0o160000:
		return fs.ModeIrregular | 0o444, nil
	}
	return 0, fmt.Errorf("mode %q: want a file, a folder, a link or a submodule", digits)
}

func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("an entry without a name")
	case name == "." || name == ".." || strings.EqualFold(name, ".git") || strings.Contains(name, "/"):
		return fmt.Errorf("entry %q: not allowed as a name", name)
	}
	return nil
}

// oddName says what is odd about a name; empty for most.
func oddName(name string) document.OddName {
	switch {
	case !utf8.ValidString(name):
		return document.OddName{What: fmt.Sprintf("entry %q: name is not UTF-8", name)}
	case len(name) > maxName:
		return document.OddName{What: fmt.Sprintf("entry %q...: name of %d bytes; at most %d are allowed", name[:16], len(name), maxName)}
	case strings.ContainsFunc(name, unprintable):
		return document.OddName{What: fmt.Sprintf("entry %q: control character in name", name), Listed: true}
	}
	return document.OddName{}
}

// unprintable are the characters that change how the text around them looks.
func unprintable(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }

// kind names what cannot be read.
func (e *entry) kind() string {
	switch e.mode.Type() {
	case fs.ModeDir:
		return "a folder"
	case fs.ModeSymlink:
		return "a symbolic link"
	case fs.ModeIrregular:
		return "a submodule"
	}
	return "a file"
}

// maxFolders bounds the decoded folders kept, by their size in memory. With
// 100,000 files in 20,000 folders they take 15 MiB.
const maxFolders = 64 << 20

// folders are the decoded folders used last, by hash. A commit shares most of
// them with the one before it.
type folders struct {
	mu     sync.Mutex
	recent list.List // of *cachedFolder, used last first
	byHash map[plumbing.Hash]*list.Element
	bytes  int
}

type cachedFolder struct {
	hash  plumbing.Hash
	bytes int
	folder
}

func (c *folders) get(h plumbing.Hash) (folder, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.byHash[h]
	if !ok {
		return folder{}, false
	}
	c.recent.MoveToFront(at)
	return at.Value.(*cachedFolder).folder, true
}

func (c *folders) put(h plumbing.Hash, f folder) {
	bytes := 256 // of the bookkeeping
	for i := range f.entries {
		bytes += 48 + len(f.entries[i].name) + 28 // the entry, and the content its name is a part of
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.byHash[h]; ok {
		return
	}
	if c.byHash == nil {
		c.byHash = map[plumbing.Hash]*list.Element{}
	}
	c.byHash[h] = c.recent.PushFront(&cachedFolder{h, bytes, f})
	for c.bytes += bytes; c.bytes > maxFolders; {
		last := c.recent.Remove(c.recent.Back()).(*cachedFolder)
		delete(c.byHash, last.hash)
		c.bytes -= last.bytes
	}
}

// folder returns a tree object, decoded.
func (s *Source) folder(h plumbing.Hash) (folder, error) {
	if f, ok := s.folders.get(h); ok {
		return f, nil
	}
	f, err := s.objects.folder(h)
	if err != nil {
		return folder{}, s.note(err)
	}
	s.folders.put(h, f)
	return f, nil
}

// note remembers that our own store needs to be cloned anew.
func (s *Source) note(err error) error {
	if of, ok := errors.AsType[*objectError](err); ok && IsDamage(err) {
		s.damaged.Store(of.generation)
	}
	return err
}

func (o *objects) folder(h plumbing.Hash) (folder, error) {
	obj, err := o.read(h, plumbing.TreeObject, maxFolder)
	if err != nil {
		return folder{}, err
	}
	var content strings.Builder
	content.Grow(int(obj.Size()))
	r, err := obj.Reader()
	if err != nil {
		return folder{}, err
	}
	defer r.Close()
	if _, err := io.Copy(&content, r); err != nil {
		return folder{}, err
	}
	return decodeFolder(content.String())
}
