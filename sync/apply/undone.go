// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/store"
)

// isUndone says whether somebody took back, or changed again, a field that the release
// under way changed. Drift may be tolerated otherwise; a release is not there where its own
// fields are not.
func (w *Work) isUndone(o *object.Object, known store.Entry, live *metav1.PartialObjectMetadata, ignored []pointer) bool {
	before, changes := w.Changing[o.ID]
	if !changes {
		return false
	}
	recorded, err := parseFields(known.Fields)
	if err != nil {
		return true
	}
	current, err := parseFields(rawFields(ownEntry(live)))
	if err != nil {
		return true
	}
	missing := recorded.Difference(current)
	missing = missing.Difference(excuse(o.ID, live, missing, ignored))
	if missing.Empty() || before == nil || string(live.UID) != known.UID {
		return true // nobody knows what was changed, or all of it is new
	}
	was, _ := decodeObject(before.JSON) // both were rendered: they are JSON
	now, _ := decodeObject(o.JSON)
	undone := false
	missing.Leaves().Iterate(func(path fieldpath.Path) {
		earlier, had := valueAt(was, path)
		wanted, has := valueAt(now, path)
		undone = undone || had != has || !reflect.DeepEqual(earlier, wanted)
	})
	return undone
}
