// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"net/http"
	"strings"

	gitlab "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/swell-sh/swell/config"
)

// gitLabForge is a project on GitLab.
type gitLabForge struct {
	project string
	client  *gitlab.Client
	commenter
}

func newGitLab(c Config) (*gitLabForge, error) {
	api := cmp.Or(c.API, c.URL+"/api/v4")
	client, err := c.client(api, nil, bearer("PRIVATE-TOKEN", "", c.Token))
	if err != nil {
		return nil, err
	}
	sdk, err := gitlab.NewClient("", gitlab.WithBaseURL(api), gitlab.WithHTTPClient(client), gitlab.WithoutRetries())
	g := &gitLabForge{project: c.Project, client: sdk}
	g.commenter.on, g.noun = g, "merge request"
	g.account = account{ask: g.user, token: c.Token}
	return g, err
}

func (g *gitLabForge) Open(ctx context.Context, branch string) ([]Pull, error) {
	ask := &gitlab.ListProjectMergeRequestsOptions{State: some("opened"), OrderBy: some("updated_at"), Sort: some("desc"), TargetBranch: some(branch), ListOptions: gitlab.ListOptions{PerPage: perPage}}
	return allOpen("merge requests of "+g.project, gitLabPull, func(page int) ([]*gitlab.BasicMergeRequest, int, error) {
		ask.Page = int64(page)
		found, answer, err := g.client.MergeRequests.ListProjectMergeRequests(g.project, ask, gitlab.WithContext(ctx))
		if err != nil {
			return nil, 0, err
		}
		return found, int(answer.NextPage), nil
	})
}

func (g *gitLabForge) Get(ctx context.Context, number int) (Pull, error) {
	m, err := g.request(ctx, number)
	if err != nil {
		return Pull{}, err
	}
	return gitLabPull(&m.BasicMergeRequest).known()
}

func (g *gitLabForge) request(ctx context.Context, number int) (*gitlab.MergeRequest, error) {
	m, _, err := g.client.MergeRequests.GetMergeRequest(g.project, int64(number), nil, gitlab.WithContext(ctx))
	if err != nil {
		return nil, failed(err, "merge request %d", number)
	}
	return m, nil
}

func (g *gitLabForge) Merged(ctx context.Context, commit config.Commit) (Pull, error) {
	found, _, err := g.client.Commits.ListMergeRequestsByCommit(g.project, string(commit), gitlab.WithContext(ctx))
	if err != nil && !IsNotFound(err) {
		return Pull{}, failed(err, "merge request of %s", commit.Short())
	}
	for _, m := range found {
		if pull := gitLabPull(m); pull.Merge == commit {
			return pull, nil
		}
	}
	return Pull{}, nil
}

func gitLabPull(m *gitlab.BasicMergeRequest) Pull {
	pull := Pull{Number: int(m.IID), URL: m.WebURL, Head: config.Commit(m.SHA), Ref: fmt.Sprintf("refs/merge-requests/%d/head", m.IID),
		Base: m.TargetBranch, Fork: m.SourceProjectID != m.TargetProjectID, Open: m.State == "opened"}
	if m.State == "merged" { // a fast-forward has no merge commit, and a squash has its own
		pull.Merge = config.Commit(cmp.Or(m.MergeCommitSHA, m.SquashCommitSHA, m.SHA))
	}
	if m.UpdatedAt != nil {
		pull.Updated = *m.UpdatedAt
	}
	return pull
}

// SetStatus adds a job to the pipeline of the commit. For the head of a merge request it
// names the pipeline: GitLab would put it into another one, or make one, which the merge
// request would wait for.
func (g *gitLabForge) SetStatus(ctx context.Context, s Status) error {
	options := &gitlab.SetCommitStatusOptions{State: gitLabState(s.State), Name: &s.Name, Description: some(statusText(s.Text)), TargetURL: some(s.URL)}
	if s.Pull != 0 {
		m, err := g.request(ctx, s.Pull)
		if err != nil {
			return err
		}
		if p := m.HeadPipeline; p != nil && p.SHA == string(s.Commit) && p.ProjectID == m.TargetProjectID {
			options.PipelineID = &p.ID
		} else if m.SourceProjectID != m.TargetProjectID { // the project has no branch with the commit
			options.Ref = some(m.SourceBranch)
		}
	}
	_, _, err := g.client.Commits.SetCommitStatus(g.project, string(s.Commit), options, gitlab.WithContext(ctx))
	if isSameState(err) {
		return nil
	}
	if err != nil {
		return failed(err, "status of %s", s.Commit.Short())
	}
	return nil
}

// isSameState says that a status is in that state already, which GitLab calls an error.
func isSameState(err error) bool {
	return hasStatus(err, http.StatusBadRequest) && strings.Contains(err.Error(), "Cannot transition status")
}

func gitLabState(s State) gitlab.BuildStateValue {
	switch s {
	case Success:
		return gitlab.Success
	case Failure:
		return gitlab.Failed
	}
	return gitlab.Running // from pending, a status does not become success at once
}

func (g *gitLabForge) Report(context.Context, Report) error { return ErrNoReports }

func (g *gitLabForge) user(ctx context.Context) (string, error) {
	user, _, err := g.client.Users.CurrentUser(gitlab.WithContext(ctx))
	if err != nil {
		return "", err
	}
	return user.Username, nil
}

func gitLabNote(n *gitlab.Note) note { return note{n.ID, n.Author.Username, n.Body} }

func (g *gitLabForge) get(ctx context.Context, number int, id int64) (note, error) {
	n, _, err := g.client.Notes.GetMergeRequestNote(g.project, int64(number), id, gitlab.WithContext(ctx))
	if err != nil {
		return note{}, err
	}
	return gitLabNote(n), nil
}

func (g *gitLabForge) list(ctx context.Context, number int) iter.Seq2[note, error] {
	return func(yield func(note, error) bool) {
		for n, err := range eachPage(func(page int) ([]*gitlab.Note, int, error) {
			found, answer, err := g.client.Notes.ListMergeRequestNotes(g.project, int64(number), &gitlab.ListMergeRequestNotesOptions{ListOptions: gitlab.ListOptions{PerPage: perPage, Page: int64(page)}}, gitlab.WithContext(ctx))
			if err != nil {
				return nil, 0, err
			}
			return found, int(answer.NextPage), nil
		}) {
			if err != nil {
				yield(note{}, err)
				return
			}
			if !n.System && !yield(gitLabNote(n), nil) {
				return
			}
		}
	}
}

func (g *gitLabForge) create(ctx context.Context, number int, body string) (note, error) {
	n, _, err := g.client.Notes.CreateMergeRequestNote(g.project, int64(number), &gitlab.CreateMergeRequestNoteOptions{Body: &body}, gitlab.WithContext(ctx))
	if err != nil {
		return note{}, err
	}
	return gitLabNote(n), nil
}

func (g *gitLabForge) edit(ctx context.Context, number int, id int64, body string) error {
	_, _, err := g.client.Notes.UpdateMergeRequestNote(g.project, int64(number), id, &gitlab.UpdateMergeRequestNoteOptions{Body: &body}, gitlab.WithContext(ctx))
	return err
}

func (g *gitLabForge) remove(ctx context.Context, number int, id int64) error {
	_, err := g.client.Notes.DeleteMergeRequestNote(g.project, int64(number), id, gitlab.WithContext(ctx))
	return err
}
