// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"path"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/schema/compat"
)

// State is the kind as it is compared with an earlier or a later one. It is only for
// kinds whose message is known.
func (k *Kind) State() compat.Kind {
	file := document.Position{File: path.Join(k.Folder, "kind.yaml")}
	state := compat.Kind{Schema: k.easy, Definition: file, FieldNames: file, JSONNames: k.jsonNames, Objects: k.ObjectIDs(), Located: k.located}
	if k.fieldNamesAt.File != "" {
		state.FieldNames = k.fieldNamesAt
	}
	return state
}

// located gives a position in an import the path that the file has.
func (k *Kind) located(at document.Position) document.Position {
	if file := k.protos[at.File]; file != "" {
		at.File = file
	}
	return at
}
