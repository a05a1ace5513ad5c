// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"hash/fnv"
	"iter"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

// shards is how many maps the units of a snapshot are spread over: a commit
// copies those with a change and shares the others, so that it costs little
// with 100,000 units too.
const shards = 1024

// Units are the units of a snapshot by path. The zero value has none. It is
// never changed.
type Units struct {
	shards *[shards]map[config.UnitPath]*Unit
	count  int
}

func shardOf(path config.UnitPath) int {
	h := fnv.New32a()
	h.Write([]byte(path))
	return int(h.Sum32() % shards)
}

// Get finds a unit; nil when there is none.
func (u Units) Get(path config.UnitPath) *Unit {
	return u.shard(shardOf(path))[path]
}

// Len is how many units there are.
func (u Units) Len() int { return u.count }

// StandIn says whether a unit is a mere link in the folder of another one that has the
// same problem. It exists so that nothing is removed. People do not see it: it is not
// counted, and its problems are reported for the other unit.
func (u Units) StandIn(unit *Unit) bool {
	if !unit.source.Link {
		return false
	}
	folder := u.Get(config.UnitPath(path.Dir(string(unit.Path))))
	return folder != nil && slices.ContainsFunc(folder.Problems, func(p document.Problem) bool { return sameProblem(p, unit.source.Problems[0]) })
}

// All are all units, in no order.
func (u Units) All() iter.Seq2[config.UnitPath, *Unit] {
	return func(yield func(config.UnitPath, *Unit) bool) {
		for i := range shards {
			for path, unit := range u.shard(i) {
				if !yield(path, unit) {
					return
				}
			}
		}
	}
}

// Differing are the paths of units that only one of the two has, and of those that a commit
// rendered anew; in no order. It looks at the shards alone that a commit changed.
func (u Units) Differing(other Units) iter.Seq[config.UnitPath] {
	return func(yield func(config.UnitPath) bool) {
		for i := range shards {
			was, is := u.shard(i), other.shard(i)
			if reflect.ValueOf(was).Pointer() == reflect.ValueOf(is).Pointer() {
				continue
			}
			for path, unit := range was {
				if is[path] != unit && !yield(path) {
					return
				}
			}
			for path := range is {
				if was[path] == nil && !yield(path) {
					return
				}
			}
		}
	}
}

func (u Units) shard(i int) map[config.UnitPath]*Unit {
	if u.shards == nil {
		return nil
	}
	return u.shards[i]
}

// Sorted are all units, by path.
func (u Units) Sorted() []*Unit {
	list := make([]*Unit, 0, u.count)
	for _, unit := range u.All() {
		list = append(list, unit)
	}
	slices.SortFunc(list, func(a, b *Unit) int { return strings.Compare(string(a.Path), string(b.Path)) })
	return list
}

// with returns the units after changes; a nil one is taken out.
func (u Units) with(changes map[config.UnitPath]*Unit) Units {
	next := Units{shards: new([shards]map[config.UnitPath]*Unit), count: u.count}
	if u.shards != nil {
		*next.shards = *u.shards
	}
	var copied [shards]bool
	for path, unit := range changes {
		i := shardOf(path)
		if !copied[i] {
			copied[i] = true
			if next.shards[i] = maps.Clone(next.shards[i]); next.shards[i] == nil {
				next.shards[i] = map[config.UnitPath]*Unit{}
			}
		}
		_, there := next.shards[i][path]
		if unit == nil {
			delete(next.shards[i], path)
			if there {
				next.count--
			}
			continue
		}
		next.shards[i][path] = unit
		if !there {
			next.count++
		}
	}
	return next
}
