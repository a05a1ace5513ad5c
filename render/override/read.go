// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package override

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config/document"
)

// The kinds of operations, in the order in which they are done.
const (
	verbUpdate = "update"
	verbSet    = "set"
	verbRemove = "remove"
	verbAppend = "append"
	verbPatch  = "patch"
)

var verbs = []string{verbUpdate, verbSet, verbRemove, verbAppend, verbPatch}

// operation is one item of update, set, remove, append or patch.
type operation struct {
	at    *yaml.Node // of the path
	verb  string
	index int // in the list of its verb
	value any

	path path // of all but patch

	op         string // of patch: add, remove, replace, move, copy, test
	from, into pointer
}

type reader struct {
	doc      *document.Document
	place    string
	problems document.Problems
}

func (r *reader) problem(n *yaml.Node, format string, args ...any) {
	r.problems = append(r.problems, r.doc.Problem(n, document.CodeOverride, "%s: %s", r.place, fmt.Sprintf(format, args...)))
}

// read reads the operations in a mapping that may have the other fields too.
// The result is nil when n is no mapping.
func read(doc *document.Document, place string, n *yaml.Node, others []string) (*Override, document.Problems) {
	r := reader{doc: doc, place: place}
	if n.Kind != yaml.MappingNode {
		r.problem(n, "want a map with %s", oneOf(verbs))
		return nil, r.problems
	}
	lists := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, items := n.Content[i], n.Content[i+1]
		switch {
		case slices.Contains(others, key.Value):
		case !slices.Contains(verbs, key.Value):
			r.problem(key, "%s: unknown field%s", document.Shorten(key.Value), document.DidYouMean(key.Value, slices.Concat(verbs, others)))
		case items.Kind != yaml.SequenceNode:
			r.problem(items, "%s: want a list of %s", key.Value, itemForm(key.Value))
		default:
			lists[key.Value] = items
		}
	}
	o := &Override{doc: doc, place: place}
	for _, verb := range verbs {
		if lists[verb] == nil {
			continue
		}
		for i, item := range lists[verb].Content {
			op := operation{verb: verb, index: i, at: item}
			if r.operation(&op, item) {
				o.operations = append(o.operations, op)
			}
		}
	}
	return o, r.problems
}

func itemForm(verb string) string {
	switch verb {
	case verbRemove:
		return "paths"
	case verbPatch:
		return "operations with op and path (RFC 6902)"
	}
	return "path and value"
}

func oneOf(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

func (r *reader) operation(op *operation, item *yaml.Node) bool {
	if op.verb == verbPatch {
		return r.patch(op, item)
	}
	where := fmt.Sprintf("%s[%d]", op.verb, op.index)
	path, value := document.Lookup(item, "path"), document.Lookup(item, "value")
	switch {
	case op.verb == verbRemove && item.Kind == yaml.ScalarNode:
		path = item
	case op.verb == verbRemove:
		if path == nil || len(item.Content) != 2 {
			r.problem(item, "%s: want a path, and nothing else", where)
			return false
		}
	case path == nil || value == nil || len(item.Content) != 4:
		r.problem(item, "%s: want a path and a value, and nothing else", where)
		return false
	}
	op.at = path
	if !r.isText(path, where+".path") {
		return false
	}
	var err error
	if op.path, err = parsePath(path.Value); err != nil {
		r.problem(path, "%s.path: %s", where, err)
		return false
	}
	if value != nil && !r.value(op, where, value) {
		return false
	}
	if what := op.misuse(); what != "" {
		r.problem(path, "%s: %s", where, what)
		return false
	}
	return true
}

func (r *reader) isText(n *yaml.Node, where string) bool {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
		return true
	}
	r.problem(n, "%s: want a string", where)
	return false
}

func (r *reader) value(op *operation, where string, n *yaml.Node) bool {
	plain, found := r.doc.Plain(n)
	for _, p := range found { // without the value: it may be a Secret's
		p.Message = fmt.Sprintf("%s: %s.value: a number that JSON cannot hold", r.place, where)
		r.problems = append(r.problems, p)
	}
	op.value = plain
	return len(found) == 0
}

// misuse says what is wrong with an operation whose parts are well formed.
func (op *operation) misuse() string {
	_, mapping := op.value.(map[string]any)
	switch {
	case len(op.path) == 0 && op.verb == verbUpdate && !mapping:
		return "@ is the whole object: want a map to merge into it"
	case len(op.path) == 0 && op.verb != verbUpdate:
		return "@ is the whole object, which cannot be replaced or removed: name its fields"
	case op.value == nil && (op.verb == verbSet || op.verb == verbAppend):
		return "want a value, got nothing: use remove to take something away"
	}
	return ""
}

// patchFields are the fields of each operation of RFC 6902, section 4.
var patchFields = map[string][]string{
	"add": {"op", "path", "value"}, "remove": {"op", "path"}, "replace": {"op", "path", "value"},
	"move": {"op", "path", "from"}, "copy": {"op", "path", "from"}, "test": {"op", "path", "value"},
}

var patchOps = []string{"add", "remove", "replace", "move", "copy", "test"}

func (r *reader) patch(op *operation, item *yaml.Node) bool {
	where := fmt.Sprintf("patch[%d]", op.index)
	verb := document.Lookup(item, "op")
	if verb == nil {
		r.problem(item, "%s: want an op and a path (RFC 6902)", where)
		return false
	}
	want := patchFields[verb.Value]
	if want == nil {
		r.problem(verb, "%s.op: unknown operation%s", where, document.DidYouMean(verb.Value, patchOps))
		return false
	}
	before := len(r.problems)
	for _, field := range want {
		if document.Lookup(item, field) == nil {
			r.problem(item, "%s: %s: %s is missing", where, verb.Value, field)
		}
	}
	for i := 0; i+1 < len(item.Content); i += 2 {
		if key := item.Content[i]; !slices.Contains(want, key.Value) {
			r.problem(key, "%s: %s: %s does not belong here", where, verb.Value, document.Shorten(key.Value))
		}
	}
	if len(r.problems) > before {
		return false
	}
	op.op, op.at = verb.Value, document.Lookup(item, "path")
	op.into = r.pointer(where+".path", op.at)
	if from := document.Lookup(item, "from"); from != nil {
		op.from = r.pointer(where+".from", from)
	}
	if value := document.Lookup(item, "value"); value != nil {
		r.value(op, where, value)
	}
	if len(r.problems) == before {
		if what := op.patchMisuse(); what != "" {
			r.problem(op.at, "%s: %s", where, what)
		}
	}
	return len(r.problems) == before
}

func (r *reader) pointer(where string, n *yaml.Node) pointer {
	if !r.isText(n, where) {
		return nil
	}
	p, err := parsePointer(n.Value)
	if err != nil {
		r.problem(n, "%s: %s", where, err)
	}
	return p
}

// patchMisuse says what is wrong with a patch whose parts are well formed.
func (op *operation) patchMisuse() string {
	switch {
	case op.op == "test":
	case len(op.into) == 0, op.op == "move" && len(op.from) == 0:
		return fmt.Sprintf("%s: the empty path is the whole object, which cannot be replaced or removed: name its fields", op.op)
	case op.op == "move" && len(op.into) > len(op.from) && slices.Equal(op.from, op.into[:len(op.from)]):
		return fmt.Sprintf("move: %q is inside of what is moved", op.into)
	}
	return ""
}
