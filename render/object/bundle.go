// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/swell-sh/swell/config"
)

// UnitTarget is a unit on a target.
type UnitTarget struct {
	Unit   config.UnitPath
	Target config.TargetName
}

// Compare orders by unit, then by target.
func (u UnitTarget) Compare(other UnitTarget) int {
	return cmp.Or(cmp.Compare(u.Unit, other.Unit), cmp.Compare(u.Target, other.Target))
}

// Bundle is the hard objects of one unit for one target, in apply order: what
// others live in or are defined by, then by phase, and within one by kind order,
// namespace, group, kind and name. It is never empty. The same
// tree and target give the same bundle, whatever the commit.
type Bundle struct {
	Unit    config.UnitPath
	Target  config.TargetName
	Digest  Digest // of the objects' identities and digests, in order; not of unit, target or positions
	Objects []*Object
}

// NewBundle sorts the objects, and makes a bundle of them.
func NewBundle(unit config.UnitPath, target config.TargetName, objects []*Object) *Bundle {
	Sort(objects)
	return SealBundle(unit, target, objects)
}

// SealBundle makes a bundle of objects that are in apply order.
func SealBundle(unit config.UnitPath, target config.TargetName, objects []*Object) *Bundle {
	sum := sha256.New()
	for _, o := range objects {
		fmt.Fprintf(sum, "%s %s %s\n", o.APIVersion(), o.ID, o.Digest)
	}
	return &Bundle{Unit: unit, Target: target, Digest: sumOf(sum), Objects: objects}
}

// Find is the object of the bundle with an identity; nil when it is not in it.
func (b *Bundle) Find(id ID) *Object {
	if i := slices.IndexFunc(b.Objects, func(o *Object) bool { return o.ID == id }); i >= 0 {
		return b.Objects[i]
	}
	return nil
}
