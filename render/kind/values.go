// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/schema"
)

// Values is a part of a document that is no easy spec and may have expressions, of what
// targets, units and data have.
type Values struct {
	doc      *document.Document
	data     *Data
	where    string
	template template
}

// CompileValues compiles the node n of a document; where names it in messages. Only
// texts are taken where text is set.
func CompileValues(doc *document.Document, n *yaml.Node, where string, text bool, data *Data) (*Values, document.Problems) {
	c := compiler{loader: &loader{doc: doc}, where: where}
	if hasExpression(n) {
		var err error
		c.env, err = newEnvironment(nil, nil, data, func(name string) (*textTemplate, error) {
			return nil, fmt.Errorf("template: %q: only kinds have files of templates", name)
		})
		if err != nil {
			panic(err) // there is no input
		}
	}
	want := anything
	if text {
		want = &schema.Type{Form: schema.String}
	}
	v := &Values{doc: doc, data: data, where: where, template: c.compile(n, want)}
	if broken := data.broken(&c.reads); len(broken) > 0 {
		c.problems = append(c.problems, doc.Problem(n, document.CodeReference, "%s: reads data, of which %s has a problem", where, strings.Join(broken, ", ")))
	}
	for i := range c.problems {
		if c.problems[i].Code == document.CodeKind { // this is no kind
			c.problems[i].Code = document.CodeRender
		}
	}
	return v, c.problems
}

// hasExpression says whether a text of a node may have one.
func hasExpression(n *yaml.Node) bool {
	return strings.Contains(n.Value, "${") || slices.ContainsFunc(n.Content, hasExpression)
}

// In evaluates the values in one place. They are plain values, and must not be changed.
func (v *Values) In(place *Place) (any, document.Problems) {
	budget := new(Budget)
	budget.made.most = objectsTimes
	charged := *place
	charged.budget = budget
	value, present, err := v.template.eval(&scope{place: &charged, data: v.data, Budget: budget})
	if err == nil && !present {
		err = errors.New("absent")
	}
	if err == nil {
		return value, nil
	}
	at := v.doc.Position()
	var evaluation *evalError
	if errors.As(err, &evaluation) {
		at = evaluation.at
	}
	p := document.Problem{Position: at, Code: document.CodeRender, Message: document.Printable(fmt.Sprintf("%s: %s", v.where, err))}
	var unread *readError
	if errors.As(err, &unread) {
		p.Code, p.Retry = document.CodeReference, document.FileProblem("", unread.err).Retry
	}
	return nil, document.Problems{p}
}
