// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package cache

// generations are entries in memory, in two halves: what is used moves to the
// new one, and when that is full the old one goes. The zero value is empty.
type generations struct {
	young, old map[Key][]byte
	size       int64 // of the young ones, in bytes
}

// get returns an entry; nil when there is none.
func (g *generations) get(key Key, limit int64) []byte {
	packed, old := g.old[key]
	if !old {
		return g.young[key]
	}
	g.put(key, packed, limit)
	return packed
}

// put stores an entry; limit is the size of one half in bytes.
func (g *generations) put(key Key, packed []byte, limit int64) {
	if g.young == nil || g.size > limit {
		g.old, g.young, g.size = g.young, map[Key][]byte{}, 0
	}
	if before, ok := g.young[key]; ok {
		g.size -= int64(len(key) + len(before))
	}
	delete(g.old, key)
	g.young[key] = packed
	g.size += int64(len(key) + len(packed))
}
