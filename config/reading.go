// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/swell-sh/swell/config/document"
)

// reading is one of swell's own documents while it is read. Problems of the decoder
// and of later checks are reported together. A check reports nothing where the decoder
// has found a mistake, because its problem would only follow from that.
type reading struct {
	*document.Document
	found document.Problems
	wrong map[*yaml.Node]bool // keys and values with a mistake
}

// readOwn decodes the spec of one of swell's own documents, strictly, into a Go value
// whose fields are named as in documents.proto. What has a mistake stays empty; an
// item of a list is there all the same.
func readOwn(doc *document.Document, spec any) *reading {
	r := &reading{Document: doc}
	descriptor := documents().ByName(protoreflect.Name(doc.Kind))
	if doc.APIVersion != APIVersion || descriptor == nil {
		r.found = document.Problems{doc.Problem(doc.Node, document.CodeDocument, "%s %s: no such kind", document.Shorten(doc.APIVersion), document.Shorten(doc.Kind))}
		return r
	}
	message, wrong, problems := doc.DecodePart(descriptor, document.Decoding{Empty: saysNothing})
	r.found, r.wrong = problems, wrong
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(message.Get(descriptor.Fields().ByName("spec")).Message().Interface())
	if err == nil {
		err = json.Unmarshal(text, spec)
	}
	if err != nil {
		r.found = append(r.found, doc.Problem(doc.Node, document.CodeType, "spec: %s", err))
	}
	if doc.Name == "" && !r.follows("metadata", "name") {
		r.found = append(r.found, doc.Problem(doc.Node, document.CodeDocument, "metadata.name: missing"))
	}
	return r
}

// problems are all that were found.
func (r *reading) problems() document.Problems {
	if len(r.found) > 0 {
		r.redact(r.found)
	}
	return r.found
}

// docPath is a place in the document that a check is about; it need not be there.
type docPath struct {
	in   *reading
	path []any
}

func (r *reading) at(path ...any) docPath { return docPath{r, path} }

// problem tells what is wrong there.
func (s docPath) problem(code document.Code, format string, args ...any) {
	if !s.in.follows(s.path...) {
		s.in.found.Add(s.in.Problem(s.in.Deepest(s.path...), code, "%s: %s", document.PathOf(s.path...), fmt.Sprintf(format, args...)))
	}
}

// name checks the name of the document.
func (r *reading) name(more string) {
	if r.Name != "" && !document.IsLabel(r.Name) {
		r.at("metadata", "name").problem(document.CodeType, "want a DNS label%s, got %q", more, document.Shorten(r.Name))
	}
}

// follows says whether the decoder has found a mistake on the path, or a key that may
// be meant to be the next one of it.
func (r *reading) follows(path ...any) bool {
	if len(r.wrong) == 0 {
		return false
	}
	n := r.Node
	for _, s := range path {
		switch s := s.(type) {
		case string:
			i := indexOf(n, s)
			if i < 0 {
				return r.misspelt(n, s)
			}
			if r.wrong[n.Content[i]] {
				return true
			}
			n = n.Content[i+1]
		case int:
			if n.Kind != yaml.SequenceNode || s >= len(n.Content) {
				return false
			}
			n = n.Content[s]
		}
		if r.wrong[n] {
			return true
		}
	}
	return false
}

// misspelt says whether a mapping has a wrong key that is near the wanted one.
func (r *reading) misspelt(n *yaml.Node, wanted string) bool {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if key := n.Content[i]; r.wrong[key] && document.IsNear(key.Value, wanted) {
			return true
		}
	}
	return false
}

// incomplete says whether the decoder has found a mistake on the path or below it.
func (r *reading) incomplete(path ...any) bool {
	if r.follows(path...) {
		return true
	}
	return len(r.wrong) > 0 && r.wrongBelow(r.Deepest(path...))
}

func (r *reading) wrongBelow(n *yaml.Node) bool {
	return slices.ContainsFunc(n.Content, func(below *yaml.Node) bool { return r.wrong[below] || r.wrongBelow(below) })
}

// indexOf is where a key of a mapping is among its nodes; -1 when it is not there.
func indexOf(n *yaml.Node, key string) int {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return i
		}
	}
	return -1
}

// match reads the labels of a match on the path.
func (r *reading) match(written matchSpec, path ...any) Match {
	match, problems := written.match(r.Document, append(path, "labels")...)
	r.found = append(r.found, problems...)
	return match
}
