// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/report"
	"github.com/swell-sh/swell/sync/forge"
	"github.com/swell-sh/swell/sync/preview"
	"github.com/swell-sh/swell/sync/source"
)

// job is the job of continuous integration that swell diff --comment runs in.
type job struct {
	forge.Job
	on forge.Forge
	// pull is the pull request that it is about; of number 0 where there is none.
	pull forge.Pull
}

// openJob finds out which job this is, before anything is rendered.
func openJob(ctx context.Context, in *invocation) (*job, error) {
	is, err := forge.ReadJob(in.getenv)
	switch {
	case errors.Is(err, forge.ErrNoJob):
		return nil, hinted{fmt.Errorf("--comment: %w", err), "swell ci init writes a job that runs it; without the flag, nothing is posted"}
	case err != nil:
		return nil, fmt.Errorf("--comment: %w", err)
	}
	if _, err := is.Token(); err != nil {
		return nil, hinted{fmt.Errorf("--comment: %w", err), tokenHint(is.Type)}
	}
	on, err := forge.New(is.Config)
	if err != nil {
		return nil, fmt.Errorf("--comment: %w", err)
	}
	j := &job{Job: is, on: on}
	if j.pull, err = j.find(ctx); err != nil {
		return nil, j.explain(err)
	}
	return j, nil
}

// tokenHint says which token a job needs.
func tokenHint(on forge.Type) string {
	switch on {
	case forge.GitHub:
		return "set GITHUB_TOKEN: ${{ github.token }} in the step's env, and give the job the permissions pull-requests: write and statuses: write; for a pull request of a fork, see the second file that swell ci init github writes"
	case forge.GitLab:
		return "CI_JOB_TOKEN cannot comment: make a project access token with the scope api and the role Developer, and set it as the variable GITLAB_TOKEN, masked and not protected"
	}
	return "set GITEA_TOKEN to a token with the scopes read:user, write:issue and write:repository; for a pull request of a fork, see the second file that swell ci init gitea writes"
}

// post writes the comment and the status of a comparison. Its error is the exit code, or why
// nothing was posted.
func (j *job) post(cmd *cobra.Command, where *repoFlags, c *comparison) error {
	ctx, notes := cmd.Context(), cmd.ErrOrStderr()
	pull, err := j.find(ctx) // once more: it may have been pushed to
	switch {
	case err != nil:
		return j.explain(err)
	case pull.Number == 0:
		fmt.Fprintln(notes, "swell: note: nothing is posted: no open pull request has this commit")
		return j.exit(c)
	case j.Head != "" && pull.Head != j.Head:
		fmt.Fprintf(notes, "swell: note: nothing is posted: pull request %d has moved on to %s\n", pull.Number, pull.Head.Short())
		return j.exit(c)
	case c.head.Commit != "" && c.head.Commit != pull.Head:
		fmt.Fprintf(notes, "swell: note: nothing is posted: %s is not the head of pull request %d, which is %s\n", c.to, pull.Number, pull.Head.Short())
		return j.exit(c)
	case !where.isBranch(c.from, pull.Base):
		fmt.Fprintf(notes, "swell: note: nothing is posted: pull request %d is for the branch %s, and it was compared with %s\n", pull.Number, document.Shorten(pull.Base), c.from)
		return j.exit(c)
	}
	change := c.change()
	change.Head, change.Link = pull.Head.Short(), j.URL
	answer := answerOf(change, pull.Head)
	name := cmp.Or(c.base.Repository.Name, c.head.Repository.Name) // of a base with problems, it may not be known
	if name == "" {
		return hinted{errors.New("--comment: the monorepo's name is not known"), "metadata.name of its " + repositoryFile + " is missing, or cannot be read"}
	}
	if err := postPreview(ctx, j.on, pull, answer, name, j.URL); err != nil {
		return j.explain(err)
	}
	fmt.Fprintf(notes, "swell: posted on pull request %d\n", pull.Number)
	if err := where.in.jobSummary(answer.Comment); err != nil {
		fmt.Fprintf(notes, "swell: note: the summary of the job: %v\n", err)
	}
	return j.exit(c)
}

// checkedOut tells whether the working tree is at the head of the pull request. A merge of it
// may be there, too: then what the forge made of both is compared. Anything else is an error.
func (j *job) checkedOut(repo string) (isHead bool, err error) {
	src, err := source.OpenLocal(repo)
	if err != nil {
		return false, err
	}
	at, err := src.Resolve("HEAD")
	if err != nil {
		return false, err
	}
	if at == j.pull.Head {
		return true, nil
	}
	if common, err := src.MergeBase(at, j.pull.Head); err == nil && common == j.pull.Head {
		return false, nil
	}
	return false, hinted{fmt.Errorf("--comment: the working tree has %s, and not the head of pull request %d, %s", at.Short(), j.pull.Number, j.pull.Head.Short()),
		"check out the head, as the job of swell ci init does, or name it: swell diff BASE " + string(j.pull.Head)}
}

// isBranch says that a revision may be a branch of the forge: "origin/main" is main where no
// branch here has that name, and nobody knows of a commit.
func (p *repoFlags) isBranch(revision, branch string) bool {
	if isCommit(revision) {
		return true
	}
	if name, is := strings.CutPrefix(revision, "refs/heads/"); is {
		return name == branch
	}
	if src, err := source.OpenLocal(p.in.path(p.repo)); err == nil {
		if _, err := src.Resolve("refs/heads/" + revision); err == nil {
			return revision == branch
		}
	}
	_, name, _ := strings.Cut(strings.TrimPrefix(revision, "refs/remotes/"), "/") // behind that of a remote
	return revision == branch || name == branch
}

var isCommit = regexp.MustCompile(`^[0-9a-f]{7,40}$`).MatchString

// find finds the pull request that the job is about.
func (j *job) find(ctx context.Context) (forge.Pull, error) {
	if j.Pull != 0 {
		return j.on.Get(ctx, j.Pull)
	}
	if j.Head == "" {
		return forge.Pull{}, nil
	}
	open, err := j.on.Open(ctx, "")
	for _, pull := range open {
		if pull.Head == j.Head {
			return pull, err
		}
	}
	return forge.Pull{}, err
}

// exit is the exit code of a job: changes are no failure.
func (j *job) exit(c *comparison) error {
	if verdict, _ := c.verdict(); verdict == report.Bad {
		return exit(exitError)
	}
	return nil
}

// explain says what to do where a forge refuses.
func (j *job) explain(err error) error {
	err = fmt.Errorf("--comment: %w", err)
	var limit *forge.LimitError
	switch {
	case errors.As(err, &limit):
		return hinted{err, "start the job once more after that"}
	case forge.IsDenied(err) && strings.Contains(err.Error(), "is locked"): // a database may be, too
		return hinted{err, "the conversation is locked: the status of the commit is all that swell can write until somebody unlocks it"}
	case forge.IsDenied(err):
		return hinted{err, tokenHint(j.Type)}
	case forge.IsNotFound(err):
		return hinted{err, fmt.Sprintf("either %s has no project %s or no such pull request, or the token may not see it: %s", j.Config.URL, document.Shorten(j.Project), tokenHint(j.Type))}
	}
	return err
}

// postPreview writes the sticky comment and the status of a pull request. Where the comment is
// refused, the status is written all the same.
func postPreview(ctx context.Context, on forge.Forge, pull forge.Pull, is preview.Answer, name, link string) error {
	_, err := on.Comment(ctx, pull.Number, forge.Comment{Subject: preview.Subject(name), Text: is.Comment, Digest: is.Digest, OnlyAgain: is.Nothing})
	if err != nil && !forge.IsRefusal(err) {
		return err
	}
	return errors.Join(err, on.SetStatus(ctx, forge.Status{Commit: pull.Head, Name: preview.StatusName(name), State: is.State(), Text: is.Text, URL: link, Pull: pull.Number}))
}

// jobSummary adds a comment to the summary of a job of GitHub or Gitea, where there is one.
func (in *invocation) jobSummary(comment string) error {
	file := in.getenv("GITHUB_STEP_SUMMARY")
	if file == "" {
		return nil
	}
	f, err := os.OpenFile(in.path(file), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return in.named(err)
	}
	_, err = io.WriteString(f, comment)
	return errors.Join(err, f.Close())
}

// verdict is that of the comparison.
func (c *comparison) verdict() (report.Verdict, string) {
	return (&report.Change{Report: c.report, Problems: c.problems, Before: c.before, BaseHeld: c.mends(), Rules: c.rules}).Verdict()
}
