// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/binary"
	"hash/fnv"
	"maps"
	"slices"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
)

// claims knows which bundles want which object in which cluster. It is kept up
// to date from commit to commit, so that its cost is that of what changed. An
// object is known by a hash of 64 bits: a million of them take little room. Where two
// bundles want the same hash, the caller compares the objects themselves.
type claims struct {
	slots []object.UnitTarget // the bundles, by number
	free  []uint32            // slots that are not in use
	one   map[claim]uint32
	more  map[claim][]uint32 // all that want it, where it is more than one
}

// claim is the hash of a cluster and an object.
type claim uint64

func claimOf(cluster string, id uint64) claim {
	h := fnv.New64a()
	h.Write([]byte(cluster))
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], id)
	h.Write(b[:])
	return claim(h.Sum64())
}

func newClaims() *claims { return &claims{one: map[claim]uint32{}, more: map[claim][]uint32{}} }

// add enters a bundle and returns its slot.
func (c *claims) add(by object.UnitTarget, ids []uint64) uint32 {
	slot := uint32(len(c.slots))
	if n := len(c.free); n > 0 {
		slot, c.free = c.free[n-1], c.free[:n-1]
		c.slots[slot] = by
	} else {
		c.slots = append(c.slots, by)
	}
	cluster := by.Target.Cluster()
	for _, id := range ids {
		key := claimOf(cluster, id)
		other, taken := c.one[key]
		switch more := c.more[key]; {
		case taken && other == slot, len(more) > 0 && more[len(more)-1] == slot:
			// two objects of the bundle have the same hash
		case len(more) > 0:
			c.more[key] = append(more, slot)
		case taken:
			c.more[key] = []uint32{other, slot}
			delete(c.one, key)
		default:
			c.one[key] = slot
		}
	}
	return slot
}

// drop takes a bundle out again.
func (c *claims) drop(slot uint32, ids []uint64) {
	cluster := c.slots[slot].Target.Cluster()
	for _, id := range ids {
		key := claimOf(cluster, id)
		if other, taken := c.one[key]; taken {
			if other == slot {
				delete(c.one, key)
			}
			continue
		}
		left := slices.DeleteFunc(c.more[key], func(other uint32) bool { return other == slot })
		if len(left) > 1 {
			c.more[key] = left
			continue
		}
		delete(c.more, key)
		if len(left) == 1 {
			c.one[key] = left[0]
		}
	}
	c.slots[slot] = object.UnitTarget{}
	c.free = append(c.free, slot)
}

// of lists the bundles that want an object, sorted.
func (c *claims) of(cluster string, id uint64) []object.UnitTarget {
	key := claimOf(cluster, id)
	var list []object.UnitTarget
	if slot, ok := c.one[key]; ok {
		list = append(list, c.slots[slot])
	}
	for _, slot := range c.more[key] {
		list = append(list, c.slots[slot])
	}
	slices.SortFunc(list, object.UnitTarget.Compare)
	return list
}

// rivals lists the units that want an object which another bundle wants too,
// sorted. It may list more: for objects of the same hash.
func (c *claims) rivals() []config.UnitPath {
	units := map[config.UnitPath]bool{}
	for _, slots := range c.more {
		for _, slot := range slots {
			units[c.slots[slot].Unit] = true
		}
	}
	return slices.Sorted(maps.Keys(units))
}

// isContested says whether more than one bundle wants the object, or one of
// the same hash.
func (c *claims) isContested(cluster string, id uint64) bool {
	return len(c.more[claimOf(cluster, id)]) > 0
}

// Wants says which bundles of the last snapshot want an object in a cluster,
// sorted. The wishes of units with problems are not known, and not among them.
func (c *Compiler) Wants(cluster string, id object.ID) []object.UnitTarget {
	if c.claims == nil {
		return nil
	}
	return slices.DeleteFunc(c.claims.of(cluster, id.Hash()), func(by object.UnitTarget) bool {
		bundle, err := c.world.bundle(c.entries[by.Unit].unit, by.Target)
		// What cannot be looked at is taken to be the object.
		return err == nil && (bundle == nil || bundle.Find(id) == nil)
	})
}

// MayWant is a quick [Compiler.Wants]: it looks at no bundle, and may list one
// too many where two objects have the same hash of 64 bits. It misses none.
func (c *Compiler) MayWant(cluster string, id object.ID) []object.UnitTarget {
	if c.claims == nil {
		return nil
	}
	return c.claims.of(cluster, id.Hash())
}

// needs finds the units that bring what a unit cannot be applied without. Those who may not have it are
// refused.
func (c *claims) needs(unit config.UnitPath, target config.TargetName, ids []object.ID, refused refusals) []object.UnitTarget {
	var needs []object.UnitTarget
	for _, id := range ids {
		for _, by := range c.of(target.Cluster(), id.Hash()) {
			if by.Unit != unit && !refused[by.Unit][clusterObject{target.Cluster(), id}] {
				needs = append(needs, by)
			}
		}
	}
	slices.SortFunc(needs, object.UnitTarget.Compare)
	return slices.Compact(needs)
}
