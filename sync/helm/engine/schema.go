// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
	chart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/swell-sh/swell/render/helm"
)

// schemaFile is the JSON Schema of a chart's values.
const schemaFile = "values.schema.json"

// maxFindings is how many mistakes of the values of one chart are told.
const maxFindings = 20

// checkValues holds values against the schemas of the chart and of those in it. full is
// what its templates are called, and at is where its values stand in those of the root.
func (l *loaded) checkValues(c *chart.Chart, values map[string]any, full string, at []string) (found []helm.Finding) {
	if c.Schema != nil {
		found = l.bySchema(c, values, path.Join(l.folders[full], schemaFile), at)
	}
	for _, below := range c.Dependencies() {
		there := append(slices.Clip(at), below.Name())
		switch of := values[below.Name()].(type) {
		case nil:
		case map[string]any:
			found = append(found, l.checkValues(below, of, full+"/charts/"+below.Name(), there)...)
		default:
			found = append(found, helm.Finding{Values: []string{strings.Join(there, ".")}, Text: "want a mapping, of the values of a chart"})
		}
	}
	return found
}

func (l *loaded) bySchema(c *chart.Chart, values map[string]any, file string, at []string) (found []helm.Finding) {
	compiled, err := compile(c)
	if err != nil {
		return []helm.Finding{{File: file, Line: 1, Text: plain(err).Error()}}
	}
	var invalid *jsonschema.ValidationError
	switch err := compiled.Validate(map[string]any(values)); {
	case err == nil:
		return nil
	case !errors.As(err, &invalid):
		return []helm.Finding{{File: file, Line: 1, Text: plain(err).Error()}}
	}
	printer := message.NewPrinter(language.English)
	eachCause(invalid, func(e *jsonschema.ValidationError) {
		f := helm.Finding{File: file, Line: 1, Text: plain(errors.New(e.ErrorKind.LocalizedString(printer))).Error()}
		f.Values = []string{strings.Join(append(slices.Clone(at), e.InstanceLocation...), ".")}
		if !slices.ContainsFunc(found, func(other helm.Finding) bool { return other.Values[0] == f.Values[0] && other.Text == f.Text }) {
			found = append(found, f)
		}
	})
	slices.SortFunc(found, func(a, b helm.Finding) int {
		return strings.Compare(a.Values[0]+"\x00"+a.Text, b.Values[0]+"\x00"+b.Text)
	})
	return found[:min(len(found), maxFindings)]
}

// root is where the files of a chart are to its schemas.
const root = "file:///chart/"

func compile(c *chart.Chart) (compiled *jsonschema.Schema, err error) {
	defer func() { // the library panics on some schemas
		if r := recover(); r != nil {
			err = fmt.Errorf("the schema cannot be read: %v", r)
		}
	}()
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(c.Schema))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(ofChart{c})
	if err := compiler.AddResource(root+schemaFile, schema); err != nil {
		return nil, err
	}
	return compiler.Compile(root + schemaFile)
}

// ofChart finds schemas that a schema refers to among the files of its chart.
type ofChart struct{ *chart.Chart }

func (c ofChart) Load(url string) (any, error) {
	name, own := strings.CutPrefix(url, root)
	if !own {
		return nil, fmt.Errorf("refers to %s, which is never fetched: put that schema into the chart and refer to the file, or take the reference out", url)
	}
	for _, f := range c.Raw {
		if f.Name == name {
			return jsonschema.UnmarshalJSON(bytes.NewReader(f.Data))
		}
	}
	return nil, fmt.Errorf("refers to %s, which is not in the chart", name)
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
