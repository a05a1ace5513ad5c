// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package forge talks to the place where the monorepo is hosted: it reads pull requests, and
// writes comments, commit statuses and check runs. GitHub, GitLab, and Gitea with its
// relative Forgejo are behind one interface.
//
// It never merges, closes or approves anything, and never reads a file of the repository:
// commits come through Git.
package forge

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

// Forge is one repository on a forge, seen by one account of it. Its methods may be called
// at the same time. Their errors are [*Error] where the forge answered with one, and
// [*LimitError] where nothing was asked, or nothing was done, since it would be too much.
type Forge interface {
	// Open are the open pull requests into a branch, the one that changed last first.
	Open(ctx context.Context, branch string) ([]Pull, error)
	// Get is one pull request, open or not.
	Get(ctx context.Context, number int) (Pull, error)
	// Merged is the pull request whose merge made a commit; of number 0 where none did.
	Merged(ctx context.Context, commit config.Commit) (Pull, error)
	// SetStatus sets what is shown beside a commit.
	SetStatus(ctx context.Context, status Status) error
	// Comment writes a comment, or the one that it wrote before once more. It returns
	// the comment's ID, or 0 where there is none and none was wanted.
	Comment(ctx context.Context, number int, comment Comment) (id int64, err error)
	// Report shows a check run with notes at lines of files. [ErrNoReports] means that
	// the forge, or the credential, has no such thing.
	Report(ctx context.Context, report Report) error
}

// ErrNoReports means that a forge has no check runs for this credential.
var ErrNoReports = errors.New("check runs: only for a GitHub App")

// Pull is a pull request, or a merge request of GitLab.
type Pull struct {
	Number int
	URL    string
	// Head is the commit that it wants merged, and Ref where Git has it in the base
	// repository, whichever repository it comes from.
	Head config.Commit
	Ref  string
	Base string // the branch that it is to be merged into
	Fork bool   // its head comes from another repository
	// Open says that it is neither merged nor closed. Merge is the commit that merged it.
	Open    bool
	Merge   config.Commit
	Updated time.Time
}

// State is that of a [Status].
type State string

const (
	Pending State = "pending"
	Success State = "success"
	Failure State = "failure"
)

// Status is a line of text beside a commit.
type Status struct {
	Commit config.Commit
	Name   string // unique for the commit: a later status of the same name takes its place
	State  State
	Text   string // cut to maxStatus
	URL    string // empty: none
	Pull   int    // the pull request that the commit is the head of; 0: none
}

// maxStatus is in characters: what GitHub takes.
const maxStatus = 140

// Report is a check run.
type Report struct {
	Commit  config.Commit
	Name    string
	OK      bool
	Title   string
	Summary string // markdown, at most 65,535 bytes
	URL     string
	Notes   []Note
}

// Note is a text at a line of a file.
type Note struct {
	Path         string // from the root of the repository
	Line, Column int    // from 1; 0: not known
	Title, Text  string
}

// Type is a kind of forge.
type Type string

const (
	GitHub Type = "github"
	GitLab Type = "gitlab"
	Gitea  Type = "gitea" // and Forgejo
)

// Config says where a repository is, and by which account it is seen.
type Config struct {
	Type Type
	// URL is where people see the forge, such as https://git.example.com. API is where
	// programs ask it; empty is derived.
	URL, API string
	// Project is the repository's path: "shop/fleet", or "group/sub/fleet" on GitLab.
	Project string
	// Token is asked before each request. With App it is not used.
	Token func() (string, error)
	// App is a GitHub App.
	App *App
	// JobLogin is the account's name where the credential may not ask for it, as that of a job
	// may not. Empty: then nothing is known of it, which is an error.
	JobLogin string
	// Transport carries the requests. Nil is [http.DefaultTransport].
	Transport http.RoundTripper
	// Now is the clock. Nil is the real one.
	Now func() time.Time
}

// New prepares to talk to a forge. It asks nothing yet.
func New(c Config) (Forge, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Transport == nil {
		c.Transport = http.DefaultTransport
	}
	if _, err := document.WebURL(c.URL); err != nil {
		return nil, fmt.Errorf("forge: URL: %w", err)
	}
	c.URL = strings.TrimSuffix(c.URL, "/")
	owner, name, ok := cutLast(c.Project)
	if !ok {
		return nil, fmt.Errorf("forge: project %q: want OWNER/NAME", document.Shorten(c.Project))
	}
	switch c.Type {
	case GitHub:
		return newGitHub(c, owner, name)
	case GitLab:
		return newGitLab(c)
	case Gitea:
		return newGitea(c, owner, name)
	}
	return nil, fmt.Errorf("forge: type %q: want github, gitlab or gitea", document.Shorten(string(c.Type)))
}

// known says that a forge's answer is about a pull request at all.
func (p Pull) known() (Pull, error) {
	if p.Number <= 0 {
		return Pull{}, errors.New("the forge's answer names no pull request: the forge has a fault of its own")
	}
	return p, nil
}

// maxPages is how many pages are read of anything.
const maxPages = 100

// eachPage are the things on all pages, of which list gives one, with the number of the next; 0
// after the last. It may end with an error.
func eachPage[T any](list func(page int) (found []T, next int, err error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for page, n := 1, 0; page != 0 && n < maxPages; n++ {
			found, next, err := list(page)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, is := range found {
				if !yield(is, nil) {
					return
				}
			}
			page = next
		}
	}
}

// allOpen are pull requests, as list gives the pages of what the forge calls them.
func allOpen[P any](of string, pullOf func(P) Pull, list func(page int) (found []P, next int, err error)) (open []Pull, err error) {
	for p, err := range eachPage(list) {
		if err != nil {
			return nil, failed(err, "list %s", of)
		}
		pull, err := pullOf(p).known()
		if err != nil {
			return nil, failed(err, "list %s", of)
		}
		open = append(open, pull)
	}
	return open, nil
}

// cutLast splits a path before its last part.
func cutLast(path string) (before, last string, ok bool) {
	at := strings.LastIndexByte(path, '/')
	if at <= 0 || at == len(path)-1 || strings.HasPrefix(path, "/") {
		return "", "", false
	}
	return path[:at], path[at+1:], true
}

// Locate finds a forge's URL and project in the URL of a Git repository, as far as they can
// be told from it: of https://git.example.com/shop/fleet.git, git@git.example.com:shop/fleet.git
// and ssh://git@git.example.com:2222/shop/fleet.
func Locate(repository string) (at, project string, ok bool) {
	host, path := "", ""
	if u, err := url.Parse(repository); err == nil && u.Host != "" {
		host, path = u.Host, u.Path
		at = "https://" + host
		switch u.Scheme {
		case "http":
			at = "http://" + host
		case "ssh":
			at = "https://" + u.Hostname()
		}
	} else if before, after, found := strings.Cut(repository, ":"); found && !strings.Contains(before, "/") && !strings.HasPrefix(after, "//") {
		_, host, found = strings.Cut(before, "@")
		if !found {
			host = before
		}
		at, path = "https://"+host, after
	}
	project = strings.TrimSuffix(strings.Trim(path, "/"), ".git")
	if _, _, whole := cutLast(project); !whole || host == "" {
		return "", "", false
	}
	return at, project, true
}

// statusText is a status's text in the length that all forges take.
func statusText(text string) string {
	runes := []rune(document.Printable(text))
	if len(runes) > maxStatus {
		return string(runes[:maxStatus-3]) + "..."
	}
	return string(runes)
}
