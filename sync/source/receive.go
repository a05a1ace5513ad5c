// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/objfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/storage/memory"
)

const (
	// A pack of fewer objects than this, and no more bytes, is stored as
	// loose objects, as Git does (fetch.unpackLimit): a year of pushes would
	// make thousands of packs, each to be looked into for each object.
	unpackObjects = 100
	unpackBytes   = 16 << 20
)

// receive downloads one pack and puts its objects into an objects folder. They
// are all there in the end, or none is but for loose objects that nothing
// refers to.
func (s *Source) receive(ctx context.Context, session *conversation, refs *packp.AdvRefs, want plumbing.Hash, haves []plumbing.Hash, dir string) error {
	req, err := request(refs, want, haves)
	if err != nil {
		return err
	}
	session.pace.asksForPack()
	body, err := session.pack(ctx, req)
	if err != nil {
		return err
	}
	defer body.Close()
	f, err := os.CreateTemp(filepath.Join(dir, "pack"), tmpPrefix+"pack_")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()

	sized := &limited{ReadCloser: body, left: s.cfg.MaxFetch}
	if _, err := io.Copy(f, &awaited{demultiplexed(req, sized), session.pace.isComing}); err != nil {
		return fmt.Errorf("download: %w", cause(ctx, err))
	}
	session.pace.isOver()
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := store(packFile{f, ctx.Err}, want, dir, s.cfg.MaxObject); err != nil {
		return fmt.Errorf("downloaded pack: %w", cause(ctx, err))
	}
	s.beside += s.cfg.MaxFetch - sized.left
	return nil
}

// awaited calls begins before its first bytes are handed on.
type awaited struct {
	io.Reader
	begins func()
}

func (a *awaited) Read(p []byte) (int, error) {
	n, err := a.Reader.Read(p)
	if n > 0 && a.begins != nil {
		a.begins()
		a.begins = nil
	}
	return n, err
}

// packFile is a pack to be read from its start. Reading it ends with ctx.
type packFile struct {
	*os.File
	ended func() error
}

func (f packFile) Read(p []byte) (int, error) {
	if err := f.ended(); err != nil {
		return 0, err
	}
	return f.File.Read(p)
}

// store puts the objects of a pack, none larger than limit, into dir.
func store(f packFile, want plumbing.Hash, dir string, limit int64) error {
	count, bytes, err := measure(f, limit)
	if err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if count < unpackObjects && bytes <= unpackBytes {
		return unpack(f, want, dir)
	}
	return index(f, dir)
}

// demultiplexed drops what a server says besides the pack.
func demultiplexed(req *packp.UploadPackRequest, body io.Reader) io.Reader {
	switch {
	case req.Capabilities.Supports(capability.Sideband64k):
		return sideband.NewDemuxer(sideband.Sideband64k, body)
	case req.Capabilities.Supports(capability.Sideband):
		return sideband.NewDemuxer(sideband.Sideband, body)
	}
	return body
}

// measure reads a pack and returns how many objects it has, and their bytes
// when inflated. One larger than limit is an error: go-git would hold it in
// memory, and a few kilobytes of pack can mean gigabytes. Here nothing is kept.
func measure(f packFile, limit int64) (count uint32, bytes int64, err error) {
	scanner := packfile.NewScanner(f)
	_, count, err = scanner.Header()
	if err != nil {
		return 0, 0, err
	}
	for range count {
		header, err := scanner.NextObjectHeader()
		if err != nil {
			return 0, 0, truncated(err)
		}
		size := header.Length
		if size <= limit {
			content, err := scanner.ReadObject()
			if err != nil {
				return 0, 0, truncated(err)
			}
			if header.Type.IsDelta() {
				if size, err = resultSize(content); err != nil {
					return 0, 0, err
				}
			}
			_, err = io.Copy(io.Discard, content)
			if err := errors.Join(err, content.Close()); err != nil {
				return 0, 0, truncated(err)
			}
		}
		if size > limit {
			return 0, 0, fmt.Errorf("an object of %d bytes; at most %d MiB are allowed", size, limit>>20)
		}
		bytes += size
	}
	// go-git's parser takes a pack that ends before its checksum for whole.
	if _, err := scanner.Checksum(); err != nil {
		return 0, 0, truncated(err)
	}
	return count, bytes, nil
}

func truncated(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("ends early: %w", io.ErrUnexpectedEOF)
	}
	return err
}

// index keeps a pack, with an index beside it.
func index(f packFile, dir string) error {
	writer := new(idxfile.Writer)
	parser, err := packfile.NewParser(packfile.NewScanner(f), writer)
	if err != nil {
		return err
	}
	checksum, err := parser.Parse()
	if err != nil {
		return err
	}
	entries, err := writer.Index()
	if err != nil {
		return err
	}
	base := filepath.Join(dir, "pack", "pack-"+checksum.String())
	idx, err := os.CreateTemp(filepath.Join(dir, "pack"), tmpPrefix+"idx_")
	if err != nil {
		return err
	}
	defer os.Remove(idx.Name())
	defer idx.Close()
	buffered := bufio.NewWriter(idx)
	if _, err := idxfile.NewEncoder(buffered).Encode(entries); err != nil {
		return err
	}
	if err := buffered.Flush(); err != nil {
		return err
	}
	// The index makes the pack known, so it comes second.
	if err := keep(f.File, base+".pack", 0o444); err != nil {
		return err
	}
	return keep(idx, base+".idx", 0o444)
}

// unpack keeps each object of a small pack in a file of its own. All are
// checked before the first is written, and the commit that was asked for is
// written last: when it is there, so is all that it needs. The files are not
// synced, as Git's own are not. Those that a machine loses in a crash are found
// to be corrupt, and the store is cloned anew.
func unpack(f packFile, want plumbing.Hash, dir string) error {
	objects := memory.NewStorage().ObjectStorage
	parser, err := packfile.NewParserWithStorage(packfile.NewScanner(f), &objects)
	if err != nil {
		return err
	}
	if _, err := parser.Parse(); err != nil {
		return err
	}
	last := objects.Objects[want]
	delete(objects.Objects, want)
	for _, obj := range objects.Objects {
		if err := writeLoose(obj, dir); err != nil {
			return err
		}
	}
	if last == nil {
		return fmt.Errorf("object %s: %w", want, errMissing)
	}
	return writeLoose(last, dir)
}

func writeLoose(obj plumbing.EncodedObject, dir string) error {
	name := obj.Hash().String()
	path := filepath.Join(dir, name[:2], name[2:])
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Join(dir, "pack"), tmpPrefix+"obj_")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	content, err := obj.Reader()
	if err != nil {
		return err
	}
	defer content.Close()
	w := objfile.NewWriter(f)
	if err := w.WriteHeader(obj.Type(), obj.Size()); err != nil {
		return err
	}
	if _, err := io.Copy(w, content); err != nil {
		return err
	}
	if err := errors.Join(w.Close(), f.Chmod(0o444), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
