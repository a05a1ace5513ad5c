// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package cache keeps results under the address of their inputs. Every result can
// be made again: the cache may be deleted at any time, a damaged entry counts as
// missing, and an error of the disk costs only time.
//
// It never interprets an entry, and never reads a clock.
//
// On disk a cache is a folder of segments, 00000001.seg and so on. A process
// appends to segments that it created itself, and reads all. A segment begins
// with [magic], records follow:
//
//	key      32 bytes
//	length   4 bytes, big-endian, of the payload
//	check    4 bytes, CRC-32C of key and length
//	payload  a zstd frame with its own checksum
//
// There is no compatibility between formats: another magic is another cache.
package cache

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// Key is the address of an entry, a SHA-256 of everything it was made from.
type Key [32]byte

const (
	magic      = "swell cache 1\n"
	headerSize = len(Key{}) + 8
	// maxEntry bounds one payload, packed and unpacked, in bytes. A unit's
	// bundles are far below.
	maxEntry = 1 << 30
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Cache is safe for concurrent use, also by several processes on one folder.
type Cache struct {
	dir   string // empty: in memory
	limit int64

	// Both are used without a stream only. So they run no goroutine, and Close
	// leaves them to the readers and writers that are still on their way: a
	// Decoder that is closed in the middle of DecodeAll blocks it for ever.
	packer   *zstd.Encoder
	unpacker *zstd.Decoder

	mu       sync.Mutex
	entries  map[Key]place
	memory   generations // of a cache without a folder
	segments []*segment  // oldest first; the last one may be current
	current  *segment    // that Put appends to; nil until the first Put
	size     int64       // bytes of all segments
	err      error       // of the first write that failed; there are none after it
	closed   bool
}

// place is where an entry's payload is.
type place struct {
	segment *segment
	offset  int64
	length  uint32
}

// memoryLimit is the size of a cache without a folder, in packed bytes.
const memoryLimit = 512 << 20

// Memory returns a cache that lives as long as the process. It holds half a
// GiB of packed entries; beyond that, those go that were used the longest ago.
func Memory() *Cache { return newCache("", memoryLimit) }

func newCache(dir string, limit int64) *Cache {
	packer, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(runtime.GOMAXPROCS(0)), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(128<<10))
	if err != nil {
		panic(err) // the options are constant
	}
	unpacker, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxEntry))
	if err != nil {
		panic(err)
	}
	return &Cache{dir: dir, limit: limit, packer: packer, unpacker: unpacker, entries: map[Key]place{}}
}

// Open opens or makes the cache in a folder. limit is its size in bytes; when
// it is exceeded, the entries go that were written and used the longest ago.
func Open(dir string, limit int64) (*Cache, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	c := newCache(dir, limit)
	names, err := segmentNames(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		s, err := openSegment(filepath.Join(dir, name))
		if err != nil {
			continue // another process has evicted it, or it cannot be read
		}
		s.scan(func(key Key, at place) { c.entries[key] = at })
		c.segments = append(c.segments, s)
		c.size += s.size
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gatherLocked()
	c.evictLocked()
	return c, nil
}

// Get returns an entry, for the caller to keep. A damaged one is forgotten.
func (c *Cache) Get(key Key) ([]byte, bool) {
	c.mu.Lock()
	at, onDisk := c.entries[key]
	packed := c.memory.get(key, c.limit/2)
	old := onDisk && c.agingLocked(at.segment)
	c.mu.Unlock()
	if !onDisk && packed == nil {
		return nil, false
	}
	var err error
	if onDisk {
		packed = make([]byte, at.length)
		_, err = at.segment.file.ReadAt(packed, at.offset)
	}
	var value []byte
	if err == nil {
		value, err = c.unpacker.DecodeAll(packed, nil)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil:
		if c.entries[key] == at { // not another one by now
			delete(c.entries, key)
		}
		return nil, false
	case old && c.entries[key] == at: // used: keep it for another round
		c.appendLocked(key, packed)
		c.evictLocked()
	}
	return value, true
}

// Put stores an entry, in place of an earlier one of the same key.
func (c *Cache) Put(key Key, value []byte) {
	packed := c.packer.EncodeAll(value, make([]byte, 0, len(value)/4+64))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dir == "" && !c.closed {
		c.memory.put(key, packed, c.limit/2)
		return
	}
	c.appendLocked(key, packed)
	c.evictLocked()
}

func (c *Cache) appendLocked(key Key, packed []byte) {
	if c.closed || c.err != nil || len(packed) > maxEntry {
		return
	}
	if c.current == nil || c.current.size > c.limit/8 {
		if c.current, c.err = createSegment(c.dir); c.err != nil {
			return
		}
		c.segments = append(c.segments, c.current)
		c.size += c.current.size
	}
	at, err := c.current.append(key, packed)
	if c.err = err; err != nil {
		return
	}
	c.size += int64(headerSize) + int64(len(packed))
	c.entries[key] = at
}

// agingLocked says whether a segment is so old that it may soon be evicted.
func (c *Cache) agingLocked(s *segment) bool {
	if c.size < c.limit/2 {
		return false
	}
	for i := range len(c.segments) / 2 {
		if c.segments[i] == s {
			return s != c.current
		}
	}
	return false
}

func (c *Cache) evictLocked() {
	for c.size > c.limit && len(c.segments) > 0 && c.segments[0] != c.current {
		c.dropLocked(c.segments[0])
	}
}

func (c *Cache) dropLocked(s *segment) {
	_ = os.Remove(s.file.Name()) // another process may have been faster
	c.size -= s.size
	for key, at := range c.entries {
		if at.segment == s {
			delete(c.entries, key)
		}
	}
	kept := c.segments[:0]
	for _, other := range c.segments {
		if other != s {
			kept = append(kept, other)
		}
	}
	c.segments = kept // the file is closed once no reader has it any more
}

// manySegments is how many are kept before small ones are gathered into one:
// each short run of the command line leaves one.
const manySegments = 32

func (c *Cache) gatherLocked() {
	if len(c.segments) <= manySegments {
		return
	}
	var small []*segment
	for _, s := range c.segments {
		if s.size < c.limit/64 {
			small = append(small, s)
		}
	}
	for _, s := range small {
		s.scan(func(key Key, at place) {
			packed := make([]byte, at.length)
			if _, err := s.file.ReadAt(packed, at.offset); err == nil && c.entries[key] == at {
				c.appendLocked(key, packed)
			}
		})
		if c.err != nil {
			return
		}
		c.dropLocked(s)
	}
}

// Err is the first error of writing, after which nothing more is stored.
func (c *Cache) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close ends the use of the cache. It has no entries after it, and takes none.
func (c *Cache) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	var errs []error
	for _, s := range c.segments {
		errs = append(errs, s.file.Close())
	}
	c.segments, c.entries, c.current, c.memory = nil, map[Key]place{}, nil, generations{}
	return errors.Join(errs...)
}

func header(key Key, length uint32) [headerSize]byte {
	var h [headerSize]byte
	copy(h[:], key[:])
	binary.BigEndian.PutUint32(h[len(key):], length)
	binary.BigEndian.PutUint32(h[len(key)+4:], crc32.Checksum(h[:len(key)+4], castagnoli))
	return h
}
