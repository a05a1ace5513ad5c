// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package source

import "time"

// dated is what a walk through the history comes to.
type dated interface{ date() time.Time }

// newestFirst is a heap of them, for container/heap.
type newestFirst[T dated] []T

func (h newestFirst[T]) Len() int           { return len(h) }
func (h newestFirst[T]) Less(i, j int) bool { return h[i].date().After(h[j].date()) }
func (h newestFirst[T]) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *newestFirst[T]) Push(x any)        { *h = append(*h, x.(T)) }
func (h *newestFirst[T]) Pop() any {
	last := len(*h) - 1
	is := (*h)[last]
	*h = (*h)[:last]
	return is
}
