// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

func looksLikeObject(n *yaml.Node) bool {
	return n.Kind == yaml.MappingNode && (Lookup(n, "apiVersion") != nil || Lookup(n, "kind") != nil)
}

// IsForeign says whether a file of YAML is for other programs: none of its documents,
// nor an item of one that is a list, has an apiVersion or a kind at its top, as in values of Helm or the configuration of a CI.
// Text that is no YAML is foreign when it nowhere has the word apiVersion.
func IsForeign(content []byte) bool {
	decoder, some := NewDecoder(content), false
	for {
		var root yaml.Node
		err := decoder.Decode(&root)
		switch {
		case errors.Is(err, io.EOF):
			return some
		case err != nil:
			return !bytes.Contains(content, []byte("apiVersion"))
		case root.Kind != yaml.DocumentNode || len(root.Content) == 0 || IsNull(root.Content[0]):
			continue
		case looksLikeObject(root.Content[0]), root.Content[0].Kind == yaml.SequenceNode && slices.ContainsFunc(root.Content[0].Content, looksLikeObject):
			return false
		}
		some = true
	}
}
