// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/checker"
	"github.com/swell-sh/swell/render/kind"
	"github.com/swell-sh/swell/render/object"
)

// Checkers run the programs that Checker documents name. What they say of the same
// request is the same for as long as the identity of the program is. They are safe for
// concurrent use.
type Checkers interface {
	// Identity changes whenever the program, or how it is run, does. It is empty where no
	// program of that name can be run; missing says why, and what to do.
	Identity(program string) (identity, missing string)
	// Judge runs the program.
	Judge(checker.Request) checker.Verdict
}

// checks are the Checkers of a commit, and what runs them.
type checks struct {
	run  Checkers // nil: nothing can be run
	skip bool     // what cannot be run is skipped
	// released has nothing refused, see [NewCommit].
	released bool
	all      []sourcedChecker
	byKind   map[string][]check
	hashes   sync.Map // by kind
}

// check is one item of a Checker.
type check struct {
	sourcedChecker
	texts *config.CheckedTexts
	item  int // of the Checker's from
}

// schemaFile is a JSON Schema of a monorepo.
type schemaFile struct {
	address string // changes whenever the content does
	schema  *checker.Schema
	broken  *checker.Finding // why there is no schema; nil where there is one
	missing bool             // there is no such file, which is told where the fleet is read
}

// judge judges a text; a broken schema refuses all of them.
func (s *schemaFile) judge(text string) checker.Verdict {
	if s.broken != nil {
		return checker.Verdict{Findings: []checker.Finding{{Text: s.broken.Text, Retry: s.broken.Retry}}}
	}
	return s.schema.Judge(text)
}

// readSchema reads the schema that a Checker names from the tree that the Checker is from.
// One of known that has the same content is taken as it is.
func readSchema(tree config.Tree, c *config.Checker, known []sourcedChecker) *schemaFile {
	if c.Program != config.SchemaProgram {
		return nil
	}
	content, err := tree.ReadFile(c.Schema)
	if err != nil {
		p := document.FileProblem(c.Schema, err)
		return &schemaFile{address: "unread: " + p.Message, missing: errors.Is(err, fs.ErrNotExist), broken: &checker.Finding{Text: p.Message, Retry: p.Retry}}
	}
	sum := sha256.Sum256(content)
	s := &schemaFile{address: hex.EncodeToString(sum[:])}
	for _, other := range known {
		if other.schema.at() == s.address {
			return other.schema
		}
	}
	if s.schema, s.broken = checker.NewSchema(string(content)); s.broken != nil {
		s.broken.Text = "the schema does not compile: " + s.broken.Text
	}
	return s
}

// problems are those of the schemas of the commit's own Checkers.
func (c *checks) problems() (problems document.Problems) {
	for _, each := range c.all {
		if each.base || each.schema == nil || each.schema.broken == nil || each.schema.missing {
			continue
		}
		p := each.SchemaProblem("%q: %s", each.Schema, each.schema.broken.Text)
		p.Via = []document.Position{{File: each.Schema, Line: each.schema.broken.Line, Column: each.schema.broken.Column}}
		p.Retry = each.schema.broken.Retry
		problems = append(problems, p)
	}
	return problems
}

// at is the schema's address; empty where there is none.
func (s *schemaFile) at() string {
	if s == nil {
		return ""
	}
	return s.address
}

func newChecks(policy config.Checks, checkers []sourcedChecker, run Checkers, released bool) *checks {
	c := &checks{run: run, released: released, skip: policy.SkipMissing, all: checkers, byKind: map[string][]check{}}
	for _, each := range checkers {
		for i := range each.From {
			texts := &each.From[i]
			c.byKind[texts.Kind] = append(c.byKind[texts.Kind], check{each, texts, i})
		}
	}
	return c
}

// identity is that of a program.
func (c *checks) identity(program string) (identity, missing string) {
	if program == config.SchemaProgram {
		return "a part of swell", ""
	}
	if c.run == nil {
		return "", "no programs can be run here"
	}
	return c.run.Identity(program)
}

// same says whether the same is asked and would be answered.
func (c *checks) same(other *checks) bool {
	if c.hash("") != other.hash("") {
		return false
	}
	for kind := range c.byKind {
		if c.hash(kind) != other.hash(kind) {
			return false
		}
	}
	return true
}

// hash is the address of all that decides what becomes of objects of a kind; that of
// "" says for which kinds there is something to ask.
func (c *checks) hash(kind string) string {
	known, ok := c.hashes.Load(kind)
	if !ok {
		known, _ = c.hashes.LoadOrStore(kind, sync.OnceValue(func() string { return c.hashOf(kind) }))
	}
	return known.(func() string)()
}

func (c *checks) hashOf(kind string) string {
	if kind == "" {
		return strings.Join(slices.Sorted(maps.Keys(c.byKind)), " ")
	}
	if len(c.byKind[kind]) == 0 {
		return ""
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%t %t\n", c.skip, c.released)
	for _, each := range c.byKind[kind] {
		identity, missing := c.identity(each.Program)
		fmt.Fprintf(sum, "%t %q %d %s %q %q ", each.base, each.Name, each.item, each.Position, each.Program, each.Schema)
		fmt.Fprintf(sum, "%q %+v %q %q\n", each.schema.at(), *each.texts, identity, missing)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// question is a text of a unit that a program is asked about.
type question struct {
	check
	checker.Text
	src    source
	secret bool
	// problems are those of the text; finding is where in it.
	problems func(finding checker.Finding, message string) document.Problems
}

func (q *question) request(tenant string) checker.Request {
	return checker.Request{Program: q.Program, File: q.File, Beside: q.Beside, Private: q.secret, Tenant: tenant}
}

// question notes what is to be asked about an object that is good so far.
func (e *expansion) question(src source, d *draft, o *object.Object) {
	if !e.asks(o.ID.Kind) {
		return
	}
	content := unjudged{d, o}.content()
	metadata, _ := content["metadata"].(map[string]any)
	labels := map[string]string{}
	values, _ := metadata["labels"].(map[string]any)
	for key, value := range values {
		labels[key], _ = value.(string)
	}
	for _, c := range e.checks.byKind[o.ID.Kind] {
		if !e.takes(c, o.ID.Group, o.ID.Kind, o.ID.Name, labels) {
			continue
		}
		texts := checker.Texts(c.texts, content)
		e.noteTexts(c, len(texts), content)
		for _, text := range texts {
			e.questions = append(e.questions, question{check: c, Text: text, src: src, secret: len(config.QuotedIn(text.File.Content, d.secrets)) > 0,
				problems: func(f checker.Finding, message string) document.Problems { return d.refused(text, f, message) }})
		}
	}
}

// questionSpec notes what is to be asked about the fields of a spec that stands in the
// unit.
func (e *expansion) questionSpec(src source) {
	if !e.asks(src.doc.Kind) {
		return
	}
	object, ok := plain(src.doc)
	if !ok {
		return // its problems are those of the spec
	}
	group, _, grouped := strings.Cut(src.doc.APIVersion, "/")
	if !grouped {
		group = ""
	}
	labels := map[string]string{}
	metadata, _ := object["metadata"].(map[string]any)
	values, _ := metadata["labels"].(map[string]any)
	for key, value := range values {
		labels[key], _ = value.(string)
	}
	for _, c := range e.checks.byKind[src.doc.Kind] {
		if !e.takes(c, group, src.doc.Kind, src.doc.Name, labels) {
			continue
		}
		texts := checker.Texts(c.texts, object)
		e.noteTexts(c, len(texts), object)
		for _, text := range texts {
			file := e.fromFile(object, &text)
			e.questions = append(e.questions, question{check: c, Text: text, src: src, secret: len(config.QuotedIn(text.File.Content, src.spec.Secrets())) > 0,
				problems: func(f checker.Finding, message string) document.Problems {
					return refusedIn(src.doc, file, text.Path, f, message)
				}})
		}
	}
}

// fromFile puts the content of the file in place of a text that names one, and returns
// its path in the monorepo; empty when it names none.
func (u *unitRenderer) fromFile(object map[string]any, text *checker.Text) string {
	value, _ := kind.ValueAt(object, text.Path)
	named, _ := value.(map[string]any)
	name, ok := named["fromFile"].(string)
	if !ok || len(named) != 1 {
		return ""
	}
	content, err := u.file(name)
	full, wrong := u.beside(name)
	if err != nil || wrong != nil {
		return "" // that is a problem of the spec
	}
	text.File.Content = string(content)
	return full
}

// refusedIn is the problem of a field of a spec: at the line of the file or of the block
// that the text stands in, else at the field.
func refusedIn(doc *document.Document, file string, path []any, f checker.Finding, message string) document.Problems {
	p := doc.Problem(document.NodeAt(doc.Node, path), document.CodeChecker, "%s: %s", document.PathOf(path...), message)
	if at, ok := lineIn(doc, p.Position, f); ok {
		p.Position = at
	} else if file != "" && f.Line > 0 {
		p.Via = []document.Position{p.Position}
		p.Position = document.Position{File: file, Line: f.Line, Column: f.Column}
	}
	p.Retry = f.Retry
	return document.Problems{p}
}

// asks notes that it was looked up whether anything is asked about objects of a kind,
// and says whether there is.
func (u *unitRenderer) asks(kind string) bool {
	u.reads.note(readChecks, "")
	if len(u.checks.byKind[kind]) == 0 {
		return false
	}
	u.reads.note(readChecks, kind)
	return true
}

// refused tells what a program found in a text of the object: at the line of the text,
// where it was written in one block, else at the field.
func (d *draft) refused(text checker.Text, f checker.Finding, message string) document.Problems {
	d.problems = nil
	path := text.Path
	if f.File != "" && f.File != text.File.Name {
		path = append(slices.Clone(path[:len(path)-1]), f.File)
	}
	if len(path) > 0 && path[0] == checker.Encoded {
		f.Line = 0
	}
	d.problem(document.CodeChecker, path, "%s", message)
	for i, p := range d.problems {
		if at, ok := lineIn(d.doc, p.Position, f); ok {
			d.problems[i].Position = at
		}
		d.problems[i].Retry = f.Retry
	}
	return d.problems
}

// lineIn is the line of a finding in the document, when the text was written as a block
// at that position.
func lineIn(doc *document.Document, at document.Position, f checker.Finding) (document.Position, bool) {
	if f.Line == 0 || at.File != doc.File {
		return at, false
	}
	value := valueAt(doc.Whole().Node, at)
	if value == nil || value.Style != yaml.LiteralStyle {
		return at, false
	}
	at.Line, at.Column = value.Line+f.Line, 0
	return at, true
}

// valueAt is the value whose key stands at a position; nil when there is none.
func valueAt(n *yaml.Node, at document.Position) *yaml.Node {
	for i := 0; i < len(n.Content); i++ {
		below := n.Content[i]
		if n.Kind == yaml.MappingNode && i%2 == 0 && below.Line == at.Line && below.Column == at.Column {
			return n.Content[i+1]
		}
		if found := valueAt(below, at); found != nil {
			return found
		}
	}
	return nil
}

// consult asks the programs about the unit on its targets, leaves out what they refuse
// of what it collects, and adds what they found.
func (u *unitRenderer) consult(placed []place, expansions []*expansion) {
	u.ask(expansions...)
	u.exclude(placed, expansions)
	if u.checks.released {
		return
	}
	for n, e := range expansions {
		u.found.placement = n
		for i := range e.questions {
			q := &e.questions[i]
			for _, f := range u.answers[q.key()].Findings {
				u.found.add(q.problems(f, q.message(f))...)
			}
		}
	}
}

// message is what a finding says.
func (q *question) message(f checker.Finding) string {
	text := f.Text
	if q.secret {
		text = "refused; why is not shown, since the text holds a secret"
	}
	if q.base {
		text += ofBase
	}
	return fmt.Sprintf("checker %s: %s", q.Name, text)
}

// key is the same for questions with the same answer.
func (q *question) key() string {
	return fmt.Sprintf("%q %q %q %q", q.Program, q.schema.at(), q.File, q.Beside)
}

// ask asks all questions about these that were not asked before, on all cores.
func (u *unitRenderer) ask(expansions ...*expansion) {
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	var mu sync.Mutex
	known, answered := map[string]checker.Verdict{}, map[string]checker.Verdict{}
	maps.Copy(known, u.answers)
	for _, e := range expansions {
		for i := range e.questions {
			q := &e.questions[i]
			key := q.key()
			if _, asked := known[key]; asked {
				continue
			}
			known[key] = checker.Verdict{}
			if _, missing := u.checks.identity(q.Program); missing != "" {
				known[key] = u.missing(q, missing)
				continue
			}
			group.Go(func() error {
				verdict := u.judgeText(q)
				mu.Lock()
				defer mu.Unlock()
				answered[key] = verdict
				return nil
			})
		}
	}
	_ = group.Wait() // the functions return no errors
	maps.Copy(known, answered)
	u.answers = known
}

// judgeText asks about one text.
func (u *unitRenderer) judgeText(q *question) checker.Verdict {
	if q.schema != nil {
		return q.schema.judge(q.File.Content)
	}
	return u.checks.run.Judge(q.request(u.unit.Defaults.Tenant))
}

// missing is what becomes of a question that no program can be asked.
func (u *unitRenderer) missing(q *question, why string) checker.Verdict {
	if !u.checks.skip {
		return checker.Verdict{Findings: []checker.Finding{{Text: fmt.Sprintf("not checked: %s", why)}}}
	}
	u.note(document.Problem{Position: q.Position, Code: document.CodeChecker, Message: fmt.Sprintf("checker %s: skipped: %s", q.Name, why)})
	return checker.Verdict{}
}
