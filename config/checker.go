// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config/document"
)

// Checker says which texts in objects a program judges. Which program a name runs,
// and with which arguments, is not in the monorepo.
type Checker struct {
	Position document.Position
	Name     string
	// Program is the name of a program of the daemon's or the user's own
	// configuration, or of a recipe of swell.
	Program string
	// Schema is a file of the monorepo that the program judges by; mostly empty.
	Schema string
	From   []CheckedTexts
	doc    *document.Document
}

// Idle is a reference to nothing in a field of From.
func (c *Checker) Idle(item int, field, why, hint string) IdleReference {
	return IdleAt(c.doc, document.CodeReference, hint, why, "spec", "from", item, field)
}

// ItemAt is where an item of from is written.
func (c *Checker) ItemAt(item int) document.Position { return c.doc.PositionOf("spec", "from", item) }

// SchemaProblem is one of the schema that the Checker names.
func (c *Checker) SchemaProblem(format string, args ...any) document.Problem {
	schema := document.Lookup(document.Lookup(c.doc.Node, "spec"), "schema")
	return c.doc.Problem(schema, document.CodeReference, "spec.schema: "+format, args...)
}

// CheckedTexts are texts in the objects of one kind.
type CheckedTexts struct {
	// Group and Kind of the objects: of Kubernetes, of a custom resource, or an easy
	// kind. An empty group is any.
	Group, Kind string
	// Name is a pattern of the objects' names, as [path.Match] has it; empty is all.
	Name  string
	Match Match // of their labels
	// Key is a pattern of the keys of data, or else Path leads to the values, where "*"
	// is every item of a list or a mapping.
	Key  string
	Path []string
	// Beside are patterns of further keys of data, which the program finds beside the
	// file that it judges.
	Beside []string
	// Optional says that what it names may come later.
	Optional bool
}

// OfKind says whether the texts are those of a kind.
func (t *CheckedTexts) OfKind(group, kind string) bool {
	return t.Kind == kind && (t.Group == "" || t.Group == group)
}

// Named says whether an object may have the name.
func (t *CheckedTexts) Named(name string) bool {
	named, _ := path.Match(t.Name, name) // the pattern was checked
	return t.Name == "" || named
}

// SchemaProgram judges by a schema, and is a part of swell.
const SchemaProgram = "jsonschema"

type checkedTextsSpec struct {
	Group, Kind, Name, Key, Path string
	Match                        matchSpec
	Beside                       []string
	Optional                     bool
}

func (l *loader) loadChecker(doc *document.Document) {
	var spec struct {
		Program, Schema string
		From            []checkedTextsSpec
	}
	in := readOwn(doc, &spec)
	in.name("")
	c := &Checker{Position: doc.Position(), doc: doc, Name: doc.Name, Program: spec.Program, Schema: spec.Schema}
	if !document.IsLabel(spec.Program) {
		in.at("spec", "program").problem(document.CodeType, "want the name of a program, like nginx, got %q; the daemon's and your own configuration say what it runs", document.Shorten(spec.Program))
	}
	if spec.Program == SchemaProgram && !fs.ValidPath(spec.Schema) {
		in.at("spec", "schema").problem(document.CodeType, "want the path of a JSON Schema from the monorepo's root, got %q", document.Shorten(spec.Schema))
	}
	if spec.Program == SchemaProgram && fs.ValidPath(spec.Schema) {
		if _, err := l.tree.Hash(spec.Schema); err != nil {
			in.at("spec", "schema").problem(document.CodeReference, "%q: there is no such file in the monorepo", document.Shorten(spec.Schema))
		}
	}
	if spec.Program != SchemaProgram && spec.Schema != "" {
		in.at("spec", "schema").problem(document.CodeFleet, "only %s judges by a schema", SchemaProgram)
	}
	if len(spec.From) == 0 {
		in.at("spec", "from").problem(document.CodeFleet, "missing: say which texts it judges, like [{kind: ConfigMap, key: nginx.conf}]")
	}
	for i := range spec.From {
		c.From = append(c.From, in.checkedTexts(&spec.From[i], i))
	}
	l.problem(in.problems()...)
	l.repository.Checkers = append(l.repository.Checkers, c)
}

func (r *reading) checkedTexts(spec *checkedTextsSpec, i int) CheckedTexts {
	at := func(field ...any) docPath { return r.at(append([]any{"spec", "from", i}, field...)...) }
	texts := CheckedTexts{Group: spec.Group, Kind: spec.Kind, Name: spec.Name, Key: spec.Key, Beside: spec.Beside, Optional: spec.Optional,
		Match: r.match(spec.Match, "spec", "from", i, "match")}
	switch {
	case spec.Kind == "":
		at("kind").problem(document.CodeFleet, "missing")
	case !kindName.MatchString(spec.Kind):
		at("kind").problem(document.CodeType, "want a kind like ConfigMap, got %q", document.Shorten(spec.Kind))
	case spec.Kind == "Secret":
		at("kind").problem(document.CodeFleet, "Secret: no checker may read what Secrets hold")
	case spec.Key != "" && spec.Kind != "ConfigMap":
		at("key").problem(document.CodeFleet, "only a ConfigMap has keys: name the field with path")
	case (spec.Key == "") == (spec.Path == ""):
		at().problem(document.CodeFleet, "want one of key, for keys of a ConfigMap, and path, for fields of other kinds")
	case spec.Key == "" && len(spec.Beside) > 0:
		at("beside").problem(document.CodeFleet, "only keys of a ConfigMap can stand beside each other")
	}
	r.pattern(at("name"), spec.Name)
	r.pattern(at("key"), spec.Key)
	for j, pattern := range spec.Beside {
		r.pattern(at("beside", j), pattern)
	}
	if spec.Path != "" {
		texts.Path = strings.Split(spec.Path, ".")
		for _, step := range texts.Path {
			if step != "*" && !fieldName(step) {
				at("path").problem(document.CodeType, "%q: want names of fields with dots between them, like spec.config; * is every item", document.Shorten(spec.Path))
				break
			}
		}
	}
	return texts
}

// fieldName says whether a step of a path can be the name of a field.
func fieldName(step string) bool {
	return step != "" && !strings.ContainsFunc(step, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-'
	})
}

func (r *reading) pattern(at docPath, pattern string) {
	if _, err := path.Match(pattern, ""); err != nil {
		at.problem(document.CodeType, "%q: want a pattern like *.conf", document.Shorten(pattern))
	}
}

// CheckerProgram is the program that the name of a Checker runs, in the configuration of
// who runs swell.
type CheckerProgram struct {
	Name string
	// Command is the program, by its path or as it is found in PATH, and its arguments,
	// ${file} for the file that it judges. Without arguments those of swell's recipe of
	// the name hold.
	Command []string
	// Version is any text: another one has everything judged again.
	Version string
	// Read are files and folders of the machine that the program may read besides its
	// own libraries.
	Read []string
}

// CheckerPrograms are a user's own settings of what runs for a monorepo. The zero value has
// swell's recipes run with the guards that there are.
type CheckerPrograms struct {
	Checkers map[string]CheckerProgram // by name
	Sandbox  Sandbox
}

// ReadCheckerPrograms reads a user's own file of programs.
func ReadCheckerPrograms(file string, content []byte) (CheckerPrograms, document.Problems) {
	docs, problems := document.ReadDocuments(file, content)
	if len(problems) > 0 {
		return CheckerPrograms{}, problems
	}
	if p := WantOne(file, docs, "CheckerPrograms", ""); p != nil {
		return CheckerPrograms{}, document.Problems{*p}
	}
	var spec struct {
		Checkers []CheckerProgram
		Sandbox  string
	}
	in := readOwn(docs[0], &spec)
	programs := CheckerPrograms{Checkers: in.checkerPrograms(filepath.Dir(file), spec.Checkers), Sandbox: in.sandbox(spec.Sandbox)}
	return programs, in.problems()
}

// GivesText says whether the arguments of a program name the text that it judges.
func GivesText(args []string) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		return strings.Contains(arg, "${file}") || strings.Contains(arg, "${dir}")
	})
}

// Sandbox says which guards programs of a monorepo run with. Empty: those that the machine
// gives.
type Sandbox string

// SandboxRequired runs no program where a guard is missing.
const SandboxRequired Sandbox = "required"

// IsRequired says whether no program may run where a guard is missing.
func (s Sandbox) IsRequired() bool { return s == SandboxRequired }

// sandbox reads spec.sandbox.
func (r *reading) sandbox(text string) Sandbox {
	if text != "" && text != string(SandboxRequired) {
		r.at("spec", "sandbox").problem(document.CodeType, "want %s, or no such field, got %q", SandboxRequired, document.Shorten(text))
	}
	return Sandbox(text)
}

// checkerPrograms reads spec.checkers. Paths with a slash are relative to the folder of
// the file.
func (r *reading) checkerPrograms(dir string, list []CheckerProgram) map[string]CheckerProgram {
	programs := map[string]CheckerProgram{}
	for i, p := range list {
		at := func(field ...any) docPath { return r.at(append([]any{"spec", "checkers", i}, field...)...) }
		switch _, twice := programs[p.Name]; {
		case !document.IsLabel(p.Name):
			at("name").problem(document.CodeType, "want a DNS label, got %q", document.Shorten(p.Name))
		case p.Name == SchemaProgram:
			at("name").problem(document.CodeFleet, "%s is a part of swell", SchemaProgram)
		case twice:
			at("name").problem(document.CodeFleet, "%q is declared twice", p.Name)
		}
		if len(p.Command) == 0 || p.Command[0] == "" {
			at("command").problem(document.CodeFleet, "missing: want a program and its arguments, like [/usr/sbin/nginx, -t, -q, -c, ${file}]")
			continue
		}
		if strings.Contains(p.Command[0], "/") {
			p.Command[0] = inDir(dir, p.Command[0])
		}
		if len(p.Command) > 1 && !GivesText(p.Command[1:]) {
			at("command").problem(document.CodeFleet, "no argument has ${file}, so the program never gets the text: "+
				"write ${file}, or ${dir} for its folder, or leave the arguments out for those of swell's recipe")
		}
		for j, name := range p.Read {
			if p.Read[j] = inDir(dir, name); name == "" || filepath.Clean(p.Read[j]) == "/" {
				at("read", j).problem(document.CodeType, "want a file or a folder that is not the root, got %q", document.Shorten(name))
			}
		}
		programs[p.Name] = p
	}
	return programs
}
