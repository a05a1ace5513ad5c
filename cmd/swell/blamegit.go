// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/blame"
	"github.com/swell-sh/swell/sync/source"
)

// history tells who wrote a line of the monorepo. A nil history knows nothing.
type history struct {
	source *source.Source
	commit config.Commit
	folder string      // of the monorepo in the repository
	tree   config.Tree // of the monorepo, which tells where links lead
	work   fs.FS       // the files as they are now; nil for a revision
	files  map[string]*source.Blamed
	infos  map[config.Commit]source.Info
}

// writer is who wrote a line, when.
type writer struct {
	// Commit is empty for a line that is not committed yet.
	Commit  config.Commit `json:"commit,omitempty"`
	Author  string        `json:"author,omitempty"`
	Time    *time.Time    `json:"time,omitempty"`
	Subject string        `json:"subject,omitempty"`
	// Oldest: the history ends there, the line may be older.
	Oldest bool `json:"oldest,omitempty"`
}

// history opens the Git history of what name means; nil where there is none.
// done closes it.
func (p *repoFlags) history(name string, commit config.Commit, tree config.Tree) (h *history, done func()) {
	h = &history{commit: commit, tree: tree, folder: p.folder(name), files: map[string]*source.Blamed{}, infos: map[config.Commit]source.Info{}}
	repo := p.repo
	if commit == "" {
		if root, err := p.in.findMonorepo(name); err == nil {
			name = root
		}
		h.work, repo = os.DirFS(p.in.path(name)), name
	}
	src, err := source.OpenLocal(p.in.path(repo))
	if err != nil {
		return nil, func() {}
	}
	if commit == "" {
		h.commit, err = src.Resolve("HEAD")
	}
	if h.source = src; err != nil { // no commit yet
		_ = src.Close()
		return nil, func() {}
	}
	return h, func() { _ = src.Close() }
}

// writer tells who wrote an origin's line; nil when that is not known.
func (h *history) writer(ctx context.Context, o blame.Origin) (*writer, error) {
	if h == nil || o.Kind == blame.FromSwell { // nobody wrote it
		return nil, nil
	}
	blamed, err := h.file(ctx, o.File)
	if err != nil || blamed == nil {
		return nil, err
	}
	line := blamed.Last
	if !o.Whole && o.Line > 0 {
		if o.Line > len(blamed.Lines) {
			return nil, nil
		}
		line = blamed.Lines[o.Line-1]
	}
	if line.Commit == "" {
		return &writer{}, nil
	}
	info, known := h.infos[line.Commit]
	if !known {
		if info, err = h.source.Info(line.Commit); err != nil {
			return nil, err
		}
		h.infos[line.Commit] = info
	}
	return &writer{Commit: line.Commit, Author: info.Author, Time: &info.When, Subject: info.Subject, Oldest: line.Oldest}, nil
}

// file blames a file once; nil when it cannot be read.
func (h *history) file(ctx context.Context, name string) (*source.Blamed, error) {
	if known, ok := h.files[name]; ok {
		return known, nil
	}
	var content []byte
	file := config.RealPath(h.tree, name)
	if h.work != nil {
		read, err := fs.ReadFile(h.work, file)
		if err != nil {
			h.files[name] = nil // a folder
			return nil, nil
		}
		content = append([]byte{}, read...)
	}
	blamed, err := h.source.Blame(ctx, h.commit, path.Join(h.folder, file), content)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a folder
		return nil, err
	}
	h.files[name] = blamed
	return blamed, nil
}

// short is a line like those of git blame: the commit, a ^ before it where the
// line may be older, the author's name and the day.
func (w *writer) short() string {
	if w == nil {
		return ""
	}
	if w.Commit == "" {
		return "not committed yet"
	}
	mark := ""
	if w.Oldest {
		mark = "^"
	}
	name, _, _ := strings.Cut(w.Author, " <")
	return mark + w.Commit.Short() + " " + document.Shorten(name) + " " + w.Time.Format(time.DateOnly)
}
