// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"errors"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

// follow reads what the kustomization names.
func (c *closure) follow(k *kustomization) {
	n := k.doc.Node
	for _, field := range []string{"resources", "bases"} {
		for _, item := range items(n, field) {
			c.resource(k, item, field)
		}
	}
	for _, item := range items(n, "components") {
		if file, ok := c.local(k, item, item.Value, "components"); ok {
			c.folder(k, item, file, "components")
		}
	}
	for _, item := range items(n, "configurations") {
		c.values(k, item, "configurations")
	}
	for _, item := range items(n, "patchesStrategicMerge") {
		c.inlineOrFile(k, item, "patchesStrategicMerge")
	}
	for _, field := range []string{"patches", "patchesJson6902", "replacements"} {
		for _, item := range items(n, field) {
			c.patch(k, item, field)
		}
	}
	for _, field := range []string{"configMapGenerator", "secretGenerator"} {
		for _, item := range items(n, field) {
			c.generator(k, item, field)
		}
	}
	for _, field := range []string{"generators", "transformers", "validators"} {
		for _, item := range items(n, field) {
			c.plugin(k, item, field)
		}
	}
}

// elsewhere matches what kustomize would take for a URL or for a repository to
// clone, from the start of the text: what Go's url.Parse gives the scheme http
// or https, and what kustomize's own git package takes a host from.
var elsewhere = regexp.MustCompile(`(?i)^\s*(git::|https?:|ssh://|file://|[a-z][a-z0-9-]*@|github\.com[/:])`)

// local is the path from the root of a file or folder that the kustomization
// names. A name that leads out of the monorepo is refused.
func (c *closure) local(k *kustomization, n *yaml.Node, name, field string) (string, bool) {
	refuse := func(why string) (string, bool) {
		shown := shownPath(field, name)
		if shown == name {
			shown = strconv.Quote(document.Shorten(name))
		}
		c.problems = append(c.problems, k.doc.Problem(n, document.CodeReference, "%s: %s: %s", field, shown, why))
		return "", false
	}
	switch {
	case elsewhere.MatchString(name) || strings.Contains(name, "://"):
		return refuse("a remote place: nothing is fetched, want a path in the monorepo; copy it there")
	case name == "":
		return refuse("want a path")
	case path.IsAbs(name):
		return refuse("an absolute path: want one relative to the kustomization")
	case slices.ContainsFunc(strings.Split(name, "/"), ambiguous):
		return refuse("want a plain path; is the list indented as it should be?")
	}
	file := path.Join(k.folder, name)
	if !fs.ValidPath(file) {
		return refuse("leads out of the monorepo")
	}
	return file, true
}

// shownPath is a path that a field of a kustomization names, as messages show
// it. Where a generator wants one, somebody may have written the value itself.
func shownPath(field, path string) string {
	if strings.HasPrefix(field, "secretGenerator") || strings.HasPrefix(field, "configMapGenerator") && !config.PlainPath(path) {
		return document.Redacted
	}
	return path
}

// ambiguous says whether an element of a path hides a `..` or characters that
// no path of a repository needs.
func ambiguous(element string) bool {
	return element != ".." && strings.Contains(element, "..") || strings.ContainsAny(element, "\\\x00\r\n\u0085\u2028\u2029")
}

// resource follows an entry of resources: a file of documents, or a folder.
func (c *closure) resource(k *kustomization, n *yaml.Node, field string) {
	file, ok := c.local(k, n, n.Value, field)
	if !ok {
		return
	}
	if info, err := fs.Stat(c.tree, file); err == nil && info.IsDir() {
		c.folder(k, n, file, field)
		return
	}
	content, ok := c.file(k, n, file, field)
	if !ok {
		return
	}
	docs, problems := document.ReadDialect(file, content, document.Kustomize)
	c.problems = append(c.problems, problems...)
	c.noteAmbiguous(docs)
	k.documents += len(docs)
	c.secret = c.secret || slices.ContainsFunc(docs, isSecret)
	for _, doc := range docs {
		if !slices.ContainsFunc(c.origins, func(o *document.Document) bool { return o.At(o.Node) == doc.Position() }) {
			c.origins = append(c.origins, doc)
		}
	}
}

func isSecret(doc *document.Document) bool { return doc.Kind != "" && config.MaySecret(doc.Kind) }

// folder notes that the kustomization uses another one.
func (c *closure) folder(k *kustomization, n *yaml.Node, folder, field string) {
	c.reads[folder] = true
	for _, name := range config.KustomizationFiles {
		_, err := fs.Stat(c.tree, path.Join(folder, name))
		if err == nil {
			k.uses = append(k.uses, use{folder: folder, component: field == "components", at: k.doc.At(n)})
			return
		}
		if !errors.Is(err, fs.ErrNotExist) {
			c.unread(k, n, path.Join(folder, name), field, err)
			return
		}
	}
	info, err := fs.Stat(c.tree, folder)
	switch {
	case err != nil:
		c.unread(k, n, folder, field, err)
	case !info.IsDir():
		c.problems = append(c.problems, k.doc.Problem(n, document.CodeReference, "%s: %q: a file: want a folder with a kustomization", field, document.Shorten(n.Value)))
	default:
		c.problems = append(c.problems, k.doc.Problem(n, document.CodeReference, "%s: %q: no %s in that folder", field, document.Shorten(n.Value), config.KustomizationFiles[0]))
	}
}

// unread is the problem of a file that is named but cannot be read.
func (c *closure) unread(k *kustomization, n *yaml.Node, file, field string, err error) {
	p := document.FileProblem(file, err)
	p.Position, p.Message = k.doc.At(n), field+": "+shownPath(field, file)+": "+p.Message
	c.problems = append(c.problems, p)
}

// file reads a file and hands it to kustomize. As with kustomize itself, only
// folders may lie outside the kustomization's own.
func (c *closure) file(k *kustomization, n *yaml.Node, file, field string) ([]byte, bool) {
	c.reads[file] = true
	content, err := c.tree.ReadFile(file)
	if err != nil {
		c.unread(k, n, file, field, err)
		return nil, false
	}
	if !config.Within(file, k.folder) {
		c.problems = append(c.problems, k.doc.Problem(n, document.CodeReference, "%s: %s: a file outside the kustomization's folder: make its folder a base and name that in resources", field, shownPath(field, file)))
		return nil, false
	}
	k.bytes += len(content)
	c.write(file, content)
	return content, true
}

// date matches what YAML 1.1 takes for a point in time, and kustomize with it:
// of an unquoted 2001-01-01 it makes 2001-01-01T00:00:00Z, where config and
// the API server's own readers see a text.
var date = regexp.MustCompile(`^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:$|[Tt \t])`)

// noteAmbiguous notes what kustomize reads in another way than others do.
func (c *closure) noteAmbiguous(docs []*document.Document) {
	for _, doc := range docs {
		if doc.Ambiguous = append(doc.Ambiguous, dates(doc)...); len(doc.Ambiguous) > 0 {
			c.ambiguous = append(c.ambiguous, doc)
		}
	}
}

// dates are the problems of dates that stand without quotes.
func dates(doc *document.Document) document.Problems {
	var problems document.Problems
	var look func(doc *document.Document, n *yaml.Node)
	look = func(doc *document.Document, n *yaml.Node) {
		quoted := yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle | yaml.TaggedStyle
		if n.Kind == yaml.ScalarNode && n.Style&quoted == 0 && date.MatchString(n.Value) {
			problems = append(problems, doc.Problem(n, document.CodeSyntax, "a date to kustomize and a string to others: write it in quotes"))
		}
		for _, child := range n.Content {
			look(doc, child)
		}
	}
	look(doc, doc.Node)
	return problems
}

// values follows a file of YAML that holds no objects.
func (c *closure) values(k *kustomization, n *yaml.Node, field string) []*document.Document {
	file, ok := c.local(k, n, n.Value, field)
	if !ok {
		return nil
	}
	content, ok := c.file(k, n, file, field)
	if !ok {
		return nil
	}
	docs, problems := document.ReadValuesDialect(file, content, document.Kustomize)
	c.problems = append(c.problems, problems...)
	c.noteAmbiguous(docs)
	c.secret = c.secret || slices.ContainsFunc(docs, isSecret)
	return docs
}

// inline reads YAML that stands as a text in the kustomization. Its lines are
// known in a block (`|`), else all of it is at the text's own place.
func (c *closure) inline(in *document.Document, n *yaml.Node) ([]*document.Document, document.Problems) {
	docs, problems := document.ReadValuesDialect(in.File, []byte(n.Value), document.Kustomize)
	c.noteAmbiguous(docs)
	block := n.Style&yaml.LiteralStyle != 0
	place := func(problems document.Problems) {
		for i, p := range problems {
			problems[i].Position = in.At(n)
			if block && p.Line > 0 {
				problems[i].Line, problems[i].Column = n.Line+p.Line, 0
			}
		}
	}
	place(problems)
	for _, doc := range docs {
		place(doc.Ambiguous)
		doc.Node = moved(doc.Node, n, block)
	}
	c.secret = c.secret || slices.ContainsFunc(docs, isSecret)
	return docs, problems
}

// moved is a node of a text with the lines that it has in the text's own file;
// those of the text itself where lines are not known.
func moved(n, text *yaml.Node, lines bool) *yaml.Node {
	at := *n
	if at.Line, at.Column = text.Line, text.Column; lines {
		at.Line, at.Column = text.Line+n.Line, 0
	}
	at.Content = make([]*yaml.Node, len(n.Content))
	for i, child := range n.Content {
		at.Content[i] = moved(child, text, lines)
	}
	return &at
}

// inlineObjects are objects that stand as a text in the kustomization. What
// reads as an object here but not to kustomize must not be a remote place.
func (c *closure) inlineObjects(k *kustomization, n *yaml.Node, field string) []*document.Document {
	if elsewhere.MatchString(n.Value) {
		c.local(k, n, n.Value, field)
		return nil
	}
	docs, problems := c.inline(k.doc, n)
	c.problems = append(c.problems, problems...)
	for _, doc := range docs {
		if doc.APIVersion == "" || doc.Kind == "" || doc.Name == "" {
			c.problems = append(c.problems, k.doc.Problem(doc.Node, document.CodeDocument, "%s: want a path, or an object with apiVersion, kind and metadata.name", field))
		}
	}
	return docs
}

// generator follows an entry of configMapGenerator or secretGenerator.
func (c *closure) generator(k *kustomization, n *yaml.Node, field string) {
	origin := &document.Document{File: k.doc.File, Node: n, APIVersion: "v1", Kind: "ConfigMap"}
	if field == "secretGenerator" {
		origin.Kind, c.secret = "Secret", true
	}
	if name := document.Lookup(n, "name"); name != nil {
		origin.Name = name.Value
	}
	k.documents++
	if behavior := document.Lookup(n, "behavior"); behavior == nil || behavior.Value == "create" {
		c.origins = append(c.origins, origin) // else it changes one that is there
	}
	for _, source := range items(n, "files") {
		key, name, keyed := strings.Cut(source.Value, "=")
		if !keyed {
			name = key
		}
		if keyed && key == "" || strings.Contains(name, "=") {
			c.problems = append(c.problems, k.doc.Problem(source, document.CodeType, "%s.files: want a path, or key=path", field))
			continue
		}
		c.data(k, source, name, field+".files")
	}
	envs := items(n, "envs")
	if env := document.Lookup(n, "env"); env != nil {
		envs = append(slices.Clip(envs), env)
	}
	for _, source := range envs {
		if content, file, ok := c.data(k, source, source.Value, field+".envs"); ok {
			c.envLines(content, file, field)
		}
	}
	for _, literal := range items(n, "literals") {
		if strings.Index(literal.Value, "=") < 1 {
			c.problems = append(c.problems, k.doc.Problem(literal, document.CodeType, "%s.literals: want key=value", field))
		}
	}
}

// data follows a file whose content becomes a value, or values.
func (c *closure) data(k *kustomization, n *yaml.Node, name, field string) (content []byte, file string, ok bool) {
	if file, ok = c.local(k, n, name, field); ok {
		content, ok = c.file(k, n, file, field)
	}
	return content, file, ok
}

var envKey = regexp.MustCompile(`^[-._a-zA-Z0-9]+$`)

// envLines holds the lines of an env file against what kustomize makes of them: all
// before "=" is a key, and so is a line without it. That would show values, so no
// message has the line. Lines that follow a wrong one are mostly of the same value.
func (c *closure) envLines(content []byte, file, field string) {
	was := false
	for i, line := range strings.Split(strings.TrimPrefix(string(content), "\ufeff"), "\n") {
		line = strings.TrimLeftFunc(strings.TrimSuffix(line, "\r"), unicode.IsSpace)
		key, _, valued := strings.Cut(line, "=")
		wrong := line != "" && line[0] != '#' && (!envKey.MatchString(key) || !valued && field == "secretGenerator")
		if wrong && !was {
			c.problem(document.Position{File: file, Line: i + 1, Column: 1}, document.CodeType, "%s.envs: want KEY=value on one line, with a key of letters, digits, -, _ and .", field)
		}
		was = wrong
	}
}

// builtins are the transformers and generators of kustomize that read no files,
// and so may be configured in documents of their own. Those that do have a
// field in the kustomization, where their paths are followed.
var builtins = []string{"AnnotationsTransformer", "IAMPolicyGenerator", "ImageTagTransformer", "LabelTransformer", "NamespaceTransformer",
	"PatchTransformer", "PrefixSuffixTransformer", "PrefixTransformer", "ReplicaCountTransformer", "SuffixTransformer", "ValueAddTransformer"}

// plugin follows an entry of generators, transformers or validators. Only
// kustomize's own plugins are taken; any other would be a program to run.
func (c *closure) plugin(k *kustomization, n *yaml.Node, field string) {
	var docs []*document.Document
	at := func(doc *document.Document) document.Position { return doc.Position() }
	if strings.ContainsAny(n.Value, "\n{") || strings.Contains(n.Value, ": ") {
		docs = c.inlineObjects(k, n, field)
	} else {
		docs = c.values(k, n, field)
	}
	for _, doc := range docs {
		file := false
		if doc.Node.Kind == yaml.MappingNode {
			for i := 0; i+1 < len(doc.Node.Content); i += 2 {
				file = file || strings.EqualFold(doc.Node.Content[i].Value, "path")
			}
		}
		switch {
		case doc.APIVersion != "builtin":
			c.problem(at(doc), document.CodeReference, "%s: %s %s: a plugin: programs, containers and Go plugins are not run, want one of kustomize's own (apiVersion: builtin)", field, document.Shorten(doc.APIVersion), document.Shorten(doc.Kind))
		case !slices.Contains(builtins, doc.Kind):
			c.problem(at(doc), document.CodeReference, "%s: %s: not taken from here%s", field, document.Shorten(doc.Kind), document.DidYouMean(doc.Kind, builtins))
		case doc.Name == "":
			c.problem(at(doc), document.CodeDocument, "%s: %s: metadata.name: missing", field, doc.Kind)
		case file:
			c.problem(at(doc), document.CodeReference, "%s: %s: path: not taken from here, write the patch itself", field, doc.Kind)
		case doc.Kind == "PatchTransformer":
			c.patchTransformer(doc)
		}
	}
}
