// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"fmt"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// findAuthors finds who wrote what a new commit brings: they do not approve it. While
// releases of the commit before are withheld, its authors are among them, and while a unit has
// a problem, those of its changes. Each is known by
// the email and, where an operator has that email, by the name of the user.
func (d *Daemon) findAuthors(r *Record) {
	d.noteRefused()
	before := d.orders.brought
	if d.Authors == nil || !d.monorepo.isKnown() {
		return
	}
	defer func() { d.orders.taken = taken{d.monorepo.snapshot, d.monorepo.wanted} }()
	if d.monorepo.snapshot.Commit == before.Commit {
		return
	}
	next := store.Brought{Commit: d.monorepo.snapshot.Commit, Base: d.monorepo.base}
	emails, err := d.Authors(before.Commit, next.Commit)
	if err != nil { // the first commit's at least
		r.fail(fmt.Errorf("who wrote what commit %s brings is not known in full: %w", next.Commit.Short(), err))
		if emails, err = d.Authors("", next.Commit); err != nil {
			r.fail(err)
		}
		emails = append(emails, before.Authors...)
	}
	fresh := namedAuthors(emails, d.Operators)
	isWithheld := len(d.monorepo.wanted.Withheld)+len(d.guarded.waiting) > 0
	if next.Authors = rollout.Union(fresh, nil); isWithheld {
		next.Authors = rollout.Union(fresh, before.Authors)
	}
	next.Unreleased = d.unreleased(before.Unreleased, fresh, isWithheld)
	d.orders.brought = next
}

// noteRefused keeps which commit nothing may be taken from: after a restart without Git, it goes
// on to hold.
func (d *Daemon) noteRefused() {
	s := d.monorepo.snapshot
	if s == nil {
		return
	}
	d.orders.brought.Refused = ""
	if !d.monorepo.isKnown() {
		d.orders.brought.Refused = s.Commit
	}
}

// taken is a commit as it was taken.
type taken struct {
	snapshot *render.Snapshot
	wanted   *rollout.Wanted
}

// unreleased are the authors of changes that did not come to be released, as the unit had a
// problem: of units that have one by now, and of those that this commit mends. known are those of
// the commit before; authors wrote the changes since then.
func (d *Daemon) unreleased(known map[config.UnitPath][]string, authors []string, isWithheld bool) map[config.UnitPath][]string {
	earlier, wanted := d.orders.taken.wanted, d.monorepo.wanted
	all := map[config.UnitPath][]string{}
	for path, names := range known {
		wasMended := earlier != nil && earlier.Units[path] != nil && earlier.WhyFrozen(path) == "" && !isWithheld
		if wanted.Units[path] != nil && !wasMended {
			all[path] = names
		}
	}
	for path := range wanted.Units {
		if wanted.WhyFrozen(path) != "" && d.changes(path) {
			all[path] = rollout.Union(authors, all[path])
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// changes says that a unit with a problem is another one than in the commit before, or that
// nobody knows that one any more. A unit without files to look at is known by its problem.
func (d *Daemon) changes(path config.UnitPath) bool {
	before := d.orders.taken
	if before.wanted == nil {
		return true
	}
	return d.monorepo.snapshot.Units.Get(path) != before.snapshot.Units.Get(path) ||
		d.monorepo.wanted.WhyFrozen(path) != before.wanted.WhyFrozen(path)
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
