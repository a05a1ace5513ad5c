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
	fresh := namedAuthors(emails, d.Operators)
	isWithheld := len(d.monorepo.wanted.Withheld)+len(d.guarded.waiting) > 0
	if is.Authors = sortedNames(fresh, nil); isWithheld {
		is.Authors = sortedNames(fresh, was.Authors)
	}
	is.Unreleased = unreleased(was.Unreleased, fresh, d.orders.taken, d.monorepo.wanted, isWithheld)
	d.orders.brought, d.orders.taken = is, d.monorepo.wanted
}

// unreleased are the authors of what did not come to be released of units, as they had a
// problem: of those that have one by now, and of those that this commit mends. authors wrote
// what is new since the commit that before is of; before is nil where nobody knows it any more.
func unreleased(was map[config.UnitPath][]string, authors []string, before, is *rollout.Wanted, isWithheld bool) map[config.UnitPath][]string {
	earlier := func(path config.UnitPath) *rollout.WantedUnit {
		if before == nil {
			return nil
		}
		return before.Units[path]
	}
	all := map[config.UnitPath][]string{}
	for path, names := range was {
		if w := earlier(path); is.Units[path] != nil && (w == nil || w.Frozen != "" || isWithheld) {
			all[path] = names
		}
	}
	for path, w := range is.Units {
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
