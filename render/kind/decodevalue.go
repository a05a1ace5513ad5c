// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"maps"
	"math"
	"slices"
	"strconv"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config/document"
)

// DecodeValue reads a rendered value, made of plain values, as a spec of the
// kind. at is where the value at a path of string keys and int indexes was
// written, in the template that made it. The problems are there. Those of
// rendering the spec are at doc, via chain: the templates that led to the value,
// outermost first. file reads the files named by fromFile.
func (k *Kind) DecodeValue(value map[string]any, at func(path []any) document.Position, doc *document.Document, chain []document.Position, file func(path string) ([]byte, error)) (*Spec, document.Problems) {
	b := nodeBuilder{at: at}
	root := b.node(value, nil)
	written := at(nil)
	nested := &document.Document{File: written.File, Node: root}
	if len(b.problems) > 0 {
		return nil, b.problems
	}
	metadata, _ := value["metadata"].(map[string]any)
	nested.Name, _ = metadata["name"].(string)
	nested.APIVersion, _ = value["apiVersion"].(string)
	nested.Kind, _ = value["kind"].(string)
	spec, problems := k.Decode(nested, file)
	if len(problems) > 0 {
		return nil, problems
	}
	spec.doc, spec.via = doc, chain
	return spec, nil
}

// nodeBuilder makes YAML nodes of plain values, so that the one decoder reads
// both what people write and what templates render.
type nodeBuilder struct {
	at       func(path []any) document.Position
	problems document.Problems
}

// maxValueDepth is how deep a rendered spec may nest, as a written one.
const maxValueDepth = 100

func (b *nodeBuilder) node(value any, path []any) *yaml.Node {
	at := b.at(path)
	n := &yaml.Node{Line: at.Line, Column: at.Column}
	if len(path) > maxValueDepth {
		b.problems = append(b.problems, document.Problem{Position: at, Code: document.CodeType, Message: "nested more than " + strconv.Itoa(maxValueDepth) + " levels deep"})
		return n
	}
	switch v := value.(type) {
	case map[string]any:
		n.Kind, n.Tag = yaml.MappingNode, "!!map"
		for _, key := range slices.Sorted(maps.Keys(v)) {
			below := b.node(v[key], append(slices.Clip(path), key))
			n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key, Line: below.Line, Column: below.Column}, below)
		}
	case []any:
		n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
		for i, item := range v {
			n.Content = append(n.Content, b.node(item, append(slices.Clip(path), i)))
		}
	default:
		n.Kind = yaml.ScalarNode
		n.Tag, n.Value = scalarNode(v)
	}
	return n
}

func scalarNode(value any) (tag, text string) {
	switch v := value.(type) {
	case string:
		return "!!str", v
	case bool:
		return "!!bool", strconv.FormatBool(v)
	case int64:
		return "!!int", strconv.FormatInt(v, 10)
	case float64:
		const exact = 1 << 53
		if v == math.Trunc(v) && math.Abs(v) <= exact {
			return "!!int", strconv.FormatInt(int64(v), 10) // as in JSON
		}
		return "!!float", strconv.FormatFloat(v, 'g', -1, 64)
	}
	return "!!null", "null"
}
