// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package document reads documents: YAML with the positions of all values, decoded
// strictly into protobuf messages, whose rules it checks. It finds all problems, each
// at its line; a problem is the only form in which wrong input is reported.
//
// It knows no kind of document, only the metadata that all have in common.
package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/swell-sh/swell/config/bounds"
)

// Document is one YAML document with its positions.
type Document struct {
	File       string
	Node       *yaml.Node // a mapping, with every alias and merge key resolved
	APIVersion string
	Kind       string
	Name       string // metadata.name; may be empty
	// Ambiguous are the values that YAML readers read in different ways. Only a
	// lenient [Dialect] has them: to others they are problems.
	Ambiguous Problems
	// Packed is all of the document, where Node has but a part of it, see [Document.Pack].
	Packed []byte

	again func() *Document
}

// At is the position of one of the document's nodes.
func (d *Document) At(n *yaml.Node) Position {
	return Position{File: d.File, Line: n.Line, Column: n.Column}
}

// Position is that of the document's first key.
func (d *Document) Position() Position { return d.At(d.Node) }

const (
	// MaxDepth is how deep a document may nest. Kubernetes' deepest built-in
	// objects stay below 30.
	MaxDepth = 100
	// maxDocuments is how many documents one file may hold, the items of lists
	// included: enough for all that some tool has rendered for a cluster.
	maxDocuments = 10_000
)

// ReadDocuments parses a file of YAML documents. Documents that are empty or
// hold only comments are left out, lists of objects (`kind: List`) are their
// items. A problem in one document leaves that document out, a syntax error
// also those after it.
func ReadDocuments(file string, content []byte) ([]*Document, Problems) {
	return ReadDialect(file, content, Strict)
}

// Dialect says what becomes of plain numbers and words that YAML readers read in
// different ways, such as 0755 and yes. As a key, each is a problem in all of them.
type Dialect int

const (
	// Strict refuses them.
	Strict Dialect = iota
	// Kubectl reads them as kubectl does: 0755 is 493, and yes is true.
	Kubectl
	// Kustomize reads them as kustomize does: 0755 is 493, and yes is a text.
	Kustomize
)

// ReadDialect is [ReadDocuments] in a dialect. What a lenient one takes is listed in
// [Document.Ambiguous]: whoever finds out that the document is none of Kubernetes
// makes problems of it.
func ReadDialect(file string, content []byte, dialect Dialect) ([]*Document, Problems) {
	if path.Ext(file) == ".json" { // YAML takes no tabs before values; no string of JSON has one
		content = bytes.ReplaceAll(content, []byte("\t"), []byte(" "))
	}
	return read(file, content, NewDecoder(content), dialect.documents)
}

// ReadValues is [ReadDocuments] for YAML of any shape, such as a patch or the
// configuration of a tool: apiVersion, kind and name may be missing, Node may
// be a list or a scalar, and lists of objects stay what they are. No message
// holds a value.
func ReadValues(file string, content []byte) ([]*Document, Problems) {
	return ReadValuesDialect(file, content, Strict)
}

// ReadValuesDialect is [ReadValues] in a dialect.
func ReadValuesDialect(file string, content []byte, dialect Dialect) ([]*Document, Problems) {
	return read(file, content, NewDecoder(content), dialect.value)
}

// ReadKustomization is [ReadValues] for a kustomization, of which kustomize does
// not end the last line, see [NewDecoder].
func ReadKustomization(file string, content []byte) ([]*Document, Problems) {
	return read(file, content, yaml.NewDecoder(bytes.NewReader(content)), Kustomize.value)
}

func read(file string, content []byte, decoder *yaml.Decoder, each func(string, *yaml.Node) ([]*Document, Problems)) ([]*Document, Problems) {
	if p := checkYAML(file, content); p != nil {
		return nil, Problems{*p}
	}
	var docs []*Document
	var problems Problems
	for {
		var root yaml.Node
		err := decoder.Decode(&root)
		if errors.Is(err, io.EOF) {
			return docs, problems
		}
		if err != nil {
			return docs, append(problems, syntaxProblem(file, content, err))
		}
		if p := loneTag(file, content, &root); p != nil { // also of a document that looks empty
			return docs, append(problems, *p)
		}
		if root.Kind != yaml.DocumentNode || len(root.Content) == 0 || IsNull(root.Content[0]) {
			continue
		}
		found, wrong := each(file, root.Content[0])
		problems = append(problems, wrong...)
		docs = append(docs, found...)
		if why := tooMany(len(docs), len(problems)); why != "" {
			return docs[:min(len(docs), maxDocuments)], append(problems, Problem{Position: Position{file, root.Line, root.Column}, Code: CodeSyntax,
				Message: "the file is not read any further: " + why})
		}
	}
}

// NewDecoder reads YAML as kubectl does, which ends the last line of a file that
// has no line feed there: a block (| or >) in it ends with one as well.
func NewDecoder(content []byte) *yaml.Decoder {
	if len(content) > 0 && content[len(content)-1] != '\n' {
		content = append(slices.Clip(content), '\n')
	}
	return yaml.NewDecoder(bytes.NewReader(content))
}

// tooMany says why the rest of a file with so many documents and problems is
// not read; empty when it is.
func tooMany(docs, problems int) string {
	switch {
	case docs > maxDocuments:
		return fmt.Sprintf("more than %d documents in one file; split it", maxDocuments)
	case problems > MaxProblems:
		return fmt.Sprintf("more than %d problems up to here", MaxProblems)
	}
	return ""
}

// documents is one document, or the items of a list of objects.
func (d Dialect) documents(file string, root *yaml.Node) ([]*Document, Problems) {
	root, ambiguous, problems := d.resolve(file, root)
	if len(problems) > 0 {
		return nil, problems
	}
	docs := make([]*Document, 1)
	if IsList(root) {
		docs, problems = listItems(file, root)
	} else if docs[0], problems = newDocument(file, root); docs[0] == nil {
		return nil, problems
	}
	for _, doc := range docs {
		doc.Ambiguous = ambiguous
	}
	return docs, problems
}

func (d Dialect) value(file string, root *yaml.Node) ([]*Document, Problems) {
	root, ambiguous, problems := d.resolve(file, root)
	if len(problems) > 0 {
		return nil, problems
	}
	doc := identified(file, root)
	doc.Ambiguous = ambiguous
	return []*Document{doc}, nil
}

// resolve is the root of a document with its aliases written out, and what a lenient
// dialect took in it.
func (d Dialect) resolve(file string, root *yaml.Node) (resolved *yaml.Node, ambiguous, problems Problems) {
	reader := yamlReader{file: file, root: root, dialect: d}
	resolved = reader.resolve(root, 0, nil)
	return resolved, reader.ambiguous, reader.problems
}

// identified is a document with what it says about itself.
func identified(file string, root *yaml.Node) *Document {
	return &Document{File: file, Node: root, APIVersion: TextAt(root, "apiVersion"), Kind: TextAt(root, "kind"), Name: TextAt(Lookup(root, "metadata"), "name")}
}

// newDocument is nil after a problem. The node is resolved already.
func newDocument(file string, root *yaml.Node) (*Document, Problems) {
	doc := identified(file, root)
	if root.Kind != yaml.MappingNode {
		return nil, Problems{doc.Problem(root, CodeDocument, "want a document with apiVersion and kind, got %s", formOf(root))}
	}
	var problems Problems
	for _, required := range []struct{ field, value string }{{"apiVersion", doc.APIVersion}, {"kind", doc.Kind}} {
		switch n := Lookup(root, required.field); {
		case required.value != "":
		case n == nil || IsNull(n) || n.Tag == "!!str":
			problems = append(problems, doc.Problem(root, CodeDocument, "%s: missing, every document needs an apiVersion and a kind", required.field))
		default:
			problems = append(problems, doc.Problem(n, CodeType, "%s: want a string, got %s", required.field, formOf(n)))
		}
	}
	if name := Lookup(Lookup(root, "metadata"), "name"); !IsPrintable(doc.Name) {
		problems = append(problems, doc.Problem(name, CodeType, "metadata.name: %q: want a name whose characters all show", doc.Name))
	}
	if problems != nil {
		return nil, problems
	}
	return doc, nil
}

// Problem is a problem at one of the document's nodes.
func (d *Document) Problem(n *yaml.Node, code Code, format string, args ...any) Problem {
	return Problem{Position: d.At(n), Code: code, Message: Printable(fmt.Sprintf(format, args...))}
}

// yamlReader writes out aliases and merge keys and refuses what means
// different things to different YAML readers. It does not know yet which of
// the values are secrets, so none is in a message.
type yamlReader struct {
	file      string
	root      *yaml.Node
	dialect   Dialect
	anchors   map[*yaml.Node]bool // of this document; nil before the first alias
	nodes     int
	problems  Problems
	ambiguous Problems // what a lenient dialect took
}

func (r *yamlReader) problem(n *yaml.Node, format string, args ...any) {
	r.note(&r.problems, n, fmt.Sprintf(format, args...))
}

func (r *yamlReader) note(to *Problems, n *yaml.Node, message string) {
	if len(*to) <= MaxProblems {
		to.Add(Problem{Position: Position{r.file, n.Line, n.Column}, Code: CodeSyntax, Message: Printable(message)})
	}
}

// resolve returns the node with aliases written out. Nodes without an alias
// below them are returned as they are. open holds the anchors being written
// out, to find a cycle.
func (r *yamlReader) resolve(n *yaml.Node, depth int, open []*yaml.Node) *yaml.Node {
	r.nodes++
	switch {
	case r.nodes == bounds.Parts:
		r.problem(n, "more than %d values once its aliases are written out", bounds.Parts)
	case depth == MaxDepth:
		r.problem(n, "nested more than %d levels deep", MaxDepth)
	}
	if r.nodes >= bounds.Parts || depth >= MaxDepth {
		return n
	}
	if n.Kind == yaml.SequenceNode || n.Kind == yaml.MappingNode {
		r.checkTag(n)
	}
	switch n.Kind {
	case yaml.AliasNode:
		if !r.isOwn(n.Alias) {
			r.problem(n, "an alias (*) of an anchor (&) in another document, where some YAML readers do not look: write the value out")
			return n
		}
		for _, anchor := range open {
			if anchor == n.Alias {
				r.problem(n, "an alias (*) of what it stands in")
				return n
			}
		}
		return r.resolve(n.Alias, depth, append(open, n.Alias))
	case yaml.ScalarNode:
		r.checkValue(n)
		return n
	case yaml.SequenceNode:
		return r.resolveSequence(n, depth, open)
	case yaml.MappingNode:
		return r.resolveMapping(n, depth, open)
	}
	return n
}

// isOwn says whether an anchor stands in this document.
func (r *yamlReader) isOwn(anchor *yaml.Node) bool {
	if r.anchors == nil {
		r.anchors = map[*yaml.Node]bool{}
		r.noteAnchors(r.root)
	}
	return r.anchors[anchor]
}

func (r *yamlReader) noteAnchors(n *yaml.Node) {
	if n.Anchor != "" {
		r.anchors[n] = true
	}
	for _, child := range n.Content {
		r.noteAnchors(child)
	}
}

func (r *yamlReader) resolveSequence(n *yaml.Node, depth int, open []*yaml.Node) *yaml.Node {
	if n.Anchor != "" {
		open = append(open, n)
	}
	content := n.Content
	for i, item := range n.Content {
		resolved := r.resolve(item, depth+1, open)
		if resolved == item {
			continue
		}
		if &content[0] == &n.Content[0] {
			content = append([]*yaml.Node(nil), n.Content...)
		}
		content[i] = resolved
	}
	return withContent(n, content)
}

func (r *yamlReader) resolveMapping(n *yaml.Node, depth int, open []*yaml.Node) *yaml.Node {
	if n.Anchor != "" {
		open = append(open, n)
	}
	r.checkKeys(n)
	content := n.Content
	changed := false
	var taken map[string]bool // the mapping's own keys and those merged into it
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		merge := key.Kind == yaml.ScalarNode && key.Tag == "!!merge"
		resolved := r.resolve(value, depth+1, open)
		if (merge || resolved != value) && !changed {
			content = append([]*yaml.Node(nil), n.Content[:i]...)
			changed = true
		}
		switch {
		case merge:
			if taken != nil {
				r.problem(key, "<<: set twice, which YAML readers read in different ways: write one <<, with a list")
				continue
			}
			taken = keysOf(n.Content)
			content = r.mergeInto(content, taken, keysOf(n.Content[:i]), key, resolved)
		case changed:
			content = append(content, key, resolved)
		}
	}
	return withContent(n, content)
}

func keysOf(content []*yaml.Node) map[string]bool {
	keys := make(map[string]bool, len(content)/2)
	for i := 0; i+1 < len(content); i += 2 {
		keys[content[i].Value] = true
	}
	return keys
}

// mergeInto adds the keys of a `<<` value that are not taken. One that stands
// before the `<<` wins for some readers, and for kubectl loses.
func (r *yamlReader) mergeInto(content []*yaml.Node, taken, before map[string]bool, key, value *yaml.Node) []*yaml.Node {
	sources := []*yaml.Node{value}
	if value.Kind == yaml.SequenceNode {
		sources = value.Content
	}
	for _, source := range sources {
		if source.Kind == yaml.AliasNode {
			continue // of what it stands in, which is a problem already
		}
		if source.Kind != yaml.MappingNode {
			r.problem(value, "<<: want a map to merge, or a list of them")
			continue
		}
		for i := 0; i+1 < len(source.Content); i += 2 {
			switch name := source.Content[i].Value; {
			case before[name]:
				r.problem(key, "<<: brings a key that stands before it, and YAML readers disagree on which value holds: write << first")
			case !taken[name]:
				taken[name] = true
				content = append(content, source.Content[i], source.Content[i+1])
			}
		}
	}
	return content
}

func withContent(n *yaml.Node, content []*yaml.Node) *yaml.Node {
	if len(content) == len(n.Content) && (len(content) == 0 || &content[0] == &n.Content[0]) {
		return n
	}
	clone := *n
	clone.Content = content
	clone.Anchor = ""
	return &clone
}

func (r *yamlReader) checkKeys(n *yaml.Node) {
	const few = 16 // up to here looking back is quicker than a map
	var seen map[string]*yaml.Node
	if len(n.Content) > 2*few {
		seen = make(map[string]*yaml.Node, len(n.Content)/2)
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch {
		case key.Kind == yaml.MappingNode: // {{ x }} of a template language mostly
			r.problem(key, "a key must be a plain name, got a map: a string that begins with { stands in quotes")
			continue
		case key.Kind != yaml.ScalarNode:
			r.problem(key, "a key must be a plain name, got %s", formOf(key))
			continue
		case key.Tag == "!!merge":
			continue
		case !r.checkKey(key):
		case key.Tag != "!!str" && key.Tag != "!!int":
			r.problem(key, "a key that is %s: write it in quotes", formOf(key))
		case key.Tag == "!!int" && (key.Value == "-0" || !decimal.MatchString(key.Value)):
			r.problem(key, "a key that is another string to some YAML readers: write it in quotes, or the decimal number")
		}
		var first *yaml.Node
		if seen != nil {
			first = seen[key.Value]
			seen[key.Value] = key
		} else {
			first = earlierKey(n.Content[:i], key.Value)
		}
		if first != nil {
			r.problem(key, "%s: set twice, first on line %d", shownKey(key.Value, nil), first.Line)
		}
	}
}

func earlierKey(content []*yaml.Node, name string) *yaml.Node {
	for i := 0; i < len(content); i += 2 {
		if content[i].Value == name && content[i].Kind == yaml.ScalarNode {
			return content[i]
		}
	}
	return nil
}

// checkTag refuses tags that are written out, but for that of texts. Bytes are
// a text in base64 to some readers, and what it stands for to others.
func (r *yamlReader) checkTag(n *yaml.Node) bool {
	if n.Style&yaml.TaggedStyle == 0 || n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
		return true
	}
	// What is taken for its name may be the value of a Secret.
	r.problem(n, "a tag (!) is not understood: write the value plainly, in quotes if it is a string that begins with !")
	return false
}

// checkKey refuses a key that is tagged, or that readers take for different ones.
func (r *yamlReader) checkKey(n *yaml.Node) bool {
	if !r.checkTag(n) {
		return false
	}
	why := ambiguity(n)
	if why != "" {
		r.problem(n, "%s", why)
	}
	return why == ""
}

// checkValue refuses a tagged value, and one that readers take for different ones, or
// has the dialect read it.
func (r *yamlReader) checkValue(n *yaml.Node) {
	if !r.checkTag(n) {
		return
	}
	switch why := ambiguity(n); {
	case why == "" && n.Tag == "!!timestamp":
		n.Tag = "!!str" // read as text everywhere; nothing in Kubernetes is a YAML date
	case why == "":
	case r.dialect == Strict || !r.dialect.read(n):
		r.problem(n, "%s", why)
	default:
		r.note(&r.ambiguous, n, why)
	}
}

// ambiguity says why YAML 1.1 readers, kubectl among them, and YAML 1.2 readers take a
// plain scalar for different values; empty when they do not.
func ambiguity(n *yaml.Node) string {
	written := yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle | yaml.TaggedStyle // its type is
	switch {
	case n.Style&written != 0:
	case ambiguousBool[n.Value]:
		return "a word that is a boolean to some YAML readers and a string to others: write it in quotes, or true or false"
	case (n.Tag == "!!int" || n.Tag == "!!float") && ambiguousOctal.MatchString(n.Value): // 09 is a float to some
		return "a number that is octal to some YAML readers and decimal to others: write it in quotes, or the decimal number"
	}
	return ""
}

// read writes an ambiguous value as the dialect reads it. It reports whether there is
// such a reading.
func (d Dialect) read(n *yaml.Node) bool {
	if n.Tag != "!!str" {
		number, err := strconv.ParseInt(strings.ReplaceAll(n.Value, "_", ""), 0, 64)
		if err != nil { // 09 is no octal number: a text to kubectl, a float to kustomize
			return false
		}
		n.Value = strconv.FormatInt(number, 10)
	} else if d == Kubectl {
		n.Tag, n.Value = "!!bool", strconv.FormatBool(slices.Contains(yesWords, strings.ToLower(n.Value)))
	}
	return true
}

var (
	yesWords = []string{"y", "yes", "on"}
	noWords  = []string{"n", "no", "off"}
)

var ambiguousBool = map[string]bool{}

func init() {
	for _, word := range slices.Concat(yesWords, noWords) {
		ambiguousBool[word] = true
		ambiguousBool[strings.ToUpper(word)] = true
		ambiguousBool[strings.ToUpper(word[:1])+word[1:]] = true
	}
}

var ambiguousOctal = regexp.MustCompile(`^[-+]?0[0-9_]+$|^[-+]?0o`)

// IsNull says whether a node is null.
func IsNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// formOf says what a node is without its value, which may be a secret.
func formOf(n *yaml.Node) string {
	switch {
	case n.Kind != yaml.ScalarNode || n.Tag == "!!null":
		return describe(n)
	case n.Tag == "!!bool":
		return "a boolean"
	case n.Tag == "!!int", n.Tag == "!!float":
		return "a number"
	}
	return "a string"
}

// describe says what a node is, for "want ..., got ...".
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a map"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	switch n.Tag {
	case "!!null":
		return "nothing"
	case "!!bool":
		return "the boolean " + n.Value
	case "!!int", "!!float":
		return "the number " + n.Value
	}
	return "the string " + strconv.Quote(Shorten(n.Value))
}

// Shorten cuts a text that is too long for a message.
func Shorten(s string) string { return Cut(s, 60) }

// Cut leaves at most so many bytes of a text, and dots for the others.
func Cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "..."
}
