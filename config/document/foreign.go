// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// looksLikeObject says whether a value is an object of Kubernetes, or was one before
// somebody broke its first lines.
func looksLikeObject(n *yaml.Node) bool {
	if n.Kind != yaml.MappingNode {
		return false
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if key := n.Content[i].Value; strings.EqualFold(key, "apiVersion") || strings.EqualFold(key, "kind") {
			return true
		}
	}
	return isHeadless(n)
}

// isHeadless says whether a mapping is an object without its apiVersion and kind: it has
// a name in metadata, and beside that what objects have.
func isHeadless(n *yaml.Node) bool {
	metadata := Lookup(n, "metadata")
	if TextAt(metadata, "name") == "" && TextAt(metadata, "generateName") == "" {
		return false
	}
	return slices.ContainsFunc([]string{"spec", "data", "stringData", "rules", "roleRef", "subjects", "webhooks"}, func(field string) bool {
		return Lookup(n, field) != nil
	})
}

// IsForeign says whether a file of YAML is for other programs, such as values of Helm or the
// configuration of a CI: all of its documents are mappings or lists, and none, nor an item of
// a list, looks like an object of Kubernetes.
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
		}
		switch n := root.Content[0]; {
		case n.Kind == yaml.ScalarNode, looksLikeObject(n), n.Kind == yaml.SequenceNode && slices.ContainsFunc(n.Content, looksLikeObject):
			return false
		}
		some = true
	}
}

// IsObjectJSON says whether a text is an object in JSON with an apiVersion and a kind.
func IsObjectJSON(content []byte) bool {
	if !bytes.Contains(content, []byte(`"apiVersion"`)) || !bytes.Contains(content, []byte(`"kind"`)) {
		return false
	}
	var head struct {
		APIVersion *string `json:"apiVersion"`
		Kind       *string `json:"kind"`
	}
	return json.Unmarshal(content, &head) == nil && head.APIVersion != nil && head.Kind != nil
}

// Damage says why a file of YAML that holds no document looks like one that held some
// before something went wrong; empty when it does not. It is for messages.
func Damage(content []byte) string {
	text := bytes.TrimSpace(bytes.TrimPrefix(content, []byte("\ufeff")))
	switch {
	case bytes.HasPrefix(text, []byte("version https://git-lfs.github.com/spec/")):
		return "holds a pointer of Git LFS in place of documents: commit the file itself"
	case conflictMark.Match(content):
		return "holds the marks of a merge conflict: resolve it"
	case bytes.HasPrefix(text, []byte("<")):
		return "holds markup in place of documents, such as the page of an error: put the documents back"
	case isBlank(text):
		return "is empty: put its documents back, or remove the file to remove their objects"
	case commentedOut.Match(content) && isComment(text):
		return "has its documents commented out: remove the # before their lines, or remove the file to remove their objects"
	}
	return ""
}

var (
	conflictMark = regexp.MustCompile(`(?m)^(<<<<<<<|>>>>>>>) `)
	commentedOut = regexp.MustCompile(`(?m)^\s*#+\s*(apiVersion|kind):`)
)

// isBlank says whether a text has nothing but the marks of documents.
func isBlank(text []byte) bool {
	for line := range bytes.Lines(text) {
		switch string(bytes.TrimSpace(line)) {
		case "", "---", "...":
		default:
			return false
		}
	}
	return true
}

// isComment says whether a text has nothing but comments and the marks of documents.
func isComment(text []byte) bool {
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); !bytes.HasPrefix(line, []byte("#")) && !isBlank(line) {
			return false
		}
	}
	return true
}
