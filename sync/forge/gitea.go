// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"slices"

	"code.gitea.io/sdk/gitea"

	"github.com/swell-sh/swell/config"
)

// giteaForge is a repository of Gitea or Forgejo.
type giteaForge struct {
	at, owner, name string
	client          *http.Client
	commenter
}

func newGitea(c Config, owner, name string) (*giteaForge, error) {
	at := c.URL // the SDK adds the path of the API
	client, err := c.client(at, nil, bearer("Authorization", "token ", c.Token))
	g := &giteaForge{at: at, owner: owner, name: name, client: client}
	g.commenter.on, g.noun = g, "pull request"
	g.account = account{ask: g.user, token: c.Token, job: c.JobLogin}
	return g, err
}

// sdk is the SDK for one call: it has the context in the client.
func (g *giteaForge) sdk(ctx context.Context) *gitea.Client {
	c, _ := gitea.NewClient(g.at, gitea.SetHTTPClient(g.client), gitea.SetContext(ctx), gitea.SetGiteaVersion("")) // it asks nothing, and so cannot fail
	return c
}

func (g *giteaForge) Open(ctx context.Context, branch string) ([]Pull, error) {
	all, err := allOpen(fmt.Sprintf("pull requests of %s/%s", g.owner, g.name), giteaPull, func(page int) ([]*gitea.PullRequest, int, error) {
		found, answer, err := g.sdk(ctx).ListRepoPullRequests(g.owner, g.name, gitea.ListPullRequestsOptions{
			State: gitea.StateOpen, Sort: "recentupdate", ListOptions: gitea.ListOptions{Page: page, PageSize: 50}})
		if err != nil {
			return nil, 0, err
		}
		return found, answer.NextPage, nil
	})
	return slices.DeleteFunc(all, func(p Pull) bool { return branch != "" && p.Base != branch }), err
}

func (g *giteaForge) Get(ctx context.Context, number int) (Pull, error) {
	p, _, err := g.sdk(ctx).GetPullRequest(g.owner, g.name, int64(number))
	if err != nil {
		return Pull{}, failed(err, "pull request %d", number)
	}
	return giteaPull(p).known()
}

func (g *giteaForge) Merged(ctx context.Context, commit config.Commit) (Pull, error) {
	p, _, err := g.sdk(ctx).GetCommitPullRequest(g.owner, g.name, string(commit))
	switch {
	case IsNotFound(err):
		return Pull{}, nil
	case err != nil:
		return Pull{}, failed(err, "pull request of %s", commit.Short())
	}
	if pull := giteaPull(p); pull.Merge == commit {
		return pull, nil
	}
	return Pull{}, nil
}

func giteaPull(p *gitea.PullRequest) Pull {
	pull := Pull{Fork: true, Number: int(p.Index), URL: p.HTMLURL, Ref: fmt.Sprintf("refs/pull/%d/head", p.Index), Open: p.State == gitea.StateOpen}
	if p.Head != nil {
		pull.Head = config.Commit(p.Head.Sha)
	}
	if p.Base != nil {
		pull.Base = p.Base.Ref
		// With refs/for/main anybody who may read pushes a change into the repository itself,
		// without a branch of it; so looks a branch that is gone.
		pull.Fork = p.Head == nil || p.Head.RepoID != p.Base.RepoID || p.Head.Name == "" || p.Head.Ref == pull.Ref
	}
	if !pull.Fork { // its branch is newer where a pull request was closed and opened again
		pull.Ref = "refs/heads/" + p.Head.Ref
	}
	if p.HasMerged && p.MergedCommitID != nil {
		pull.Merge = config.Commit(*p.MergedCommitID)
	}
	if p.Updated != nil {
		pull.Updated = *p.Updated
	}
	return pull
}

func (g *giteaForge) SetStatus(ctx context.Context, s Status) error {
	_, _, err := g.sdk(ctx).CreateStatus(g.owner, g.name, string(s.Commit), gitea.CreateStatusOption{
		State: gitea.StatusState(s.State), TargetURL: s.URL, Description: statusText(s.Text), Context: s.Name})
	if err != nil {
		return failed(err, "status of %s", s.Commit.Short())
	}
	return nil
}

func (g *giteaForge) Report(context.Context, Report) error { return ErrNoReports }

func (g *giteaForge) user(ctx context.Context) (string, error) {
	user, _, err := g.sdk(ctx).GetMyUserInfo()
	if err != nil {
		return "", err
	}
	return user.UserName, nil
}

func giteaNote(c *gitea.Comment) note {
	n := note{id: c.ID, body: c.Body}
	if c.Poster != nil {
		n.author = c.Poster.UserName
	}
	return n
}

func (g *giteaForge) get(ctx context.Context, _ int, id int64) (note, error) {
	c, _, err := g.sdk(ctx).GetIssueComment(g.owner, g.name, id)
	if err != nil {
		return note{}, err
	}
	return giteaNote(c), nil
}

func (g *giteaForge) list(ctx context.Context, number int) iter.Seq2[note, error] {
	return func(yield func(note, error) bool) {
		// The API gives all comments at once, whatever page is asked for.
		found, _, err := g.sdk(ctx).ListIssueComments(g.owner, g.name, int64(number), gitea.ListIssueCommentOptions{ListOptions: gitea.ListOptions{Page: -1}})
		if err != nil {
			yield(note{}, err)
			return
		}
		for _, c := range found {
			if !yield(giteaNote(c), nil) {
				return
			}
		}
	}
}

func (g *giteaForge) create(ctx context.Context, number int, body string) (note, error) {
	c, _, err := g.sdk(ctx).CreateIssueComment(g.owner, g.name, int64(number), gitea.CreateIssueCommentOption{Body: body})
	if err != nil {
		return note{}, err
	}
	return giteaNote(c), nil
}

func (g *giteaForge) edit(ctx context.Context, _ int, id int64, body string) error {
	_, _, err := g.sdk(ctx).EditIssueComment(g.owner, g.name, id, gitea.EditIssueCommentOption{Body: body})
	return err
}

func (g *giteaForge) remove(ctx context.Context, _ int, id int64) error {
	_, err := g.sdk(ctx).DeleteIssueComment(g.owner, g.name, id)
	return err
}
