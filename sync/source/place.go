// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/objfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// place is where an object lies.
type place interface {
	size() (int64, error)
	read(plumbing.Hash) (plumbing.EncodedObject, error)
}

// pack is a pack file, opened at its first use and then kept open.
type pack struct {
	base   string // its path without extension
	index  *idxfile.MemoryIndex
	reader *packfile.Packfile
	// indexFile and packFile are the files that were read; nil before.
	indexFile, packFile fs.FileInfo
}

// isReplaced says whether other files have its names by now: a pack that is written anew
// with the same objects has the same name, and the objects stand elsewhere in it.
func (p *pack) isReplaced() bool {
	return isOther(p.base+".idx", p.indexFile) || p.packFile != nil && isOther(p.base+".pack", p.packFile)
}

func isOther(name string, before fs.FileInfo) bool {
	now, err := os.Stat(name)
	return err != nil || !os.SameFile(now, before) || now.Size() != before.Size() || !now.ModTime().Equal(before.ModTime())
}

func readPack(base string) (*pack, error) {
	f, err := os.Open(base + ".idx")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	index := idxfile.NewMemoryIndex()
	if err := idxfile.NewDecoder(f).Decode(index); err != nil {
		return nil, err
	}
	return &pack{base: base, index: index, indexFile: info}, nil
}

func (p *pack) open(cache cache.Object) error {
	if p.reader != nil {
		return nil
	}
	f, err := os.Open(p.base + ".pack")
	if err != nil {
		return err
	}
	if p.packFile, err = f.Stat(); err != nil {
		return errors.Join(err, f.Close())
	}
	// Without a file system at hand go-git inflates an object whole and at
	// once. With one it may do so later, outside the mutex of objects.
	p.reader = packfile.NewPackfileWithCache(p.index, nil, gitFile{f}, cache, 0)
	return nil
}

func (p *pack) close() error {
	if p.reader == nil {
		return nil
	}
	err := p.reader.Close()
	p.reader = nil
	return err
}

// gitFile is what go-git wants a file to be. None is ever locked.
type gitFile struct{ *os.File }

func (gitFile) Lock() error   { return nil }
func (gitFile) Unlock() error { return nil }

// packed is an object in an open pack.
type packed struct {
	*pack
	offset int64
}

func (p packed) read(h plumbing.Hash) (plumbing.EncodedObject, error) { return p.reader.Get(h) }

func (p packed) size() (int64, error) { return sizeAt(p.reader.Scanner(), p.offset) }

// sizeAt returns the inflated size of the object at an offset of a pack. For a
// delta that is its result's, found in the first bytes of the delta.
func sizeAt(scanner *packfile.Scanner, offset int64) (int64, error) {
	header, err := scanner.SeekObjectHeader(offset)
	if err != nil {
		return 0, err
	}
	if !header.Type.IsDelta() {
		return header.Length, nil
	}
	delta, err := scanner.ReadObject()
	if err != nil {
		return 0, err
	}
	defer delta.Close()
	return resultSize(delta)
}

// resultSize reads the two sizes that a delta begins with, of its base and of
// its result, and returns the second.
func resultSize(delta io.Reader) (int64, error) {
	r := bufio.NewReaderSize(delta, 16)
	if _, err := binary.ReadUvarint(r); err != nil {
		return 0, fmt.Errorf("delta: size of base: %w", err)
	}
	size, err := binary.ReadUvarint(r)
	if err == nil && int64(size) < 0 {
		err = errors.New("out of range")
	}
	if err != nil {
		return 0, fmt.Errorf("delta: size of result: %w", err)
	}
	return int64(size), nil
}

// loose is the file of a loose object.
type loose string

func (l loose) open() (*os.File, *objfile.Reader, plumbing.ObjectType, int64, error) {
	f, err := os.Open(string(l))
	if err != nil {
		return nil, nil, 0, 0, err
	}
	r, err := objfile.NewReader(bufio.NewReader(f))
	if err != nil {
		f.Close()
		return nil, nil, 0, 0, err
	}
	t, size, err := r.Header()
	if err == nil && size < 0 {
		err = objfile.ErrNegativeSize
	}
	if err != nil {
		r.Close()
		f.Close()
		return nil, nil, 0, 0, err
	}
	return f, r, t, size, nil
}

func (l loose) size() (int64, error) {
	f, r, _, size, err := l.open()
	if err != nil {
		return 0, err
	}
	r.Close()
	return size, f.Close()
}

func (l loose) read(plumbing.Hash) (plumbing.EncodedObject, error) {
	f, r, t, size, err := l.open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	defer r.Close()
	content := make([]byte, size)
	if _, err := io.ReadFull(r, content); err != nil {
		return nil, err
	}
	obj := &plumbing.MemoryObject{}
	obj.SetType(t)
	_, err = obj.Write(content)
	return obj, err
}
