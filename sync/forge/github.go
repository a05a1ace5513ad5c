// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/google/go-github/v92/github"
	"golang.org/x/time/rate"

	"github.com/swell-sh/swell/config"
)

// gitHubForge is a repository on GitHub, or on a GitHub Enterprise Server.
type gitHubForge struct {
	owner, name string
	client      *github.Client
	app         *appTokens // nil: a token of somebody
	commenter
}

// gitHubWrites keeps below GitHub's limits of 80 requests a minute and 500 an hour that
// create content.
func gitHubWrites() *rate.Limiter { return rate.NewLimiter(rate.Every(8*time.Second), 40) }

func newGitHub(c Config, owner, name string) (*gitHubForge, error) {
	api := c.API
	switch {
	case api != "":
	case c.URL == "https://github.com":
		api = "https://api.github.com"
	default:
		api = c.URL + "/api/v3"
	}
	api = strings.TrimSuffix(api, "/") + "/"
	g := &gitHubForge{owner: owner, name: name}
	g.commenter.on, g.noun = g, "pull request"
	g.account = account{ask: g.user, token: c.Token, job: c.JobLogin}
	authorize := bearer("Authorization", "Bearer ", c.Token)
	if c.App != nil {
		var err error
		if g.app, err = c.App.tokens(c, api, name); err != nil {
			return nil, err
		}
		g.account = account{ask: g.app.login}
		authorize = g.app.authorize
	}
	client, err := c.client(api, gitHubWrites(), authorize)
	if err != nil {
		return nil, err
	}
	if g.app != nil {
		client.Transport = dropping{client.Transport, g.app}
	}
	g.client, err = gitHubSDK(client, api)
	return g, err
}

// dropping drops the token of an App that is refused.
type dropping struct {
	http.RoundTripper
	tokens *appTokens
}

func (d dropping) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := d.RoundTripper.RoundTrip(r)
	if hasStatus(err, http.StatusUnauthorized) {
		d.tokens.drop()
	}
	return answer, err
}

// gitHubSDK is the SDK on a client that knows the limits itself.
func gitHubSDK(client *http.Client, api string) (*github.Client, error) {
	return github.NewClient(github.WithHTTPClient(client), github.WithURLs(&api, nil), github.WithDisableRateLimitCheck())
}

const perPage = 100

func (g *gitHubForge) Open(ctx context.Context, branch string) ([]Pull, error) {
	ask := &github.PullRequestListOptions{State: "open", Base: branch, Sort: "updated", Direction: "desc", ListOptions: github.ListOptions{PerPage: perPage}}
	return allOpen(fmt.Sprintf("pull requests of %s/%s", g.owner, g.name), gitHubPull, func(page int) ([]*github.PullRequest, int, error) {
		ask.Page = page
		found, answer, err := g.client.PullRequests.List(ctx, g.owner, g.name, ask)
		if err != nil {
			return nil, 0, err
		}
		return found, answer.NextPage, nil
	})
}

func (g *gitHubForge) Get(ctx context.Context, number int) (Pull, error) {
	p, _, err := g.client.PullRequests.Get(ctx, g.owner, g.name, number)
	if err != nil {
		return Pull{}, failed(err, "pull request %d", number)
	}
	return gitHubPull(p).known()
}

func (g *gitHubForge) Merged(ctx context.Context, commit config.Commit) (Pull, error) {
	found, _, err := g.client.PullRequests.ListPullRequestsWithCommit(ctx, g.owner, g.name, string(commit), &github.ListOptions{PerPage: perPage})
	if err != nil && !IsNotFound(err) && !hasStatus(err, http.StatusUnprocessableEntity) { // it does not know the commit
		return Pull{}, failed(err, "pull request of %s", commit.Short())
	}
	for _, p := range found {
		if pull := gitHubPull(p); pull.Merge == commit {
			return pull, nil
		}
	}
	return Pull{}, nil
}

func gitHubPull(p *github.PullRequest) Pull {
	pull := Pull{
		Number: p.GetNumber(), URL: p.GetHTMLURL(),
		Head: config.Commit(p.GetHead().GetSHA()), Ref: fmt.Sprintf("refs/pull/%d/head", p.GetNumber()), Base: p.GetBase().GetRef(),
		Fork: p.GetHead().GetRepo().GetID() != p.GetBase().GetRepo().GetID(), // a fork that is gone has no repository
		Open: p.GetState() == "open", Updated: p.GetUpdatedAt().Time,
	}
	if p.MergedAt != nil { // before, it is a commit that a merge would make
		pull.Merge = config.Commit(p.GetMergeCommitSHA())
	}
	return pull
}

func (g *gitHubForge) SetStatus(ctx context.Context, s Status) error {
	state, text := string(s.State), statusText(s.Text)
	status := github.RepoStatus{State: &state, Description: &text, Context: &s.Name}
	if s.URL != "" {
		status.TargetURL = &s.URL
	}
	if _, _, err := g.client.Repositories.CreateStatus(ctx, g.owner, g.name, string(s.Commit), status); err != nil {
		return failed(err, "status of %s", s.Commit.Short())
	}
	return nil
}

// maxAnnotations is how many GitHub takes in a request.
const maxAnnotations = 50

// Report makes a check run. Where it made one for the same report before, and could not end
// it, it goes on with that.
func (g *gitHubForge) Report(ctx context.Context, r Report) error {
	if g.app == nil {
		return ErrNoReports
	}
	notes, digest := annotations(r.Notes), r.digest()
	run, err := g.reported(ctx, r, digest)
	done := min(run.GetOutput().GetAnnotationsCount(), len(notes))
	if err == nil && run == nil {
		done = min(len(notes), maxAnnotations)
		run, err = g.report(ctx, r, digest, notes[:done])
	}
	if err != nil {
		return failed(err, "check run of %s", r.Commit.Short())
	}
	for rest := notes[done:]; len(rest) > 0; {
		next := rest[:min(len(rest), maxAnnotations)]
		rest = rest[len(next):]
		if _, _, err := g.client.Checks.UpdateCheckRun(ctx, g.owner, g.name, run.GetID(), github.UpdateCheckRunOptions{
			Name: r.Name, Output: &github.CheckRunOutput{Title: &r.Title, Summary: &r.Summary, Annotations: next}}); err != nil {
			return failed(err, "check run of %s", r.Commit.Short())
		}
	}
	return nil
}

// digest is the same for equal reports alone.
func (r *Report) digest() string {
	return DigestOf(fmt.Sprintf("%q %t %q %q %q %q", r.Name, r.OK, r.Title, r.Summary, r.URL, fmt.Sprint(r.Notes)))
}

// reported is the check run that was made for a report of a digest; nil: none was.
func (g *gitHubForge) reported(ctx context.Context, r Report, digest string) (*github.CheckRun, error) {
	found, _, err := g.client.Checks.ListCheckRunsForRef(ctx, g.owner, g.name, string(r.Commit), &github.ListCheckRunsOptions{CheckName: &r.Name, ListOptions: github.ListOptions{PerPage: perPage}})
	if err != nil {
		return nil, err
	}
	for _, run := range found.CheckRuns {
		if run.GetExternalID() == digest {
			return run, nil
		}
	}
	return nil, nil
}

// report makes a check run with the first notes.
func (g *gitHubForge) report(ctx context.Context, r Report, digest string, first []*github.CheckRunAnnotation) (*github.CheckRun, error) {
	conclusion, completed := "success", "completed"
	if !r.OK {
		conclusion = "failure"
	}
	run, _, err := g.client.Checks.CreateCheckRun(ctx, g.owner, g.name, github.CreateCheckRunOptions{
		Name: r.Name, HeadSHA: string(r.Commit), ExternalID: &digest, DetailsURL: some(r.URL), Status: &completed, Conclusion: &conclusion,
		Output: &github.CheckRunOutput{Title: &r.Title, Summary: &r.Summary, Annotations: first}})
	return run, err
}

func annotations(notes []Note) (all []*github.CheckRunAnnotation) {
	failure := "failure"
	for _, n := range notes {
		line := max(n.Line, 1)
		a := &github.CheckRunAnnotation{Path: &n.Path, StartLine: &line, EndLine: &line, AnnotationLevel: &failure, Message: &n.Text, Title: some(n.Title)}
		if n.Column > 0 {
			a.StartColumn, a.EndColumn = &n.Column, &n.Column
		}
		all = append(all, a)
	}
	return all
}

// some is a text that is there; nil where it is empty.
func some(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func (g *gitHubForge) user(ctx context.Context) (string, error) {
	user, _, err := g.client.Users.Get(ctx, "")
	return user.GetLogin(), err
}

func gitHubNote(c *github.IssueComment) note {
	return note{c.GetID(), c.GetUser().GetLogin(), c.GetBody()}
}

func (g *gitHubForge) get(ctx context.Context, _ int, id int64) (note, error) {
	c, _, err := g.client.Issues.GetComment(ctx, g.owner, g.name, id)
	return gitHubNote(c), err
}

func (g *gitHubForge) list(ctx context.Context, number int) iter.Seq2[note, error] {
	return func(yield func(note, error) bool) {
		for c, err := range eachPage(func(page int) ([]*github.IssueComment, int, error) {
			found, answer, err := g.client.Issues.ListComments(ctx, g.owner, g.name, number, &github.IssueListCommentsOptions{ListOptions: github.ListOptions{PerPage: perPage, Page: page}})
			if err != nil {
				return nil, 0, err
			}
			return found, answer.NextPage, nil
		}) {
			if !yield(gitHubNote(c), err) {
				return
			}
		}
	}
}

func (g *gitHubForge) create(ctx context.Context, number int, body string) (note, error) {
	c, _, err := g.client.Issues.CreateComment(ctx, g.owner, g.name, number, github.IssueCommentRequest{Body: body})
	return gitHubNote(c), err
}

func (g *gitHubForge) edit(ctx context.Context, _ int, id int64, body string) error {
	_, _, err := g.client.Issues.UpdateComment(ctx, g.owner, g.name, id, github.IssueCommentRequest{Body: body})
	return err
}

func (g *gitHubForge) remove(ctx context.Context, _ int, id int64) error {
	_, err := g.client.Issues.DeleteComment(ctx, g.owner, g.name, id)
	return err
}
