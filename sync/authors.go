// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"fmt"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/store"
)

// findAuthors finds who wrote what a new commit brings: they do not approve it. While
// releases of the commit before are withheld, its authors are among them. Each is known by
// the email and, where an operator has that email, by the name of the user.
func (d *Daemon) findAuthors(r *Record) {
	was := d.orders.brought
	if d.Authors == nil || !d.monorepo.isKnown() || d.monorepo.snapshot.Commit == was.Commit {
		return
	}
	is := store.Brought{Commit: d.monorepo.snapshot.Commit}
	emails, err := d.Authors(was.Commit, is.Commit)
	if err != nil { // the first commit's at least
		r.fail(fmt.Errorf("who wrote what commit %s brings is not known in full: %w", is.Commit.Short(), err))
		if emails, err = d.Authors("", is.Commit); err != nil {
			r.fail(err)
		}
		emails = append(emails, was.Authors...)
	}
	is.Authors = namedAuthors(emails, d.Operators)
	if len(d.monorepo.wanted.Withheld)+len(d.guarded.waiting) > 0 {
		is.Authors = append(is.Authors, was.Authors...)
	}
	slices.Sort(is.Authors)
	is.Authors = slices.Compact(is.Authors)
	d.orders.brought = is
}

// namedAuthors are authors by their emails, and by the names of the operators who have
// them.
func namedAuthors(emails []string, operators []config.Operator) (names []string) {
	for _, email := range emails {
		names = append(names, email)
		for _, o := range operators {
			if slices.ContainsFunc(o.Emails, func(known string) bool { return strings.EqualFold(known, email) }) {
				names = append(names, o.User)
			}
		}
	}
	return names
}
