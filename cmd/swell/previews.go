// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync"
	"github.com/swell-sh/swell/sync/forge"
	"github.com/swell-sh/swell/sync/preview"
)

// openForge prepares to talk to the forge that the configuration names.
func openForge(settings *config.Daemon) (forge.Forge, error) {
	access := settings.Previews.Forge
	at, project, found := forge.Locate(settings.Repository.URL)
	if !found && (access.URL == "" || access.Project == "") {
		return nil, errors.New("spec.previews.forge: url and project are missing: they cannot be told from spec.repository.url")
	}
	c := forge.Config{Type: forge.Type(access.Type), URL: cmp.Or(access.URL, at), Project: cmp.Or(access.Project, project)}
	if app := access.App; app.ID != "" {
		c.App = &forge.App{ID: app.ID, Installation: app.Installation, KeyFile: app.KeyFile}
	} else {
		c.Token = func() (string, error) { return readToken(access.TokenFile) }
	}
	on, err := forge.New(c)
	if err != nil {
		return nil, fmt.Errorf("spec.previews.%w", err)
	}
	return on, nil
}

func readToken(file string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("spec.previews.forge.tokenFile: %w", err)
	}
	return strings.TrimSpace(string(content)), nil
}

// previews are what keeps a preview on each pull request; nil where none is wanted.
func (p *process) previews(is configuration) (*preview.Previewer, *preview.Renderer, error) {
	if is.Previews.Forge.Type == "" {
		return nil, nil, nil
	}
	on, err := openForge(is.Daemon)
	if err != nil {
		return nil, nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	renderer := &preview.Renderer{
		Command: func() *exec.Cmd { return exec.Command(self, "previewer") },
		First:   previewerSettings{File: p.file, Content: is.content},
		Log:     p.log,
	}
	previewer, err := preview.New(preview.Options{
		Forge: on, Render: renderer.Render, Branch: is.Repository.Branch, Dir: previewsDir(is.Daemon), Link: pagesURL(is.Web),
		NoForks: is.Previews.NoForks, Poll: is.Previews.Poll, Log: p.log,
	})
	return previewer, renderer, err
}

// outside is what a daemon has to do with forges: it listens to them, and keeps previews.
type outside struct {
	web      *web
	previews *preview.Previewer
	stop     func()
}

// openOutside begins to listen, and to keep previews.
func (p *process) openOutside(ctx context.Context, is configuration, pushed func()) (*outside, error) {
	previewer, renderer, err := p.previews(is)
	if err != nil {
		return nil, err
	}
	o := &outside{previews: previewer, web: &web{settings: is.Web, branch: is.Repository.Branch, pushed: pushed, previews: previewer, log: p.log}}
	if err := o.web.listen(); err != nil {
		return nil, err
	}
	if previewer == nil {
		o.stop = func() {}
		return o, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		previewer.Run(ctx)
	}()
	o.stop = func() {
		cancel()
		<-over
		renderer.Close()
	}
	return o, nil
}

func (o *outside) close() error {
	err := o.web.close()
	o.stop()
	return err
}

// observe tells of a pass: pull requests are compared with the newest commit.
func (o *outside) observe(r sync.Record) {
	if o != nil && o.previews != nil && r.Commit != "" {
		o.previews.SetBase(r.Commit, r.Monorepo)
	}
}
