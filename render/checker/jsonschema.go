// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package checker

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"

	"github.com/swell-sh/swell/config/document"
)

// BySchema judges texts in JSON or YAML by a JSON Schema, itself in either. The schema may
// refer to itself only. It is compiled when the first text is judged, and refuses all of
// them when it does not compile.
func BySchema(schema string) func(text string) Verdict {
	compiled := sync.OnceValues(func() (*jsonschema.Schema, error) { return compileSchema(schema) })
	return func(text string) Verdict {
		by, err := compiled()
		if err != nil {
			return refusal("the schema does not compile: ", err)
		}
		return judgeBySchema(by, text)
	}
}

func refusal(what string, err error) Verdict {
	return Verdict{Findings: []Finding{{Text: what + document.Printable(err.Error())}}}
}

func judgeBySchema(by *jsonschema.Schema, text string) Verdict {
	value, err := readJSON(text)
	if err != nil {
		return refusal("", err)
	}
	var invalid *jsonschema.ValidationError
	switch err := by.Validate(value); {
	case err == nil:
		return Verdict{}
	case !errors.As(err, &invalid):
		return refusal("cannot be judged by the schema: ", err)
	}
	var node kyaml.Node
	_ = kyaml.Unmarshal([]byte(text), &node) // it was read a moment ago
	var found []Finding
	eachCause(invalid, func(e *jsonschema.ValidationError) {
		f := Finding{Text: document.Printable(strings.TrimPrefix(strings.Join(e.InstanceLocation, ".")+": "+e.ErrorKind.LocalizedString(message.NewPrinter(language.English)), ": "))}
		if at := instance(&node, e.InstanceLocation); at != nil {
			f.Line, f.Column = at.Line, at.Column
		}
		if len(found) < maxSchemaFindings {
			found = append(found, f)
		}
	})
	slices.SortFunc(found, func(a, b Finding) int { return a.Line - b.Line })
	return Verdict{Findings: found}
}

const maxSchemaFindings = 20

func compileSchema(text string) (*jsonschema.Schema, error) {
	value, err := readJSON(text)
	if err != nil {
		return nil, err
	}
	const name = "file:///schema.json"
	c := jsonschema.NewCompiler()
	c.UseLoader(noOthers{})
	if err := c.AddResource(name, value); err != nil {
		return nil, err
	}
	return c.Compile(name)
}

// noOthers refuses schemas that stand elsewhere.
type noOthers struct{}

func (noOthers) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s: a schema may refer to itself only", url)
}

func readJSON(text string) (any, error) {
	content, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(strings.NewReader(string(content)))
}

// eachCause visits the innermost errors.
func eachCause(e *jsonschema.ValidationError, each func(*jsonschema.ValidationError)) {
	if len(e.Causes) == 0 {
		each(e)
	}
	for _, cause := range e.Causes {
		eachCause(cause, each)
	}
}

// instance is the node at a location; nil when it cannot be found.
func instance(n *kyaml.Node, location []string) *kyaml.Node {
	if n.Kind == kyaml.DocumentNode && len(n.Content) > 0 {
		n = n.Content[0]
	}
	path := make([]any, len(location))
	for i, step := range location {
		path[i] = step
		if index, err := strconv.Atoi(step); err == nil && document.Lookup(n, step) == nil {
			path[i] = index
		}
	}
	return document.NodeAt(n, path)
}
