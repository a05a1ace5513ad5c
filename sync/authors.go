// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"fmt"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// findAuthors finds who wrote what a new commit brings: they do not approve it. While
// releases of the commit before are withheld, its authors are among them, and while a unit has
// a problem, those of its changes. Each is known by
// the email and, where an operator has that email, by the name of the user.
func (d *Daemon) findAuthors(r *Record) {
	if s := d.monorepo.snapshot; s != nil && !d.monorepo.isKnown() {
		d.orders.brought.Refused = s.Commit
	} else if s != nil {
		d.orders.brought.Refused = ""
	}
	before := d.orders.brought
	if d.Authors == nil || !d.monorepo.isKnown() || d.monorepo.snapshot.Commit == before.Commit {
		return
	}
	next := store.Brought{Commit: d.monorepo.snapshot.Commit}
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
	if next.Authors = sortedNames(fresh, nil); isWithheld {
		next.Authors = sortedNames(fresh, before.Authors)
	}
	next.Unreleased = unreleased(before.Unreleased, fresh, d.orders.taken, d.monorepo.wanted, isWithheld)
	d.orders.brought, d.orders.taken = next, d.monorepo.wanted
}

// unreleased are the authors of changes that did not come to be released, as the unit had a
// problem: of units that have one by now, and of those that this commit mends. known are those of
// the commit before, which wanted before; nil where nobody knows that any more. authors wrote
// the changes since then.
func unreleased(known map[config.UnitPath][]string, authors []string, before, wanted *rollout.Wanted,
	isWithheld bool) map[config.UnitPath][]string {
	earlier := func(path config.UnitPath) *rollout.WantedUnit {
		if before == nil {
			return nil
		}
		return before.Units[path]
	}
	all := map[config.UnitPath][]string{}
	for path, names := range known {
		if w := earlier(path); wanted.Units[path] != nil && (w == nil || w.Frozen != "" || isWithheld) {
			all[path] = names
		}
	}
	for path, w := range wanted.Units {
		if w.Frozen != "" && w != earlier(path) {
			all[path] = sortedNames(authors, all[path])
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// sortedNames are the names of both lists, each once.
func sortedNames(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
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
