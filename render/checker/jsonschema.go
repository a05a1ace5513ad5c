// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package checker

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"

	"github.com/swell-sh/swell/config/document"
)

// Schema is a JSON Schema, in JSON or YAML. It may refer to itself only.
type Schema struct{ compiled *jsonschema.Schema }

// NewSchema compiles a schema. finding is why it cannot be; nil when it can.
func NewSchema(text string) (schema *Schema, finding *Finding) {
	value, err := readJSON(text)
	if err != nil {
		return nil, unread(err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noOthers{})
	if err := c.AddResource(schemaName, value); err != nil {
		return nil, &Finding{Text: oneLine(err)}
	}
	compiled, err := c.Compile(schemaName)
	var invalid *jsonschema.SchemaValidationError
	var cause *jsonschema.ValidationError
	switch {
	case err == nil:
		return &Schema{compiled}, nil
	case errors.As(err, &invalid) && errors.As(invalid.Err, &cause):
		return nil, &findings(cause, text)[0]
	}
	return nil, &Finding{Text: oneLine(err)}
}

// schemaName is what the library calls a schema. It stands in no message.
const schemaName = "file:///schema.json"

// oneLine is an error of a library in one line, without the name that it has for the schema.
func oneLine(err error) string {
	var lines []string
	for line := range strings.Lines(err.Error()) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return ownWords(strings.ReplaceAll(strings.Join(lines, "; "), ":; ", ": "))
}

// ownWords is a text of the library without its name for the schema.
func ownWords(text string) string {
	return document.Printable(strings.ReplaceAll(text, schemaName, ""))
}

// Judge judges a text in JSON or YAML, each document of it.
func (s *Schema) Judge(text string) (verdict Verdict) {
	for _, part := range documents(text) {
		for _, f := range s.judge(part.text) {
			if f.Line > 0 {
				f.Line += part.before
			}
			if len(verdict.Findings) < maxSchemaFindings {
				verdict.Findings = append(verdict.Findings, f)
			}
		}
	}
	return verdict
}

// judge judges one document.
func (s *Schema) judge(text string) []Finding {
	value, err := readJSON(text)
	if err != nil {
		return []Finding{*unread(err)}
	}
	var invalid *jsonschema.ValidationError
	switch err := s.compiled.Validate(value); {
	case err == nil:
		return nil
	case !errors.As(err, &invalid):
		return []Finding{{Text: "cannot be judged by the schema: " + oneLine(err)}}
	}
	return findings(invalid, text)
}

// unread is a mistake in JSON or YAML.
func unread(err error) *Finding {
	f := &Finding{Text: strings.TrimPrefix(strings.TrimPrefix(oneLine(err), "yaml: "), "unmarshal errors: ")}
	if named := lineNamed.FindStringSubmatch(f.Text); named != nil {
		f.Text = strings.TrimPrefix(f.Text, named[0])
		f.Line, _ = strconv.Atoi(named[1]) // digits
	}
	return f
}

// lineNamed is how the reader of YAML names the line of a mistake.
var lineNamed = regexp.MustCompile(`^line (\d+): `)

// findings are the mistakes of a document, at least one, by their lines.
func findings(invalid *jsonschema.ValidationError, text string) (found []Finding) {
	var node kyaml.Node
	_ = kyaml.Unmarshal([]byte(text), &node) // it was read a moment ago
	eachCause(invalid, func(e *jsonschema.ValidationError) {
		text := strings.Join(e.InstanceLocation, ".") + ": " + e.ErrorKind.LocalizedString(message.NewPrinter(language.English))
		f := Finding{Text: ownWords(strings.TrimPrefix(text, ": "))}
		if value := instance(&node, e.InstanceLocation); value != nil {
			f.Line, f.Column = value.Line, value.Column
		}
		if len(found) < maxSchemaFindings {
			found = append(found, f)
		}
	})
	slices.SortStableFunc(found, func(a, b Finding) int { return a.Line - b.Line })
	return found
}

const maxSchemaFindings = 20

// part is a document of a text, and how many lines stand before it.
type part struct {
	text   string
	before int
}

// documents are those of a text, which three dashes divide: at least one. One without any
// content is left out.
func documents(text string) (parts []part) {
	var lines []string
	before, n, filled, marked := 0, 0, false, false
	end := func() {
		if filled {
			parts = append(parts, part{strings.Join(lines, ""), before})
		}
		if filled || marked {
			lines, before = nil, n
		}
		filled, marked = false, false
	}
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "---"); ok && strings.TrimSpace(rest[:min(len(rest), 1)]) == "" {
			end()
			marked, filled = true, strings.TrimSpace(rest) != "" && !strings.HasPrefix(strings.TrimSpace(rest), "#")
		} else if line = strings.TrimRight(line, "\r\n") + "\n"; strings.TrimSpace(line) != "" && !strings.ContainsAny(line[:1], "#%") {
			filled = true
		}
		lines = append(lines, line)
		n++
	}
	if end(); len(parts) == 0 {
		return []part{{text, 0}}
	}
	return parts
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
