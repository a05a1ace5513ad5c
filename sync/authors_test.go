// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"errors"
	"slices"
	"testing"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// TestFindAuthors: who wrote what a commit brings, by email and by the name of the operator
// who has it; those of the commit before as long as something of that is held back.
func TestFindAuthors(t *testing.T) {
	ann, both := []string{"ann", "ann@example.com"}, []string{"ann", "ann@example.com", "bob@example.com"}
	for _, c := range []struct {
		name     string
		withheld map[config.UnitPath]string
		waiting  map[config.UnitPath]bool
		unknown  bool // what the earlier commit has
		want     []string
	}{
		{"a commit", nil, nil, false, ann},
		{"after a release that is withheld", map[config.UnitPath]string{"shop": "no"}, nil, false, both},
		{"after deletions that wait", nil, map[config.UnitPath]bool{"shop": true}, false, both},
		{"after a commit that is gone", nil, nil, true, both},
	} {
		d := &Daemon{Options: Options{Operators: []config.Operator{{User: "ann", Emails: []string{"Ann@Example.com"}}}}}
		d.Authors = func(from, _ config.Commit) ([]string, error) {
			if c.unknown && from != "" {
				return nil, errors.New("no such commit")
			}
			return []string{"ann@example.com"}, nil
		}
		d.monorepo.snapshot = &render.Snapshot{Commit: "c2"}
		d.monorepo.wanted = &rollout.Wanted{Commit: "c2", Withheld: c.withheld, AllowEmpty: true}
		d.guarded.waiting = c.waiting
		d.orders.brought = store.Brought{Commit: "c1", Authors: []string{"bob@example.com"}}
		r := &Record{}
		d.findAuthors(r)
		if got := d.orders.brought; got.Commit != "c2" || !slices.Equal(got.Authors, c.want) {
			t.Errorf("%s: %s by %q, want %q", c.name, got.Commit, got.Authors, c.want)
		}
	}
}

// TestUnreleasedAuthors: who changed a unit while it had a problem is an author of the release
// that mends it, also after a restart and where the mending is withheld; and of none after that.
func TestUnreleasedAuthors(t *testing.T) {
	d := &Daemon{}
	author := ""
	d.Authors = func(config.Commit, config.Commit) ([]string, error) { return []string{author}, nil }
	waves := &config.Rollout{Waves: []config.Wave{{}}}
	targets := map[config.TargetName]rollout.WantedTarget{"a": {Digest: "1"}}
	good, bad, same, worse := &rollout.WantedUnit{Rollout: waves, Targets: targets}, &rollout.WantedUnit{Frozen: "a mistake"},
		&rollout.WantedUnit{Frozen: "a mistake"}, &rollout.WantedUnit{Frozen: "another mistake"}
	for i, c := range []struct {
		by      string
		unit    *rollout.WantedUnit
		restart bool
		held    bool
		want    []string
	}{
		{"ann", good, false, false, nil},
		{"ben", bad, false, false, []string{"ben"}},
		{"cal", same, false, false, []string{"ben"}}, // about another unit
		{"dan", worse, true, false, []string{"ben", "dan"}},
		{"eve", good, false, true, []string{"ben", "dan"}},
		{"fay", good, true, false, []string{"ben", "dan"}}, // it is not known whether it was mended before
		{"gus", good, false, false, nil},
		{"hal", nil, false, false, nil},
	} {
		if c.restart {
			d.orders.taken = taken{}
		}
		author = c.by
		commit := config.Commit(c.by)
		d.monorepo.snapshot = &render.Snapshot{Commit: commit}
		d.monorepo.wanted = &rollout.Wanted{Commit: commit, AllowEmpty: true, Units: map[config.UnitPath]*rollout.WantedUnit{}}
		if c.unit != nil {
			d.monorepo.wanted.Units["shop"] = c.unit
		}
		if c.held {
			d.monorepo.wanted.Withheld = map[config.UnitPath]string{"shop": "no"}
		}
		d.findAuthors(&Record{})
		if got := d.orders.brought.Unreleased["shop"]; !slices.Equal(got, c.want) {
			t.Errorf("%d, by %s: %q, want %q", i, c.by, got, c.want)
		}
	}
}
