// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

// patchEntry is an entry of patches or patchesJson6902, or a PatchTransformer.
type patchEntry struct {
	field  string
	in     *document.Document // where the entry stands
	at     *yaml.Node         // the entry
	target *yaml.Node         // nil: the object that the patch itself names
	docs   []*document.Document
	text   string // what the documents were read from
}

// patch follows an entry of patches, patchesJson6902 or replacements.
func (c *closure) patch(k *kustomization, n *yaml.Node, field string) {
	e := patchEntry{field: field, in: k.doc, at: n, target: document.Lookup(n, "target")}
	c.secret = c.secret || targetsSecret(e.target)
	file, text := document.Lookup(n, "path"), document.Lookup(n, "patch")
	before := len(c.problems)
	if file != nil {
		e.docs = c.values(k, file, field+".path")
	}
	if text != nil {
		docs, problems := c.inline(k.doc, text)
		c.problems = append(c.problems, problems...)
		e.docs = append(e.docs, docs...)
	}
	c.patches = append(c.patches, e.docs...)
	if field == "replacements" || len(c.problems) > before {
		return
	}
	switch {
	case isBlank(file) && isBlank(text):
		c.patchProblem(e, e.in, n, "no patch: write it in patch, or name its file in path")
		return
	case !isBlank(file) && !isBlank(text):
		c.patchProblem(e, e.in, n, "patch and path at once: want one of them")
		return
	case !isBlank(text):
		e.text = text.Value
		if field == "patches" {
			e.text = strings.TrimSpace(e.text) // as kustomize does
		}
	default:
		if name, ok := c.local(k, file, file.Value, field); ok {
			content, _ := c.disk.ReadFile("/" + name)
			e.text = string(content)
		}
	}
	c.checkPatch(e)
}

func isBlank(n *yaml.Node) bool { return n == nil || strings.TrimSpace(n.Value) == "" }

func targetsSecret(target *yaml.Node) bool {
	kind := document.Lookup(target, "kind")
	return kind != nil && config.MaySecret(kind.Value)
}

// isInline says whether an entry of patchesStrategicMerge is a patch: kustomize takes what
// does not read as an object for a path.
func isInline(text string) bool { return strings.Contains(text, "\n") || strings.Contains(text, ": ") }

// inlineOrFile follows an entry of patchesStrategicMerge.
func (c *closure) inlineOrFile(k *kustomization, n *yaml.Node, field string) {
	e := patchEntry{field: field, in: k.doc, at: n}
	if !isInline(n.Value) {
		before := len(c.problems)
		e.docs = c.values(k, n, field)
		switch {
		case len(c.problems) > before:
		case len(e.docs) == 0:
			c.patchProblem(e, k.doc, n, "an empty file: %s", wantPatch(field))
		default:
			c.checkMerges(e)
		}
	} else {
		e.docs = c.inlineObjects(k, n, field)
	}
	c.patches = append(c.patches, e.docs...)
	c.addMergePatches(e.docs, nil)
}

// patchTransformer follows a document of kustomize's own plugin.
func (c *closure) patchTransformer(doc *document.Document) {
	e := patchEntry{field: doc.Kind, in: doc, at: doc.Node, target: document.Lookup(doc.Node, "target")}
	text := document.Lookup(doc.Node, "patch")
	if isBlank(text) {
		c.patchProblem(e, doc, doc.Node, "no patch: write it in patch")
		return
	}
	c.secret = c.secret || targetsSecret(e.target)
	var problems document.Problems
	if e.docs, problems = c.inline(doc, text); len(problems) > 0 {
		c.problems = append(c.problems, problems...)
		return
	}
	e.text = strings.TrimSpace(text.Value)
	c.checkPatch(e)
}

func (c *closure) patchProblem(e patchEntry, doc *document.Document, at *yaml.Node, format string, args ...any) {
	c.problems = append(c.problems, doc.Problem(at, document.CodeType, e.field+": "+format, args...))
}

// checkPatch holds a patch against what kustomize asks of one. Kustomize's own
// words for what is wrong name no place and quote the whole patch.
func (c *closure) checkPatch(e patchEntry) {
	c.checkTarget(e)
	operations := slices.ContainsFunc(e.docs, func(doc *document.Document) bool { return doc.Node.Kind == yaml.SequenceNode })
	switch {
	case operations || e.field == "patchesJson6902":
		c.checkOperations(e)
		return
	case e.target != nil && len(e.docs) > 1:
		c.patchProblem(e, e.docs[1], e.docs[1].Node, "%d documents in a patch with a target: want one, make each an item of its own", len(e.docs))
	default:
		c.checkMerges(e)
	}
	c.addMergePatches(e.docs, e.target)
}

// checkTarget reads the expressions by which a target chooses objects.
func (c *closure) checkTarget(e patchEntry) {
	for _, field := range []string{"group", "version", "kind", "name", "namespace"} {
		if n := document.Lookup(e.target, field); n != nil {
			if _, err := types.NewSelectorRegex(&types.Selector{ResId: resid.ResId{Name: n.Value}}); err != nil {
				c.patchProblem(e, e.in, n, "target.%s: want a regular expression: %s", field, err)
			}
		}
	}
	for _, field := range []string{"labelSelector", "annotationSelector"} {
		if n := document.Lookup(e.target, field); n != nil {
			if _, err := labels.Parse(n.Value); err != nil {
				c.patchProblem(e, e.in, n, "target.%s: want a selector such as app=web: %s", field, err)
			}
		}
	}
}

// checkMerges checks the documents of a strategic merge patch.
func (c *closure) checkMerges(e patchEntry) {
	for _, doc := range e.docs {
		c.checkMerge(e, doc, doc.Node)
	}
}

func (c *closure) checkMerge(e patchEntry, doc *document.Document, n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		c.patchProblem(e, doc, n, "%s", wantPatch(e.field))
		return
	}
	kind, name := document.Lookup(n, "kind"), document.Lookup(document.Lookup(n, "metadata"), "name")
	if kind != nil && strings.HasSuffix(kind.Value, "List") {
		for _, item := range items(n, "items") {
			c.checkMerge(e, doc, item)
		}
		return
	}
	var missing []string
	if isBlank(kind) {
		missing = append(missing, "kind")
	}
	if isBlank(name) {
		missing = append(missing, "metadata.name")
	}
	if len(n.Content) == 0 || len(missing) == 0 {
		return
	}
	write := "write what the object has that it changes"
	if e.target != nil {
		write = "kustomize wants both also beside a target, where any will do"
	}
	c.patchProblem(e, doc, n, "a patch without %s: %s", strings.Join(missing, " and "), write)
}

func wantPatch(field string) string {
	if field == "patchesStrategicMerge" {
		return "want an object with apiVersion, kind and metadata.name"
	}
	return "want an object (a merge patch) or a list of operations (a JSON patch)"
}

// checkOperations checks a JSON patch (RFC 6902).
func (c *closure) checkOperations(e patchEntry) {
	name := document.Lookup(e.target, "name")
	switch first := e.docs; {
	case len(first) == 0:
		c.patchProblem(e, e.in, e.at, "no operations: want a list of them, such as `- {op: remove, path: /spec/replicas}`")
	case len(first) > 1:
		c.patchProblem(e, first[1], first[1].Node, "a second document, which kustomize drops: write all operations in one list")
	case first[0].Node.Kind != yaml.SequenceNode:
		c.patchProblem(e, first[0], first[0].Node, "want a list of operations (a JSON patch); a merge patch goes into patches")
	case e.target == nil:
		c.patchProblem(e, e.in, e.at, "a list of operations without a target: say which object it changes, in target.kind and target.name")
	case e.field == "patchesJson6902" && isBlank(name):
		c.patchProblem(e, e.in, e.target, "target.name: missing")
	case strings.HasPrefix(e.text, "[") && !json.Valid([]byte(e.text)):
		c.patchProblem(e, first[0], first[0].Node, "a patch that begins with [ is JSON to kustomize, and this is none: put all words in double quotes, or begin each operation on a line of its own with \"- \"")
	default:
		for i, operation := range first[0].Node.Content {
			c.checkOperation(e, first[0], operation, i)
		}
	}
}

var operations = []string{"add", "copy", "move", "remove", "replace", "test"}

func (c *closure) checkOperation(e patchEntry, doc *document.Document, n *yaml.Node, i int) {
	op := document.Lookup(n, "op")
	switch {
	case n.Kind != yaml.MappingNode:
		c.patchProblem(e, doc, n, "operation %d: want a map with op and path", i)
		return
	case isBlank(op):
		c.patchProblem(e, doc, n, "operation %d: op: missing, want one of %s", i, strings.Join(operations, ", "))
		return
	case !slices.Contains(operations, op.Value):
		c.patchProblem(e, doc, op, "operation %d: op: unknown operation%s", i, document.DidYouMean(op.Value, operations))
		return
	}
	pointers := []string{"path"}
	if op.Value == "move" || op.Value == "copy" {
		pointers = append(pointers, "from")
	}
	for _, field := range pointers {
		at := document.Lookup(n, field)
		if at == nil {
			c.patchProblem(e, doc, n, "operation %d: %s: missing, want a place such as /spec/replicas", i, field)
		} else if at.Kind != yaml.ScalarNode || at.Value != "" && at.Value[0] != '/' {
			c.patchProblem(e, doc, at, "operation %d: %s: want a place that begins with a slash, such as /spec/replicas", i, field)
		}
	}
}
