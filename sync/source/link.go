// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"io"
	"io/fs"
	"slices"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/swell-sh/swell/config"
)

// maxLinkText is longer than the text of a link may be, in bytes.
const maxLinkText = 8 << 10

// ReadLink implements [config.LinkTree].
func (t *tree) ReadLink(name string) (string, error) {
	e, err := t.find("readlink", name)
	if err != nil {
		return "", err
	}
	if e.mode.Type() != fs.ModeSymlink {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: fs.ErrInvalid}
	}
	obj, err := t.source.objects.read(e.hash, plumbing.BlobObject, maxLinkText)
	if err != nil {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: t.source.note(err)}
	}
	r, err := obj.Reader()
	if err != nil {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: err}
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	return string(text), err
}

// Links implements [config.LinkTree].
func (t *tree) Links(folder string) ([]string, error) {
	e, err := t.find("links", folder)
	if err != nil || !e.mode.IsDir() {
		return nil, err
	}
	below, err := t.source.linksBelow(e.hash)
	if err == nil && len(below) > config.MaxLinks {
		err = config.ErrLinks
	}
	if err != nil {
		return nil, &fs.PathError{Op: "links", Path: folder, Err: err}
	}
	if folder == "." {
		return below, nil
	}
	links := make([]string, len(below))
	for i, link := range below {
		links[i] = folder + "/" + link
	}
	return links, nil
}

// maxLinked bounds the folders whose links are remembered: those of a commit are mostly
// those of the one before.
const maxLinked = 1_000_000

// linked are the links in folders and below them, as paths from the folder. Most have
// none. It is safe for concurrent use.
type linked struct {
	mu     sync.Mutex
	byHash map[plumbing.Hash][]string
}

// linksBelow is the sorted list for a folder, which is cut off where it is too long.
func (s *Source) linksBelow(h plumbing.Hash) ([]string, error) {
	s.linked.mu.Lock()
	links, known := s.linked.byHash[h]
	s.linked.mu.Unlock()
	if known {
		return links, nil
	}
	f, err := s.folder(h)
	if err != nil {
		return nil, err
	}
	for i := range f.entries {
		switch e := &f.entries[i]; e.mode.Type() {
		case fs.ModeSymlink:
			links = append(links, e.name)
		case fs.ModeDir:
			below, err := s.linksBelow(e.hash)
			if err != nil {
				return nil, err
			}
			for _, link := range below {
				links = append(links, e.name+"/"+link)
			}
		}
		links = links[:min(len(links), config.MaxLinks+1)]
	}
	slices.Sort(links)
	s.linked.mu.Lock()
	defer s.linked.mu.Unlock()
	if s.linked.byHash == nil || len(s.linked.byHash) > maxLinked {
		s.linked.byHash = map[plumbing.Hash][]string{}
	}
	s.linked.byHash[h] = links
	return links, nil
}
