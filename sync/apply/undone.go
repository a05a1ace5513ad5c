// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"reflect"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/drift"
)

// isUndone says whether somebody took back, or changed again, a field that the release
// under way changed. Drift may be tolerated otherwise; a release is not there where its own
// fields are not.
func (w *Work) isUndone(o *object.Object, found *drift.Finding) bool {
	before, changes := w.Changing[o.ID]
	return changes && (before == nil || found.Lost == nil || !Agree(before, o, found.Lost))
}

// Agree says whether two objects as Git has them say the same about fields.
func Agree(a, b *object.Object, fields *fieldpath.Set) bool {
	left, err := decodeObject(a.JSON)
	if err != nil {
		return false
	}
	right, err := decodeObject(b.JSON)
	if err != nil {
		return false
	}
	agree := true
	fields.Leaves().Iterate(func(path fieldpath.Path) {
		leftValue, inLeft := valueAt(left, path)
		rightValue, inRight := valueAt(right, path)
		agree = agree && inLeft == inRight && reflect.DeepEqual(leftValue, rightValue)
	})
	return agree
}
