// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package impact

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/diff"
)

// Changed are objects of one kind that change in the same fields.
type Changed struct {
	Action diff.Action `json:"action"`
	Kind   string      `json:"kind"` // of the objects
	// Fields are the paths of those that change, sorted; items of lists are *.
	Fields []string `json:"fields,omitempty"`
	// Units that the objects are in, sorted.
	Units []config.UnitPath `json:"units"`
	// Objects is how many there are, over all targets.
	Objects int `json:"objects"`
}

// Changes are the changes of objects that the kinds of head make of base's documents, the
// most frequent first. mixed is that of [Judge].
func Changes(base, mixed *render.Snapshot) ([]Changed, error) {
	if mixed == nil {
		return nil, nil
	}
	var units []*render.Unit
	for path, was := range base.Units.All() {
		if is := mixed.Units.Get(path); is != nil && is != was && len(was.Problems)+len(is.Problems) == 0 && !sameDigests(was, is) {
			units = append(units, was)
		}
	}
	slices.SortFunc(units, func(a, b *render.Unit) int { return cmp.Compare(a.Path, b.Path) })
	all := make([][]diff.Change, len(units))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, was := range units {
		group.Go(func() (err error) {
			all[i], err = changesOf(base, mixed, was)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	found := map[string]*Changed{}
	for _, changes := range all {
		for _, c := range changes {
			add(found, c)
		}
	}
	var sorted []Changed
	for _, c := range found {
		sorted = append(sorted, *c)
	}
	slices.SortFunc(sorted, func(a, b Changed) int {
		return cmp.Or(cmp.Compare(b.Objects, a.Objects), cmp.Compare(a.Action, b.Action), cmp.Compare(a.Kind, b.Kind), slices.Compare(a.Fields, b.Fields))
	})
	return sorted, nil
}

func add(found map[string]*Changed, c diff.Change) {
	kind, _, _ := strings.Cut(c.Object, "/")
	var fields []string
	for _, f := range c.Fields {
		fields = append(fields, listIndex.ReplaceAllString(f.Path, "[*]"))
	}
	slices.Sort(fields)
	fields = slices.Compact(fields)
	key := fmt.Sprintf("%s %s %q", c.Action, kind, fields)
	if found[key] == nil {
		found[key] = &Changed{Action: c.Action, Kind: kind, Fields: fields}
	}
	of := found[key]
	of.Objects += len(c.Targets)
	if last := len(of.Units) - 1; last < 0 || of.Units[last] != c.Unit {
		of.Units = append(of.Units, c.Unit)
	}
}

func sameDigests(was, is *render.Unit) bool {
	return slices.EqualFunc(was.Placements, is.Placements, func(a, b render.Placement) bool {
		return a.Target.Name == b.Target.Name && a.Digest == b.Digest
	})
}

func changesOf(base, mixed *render.Snapshot, was *render.Unit) ([]diff.Change, error) {
	before, err := byTarget(base, was)
	if err != nil {
		return nil, err
	}
	after, err := byTarget(mixed, mixed.Units.Get(was.Path))
	if err != nil {
		return nil, err
	}
	return diff.Unit(was.Path, before, after), nil
}

func byTarget(s *render.Snapshot, unit *render.Unit) (map[config.TargetName]*render.Bundle, error) {
	bundles, err := s.Bundles(unit)
	by := make(map[config.TargetName]*render.Bundle, len(bundles))
	for _, b := range bundles {
		by[b.Target] = b
	}
	return by, err
}
