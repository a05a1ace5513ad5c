// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"errors"
	"io"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// ReadValue parses a file that holds exactly one YAML document of any form, by
// the rules of [ReadDocuments] but for apiVersion and kind. The value is what
// [Document.Plain] gives; it is nil when there is a problem.
func ReadValue(file string, content []byte) (any, Problems) {
	if p := checkText(file, content); p != nil {
		return nil, Problems{*p}
	}
	var roots []*yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	for {
		var root yaml.Node
		err := decoder.Decode(&root)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, Problems{syntaxProblem(file, err)}
		}
		if root.Kind == yaml.DocumentNode && len(root.Content) > 0 && !isNull(root.Content[0]) {
			roots = append(roots, root.Content[0])
		}
	}
	if len(roots) == 0 {
		return nil, Problems{{Position: Position{File: file}, Code: CodeDocument, Message: "want one YAML document, got none"}}
	}
	doc := &Document{File: file, Node: roots[0]}
	if len(roots) > 1 {
		return nil, Problems{doc.Problem(roots[1], CodeDocument, "want one YAML document, got another one")}
	}
	reader := yamlReader{file: file}
	if doc.Node = reader.resolve(roots[0], 0, nil); len(reader.problems) > 0 {
		return nil, reader.problems
	}
	return doc.Plain(doc.Node)
}
