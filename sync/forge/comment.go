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
// nobody sees: it says what the comment is about, and has a digest of what it says and a sum of its
// text. A comment with the marker is ours where our own account wrote it, too. Where the text has
// another sum, somebody edited it.
type Comment struct {
	// Subject is what it is about, such as "preview of shop": letters, digits, hyphens,
	// dots and spaces. A pull request has one comment for each.
	Subject string
	// Below is the subject of the comment at whose end it stands, with a marker of its own: the text
	// above it stays as it is. No line of its own text begins with "<". Where there is no such
	// comment, nothing is written. Empty: it is a comment of its own.
	Below string
	// ID is that of the comment, as it was returned before; 0: it is looked for.
	ID   int64
	Text string // markdown
	// Digest is of what the text says. A comment that says the same already, and that nobody
	// edited, is left as it is. Empty: that of the text.
	Digest string
	// OnlyAgain writes nothing where there is no comment yet.
	OnlyAgain bool
}

// DigestOf is a digest of what a comment says.
func DigestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// sumOf is a digest of a text as forges keep it: they may change the ends of lines, and drop
// empty ones at the end.
func sumOf(text string) string {
	return DigestOf(strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n")))
}

const markerStart = "<!-- swell: "

// marker is how all comments about a subject begin.
func marker(subject string) string { return markerStart + subject + ": " }

// first is the marker that the comment begins with in which this one stands.
func (c *Comment) first() string { return marker(cmp.Or(c.Below, c.Subject)) }

func (c *Comment) body() string {
	return marker(c.Subject) + c.Digest + " " + sumOf(c.Text) + " -->\n" + c.Text
}

// says tells whether a text that begins with the marker says the same already, as we wrote it.
func (c *Comment) says(body string) bool {
	above, _ := parts(body)
	line, text, _ := strings.Cut(above, "\n")
	return strings.TrimSuffix(line, "\r") == marker(c.Subject)+c.Digest+" "+sumOf(text)+" -->"
}

// parts are a comment and the one that stands below it, which may be empty. Text of authors may look
// like a marker: a comment whose sum is that of the whole text has nothing below it.
func parts(body string) (above, below string) {
	line, text, _ := strings.Cut(body, "\n")
	end := strings.LastIndex(body, "\n"+markerStart)
	if end < 0 || strings.HasSuffix(strings.TrimSuffix(line, "\r"), " "+sumOf(text)+" -->") {
		return body, ""
	}
	return body[:end+1], body[end+1:]
}

// edited is what becomes of the body of a comment; itself where it says all already.
func (c *Comment) edited(body string) string {
	above, below := parts(body)
	switch {
	case c.Below == "" && c.says(body), c.Below != "" && c.says(below):
		return body
	case c.Below == "":
		return c.body()
	}
	return strings.TrimRight(above, "\r\n") + "\n\n" + c.body()
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
	case len(found) == 0 && (c.OnlyAgain || c.Below != ""):
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
	body := c.edited(n.body)
	if body == n.body {
		return nil
	}
	return w.on.edit(ctx, number, n.id, body)
}

// isOwn says that a comment is about the subject, and of an account.
func (c *Comment) isOwn(n note, login string) bool {
	return strings.EqualFold(n.author, login) && strings.HasPrefix(n.body, c.first())
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
