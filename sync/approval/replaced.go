// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package approval

import "github.com/swell-sh/swell/render/object"

// Sort is a kind in a namespace: what a new object must have in common with one
// that goes to replace it. It is part of the stored state.
type Sort string

// SortOf is the sort of an object.
func SortOf(id object.ID) Sort { return Sort(id.Group + "/" + id.Kind + "/" + id.Namespace) }

// lost is how many of the objects, which are some of those that go, are not
// replaced.
func (l *Loss) lost(objects []Object) int {
	gone := map[Sort]int{}
	for _, o := range objects {
		gone[SortOf(o.ID)]++
	}
	n := 0
	for sort, goes := range gone {
		n += max(0, goes-l.Made[sort])
	}
	return n
}
