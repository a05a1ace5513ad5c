// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/object"
)

const (
	// cacheSize bounds the inflated objects kept, most of all the bases that
	// others are deltas of, in bytes of content: small ones take three times as
	// much. 64 MiB are not faster for 100,000 files, 12 MiB half as fast:
	// BenchmarkSource.
	cacheSize = 24 << 20

	maxCommit = 4 << 20  // bytes; also for tags
	maxFolder = 64 << 20 // bytes of one tree object, about a million entries
)

// Both are damage: in our own store they mean that it must be cloned anew.
var (
	errMissing = errors.New("not in the repository")
	errCorrupt = errors.New("corrupt")
)

// IsDamage says that objects of a store are missing or corrupt. For one of [OpenBeside],
// deleting it helps.
func IsDamage(err error) bool { return errors.Is(err, errMissing) || errors.Is(err, errCorrupt) }

// objects reads the object folders of a repository: loose objects and packs.
//
// It stands where go-git's own filesystem storage would, for four reasons.
// That one reads the list of packs once, and after a change of the folder reads
// all indexes again instead of the new one; it does not look up sizes in
// alternates; it inflates a whole delta to learn its size; and it returns what
// a pack's index says is there, whereas here every object's content is held
// against its name.
type objects struct {
	mu     sync.Mutex // go-git's readers are not safe for concurrent use, not even for reads
	dirs   []string   // own folder first, then alternates
	packs  []*pack    // the one that had the last object first
	loaded bool       // packs have been listed
	closed bool
	cache  *cache.ObjectLRU

	// generation is counted up when other objects take the place of these. It
	// starts at 1.
	generation atomic.Int64
}

func newObjects(dirs []string) *objects {
	o := &objects{dirs: dirs, cache: cache.NewObjectLRU(cacheSize)}
	o.generation.Store(1)
	return o
}

// read returns an object of type want. It is an error when it holds more than
// limit bytes, found before it is inflated.
func (o *objects) read(h plumbing.Hash, want plumbing.ObjectType, limit int64) (plumbing.EncodedObject, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	obj, err := o.readLocked(h, limit)
	if IsDamage(err) && o.dropReplacedLocked() {
		obj, err = o.readLocked(h, limit)
	}
	if err != nil {
		return nil, err
	}
	if want != plumbing.AnyObject && obj.Type() != want {
		return nil, fmt.Errorf("object %s: is a %s, not a %s", h, obj.Type(), want)
	}
	if obj.Size() > limit {
		return nil, &tooLargeError{obj.Size(), limit}
	}
	return obj, nil
}

func (o *objects) readLocked(h plumbing.Hash, limit int64) (plumbing.EncodedObject, error) {
	if obj, ok := o.cache.Get(h); ok {
		return obj, nil
	}
	at, err := o.findLocked(h)
	if err != nil {
		return nil, o.failed(h, err)
	}
	size, err := at.size()
	if err != nil {
		return nil, o.failed(h, err)
	}
	if size > limit {
		return nil, &tooLargeError{size, limit}
	}
	obj, err := at.read(h)
	if err != nil {
		return nil, o.failed(h, err)
	}
	// Hash is computed from the content, once: of what is returned it is
	// read only, so an object can be shared.
	if obj.Hash() != h {
		return nil, o.failed(h, fmt.Errorf("%w: its content has the hash %s", errCorrupt, obj.Hash()))
	}
	o.cache.Put(obj)
	return obj, nil
}

// dropReplacedLocked forgets the packs whose files somebody replaced, and says whether there
// were any.
func (o *objects) dropReplacedLocked() (dropped bool) {
	o.packs = slices.DeleteFunc(o.packs, func(p *pack) bool {
		if !p.isReplaced() {
			return false
		}
		dropped = true
		_ = p.close() // it was only read
		return true
	})
	if dropped {
		o.loaded = false
		o.cache.Clear() // what deltas were built on
	}
	return dropped
}

// size returns the bytes of an object, without inflating it.
func (o *objects) size(h plumbing.Hash) (int64, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	size, err := o.sizeLocked(h)
	if IsDamage(err) && o.dropReplacedLocked() {
		size, err = o.sizeLocked(h)
	}
	return size, err
}

func (o *objects) sizeLocked(h plumbing.Hash) (int64, error) {
	if obj, ok := o.cache.Get(h); ok {
		return obj.Size(), nil
	}
	at, err := o.findLocked(h)
	if err == nil {
		var size int64
		if size, err = at.size(); err == nil {
			return size, nil
		}
	}
	return 0, o.failed(h, err)
}

func (o *objects) has(h plumbing.Hash) (bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, err := o.findLocked(h)
	if errors.Is(err, errMissing) {
		return false, nil
	}
	return err == nil, err
}

// commit decodes a commit. One with a header twice is refused: Git takes the
// first of them, other readers the last, and a signature can be made for either.
func (o *objects) commit(h plumbing.Hash) (*object.Commit, error) {
	obj, err := o.read(h, plumbing.CommitObject, maxCommit)
	if err != nil {
		return nil, err
	}
	c, err := object.DecodeCommit(nil, obj)
	if err == nil {
		err = checkHeaders(obj)
	}
	if err != nil {
		return nil, fmt.Errorf("object %s: %w", h, err)
	}
	return c, nil
}

// checkHeaders wants tree, parents, author and committer in this order, and
// none of them after another header. go-git drops what is out of place.
func checkHeaders(commit plumbing.EncodedObject) error {
	r, err := commit.Reader()
	if err != nil {
		return err
	}
	defer r.Close()
	content, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	order := []string{"tree", "parent", "author", "committer"}
	at := -1
	for line := range strings.Lines(string(content)) {
		key, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if line == "\n" {
			break // the message follows
		}
		if key == "" {
			continue // the header before goes on
		}
		place := slices.Index(order, key)
		if place >= 0 && (place < at || place == at && key != "parent") {
			return fmt.Errorf("malformed commit: header %q is out of place", key)
		}
		if at = place; at < 0 {
			at = len(order)
		}
	}
	return nil
}

// check reads a commit and its root folder. What lies deeper is found to be
// damaged when it is read.
func (o *objects) check(h plumbing.Hash) error {
	c, err := o.commit(h)
	if err != nil {
		return err
	}
	_, err = o.read(c.TreeHash, plumbing.TreeObject, maxFolder)
	return err
}

// withPrefix lists the objects whose name begins with 4 to 40 digits.
func (o *objects) withPrefix(digits string) ([]plumbing.Hash, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.refreshLocked(); err != nil {
		return nil, err
	}
	found := map[plumbing.Hash]bool{}
	for _, p := range o.packs {
		entries, err := p.index.Entries()
		if err != nil {
			return nil, err
		}
		for entry, err := entries.Next(); err == nil; entry, err = entries.Next() {
			if strings.HasPrefix(entry.Hash.String(), digits) {
				found[entry.Hash] = true
			}
		}
	}
	for _, dir := range o.dirs {
		names, err := os.ReadDir(filepath.Join(dir, digits[:2]))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, name := range names {
			if full := digits[:2] + name.Name(); plumbing.IsHash(full) && strings.HasPrefix(full, digits) {
				found[plumbing.NewHash(full)] = true
			}
		}
	}
	hashes := make([]plumbing.Hash, 0, len(found))
	for h := range found {
		hashes = append(hashes, h)
	}
	plumbing.HashesSort(hashes)
	return hashes, nil
}

// refresh finds packs that were added or removed since.
func (o *objects) refresh() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.refreshLocked()
}

// use reads from other folders from now on.
func (o *objects) use(dirs []string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dirs = dirs
	return o.refreshLocked()
}

// replace runs swap while no file of the folders is open, and then forgets
// everything that was known of them.
func (o *objects) replace(swap func() error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	err := o.releaseLocked()
	o.cache.Clear()
	o.generation.Add(1)
	return errors.Join(err, swap())
}

func (o *objects) close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.cache.Clear()
	return o.releaseLocked()
}

func (o *objects) releaseLocked() error {
	var errs []error
	for _, p := range o.packs {
		errs = append(errs, p.close())
	}
	o.packs, o.loaded = nil, false
	return errors.Join(errs...)
}

func (o *objects) refreshLocked() error {
	if o.closed {
		return fs.ErrClosed
	}
	known := map[string]*pack{}
	for _, p := range o.packs {
		known[p.base] = p
	}
	var packs []*pack
	for _, dir := range o.dirs {
		names, err := os.ReadDir(filepath.Join(dir, "pack"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, name := range names {
			base, ok := strings.CutSuffix(name.Name(), ".idx") // written last, so its pack is there
			if !ok || !strings.HasPrefix(base, "pack-") {
				continue
			}
			base = filepath.Join(dir, "pack", base)
			p := known[base]
			if p == nil {
				if p, err = readPack(base); errors.Is(err, fs.ErrNotExist) {
					continue // repacked by somebody meanwhile
				} else if err != nil {
					return fmt.Errorf("%w: %s.idx: %w", errCorrupt, filepath.Base(base), err)
				}
			}
			delete(known, base)
			packs = append(packs, p)
		}
	}
	var errs []error
	for _, gone := range known {
		errs = append(errs, gone.close())
	}
	o.packs, o.loaded = packs, true
	return errors.Join(errs...)
}

// findLocked looks in packs, then for a loose object, and then once more after
// looking for packs that somebody else wrote.
func (o *objects) findLocked(h plumbing.Hash) (place, error) {
	for fresh := false; ; fresh = true {
		if fresh || !o.loaded {
			if err := o.refreshLocked(); err != nil {
				return nil, err
			}
		}
		for i, p := range o.packs {
			offset, err := p.index.FindOffset(h)
			if errors.Is(err, plumbing.ErrObjectNotFound) {
				continue
			}
			if err == nil {
				err = p.open(o.cache)
			}
			if errors.Is(err, fs.ErrNotExist) {
				continue // repacked by somebody meanwhile
			}
			copy(o.packs[1:i+1], o.packs[:i])
			o.packs[0] = p
			return packed{p, offset}, err
		}
		name := h.String()
		for _, dir := range o.dirs {
			file := filepath.Join(dir, name[:2], name[2:])
			switch _, err := os.Stat(file); {
			case err == nil:
				return loose(file), nil
			case !errors.Is(err, fs.ErrNotExist):
				return nil, err
			}
		}
		if fresh {
			return nil, errMissing
		}
	}
}

// objectError is about one object. What the decoders of go-git complain of is
// damage; what the operating system refuses is not.
type objectError struct {
	hash       plumbing.Hash
	generation int64
	err        error
}

func (o *objects) failed(h plumbing.Hash, err error) error {
	_, refused := errors.AsType[*fs.PathError](err)
	if !IsDamage(err) && !refused && !errors.Is(err, fs.ErrClosed) {
		err = fmt.Errorf("%w: %w", errCorrupt, err)
	}
	return &objectError{h, o.generation.Load(), err}
}

func (e *objectError) Error() string { return fmt.Sprintf("object %s: %s", e.hash, e.err) }
func (e *objectError) Unwrap() error { return e.err }

// tooLargeError is an object that was not read. It is no damage.
type tooLargeError struct{ size, limit int64 }

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("%d bytes; at most %d MiB are read", e.size, e.limit>>20)
}
