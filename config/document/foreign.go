// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"errors"
	"io"
	"slices"

	"go.yaml.in/yaml/v3"
)

func looksLikeObject(n *yaml.Node) bool {
	return n.Kind == yaml.MappingNode && (Lookup(n, "apiVersion") != nil || Lookup(n, "kind") != nil)
}

// IsForeign says whether a file of YAML is for other programs, such as values of Helm or the
// configuration of a CI: none of its documents, nor an item of one that is a list, has an
// apiVersion or a kind at its top.
// Text that is no YAML is not foreign: it may have been a document before somebody
// broke it, and its objects would be deleted.
func IsForeign(content []byte) bool {
	decoder, some := NewDecoder(content), false
	for {
		var root yaml.Node
		err := decoder.Decode(&root)
		switch {
		case errors.Is(err, io.EOF):
			return some
		case err != nil:
			return false
		case root.Kind != yaml.DocumentNode || len(root.Content) == 0 || IsNull(root.Content[0]):
			continue
		case looksLikeObject(root.Content[0]), root.Content[0].Kind == yaml.SequenceNode && slices.ContainsFunc(root.Content[0].Content, looksLikeObject):
			return false
		}
		some = true
	}
}
