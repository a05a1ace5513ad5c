// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"slices"

	"github.com/swell-sh/swell/config"
)

// claims knows which bundles want which object in which cluster. It is kept up
// to date from commit to commit, so that its cost is that of what changed. An
// object is known by a hash of 64 bits: a million of them take little room, and
// who finds two bundles that want the same looks at the objects themselves.
type claims struct {
	slots []Placed // the bundles, by number
	free  []uint32 // slots that are not in use
	one   map[claim]uint32
	more  map[claim][]uint32 // all that want it, where it is more than one
}

// claim is the hash of a cluster and an object.
type claim uint64

// hash is the same in every process.
func (id ObjectID) hash() uint64 {
	h := fnv.New64a()
	for _, part := range [...]string{id.Group, id.Kind, id.Namespace, id.Name} {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	return h.Sum64()
}

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
func (c *claims) add(by Placed, ids []uint64) uint32 {
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
		switch {
		case len(c.more[key]) > 0:
			c.more[key] = append(c.more[key], slot)
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
		if len(c.more[key]) == 0 {
			delete(c.one, key)
			continue
		}
		left := slices.DeleteFunc(c.more[key], func(other uint32) bool { return other == slot })
		c.more[key] = left
		if len(left) == 1 {
			delete(c.more, key)
			c.one[key] = left[0]
		}
	}
	c.slots[slot] = Placed{}
	c.free = append(c.free, slot)
}

// of lists the bundles that want an object, sorted.
func (c *claims) of(cluster string, id uint64) []Placed {
	key := claimOf(cluster, id)
	var list []Placed
	if slot, ok := c.one[key]; ok {
		list = append(list, c.slots[slot])
	}
	for _, slot := range c.more[key] {
		list = append(list, c.slots[slot])
	}
	slices.SortFunc(list, comparePlaced)
	return list
}

// contested lists, for every object that more than one bundle wants, those
// bundles, sorted.
func (c *claims) contested() [][]Placed {
	var all [][]Placed
	for _, slots := range c.more {
		var list []Placed
		for _, slot := range slots {
			list = append(list, c.slots[slot])
		}
		slices.SortFunc(list, comparePlaced)
		all = append(all, list)
	}
	slices.SortFunc(all, func(a, b []Placed) int { return slices.CompareFunc(a, b, comparePlaced) })
	return slices.CompactFunc(all, slices.Equal)
}

func comparePlaced(a, b Placed) int {
	return cmp.Or(cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Target, b.Target))
}

// Wants says which bundles of the last snapshot want an object in a cluster,
// sorted. Units with problems want what nobody knows.
func (c *Compiler) Wants(cluster string, id ObjectID) []Placed {
	if c.claims == nil {
		return nil
	}
	return c.claims.of(cluster, id.hash())
}

// needs finds the units that bring what a unit cannot be applied without.
func (c *claims) needs(unit config.UnitPath, target config.TargetName, ids []ObjectID) []Placed {
	var needs []Placed
	for _, id := range ids {
		for _, by := range c.of(target.Cluster(), id.hash()) {
			if by.Unit != unit && !slices.Contains(needs, by) {
				needs = append(needs, by)
			}
		}
	}
	slices.SortFunc(needs, comparePlaced)
	return needs
}
