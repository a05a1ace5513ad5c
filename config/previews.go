// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"
	"strings"
	"time"

	"github.com/swell-sh/swell/config/document"
)

// Web is where forges and people reach the daemon. Where Listen is empty, they do not.
type Web struct{ Listen, URL, HookSecretFile string }

// Previews says where pull requests are. Where the forge has no type, there are none.
type Previews struct {
	Forge   ForgeAccess
	Poll    time.Duration
	NoForks bool
}

// ForgeAccess is a repository of a forge, and an account: a token, or an App.
type ForgeAccess struct {
	// Type is github, gitlab or gitea.
	Type, URL, Project, TokenFile string
	App                           ForgeApp
}

// ForgeApp is a GitHub App. The zero value is none.
type ForgeApp struct {
	ID           string
	Installation int64 `json:",string"` // as protojson writes it
	KeyFile      string
}

type previewsSpec struct {
	Forge struct {
		Type, URL, Project, TokenFile string
		App                           *ForgeApp
	}
	Poll  string
	Forks *bool
}

// forges are the types that there are.
var forges = []string{"github", "gitlab", "gitea"}

const (
	defaultPreviewPoll = time.Minute
	minPreviewPoll     = 10 * time.Second
)

func (d *Daemon) readWeb(in *reading, dir string, spec Web) {
	d.Web = spec
	d.Web.HookSecretFile = inDir(dir, spec.HookSecretFile)
	in.address(spec.Listen, "spec", "web", "listen")
	if spec.URL != "" && !isWebURL(spec.URL) {
		in.at("spec", "web", "url").problem(document.CodeType, "want http:// or https:// with a host, and no query, like %q", "https://swell.example.com")
	}
	if spec.Listen == "" && spec.URL+spec.HookSecretFile != "" && !in.follows("spec", "web", "listen") {
		in.at("spec", "web", "listen").problem(document.CodeReference, "missing: without it nobody is answered")
	}
	if d.Health.Listen != "" && d.Health.Listen == spec.Listen {
		in.at("spec", "web", "listen").problem(document.CodeDuplicate, "%q is spec.health.listen, too", spec.Listen)
	}
}

func isWebURL(text string) bool {
	u, err := document.WebURL(text)
	return err == nil && u.RawQuery == "" && u.Fragment == "" && !strings.ContainsAny(text, " <>\"")
}

func (d *Daemon) readPreviews(in *reading, dir string, spec *previewsSpec) {
	if spec == nil {
		return
	}
	f := spec.Forge
	at := func(field ...any) docPath { return in.at(append([]any{"spec", "previews"}, field...)...) }
	d.Previews = Previews{
		Forge: ForgeAccess{Type: f.Type, URL: f.URL, Project: f.Project, TokenFile: inDir(dir, f.TokenFile)},
		Poll:  defaultPreviewPoll, NoForks: spec.Forks != nil && !*spec.Forks,
	}
	switch {
	case f.Type == "":
		at("forge", "type").problem(document.CodeReference, "missing: want github, gitlab or gitea")
	case f.Type == "forgejo":
		at("forge", "type").problem(document.CodeType, "Forgejo is the type gitea")
	case !slices.Contains(forges, f.Type):
		at("forge", "type").problem(document.CodeType, "%q: no such forge%s", document.Shorten(f.Type), document.DidYouMean(f.Type, forges))
	}
	if f.URL != "" && !isWebURL(f.URL) {
		at("forge", "url").problem(document.CodeType, "want http:// or https:// with a host, like %q", "https://git.example.com")
	}
	if f.Project != "" && (!strings.Contains(f.Project, "/") || strings.HasPrefix(f.Project, "/") || strings.HasSuffix(f.Project, "/")) {
		at("forge", "project").problem(document.CodeType, "%q: want OWNER/NAME", document.Shorten(f.Project))
	}
	switch {
	case f.App == nil && f.TokenFile == "" && !in.follows("spec", "previews", "forge", "tokenFile"):
		at("forge", "tokenFile").problem(document.CodeReference, "missing, and so is app")
	case f.App != nil:
		d.Previews.Forge.App = d.readApp(at, dir, *f.App, f.Type, f.TokenFile)
	}
	if spec.Poll != "" {
		if d.Previews.Poll = duration(spec.Poll); d.Previews.Poll < minPreviewPoll {
			at("poll").problem(document.CodeType, "want at least %s, got %s", minPreviewPoll, d.Previews.Poll)
		}
	}
	if d.Repository.Branch == "" && d.Repository.URL != "" {
		in.at("spec", "repository", "branch").problem(document.CodeReference, "missing: previews are of the pull requests into it")
	}
}

func (d *Daemon) readApp(at func(...any) docPath, dir string, app ForgeApp, forge, tokenFile string) ForgeApp {
	place := func(field string) docPath { return at("forge", "app", field) }
	if forge != "" && forge != "github" {
		at("forge", "app").problem(document.CodeType, "only for github")
	}
	if tokenFile != "" {
		at("forge", "tokenFile").problem(document.CodeType, "want one of tokenFile and app, got both")
	}
	if app.ID == "" {
		place("id").problem(document.CodeReference, "missing")
	}
	if app.Installation <= 0 {
		place("installation").problem(document.CodeReference, "want the number of the installation")
	}
	if app.KeyFile == "" {
		place("keyFile").problem(document.CodeReference, "missing")
	}
	app.KeyFile = inDir(dir, app.KeyFile)
	return app
}
