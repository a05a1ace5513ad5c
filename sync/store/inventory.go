// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
)

// Entry is what the inventory knows of one object on one target: that we
// applied it, or were about to.
type Entry struct {
	Unit   config.UnitPath
	Target config.TargetName
	ID     render.ObjectID
	// Version is the API version it was last applied with, "v1".
	Version string
	// UID of the live object. Empty: the apply was intended, and nobody knows
	// yet whether it happened. An entry without a UID never leads to a delete.
	UID string
	// Digest of the object as last applied ([render.Object.Digest]). Empty: it
	// is not known what the server holds (never confirmed, or drift was
	// found), so the next apply must send it.
	Digest render.Digest
	// Fingerprint is the hash of our own managedFields entry, fields and time,
	// as the server returned it after our last apply.
	Fingerprint string
	// Fields is that entry's FieldsV1, as JSON. It serves to say which fields
	// were lost when the fingerprint differs.
	Fields string
}
