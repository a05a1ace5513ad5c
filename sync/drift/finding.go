// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/swell-sh/swell/sync/store"
)

// Finding is one object that a comparison found not to be as we applied it.
type Finding struct {
	Entry store.Entry
	// Missing: the object of the entry does not exist. Another one may stand in
	// its place; then Changes holds a note.
	Missing bool
	// Changes are the fields that we lost, in the order of their paths.
	Changes []store.Change
	// Lost are the paths of Changes, with all that is below; nil where no fields are named.
	Lost *fieldpath.Set
	// Fingerprint is that of the live object, to tell one change from the next;
	// empty when there is none.
	Fingerprint string
	// Deep says that only a deep sweep can see it.
	Deep bool
	// Kept says that another apply is not to be made: whatever is sent, the
	// server makes this of it, or the object belongs to another monorepo now.
	Kept bool
	// Leaving says that somebody deletes the object, which waits for finalizers: nothing that is sent would last.
	// Once it is gone it is missing.
	Leaving bool
}

// TakenOver is the note of a change by which an object went to another monorepo.
const TakenOver = "taken over"
