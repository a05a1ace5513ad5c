// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package source follows one branch of a Git repository and hands out the
// trees of its commits, read-only. It is the only package that imports go-git.
//
// It never makes a work tree, never runs the git binary, never reads Git's
// configuration of the user or the machine, and never writes to a repository
// on this machine that it was pointed at.
//
// # What is stored
//
// A repository that is reached over a network is copied into a folder of ours,
// [Config.Dir], which is a plain bare Git repository: the git binary can read it.
//
//	HEAD          the branch followed last, or a commit when HEAD was detached
//	packed-refs   for each branch ever followed, the last commit accepted of it
//	objects/      loose objects for small fetches, packs for large ones
//	description   says that the folder is ours; without it, it is not touched
//
// packed-refs is the truth: a commit is written there after all its objects
// are on disk, in one rename. Whatever objects/ holds beyond is harmless. The
// folder can be deleted at any time, which costs a clone and forgets which
// commit the next one must descend from. One process may use it at a time.
// Other files in it are left alone, and the format is Git's own.
//
// # Concurrency
//
// All methods may be called at the same time. go-git is not safe for
// concurrent use, not even for reads, so every use of its object readers
// happens under the mutex of objects, which is never held over the network:
// trees stay readable while a fetch hangs. Decoded folders are kept in a cache
// of their own, so a walk that finds everything there does not wait for it.
package source

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/swell-sh/swell/config"
)

// Errors of Fetch that a caller tells from the others. In both cases nothing
// has changed and the last good commit is still readable. What should exist at
// the branch's new place is unknown, so neither is ever a reason to delete.
var (
	// ErrRewound says that the branch was moved to a commit that does not
	// descend from the one that was followed: a force-push, an amended
	// commit, or another history altogether. See [Config.AllowRewind].
	ErrRewound = errors.New("not a descendant of the commit followed so far")

	// ErrBranchGone says that the repository answers and has no such branch:
	// deleted, renamed, misspelt, or the repository is empty.
	ErrBranchGone = errors.New("not found")
	// ErrNoRevision means that nothing in the repository has the name.
	ErrNoRevision = errors.New("no such branch, tag or commit")
)

// Config says which branch to follow and where to keep its objects.
type Config struct {
	// URL of the repository: http, https, ssh, the short form of ssh
	// (git@host:path), or a path on this machine, plain or as file://, of a
	// bare or any other repository. One on this machine is read in place.
	//
	// Credentials in the URL are used, and are shown in no message.
	URL string

	// Branch to follow, without refs/heads/. Empty is the branch that HEAD of
	// the repository names, looked up at each fetch.
	Branch string

	// Dir is the folder of the object store. It is made when missing. A
	// folder that holds something else is refused. For a repository on this
	// machine it may be empty; then what has been followed is forgotten when
	// the process ends, and a rewind in between is not noticed.
	Dir string

	Auth Auth

	// AllowRewind follows the branch wherever it is moved to. Without it, a
	// branch that does not move forward is held with [ErrRewound].
	AllowRewind bool
	// Followed is a commit that was followed before, as somebody else knows it: the branch
	// must not move to what does not descend from it either, also where the folder was lost,
	// or where it is another branch now. Empty: nobody knows one.
	Followed config.Commit

	// MaxFetch is the most bytes that one fetch may download. Zero is 4 GiB.
	MaxFetch int64

	// Stall is how long a server may send nothing, from the first attempt to connect
	// on, before the fetch fails. Zero is 15 s.
	Stall         time.Duration
	slow, prepare time.Duration // see [patience]

	// MaxObject is the largest object that may be fetched, in bytes, in any
	// commit of the history. A fetch with a larger one is refused before it
	// is inflated, as reading it takes that much memory. Zero is 256 MiB. Files
	// are held to the smaller [config.MaxFileSize] when they are read.
	MaxObject int64
}

const (
	defaultMaxFetch  = 4 << 30
	defaultMaxObject = 256 << 20
)

// Source is an open repository. Make one with [Open] or [OpenLocal].
type Source struct {
	cfg    Config
	name   string  // of the repository in messages: its URL without credentials
	remote *remote // nil when the repository is on this machine
	local  string  // where it is then, as it was given; empty after OpenLocal

	// repository answers for refs: the one on this machine, or our own.
	// Nil while the one on this machine was never found.
	repository atomic.Pointer[repository]
	objects    *objects
	folders    folders
	linked     linked

	// damaged is the generation of objects in which a read found one that is
	// missing or corrupt. The next fetch clones anew, unless one already has.
	damaged atomic.Int64

	// fetching is held by the one fetch that runs. It also guards following and beside.
	fetching chan struct{}
	beside   int64                // bytes of a store beside another one
	talking  atomic.Pointer[pace] // of the last conversation; nil before the first
	following
}

// Open prepares to follow a branch. It contacts no server: until the first
// Fetch only what the store already holds is there. A repository on this machine
// that is not there is for Fetch to report, too: it may come.
func Open(cfg Config) (*Source, error) {
	s, err := open(cfg)
	if err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	return s, nil
}

func open(cfg Config) (*Source, error) {
	if cfg.MaxFetch == 0 {
		cfg.MaxFetch = defaultMaxFetch
	}
	if cfg.MaxObject == 0 {
		cfg.MaxObject = defaultMaxObject
	}
	cfg.Branch = strings.TrimPrefix(cfg.Branch, "refs/heads/")
	if cfg.Branch != "" {
		if err := plumbing.NewBranchReferenceName(cfg.Branch).Validate(); err != nil {
			return nil, fmt.Errorf("branch %q: not a name that Git allows", cfg.Branch)
		}
	}
	at, err := parseURL(cfg.URL)
	if err != nil {
		return nil, err
	}
	s := &Source{cfg: cfg, name: at.name, fetching: make(chan struct{}, 1)}
	if cfg.Dir != "" {
		if s.cfg.Dir, err = filepath.Abs(cfg.Dir); err != nil {
			return nil, err
		}
		if err := makeStore(s.cfg.Dir); err != nil {
			return nil, err
		}
		if s.accepted, err = readAccepted(s.cfg.Dir); err != nil {
			return nil, err
		}
	}
	repo := &repository{gitDir: s.cfg.Dir, commonDir: s.cfg.Dir}
	if at.local != "" {
		s.local = at.local
		if repo, err = findRepository(at.local, false); err != nil {
			s.objects = newObjects(nil)
			return s, nil
		}
	} else {
		if cfg.Dir == "" {
			return nil, fmt.Errorf("%s: no folder to keep its objects in", s.name)
		}
		if s.remote, err = newRemote(at, cfg.Auth); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
	}
	if err := s.use(repo); err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	return s, nil
}

// OpenLocal opens the repository that dir is in: the work tree or a folder in
// it, a linked work tree, a submodule, or a bare repository. Nothing is
// written. Fetch returns the commit of HEAD, wherever it is.
func OpenLocal(dir string) (*Source, error) {
	repo, err := findRepository(dir, true)
	if err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	s := &Source{
		cfg:      Config{URL: repo.gitDir, AllowRewind: true},
		name:     repo.gitDir,
		fetching: make(chan struct{}, 1),
	}
	if err := s.use(repo); err != nil {
		return nil, fmt.Errorf("source: %s: %w", s.name, err)
	}
	return s, nil
}

// use reads refs and objects from repo from now on.
func (s *Source) use(repo *repository) error {
	dirs, err := repo.objectDirs()
	if err != nil {
		return err
	}
	s.repository.Store(repo)
	if s.objects == nil {
		s.objects = newObjects(dirs)
		return nil
	}
	return s.objects.use(dirs)
}

// Close releases the files held open. Reads from trees fail afterwards.
func (s *Source) Close() error { return s.objects.close() }

// Info is what a commit says about itself.
type Info struct {
	Author  string    // "Name <email>"
	When    time.Time // it was authored, by the author's clock and zone
	Subject string    // the first line of its message
}

// Info returns what is known of a commit.
func (s *Source) Info(commit config.Commit) (Info, error) {
	h, err := hashOf(commit)
	if err != nil {
		return Info{}, err
	}
	c, err := s.objects.commit(h)
	if err != nil {
		return Info{}, s.wrap("commit "+commit.Short(), err)
	}
	subject, _, _ := strings.Cut(strings.TrimLeft(c.Message, "\n"), "\n")
	return Info{
		Author:  oneLine(fmt.Sprintf("%s <%s>", c.Author.Name, c.Author.Email)),
		When:    c.Author.When,
		Subject: oneLine(subject),
	}, nil
}

// wrap says which repository an error is about, in one line and without
// credentials.
func (s *Source) wrap(what string, err error) error {
	text := oneLine(fmt.Sprintf("%s: %s: %s", s.name, what, err))
	if s.remote != nil {
		text = s.remote.hide(text)
	}
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + "..."
	}
	return &message{text, err}
}

// maxMessage is in bytes. Servers may say more than anyone wants to read.
const maxMessage = 500

// hashOf reads a commit's name. Only full names are commits; [Source.Resolve]
// makes one from anything else.
func hashOf(commit config.Commit) (plumbing.Hash, error) {
	if len(commit) != 40 || !plumbing.IsHash(string(commit)) {
		return plumbing.ZeroHash, fmt.Errorf("commit %q: want 40 hexadecimal digits", string(commit))
	}
	return plumbing.NewHash(string(commit)), nil
}

func commitOf(h plumbing.Hash) config.Commit { return config.Commit(h.String()) }

// oneLine makes text of a repository or a server fit for a message: one line,
// no control characters, valid UTF-8.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "\uFFFD"), unprintable), " ")
}
