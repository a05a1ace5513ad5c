// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
	gotemplate "text/template"
	"text/template/parse"
	"unicode/utf8"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/bounds"
	"github.com/swell-sh/swell/config/document"
)

// textTemplate is a file for the function template(file, x). It is safe for
// concurrent use.
type textTemplate struct {
	parsed *gotemplate.Template
	runs   sync.Pool // of *templateRun: Go binds functions to a template, not to its execution
}

// templateRun is one execution of a template and what it may still take.
type templateRun struct {
	template *gotemplate.Template
	steps    int
	depth    int
}

const (
	// maxSteps is how many turns of loops, calls of templates and KiB of texts
	// made by functions one execution may have.
	maxSteps = 100_000
	// maxTemplateDepth is how deep templates may call each other.
	maxTemplateDepth = 100
)

// Names of the functions that are put into the tree. The parser does not know
// them, so that nobody can write them.
const (
	stepFunction  = "_step"
	enterFunction = "_enter"
	leaveFunction = "_leave"
)

// parseTemplate compiles a template file. The error is a problem at its line.
func parseTemplate(file string, content []byte) (*textTemplate, *document.Problem) {
	problem := func(line int, message string) *document.Problem {
		return &document.Problem{Position: document.Position{File: file, Line: line}, Code: document.CodeKind, Message: message}
	}
	if !utf8.Valid(content) {
		return nil, problem(0, "want text in UTF-8")
	}
	parsed, err := gotemplate.New(file).Option("missingkey=error").Funcs((&templateRun{}).functions()).Parse(string(content))
	if err != nil {
		line, _, message := templateError(file, err)
		return nil, problem(line, "not a template: "+message)
	}
	for _, t := range parsed.Templates() {
		if t.Tree != nil {
			meter(t.Tree)
		}
	}
	t := &textTemplate{parsed: parsed}
	if _, err := t.newRun(); err != nil {
		return nil, problem(0, err.Error())
	}
	return t, nil
}

func (t *textTemplate) newRun() (*templateRun, error) {
	run := &templateRun{}
	cloned, err := t.parsed.Clone()
	if err == nil {
		run.template = cloned.Funcs(run.functions()).Funcs(run.meters())
	}
	return run, err
}

// execute renders the template with x, made of plain values, and says how many
// steps that took. The error names the template's line.
func (t *textTemplate) execute(x any) (text string, steps int, err error) {
	run, ok := t.runs.Get().(*templateRun)
	if !ok {
		if run, err = t.newRun(); err != nil {
			return "", 0, err
		}
	}
	defer t.runs.Put(run)
	run.steps, run.depth = 0, 0
	var out boundedText
	if err := run.template.Execute(&out, x); err != nil {
		line, column, message := templateError(t.parsed.Name(), err)
		return "", run.steps, fmt.Errorf("%s: %s", document.Position{File: t.parsed.Name(), Line: line, Column: column}, message)
	}
	return out.String(), run.steps, nil
}

// boundedText is a text of at most bounds.Text bytes.
type boundedText struct{ strings.Builder }

func (b *boundedText) Write(p []byte) (int, error) {
	if b.Len()+len(p) > bounds.Text {
		return 0, fmt.Errorf("the template makes more than %d MiB", bounds.Text>>20)
	}
	return b.Builder.Write(p)
}

var (
	templatePlace  = regexp.MustCompile(`^:(\d+)(?::(\d+))?: `)
	templateAction = regexp.MustCompile(`^executing "[^"]*" at <[^\n]*?>: `)
	templateCall   = regexp.MustCompile(`^error calling _\w+: `)
)

// templateError takes the place out of an error of text/template, whose texts
// begin with "template: file:line:column: ". Zero is an unknown place.
func templateError(file string, err error) (line, column int, message string) {
	message = strings.TrimPrefix(oneLine(err), "template: "+file)
	if m := templatePlace.FindStringSubmatch(message); m != nil {
		line, _ = strconv.Atoi(m[1])
		if column, _ = strconv.Atoi(m[2]); m[2] != "" {
			column++ // Go counts from 0
		}
		message = message[len(m[0]):]
	}
	message = templateAction.ReplaceAllString(message, "")
	return line, column, templateCall.ReplaceAllString(message, "")
}

// meter makes every turn of a loop and every call of a template take a step: Go
// would loop over a number of 2^60, or recurse without end.
func meter(tree *parse.Tree) {
	meterList(tree.ParseName, tree.Root)
	if tree.Root != nil {
		nodes := append([]parse.Node{callOf(tree.ParseName, 1, enterFunction)}, tree.Root.Nodes...)
		tree.Root.Nodes = append(nodes, callOf(tree.ParseName, 1, leaveFunction))
	}
}

func meterList(file string, list *parse.ListNode) {
	if list == nil {
		return
	}
	for _, n := range list.Nodes {
		switch n := n.(type) {
		case *parse.RangeNode:
			meterList(file, n.List)
			meterList(file, n.ElseList)
			n.List.Nodes = append([]parse.Node{callOf(file, n.Line, stepFunction)}, n.List.Nodes...)
		case *parse.IfNode:
			meterList(file, n.List)
			meterList(file, n.ElseList)
		case *parse.WithNode:
			meterList(file, n.List)
			meterList(file, n.ElseList)
		}
	}
}

// callOf is an action that calls a function without arguments. Errors in it
// are at the line.
func callOf(file string, line int, function string) parse.Node {
	text := strings.Repeat("\n", line-1) + "{{" + function + "}}"
	trees, err := parse.Parse(file, text, "", "", map[string]any{function: func() string { return "" }})
	if err != nil {
		panic(err) // it is always the same text
	}
	nodes := trees[file].Root.Nodes
	return nodes[len(nodes)-1]
}

var errSteps = fmt.Errorf("the template takes more than %d steps", maxSteps)

func (r *templateRun) step(n int) error {
	if r.steps += n; r.steps > maxSteps {
		return errSteps
	}
	return nil
}

func (r *templateRun) enter() (string, error) {
	if r.depth++; r.depth > maxTemplateDepth {
		return "", fmt.Errorf("templates call each other more than %d levels deep", maxTemplateDepth)
	}
	return "", r.step(1)
}

// readTemplate reads a template beside the kind.
func readTemplate(tree config.Tree, folder, name string) (content []byte, file string, err error) {
	if !fs.ValidPath(name) || name == "." {
		return nil, "", document.Refusal(fmt.Sprintf("template: %q: want the path of a file in the kind's folder or below it", document.Shorten(name)))
	}
	file = path.Join(folder, name)
	content, err = tree.ReadFile(file)
	if err != nil {
		err = fmt.Errorf("template: %q: %w", document.Shorten(name), document.Cause(err))
	}
	return content, file, err
}
