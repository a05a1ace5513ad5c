// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"errors"
	"time"

	"github.com/swell-sh/swell/sync/forge"
)

// maxAsked is of how many pull requests that are not there any more it is asked at a time what
// became of them.
const maxAsked = 100

// ask has it read what became of pull requests that are not there any more.
func (p *Previewer) ask(numbers []int, there map[int]bool) {
	asked := 0
	for _, number := range numbers {
		if !there[number] && p.gone[number] == nil && asked < maxAsked {
			p.Wake(number)
			asked++
		}
	}
}

// leave is about a pull request that is not open any more, or not into the branch.
func (p *Previewer) leave(number int, away bool) {
	is := p.known[number]
	if is == nil {
		is = &pull{Pull: forge.Pull{Number: number}, posted: p.files.read(number)}
	}
	delete(p.known, number)
	p.setTrouble(number, "")
	if is.posted != (posted{}) && !is.posted.Gone {
		is.away, is.answer, is.posts = away, nil, forge.Tries{}
		p.gone[number] = is
	}
}

// tellGone tells of pull requests that left, once it is known what the monorepo is called. What was
// said of one that is into another branch now holds no more; a status that says that its preview
// is under way ends.
func (p *Previewer) tellGone(ctx context.Context, now time.Time) {
	if p.newest().Monorepo == "" {
		return
	}
	for number, is := range p.gone {
		if now.Before(p.writable()) || ctx.Err() != nil {
			return
		}
		if now.Before(is.posts.Next) {
			continue
		}
		err := p.writeGone(ctx, is)
		var limit *forge.LimitError
		switch {
		case err == nil:
		case errors.As(err, &limit) || !forge.IsRefusal(err): // nobody refused this one
			p.refused(ctx, now, number, err)
			continue
		default:
			p.Log.Warn("previews", "pull", number, "err", err)
			if is.posts.Fail(now, 0); is.posts.Failed < maxTries {
				continue
			}
		}
		delete(p.gone, number)
		is.posted.Gone = true
		if err := p.files.write(number, is.posted); err != nil {
			p.Log.Error("previews", "pull", number, "err", err)
		}
	}
}

// writeGone writes what is left to say of a pull request that left.
func (p *Previewer) writeGone(ctx context.Context, is *pull) error {
	if is.posted.State == "" || is.posted.State != forge.Pending && !is.away {
		return nil
	}
	text := "no preview: it was closed"
	if is.away {
		text = "no preview: it is for another branch"
	}
	err := p.status(ctx, is, forge.Status{Commit: is.posted.Head, Name: p.statusName(), State: forge.Success, Text: text, Pull: is.Number})
	if is.away && is.posted.Comment != 0 {
		comment := "### swell: " + text + "\n"
		err = errors.Join(err, p.comment(ctx, is, forge.Comment{Text: comment, Digest: forge.DigestOf(comment), OnlyAgain: true}))
	}
	return err
}
