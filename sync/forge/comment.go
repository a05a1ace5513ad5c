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
	// login is the name of the account.
	login(ctx context.Context) (string, error)
	// list are all comments of a pull request, in any order. It may end with an error.
	list(ctx context.Context, number int) iter.Seq2[note, error]
	create(ctx context.Context, number int, body string) (note, error)
	edit(ctx context.Context, number int, id int64, body string) error
	remove(ctx context.Context, number int, id int64) error
}

// write writes a comment once. It looks for the comment only where its ID is not known, or
// the comment is gone or another account's. Where two write the first one at the same time,
// the older one stays.
func (c Comment) write(ctx context.Context, on notes, number int) (id int64, err error) {
	if c.Digest == "" {
		c.Digest = DigestOf(c.Text)
	}
	if c.ID != 0 {
		if err := on.edit(ctx, number, c.ID, c.body()); !IsNotFound(err) && !IsDenied(err) {
			return c.ID, err
		}
	}
	login, err := on.login(ctx)
	if err != nil {
		return 0, failed(err, "the account's name")
	}
	found, err := c.own(ctx, on, number, login)
	if err != nil {
		return 0, err
	}
	switch {
	case len(found) == 0 && c.OnlyAgain:
		return 0, nil
	case len(found) == 0:
		made, err := on.create(ctx, number, c.body())
		if err != nil {
			return 0, err
		}
		if found, err = c.own(ctx, on, number, cmp.Or(made.author, login)); err != nil || len(found) == 0 || found[0].id == made.id && len(found) == 1 {
			return made.id, err
		}
	}
	if !c.says(found[0].body) {
		if err := on.edit(ctx, number, found[0].id, c.body()); err != nil {
			return 0, err
		}
	}
	for _, double := range found[1:] {
		if err := on.remove(ctx, number, double.id); err != nil && !IsNotFound(err) {
			return 0, err
		}
	}
	return found[0].id, nil
}

// own are comments about the subject of an account, the oldest first.
func (c *Comment) own(ctx context.Context, on notes, number int, login string) (found []note, err error) {
	for n, err := range on.list(ctx, number) {
		if err != nil {
			return nil, err
		}
		if strings.EqualFold(n.author, login) && strings.HasPrefix(n.body, c.marker()) {
			found = append(found, n)
		}
	}
	slices.SortFunc(found, func(a, b note) int { return cmp.Compare(a.id, b.id) })
	return found, nil
}

// maxPages is how many pages of a hundred are read of anything.
const maxPages = 100
