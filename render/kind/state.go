// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/schema/compat"
)

// State is the kind as it is compared with an earlier or a later one. It is only for
// kinds of a folder whose message is known.
func (k *Kind) State() compat.Kind {
	return compat.Kind{Schema: k.easy, ObjectsAt: k.objectsAt, FieldNamesAt: k.fieldNamesAt, JSONNames: k.jsonNames, Objects: k.ObjectIDs(), Located: k.located}
}

// located gives a position in an import the path that the file has.
func (k *Kind) located(at document.Position) document.Position {
	if file := k.protos[at.File]; file != "" {
		at.File = file
	}
	return at
}
