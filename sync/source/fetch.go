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
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"

	"github.com/swell-sh/swell/config"
)

// following is what a fetch knows from the ones before it.
type following struct {
	accepted

	// held is a commit that was refused with ErrRewound while against was the
	// one accepted, so that the next poll need not walk the history again.
	held, against plumbing.Hash

	// passed is the commit that was last found to be one to follow.
	passed plumbing.Hash

	// anew is the commit the store was last cloned anew for, so that a
	// repository that is itself damaged is not cloned at each poll.
	anew plumbing.Hash
}

// Fetch returns the newest commit of the branch, with its objects on disk. It
// asks the server for its list of refs, and only when the branch has moved
// there does it download, and then only what is missing.
//
// An error changes nothing: the commit returned last stays the one to follow,
// and stays readable. [ErrRewound] and [ErrBranchGone] are told from other
// errors with errors.Is, and so is the end of ctx. Everything else may go away
// by itself. A store with missing or corrupt objects is not an error: it is
// cloned anew, next to the old one, once for each place of the branch.
//
// A server that sends nothing for [Config.Stall], or next to nothing for a minute, is an error,
// and so is one that prepares a pack for ten. One that gets on may take as long as ctx lets it.
// A server that is busy and says for how long is a [Busy].
func (s *Source) Fetch(ctx context.Context) (config.Commit, error) {
	done, err := s.beginFetch(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	fetch := s.fetchRemote
	if s.remote == nil {
		fetch = s.fetchLocal
	}
	h, err := fetch(ctx)
	if err != nil {
		return "", s.wrap("fetch", err)
	}
	return commitOf(h), nil
}

// Hurry ends a fetch under way whose server does not get on, so that it can be asked anew. It
// is safe for concurrent use.
func (s *Source) Hurry() {
	if p := s.talking.Load(); p != nil {
		p.hurry(time.Now())
	}
}

// beginFetch waits until no other fetch runs. done ends this one.
func (s *Source) beginFetch(ctx context.Context) (done func(), err error) {
	select {
	case s.fetching <- struct{}{}:
		return func() { <-s.fetching }, nil
	case <-ctx.Done():
		return nil, s.wrap("fetch", context.Cause(ctx))
	}
}

// fetchLocal reads where the branch is. The objects are where they are.
func (s *Source) fetchLocal(ctx context.Context) (plumbing.Hash, error) {
	repo, err := s.findLocal()
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if err := s.use(repo); err != nil {
		return plumbing.ZeroHash, err
	}
	name := plumbing.HEAD
	if s.cfg.Branch != "" {
		name = plumbing.NewBranchReferenceName(s.cfg.Branch)
	}
	name, tip, err := repo.ref(name)
	if errors.Is(err, errNoRef) {
		return tip, fmt.Errorf("branch %q: %w", name.Short(), ErrBranchGone)
	}
	if err != nil {
		return tip, err
	}
	if err := s.judge(ctx, s.objects, tip); err != nil {
		return tip, err
	}
	return tip, s.accept(name, tip)
}

// findLocal opens the repository on this machine, again or for the first time.
func (s *Source) findLocal() (*repository, error) {
	known := s.repository.Load()
	if known == nil {
		return findRepository(s.local, false)
	}
	repo, err := openRepository(known.gitDir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", known.gitDir, err)
	}
	return repo, nil
}

func (s *Source) fetchRemote(ctx context.Context) (plumbing.Hash, error) {
	anew := s.damaged.Load() == s.objects.generation.Load()
	h, err := s.download(ctx, anew)
	if IsDamage(err) && !anew {
		h, err = s.download(ctx, true)
	}
	return h, err
}

// errEmpty is a repository without any commit.
var errEmpty = fmt.Errorf("the repository is empty: %w", ErrBranchGone)

// download brings the store to where the branch is. With anew set, it fetches
// everything into a folder of its own that then takes the place of the
// objects, which are not looked at.
func (s *Source) download(ctx context.Context, anew bool) (_ plumbing.Hash, err error) {
	if err := s.remake(); err != nil {
		return plumbing.ZeroHash, err
	}
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
	name, tip, err := tip(refs, s.cfg.Branch)
	if err != nil {
		return tip, err
	}
	if anew {
		switch tip {
		case s.held: // a clone of it was refused, and would be again
			return tip, rewound(tip, s.against)
		case s.anew:
			return tip, fmt.Errorf("objects are missing or corrupt even though they were cloned anew for %s; waiting until the branch moves", tip)
		}
		return tip, s.cloneAnew(ctx, session, refs, name, tip)
	}
	if err := s.checkLast(); err != nil {
		return tip, err
	}
	if tip == s.last(s.cfg.Branch) && tip == s.passed {
		return tip, s.accept(name, tip)
	}
	have, err := s.objects.has(tip)
	if err != nil {
		return tip, err
	}
	// A commit that was asked for once is there with all that it needs: a pack
	// becomes known as a whole, and of loose objects the commit is written last.
	if !have {
		dir := filepath.Join(s.cfg.Dir, objectsDir)
		if err := s.receive(ctx, session, refs, tip, s.haves(), dir); err != nil {
			return tip, err
		}
		if err := s.objects.refresh(); err != nil {
			return tip, err
		}
	}
	if err := s.judge(ctx, s.objects, tip); err != nil {
		return tip, err
	}
	return tip, s.accept(name, tip)
}

// remake makes the folder of the store anew where somebody deleted it. What was followed is
// known still, and its objects are missing, so they are fetched once more.
func (s *Source) remake() error {
	if _, err := os.Stat(filepath.Join(s.cfg.Dir, objectsDir, "pack")); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return s.objects.replace(func() error { return errors.Join(makeStore(s.cfg.Dir), s.save()) })
}

// checkLast finds out whether the commit accepted last can still be read.
func (s *Source) checkLast() error {
	last := s.last(s.cfg.Branch)
	if last.IsZero() {
		return nil
	}
	return s.objects.check(last)
}

// judge decides whether the branch may be followed to a commit whose objects
// are in o.
func (s *Source) judge(ctx context.Context, o *objects, tip plumbing.Hash) error {
	if err := o.check(tip); err != nil {
		return err
	}
	if s.cfg.AllowRewind {
		return nil
	}
	for _, last := range []plumbing.Hash{s.last(s.cfg.Branch), plumbing.NewHash(string(s.cfg.Followed))} {
		if err := s.forward(ctx, o, tip, last); err != nil {
			return err
		}
	}
	s.passed = tip
	return nil
}

// forward is an error where the branch does not go on from a commit, if there is one.
func (s *Source) forward(ctx context.Context, o *objects, tip, last plumbing.Hash) error {
	if last.IsZero() || last == tip {
		return nil
	}
	if tip == s.held && last == s.against {
		return rewound(tip, last)
	}
	ok, err := o.descends(ctx, tip, last)
	if err != nil {
		return err
	}
	if !ok {
		s.held, s.against = tip, last
		return rewound(tip, last)
	}
	return nil
}

func rewound(tip, last plumbing.Hash) error {
	return fmt.Errorf("branch at %s: %w, %s: with allowRewind it would be followed", tip, ErrRewound, last)
}

// maxHaves is how many commits the server is told of, from the one accepted
// last backwards. One would do, but for a branch that was moved back.
const maxHaves = 256

// haves are commits that are in the store with their whole history.
func (s *Source) haves() []plumbing.Hash {
	var haves []plumbing.Hash
	for _, h := range s.branches {
		haves = s.back(h, haves)
	}
	return haves
}

// back adds a commit and those before it.
func (s *Source) back(h plumbing.Hash, haves []plumbing.Hash) []plumbing.Hash {
	for range maxHaves {
		c, err := s.objects.commit(h)
		if err != nil {
			break // less known only means more to download
		}
		haves = append(haves, h)
		if len(c.ParentHashes) == 0 {
			break
		}
		h = c.ParentHashes[0]
	}
	return haves
}

// cloneAnew fetches everything once more and swaps it in. What is there stays
// until then, and when the branch may not be followed to its new place.
func (s *Source) cloneAnew(ctx context.Context, session *conversation, refs *packp.AdvRefs, name plumbing.ReferenceName, tip plumbing.Hash) error {
	dir := filepath.Join(s.cfg.Dir, anewDir)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.MkdirAll(filepath.Join(dir, "pack"), 0o700); err != nil {
		return err
	}
	fresh := newObjects([]string{dir})
	err := s.receive(ctx, session, refs, tip, nil, dir)
	if err == nil {
		err = s.judge(ctx, fresh, tip)
	}
	if IsDamage(err) || errors.Is(err, ErrRewound) {
		s.anew = tip
	}
	if err := errors.Join(err, fresh.close()); err != nil {
		return err
	}
	if err := s.objects.replace(func() error { return replaceObjects(s.cfg.Dir) }); err != nil {
		return err
	}
	s.anew = tip
	return s.accept(name, tip)
}
