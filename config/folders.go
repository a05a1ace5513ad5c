// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import "github.com/swell-sh/swell/config/document"

// Folders says which folders of a monorepo hold what, as its Repository
// document has it, with the defaults filled in.
type Folders struct {
	Fleet, Kinds, Data, Schemas string
	Units                       []string
}

// ReadFolders reads the Repository document alone. The folders may not exist.
func ReadFolders(tree Tree) (Folders, document.Problems) {
	l := loader{tree: tree, repository: &Repository{}}
	layout, ok := l.layout()
	if !ok {
		return Folders{}, l.repository.Problems.Sorted()
	}
	return Folders{Fleet: layout.fleet, Kinds: layout.kinds, Data: layout.data, Schemas: layout.schemas, Units: layout.units}, nil
}

// KindFolders lists the folders of easy kinds, sorted. It is empty where there
// is no folder of kinds.
func (f Folders) KindFolders(tree Tree) ([]Folder, document.Problems) {
	l := loader{tree: tree, repository: &Repository{}}
	l.listKinds(f.Kinds)
	return l.repository.Kinds, l.repository.Problems.Sorted()
}
