// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"slices"
	"strings"
)

// Comment is a comment that is kept up to date in place. Its first line is a marker that
// nobody sees: it says what the comment is about, and has a digest of what it says. A
// comment with the marker is ours where our own account wrote it, too.
type Comment struct {
	// Subject is what it is about, such as "preview of shop": letters, digits, hyphens,
	// dots and spaces. A pull request has one comment for each.
	Subject string
	// ID is that of the comment, as it was returned before; 0: it is looked for.
	ID   int64
	Text string // markdown
	// Digest is of what the text says. A comment that says the same already is left as
	// it is. Empty: that of the text.
	Digest string
	// OnlyAgain writes nothing where there is no comment yet.
	OnlyAgain bool
}

// DigestOf is a digest of what a comment says.
func DigestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// marker is how all comments about a subject begin.
func (c *Comment) marker() string { return "<!-- swell: " + c.Subject + ": " }

func (c *Comment) body() string {
	return c.marker() + c.Digest + " -->\n" + c.Text
}

// says tells whether a comment says the same already.
func (c *Comment) says(body string) bool {
	return strings.HasPrefix(body, c.marker()+c.Digest+" -->")
}

// note is a comment as a forge has it.
type note struct {
	id     int64
	author string
	body   string
}

// notes are what a forge does with comments.
type notes interface {
	get(ctx context.Context, number int, id int64) (note, error)
	// list are all comments of a pull request, in any order. It may end with an error.
	list(ctx context.Context, number int) iter.Seq2[note, error]
	create(ctx context.Context, number int, body string) (note, error)
	edit(ctx context.Context, number int, id int64, body string) error
	remove(ctx context.Context, number int, id int64) error
}

// commenter writes the comments of an account.
type commenter struct {
	on      notes
	account account
	noun    string // for a pull request
}

// Comment is that of a [Forge].
func (w *commenter) Comment(ctx context.Context, number int, c Comment) (int64, error) {
	id, err := w.write(ctx, number, c)
	if err != nil {
		return 0, failed(err, "comment on %s %d", w.noun, number)
	}
	return id, nil
}

// write writes a comment once. It looks for the comment only where its ID is not known, or
// where the one with that ID is gone or is not ours: an ID may be from another time, or another
// forge. Where two write the first one at the same time, the older one stays.
func (w *commenter) write(ctx context.Context, number int, c Comment) (id int64, err error) {
	if c.Digest == "" {
		c.Digest = DigestOf(c.Text)
	}
	login, err := w.account.name(ctx)
	if err != nil {
		return 0, failed(err, "the account's name")
	}
	if c.ID != 0 {
		n, err := w.on.get(ctx, number, c.ID)
		if err == nil && c.isOwn(n, login) {
			err = w.update(ctx, number, n, c)
			if err == nil {
				return n.id, nil
			}
		}
		if err != nil && !IsNotFound(err) {
			return 0, err
		}
	}
	found, err := w.own(ctx, number, c, login)
	if err != nil {
		return 0, err
	}
	switch {
	case len(found) == 0 && c.OnlyAgain:
		return 0, nil
	case len(found) == 0:
		made, err := w.on.create(ctx, number, c.body())
		if err != nil {
			return 0, err
		}
		if found, err = w.own(ctx, number, c, cmp.Or(made.author, login)); err != nil || len(found) == 0 || found[0].id == made.id && len(found) == 1 {
			return made.id, err
		}
	}
	if err := w.update(ctx, number, found[0], c); err != nil {
		return 0, err
	}
	for _, double := range found[1:] {
		if err := w.on.remove(ctx, number, double.id); err != nil && !IsNotFound(err) {
			return 0, err
		}
	}
	return found[0].id, nil
}

// update has a comment say something else.
func (w *commenter) update(ctx context.Context, number int, n note, c Comment) error {
	if c.says(n.body) {
		return nil
	}
	return w.on.edit(ctx, number, n.id, c.body())
}

// isOwn says that a comment is about the subject, and of an account.
func (c *Comment) isOwn(n note, login string) bool {
	return strings.EqualFold(n.author, login) && strings.HasPrefix(n.body, c.marker())
}

// own are comments about the subject of an account, the oldest first.
func (w *commenter) own(ctx context.Context, number int, c Comment, login string) (found []note, err error) {
	for n, err := range w.on.list(ctx, number) {
		if err != nil {
			return nil, err
		}
		if c.isOwn(n, login) {
			found = append(found, n)
		}
	}
	slices.SortFunc(found, func(a, b note) int { return cmp.Compare(a.id, b.id) })
	return found, nil
}
