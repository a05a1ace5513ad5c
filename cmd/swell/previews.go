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
	"path/filepath"
	"strings"
	gosync "sync"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/smallfile"
	"github.com/swell-sh/swell/sync"
	"github.com/swell-sh/swell/sync/announce"
	"github.com/swell-sh/swell/sync/forge"
	"github.com/swell-sh/swell/sync/preview"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/source"
	"github.com/swell-sh/swell/sync/store"
)

// openForge prepares to talk to the forge that the configuration names. named is a name of the
// repository there.
func openForge(settings *config.Daemon) (on forge.Forge, named string, err error) {
	access := settings.Previews.Forge
	at, project, found := forge.Locate(settings.Repository.URL)
	if !found && (access.URL == "" || access.Project == "") {
		return nil, "", errors.New("spec.previews.forge: url and project are missing: they cannot be told from spec.repository.url")
	}
	c := forge.Config{Type: forge.Type(access.Type), URL: cmp.Or(access.URL, at), Project: cmp.Or(access.Project, project)}
	if app := access.App; app.ID != "" {
		c.App = &forge.App{ID: app.ID, Installation: app.Installation, KeyFile: app.KeyFile}
	} else {
		c.Token = func() (string, error) { return readToken(access.TokenFile) }
	}
	if on, err = forge.New(c); err != nil {
		return nil, "", fmt.Errorf("spec.previews.%w", err)
	}
	return on, fmt.Sprintf("%s %s/%s", c.Type, strings.TrimSuffix(c.URL, "/"), c.Project), nil
}

// explainForge adds to an error of the forge what may be wrong in the configuration.
func explainForge(err error) error {
	hint := ""
	switch {
	case forge.IsUnauthorized(err):
		hint = "look at spec.previews.forge: the token of tokenFile, or the app"
	case forge.IsDenied(err):
		hint = "the account of spec.previews.forge needs the rights that docs/pull-requests.md lists"
	case forge.IsNotFound(err):
		hint = "look at spec.previews.forge: type, url and project, and whether the account sees the repository"
	default:
		return err
	}
	return fmt.Errorf("%w (%s)", err, hint)
}

func readToken(file string) (string, error) {
	content, err := smallfile.Read(file)
	if err != nil {
		return "", fmt.Errorf("spec.previews.forge.tokenFile: %w", err)
	}
	return strings.TrimSpace(string(content)), nil
}

// previews are what keeps a preview on each pull request.
func (p *process) previews(is configuration, on forge.Forge, project string, troubled func()) (*preview.Previewer, *preview.Renderer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	renderer := &preview.Renderer{
		Command: func() *exec.Cmd {
			cmd := exec.Command(self, "previewer")
			cmd.Env = previewerEnvironment()
			return cmd
		},
		First: func(fork bool) any {
			return previewerSettings{File: p.file.in.path(p.file.name), Content: is.content, Fork: fork}
		},
		Log: p.log,
	}
	previewer, err := preview.New(preview.Options{
		Forge: on, Project: project, Render: renderer.Render, Branch: is.Repository.Branch, Dir: previewsDir(is.Daemon), Link: pagesURL(is.Web),
		NoForks: is.Previews.NoForks, Poll: is.Previews.Poll, Troubled: troubled, Log: p.log,
		Explain: explainForge,
	})
	return previewer, renderer, err
}

// previewerVariables are those of the environment that a process that renders previews needs.
// It reads what strangers wrote, so it gets nothing else of the daemon's.
var previewerVariables = []string{"PATH", "HOME", "TMPDIR", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"}

func previewerEnvironment() []string {
	variables := []string{} // nil would be all
	for _, name := range previewerVariables {
		if value, ok := os.LookupEnv(name); ok {
			variables = append(variables, name+"="+value)
		}
	}
	return variables
}

// outside is what a daemon has to do with forges: it listens to them, keeps previews, and
// announces how releases get on.
type outside struct {
	web       *web
	previews  *preview.Previewer  // nil: none
	announcer *announce.Announcer // nil: none
	aside     string              // why the newest commit of the branch is not followed; empty: it is
	since     config.Commit       // the one that was taken before the newest one; empty: none
	stop      func()
}

// openOutside begins all of it.
func (p *process) openOutside(ctx context.Context, is configuration, src *source.Source, d *sync.Daemon) (*outside, error) {
	o := &outside{web: &web{settings: is.Web, branch: is.Repository.Branch, pushed: d.Pushed, troubled: d.Wake, log: p.log}, stop: func() {}}
	if is.Previews.Forge.Type == "" {
		return o, o.web.listen()
	}
	on, project, err := openForge(is.Daemon)
	if err != nil {
		return nil, err
	}
	previewer, renderer, err := p.previews(is, on, project, d.Wake)
	if err != nil {
		return nil, err
	}
	announcer, err := announce.Open(announce.Options{Forge: on, Project: project, Dir: filepath.Join(previewsDir(is.Daemon), "commits"), Between: src.Between, Wake: d.Wake, Log: p.log})
	if err != nil {
		return nil, err
	}
	o.previews, o.announcer, o.web.previews = previewer, announcer, previewer
	p.log.Info("previews", "forge", is.Previews.Forge.Type, "poll", is.Previews.Poll, "listen", is.Web.Listen)
	if err := o.web.listen(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var both gosync.WaitGroup
	both.Go(func() { previewer.Run(ctx) })
	both.Go(func() { announcer.Run(ctx) })
	o.stop = func() {
		cancel()
		both.Wait()
		renderer.Close()
	}
	return o, nil
}

func (o *outside) close() error {
	err := o.web.close()
	o.stop()
	return err
}

// observe tells of a pass: pull requests are compared with the newest commit, and releases may
// have got on.
func (o *outside) observe(r sync.Record, state *rollout.State, live func() (rollout.Now, error)) {
	if o == nil || o.previews == nil || r.Commit == "" || r.Monorepo == "" {
		return
	}
	if r.Fetched {
		o.aside = asideOf(errors.Join(r.Errors...))
	}
	if r.NewCommit {
		o.since = r.Since
	}
	o.previews.SetBase(preview.Base{Commit: r.Commit, Monorepo: r.Monorepo, Since: o.since, Aside: o.aside})
	looked := o.announcer.Observe(state, announce.Pass{Monorepo: r.Monorepo, Commit: r.Commit, New: r.NewCommit, Since: r.Since, Refused: r.Refused, Broken: r.Broken, Problems: len(r.Problems) > 0,
		Happened: r.NewCommit || len(r.Transitions)+len(r.Actions) > 0})
	if !looked {
		return // a later pass has a look
	}
	fleet, err := live()
	if err != nil {
		o.web.log.Error("previews: how the fleet is", "err", err)
		return
	}
	o.previews.SetFleet(fleet)
}

// asideOf says why the newest commit of the branch is not followed, by what came of the last
// look at it. Where nobody could look, nobody knows: then it says nothing.
func asideOf(err error) string {
	switch {
	case errors.Is(err, source.ErrRewound):
		return "The branch was force-pushed. The fleet stays with this base, which is not part of it any more."
	case errors.Is(err, source.ErrBranchGone):
		return "The branch is gone. The fleet stays with this base."
	}
	return ""
}

// conditions are what keeps all of it from its work.
func (o *outside) conditions() map[string]string {
	is := map[string]string{}
	if o == nil {
		return is
	}
	if text := o.web.trouble(); text != "" {
		is[store.AboutWebhooks] = text
	}
	if o.previews == nil {
		return is
	}
	var texts []string
	if text := o.previews.Trouble(); text != "" {
		texts = append(texts, "previews: "+text)
	}
	if text := o.announcer.Trouble(); text != "" {
		texts = append(texts, "releases: "+text)
	}
	if len(texts) > 0 {
		is[store.AboutForge] = strings.Join(texts, "; ")
	}
	return is
}
