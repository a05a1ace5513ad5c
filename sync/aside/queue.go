// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package aside

// queue is work for owners that take turns. The zero value is empty.
type queue struct {
	work   map[string][]func() // by owner, none is empty
	owners []string            // those with work, in turn
	busy   bool                // somebody takes work, and asks again when it is done
}

// add puts work to the end of what there is for the owner. isFirst says that nobody takes work yet.
func (q *queue) add(owner string, work func()) (isFirst bool) {
	if q.work == nil {
		q.work = map[string][]func(){}
	}
	if len(q.work[owner]) == 0 {
		q.owners = append(q.owners, owner)
	}
	q.work[owner] = append(q.work[owner], work)
	isFirst, q.busy = !q.busy, true
	return isFirst
}

// next takes the oldest work of the owner whose turn it is; nil when there is none.
func (q *queue) next() (work func()) {
	if len(q.owners) == 0 {
		q.busy = false
		return nil
	}
	owner := q.owners[0]
	q.owners = q.owners[1:]
	list := q.work[owner]
	work, list[0] = list[0], nil // it may hold a whole chart
	if q.work[owner] = list[1:]; len(list) > 1 {
		q.owners = append(q.owners, owner)
	} else {
		delete(q.work, owner)
	}
	return work
}

// waiting counts the work that is to be done for an owner.
func (q *queue) waiting(owner string) int { return len(q.work[owner]) }
