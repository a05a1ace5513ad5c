// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package impact

import (
	"cmp"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/diff"
	"github.com/swell-sh/swell/render/object"
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
	all := make([]map[string]*Changed, len(units))
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
	for i, changes := range all {
		for key, c := range changes {
			if found[key] == nil {
				found[key] = &Changed{Action: c.Action, Kind: c.Kind, Fields: c.Fields}
			}
			found[key].Objects += c.Objects
			found[key].Units = append(found[key].Units, units[i].Path)
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

func sameDigests(was, is *render.Unit) bool {
	return slices.EqualFunc(was.Placements, is.Placements, func(a, b render.Placement) bool {
		return a.Target.Name == b.Target.Name && a.Digest == b.Digest
	})
}

// changesOf are the changes of a unit's objects, by what they have in common.
func changesOf(base, mixed *render.Snapshot, was *render.Unit) (map[string]*Changed, error) {
	before, err := byTarget(base, was)
	if err != nil {
		return nil, err
	}
	after, err := byTarget(mixed, mixed.Units.Get(was.Path))
	if err != nil {
		return nil, err
	}
	found := map[string]*Changed{}
	for target := range before {
		if after[target] == nil {
			after[target] = nil // it has no objects there any more
		}
	}
	for target, now := range after {
		compare(found, before[target], now)
	}
	return found, nil
}

func compare(found map[string]*Changed, was, is objects) {
	for id, o := range is {
		switch old := was[id]; {
		case old == nil:
			count(found, diff.Created, id.Kind, nil)
		case old.Digest != o.Digest:
			count(found, diff.Configured, id.Kind, diff.Paths(old, o))
		}
	}
	for id := range was {
		if is[id] == nil {
			count(found, diff.Deleted, id.Kind, nil)
		}
	}
}

func count(found map[string]*Changed, action diff.Action, kind string, paths []string) {
	for i, path := range paths {
		paths[i] = listIndex.ReplaceAllString(path, "[*]")
	}
	slices.Sort(paths)
	paths = slices.Compact(paths)
	key := string(action) + " " + kind + " " + strings.Join(paths, " ")
	if found[key] == nil {
		found[key] = &Changed{Action: action, Kind: kind, Fields: paths}
	}
	found[key].Objects++
}

// objects are those of a unit on one target.
type objects map[object.ID]*object.Object

func byTarget(s *render.Snapshot, unit *render.Unit) (map[config.TargetName]objects, error) {
	bundles, err := s.Bundles(unit)
	by := make(map[config.TargetName]objects, len(bundles))
	for _, b := range bundles {
		by[b.Target] = make(objects, len(b.Objects))
		for _, o := range b.Objects {
			by[b.Target][o.ID] = o
		}
	}
	return by, err
}
