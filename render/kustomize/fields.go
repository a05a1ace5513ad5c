// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config/document"
)

// checkFields holds a kustomization against kustomize's own Go type. Kustomize
// does so too, but takes fields in any case of letters and names no place; what
// it would take for another field than is written must not get to it. Messages
// hold no value, as it may be one of a Secret.
func (k *kustomization) checkFields(n *yaml.Node, want reflect.Type, path string) document.Problems {
	if want.Kind() == reflect.Pointer {
		want = want.Elem()
	}
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return nil
	}
	wrong := func(what string) document.Problems {
		return document.Problems{k.doc.Problem(n, document.CodeType, "%s: want %s", path, what)}
	}
	switch want.Kind() {
	case reflect.Interface: // a value of any kind
		return nil
	case reflect.Struct:
		if n.Kind != yaml.MappingNode {
			return wrong("a map")
		}
		return k.checkStruct(n, want, path)
	case reflect.Map:
		if n.Kind != yaml.MappingNode {
			return wrong("a map")
		}
	case reflect.Slice:
		if n.Kind != yaml.SequenceNode {
			return wrong("a list")
		}
	case reflect.String:
		if n.Kind != yaml.ScalarNode || n.Tag != "!!str" {
			return wrong("a string: write it in quotes")
		}
	case reflect.Bool:
		if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" {
			return wrong("true or false")
		}
	case reflect.Int, reflect.Int64:
		if n.Kind != yaml.ScalarNode || n.Tag != "!!int" {
			return wrong("a whole number")
		}
	}
	var problems document.Problems
	for i, child := range n.Content {
		if want.Kind() == reflect.Slice || i%2 == 1 {
			problems = append(problems, k.checkFields(child, want.Elem(), path)...)
		}
	}
	return problems
}

// words are the texts that fields of kustomize's types may have, where kustomize
// takes any other for none.
var words = map[string][]string{
	"GeneratorArgs.behavior":      {"create", "merge", "replace"},
	"ConfigMapArgs.behavior":      {"create", "merge", "replace"},
	"SecretArgs.behavior":         {"create", "merge", "replace"},
	"SortOptions.order":           {"fifo", "legacy"},
	"Kustomization.buildMetadata": {"managedByLabel", "originAnnotations", "transformerAnnotations"},
}

func (k *kustomization) checkWord(n *yaml.Node, field, path string) (problems document.Problems) {
	known, limited := words[field]
	if n.Kind == yaml.SequenceNode {
		for _, item := range n.Content {
			problems = append(problems, k.checkWord(item, field, path)...)
		}
		return problems
	}
	if limited && n.Kind == yaml.ScalarNode && n.Tag == "!!str" && !slices.Contains(known, n.Value) {
		problems = append(problems, k.doc.Problem(n, document.CodeType, "%s: %q: no such word%s", path, document.Shorten(n.Value), document.DidYouMean(n.Value, known)))
	}
	return problems
}

func (k *kustomization) checkStruct(n *yaml.Node, want reflect.Type, path string) document.Problems {
	fields := map[string]reflect.Type{}
	var names []string
	for _, f := range reflect.VisibleFields(want) {
		if f.Anonymous || !f.IsExported() {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			name = f.Name
		}
		fields[name] = f.Type
		names = append(names, name)
	}
	var problems document.Problems
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		at := strings.TrimPrefix(path+"."+key.Value, ".")
		if fields[key.Value] == nil {
			problems = append(problems, k.doc.Problem(key, document.CodeUnknown, "%s: unknown field%s", document.Shorten(at), document.DidYouMean(key.Value, names)))
			continue
		}
		problems = append(problems, k.checkFields(n.Content[i+1], fields[key.Value], at)...)
		problems = append(problems, k.checkWord(n.Content[i+1], want.Name()+"."+key.Value, at)...)
	}
	return problems
}
