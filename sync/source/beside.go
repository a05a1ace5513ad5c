// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/swell-sh/swell/config"
)

// maxBeside is how many bytes a store beside another one may have. One that has more begins
// anew when it is opened: all that is in it can be fetched again.
const maxBeside = 2 << 30

// IsFull says that a store beside another one should be opened anew. It is for the goroutine
// that fetches.
func (s *Source) IsFull() bool { return s.beside > maxBeside }

// OpenBeside opens a store of its own, in cfg.Dir, for commits that are not on the branch
// followed, such as those of pull requests. What the store in the folder main has is read
// there, and may be written by another process. A repository on this machine is read in
// place, as by [Open].
func OpenBeside(cfg Config, main string) (*Source, error) {
	if at, err := parseURL(cfg.URL); err != nil || at.local != "" {
		cfg.Dir = ""
		return Open(cfg)
	}
	size, err := makeBeside(cfg.Dir, main)
	if err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	s, err := Open(cfg)
	if err == nil {
		s.beside = size
	}
	return s, err
}

// makeBeside makes a store, or leaves one that there is, and returns its size in bytes.
func makeBeside(dir, main string) (size int64, err error) {
	if err := checkOurs(dir); err != nil {
		return 0, err
	}
	if size, err = sizeOf(dir); err != nil || size > maxBeside {
		if err := errors.Join(err, os.RemoveAll(dir)); err != nil {
			return 0, err
		}
		size = 0
	}
	if err := makeStore(dir); err != nil {
		return 0, err
	}
	if main, err = filepath.Abs(main); err != nil {
		return 0, err
	}
	info := filepath.Join(dir, objectsDir, "info")
	if err := os.MkdirAll(info, 0o700); err != nil {
		return 0, err
	}
	return size, writeFile(filepath.Join(info, "alternates"), filepath.Join(main, objectsDir)+"\n")
}

// sizeOf is the bytes of all files below a folder, which need not be there.
func sizeOf(dir string) (size int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return size, nil
	}
	return size, err
}

// FetchRef returns the commit of a ref by its full name, such as refs/pull/7/head, with its
// objects on disk. known is a commit that is there with its whole history. [ErrNoRevision]
// means that there is no such ref. It changes nothing of what is followed.
func (s *Source) FetchRef(ctx context.Context, ref string, known config.Commit) (config.Commit, error) {
	done, err := s.beginFetch(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	fetch := s.downloadRef
	if s.remote == nil {
		fetch = s.localRef
	}
	h, err := fetch(ctx, plumbing.ReferenceName(ref), known)
	if err != nil {
		return "", s.wrap("fetch "+ref, err)
	}
	return commitOf(h), nil
}

func (s *Source) localRef(_ context.Context, ref plumbing.ReferenceName, _ config.Commit) (plumbing.Hash, error) {
	repo, err := s.findLocal()
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if err := s.use(repo); err != nil {
		return plumbing.ZeroHash, err
	}
	_, h, err := repo.ref(ref)
	if errors.Is(err, errNoRef) {
		return h, ErrNoRevision
	}
	if err != nil {
		return h, err
	}
	return h, s.objects.check(h)
}

func (s *Source) downloadRef(ctx context.Context, ref plumbing.ReferenceName, known config.Commit) (_ plumbing.Hash, err error) {
	session, err := s.converse(ctx)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	defer session.close()
	defer func() { err = session.pace.explain(ctx, err) }()
	refs, err := session.refs(ctx)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	h, ok := refs.References[ref.String()]
	if !ok || h.IsZero() {
		return h, ErrNoRevision
	}
	if err := s.objects.refresh(); err != nil { // the other store may have more by now
		return h, err
	}
	if have, err := s.objects.has(h); err != nil || have {
		return h, err
	}
	var haves []plumbing.Hash
	if from, err := hashOf(known); err == nil {
		haves = s.back(from, nil)
	}
	if err := s.receive(ctx, session, refs, h, haves, filepath.Join(s.cfg.Dir, objectsDir)); err != nil {
		return h, err
	}
	if err := s.objects.refresh(); err != nil {
		return h, err
	}
	return h, s.objects.check(h)
}
