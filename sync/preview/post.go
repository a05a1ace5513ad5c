// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"errors"
	"fmt"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/report"
	"github.com/swell-sh/swell/sync/forge"
)

// StatusName is what the status of a monorepo's previews is called.
func StatusName(monorepo string) string { return "swell/" + monorepo }

// Subject is what the comment of a monorepo's previews is about.
func Subject(monorepo string) string { return "preview of " + monorepo }

// write posts an answer. A comment that is refused, as on a locked pull request, keeps no
// status from being set.
func (p *Previewer) write(ctx context.Context, is *pull) error {
	c, status := p.words(is)
	commented := p.comment(ctx, is, c)
	var limit *forge.LimitError
	if errors.As(commented, &limit) {
		return commented
	}
	if err := errors.Join(commented, p.status(ctx, is, status)); err != nil {
		return err
	}
	return p.report(ctx, is)
}

// words are what an answer says.
func (p *Previewer) words(is *pull) (forge.Comment, forge.Status) {
	a := is.answer
	status := forge.Status{Commit: is.Head, Name: p.statusName(), State: a.State(), Text: a.Text, URL: p.link(is), Pull: is.Number}
	if a.Failed == "" {
		return forge.Comment{Text: a.Comment, Digest: a.Digest, OnlyAgain: a.Nothing}, status
	}
	text := fmt.Sprintf("### swell: :x: gave up\n\nThere is no preview of %s:\n\n%s\nIt is tried again by itself, and at the next push.\n",
		is.Head.Short(), report.Fenced("text", []string{document.Cut(document.Printable(a.Failed), maxReason)}))
	status.State, status.Text, status.URL = forge.Failure, "gave up: "+a.Failed, ""
	return forge.Comment{Text: text, Digest: forge.DigestOf(text)}, status
}

// maxReason is in bytes.
const maxReason = 1000

// comment writes a comment that says something new. At each new head it is read: somebody may have
// edited it.
func (p *Previewer) comment(ctx context.Context, is *pull, c forge.Comment) error {
	if is.posted.Digest == c.Digest && is.posted.Read == is.Head {
		return nil
	}
	c.Subject, c.ID = p.subject(), is.posted.Comment
	id, err := p.Forge.Comment(ctx, is.Number, c)
	if err != nil {
		return err
	}
	is.posted.Comment, is.posted.Digest, is.posted.Read = id, c.Digest, is.Head
	return p.files.write(is.Number, is.posted)
}

// status sets a status that says something new.
func (p *Previewer) status(ctx context.Context, is *pull, s forge.Status) error {
	if is.posted.has(s) {
		return nil
	}
	if err := p.Forge.SetStatus(ctx, s); err != nil {
		return err
	}
	is.posted.Head, is.posted.State, is.posted.Text, is.posted.URL = s.Commit, s.State, s.Text, s.URL
	return p.files.write(is.Number, is.posted)
}

// has says that a status was posted already.
func (p *posted) has(s forge.Status) bool {
	return p.Head == s.Commit && p.State == s.State && p.Text == s.Text && p.URL == s.URL
}

// report shows problems beside their lines, where the credential lets it and it was not done.
func (p *Previewer) report(ctx context.Context, is *pull) error {
	a := is.answer
	made := string(a.Head) + " " + a.Digest
	if a.Failed != "" || is.posted.Report == made {
		return nil
	}
	err := p.Forge.Report(ctx, forge.Report{Commit: a.Head, Name: p.statusName() + " lines", OK: !a.Bad, Title: a.Text, Summary: a.Comment, URL: p.link(is), Notes: a.Notes})
	if errors.Is(err, forge.ErrNoReports) {
		return nil
	}
	if err != nil {
		return err
	}
	is.posted.Report = made
	return p.files.write(is.Number, is.posted)
}
