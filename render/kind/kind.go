// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package kind compiles easy kinds, a .proto schema and a template of hard
// objects, and renders specs with them. Everything that can be checked without
// a spec is checked when the kind is loaded.
//
// It reads only the tree it is given: no network, clock or environment.
package kind

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/common/types"
	"google.golang.org/protobuf/reflect/protoreflect"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/schema"
)

// Kind is a compiled easy kind. It is safe for concurrent use.
type Kind struct {
	Folder string // "kinds/runtime"; empty for a kind that is Go code in swell
	Group  string // "easy.example.com"
	Name   string // "Runtime"

	*declaration               // never nil; of a kind with a problem as far as it goes
	adapter      types.Adapter // makes CEL values of specs
	data         *Data
	collections  []*Collection
	lets         []let
	objects      []*object
	unique       []unique
	native       *Go // of a kind in Go; it has no lets and objects
	hash         string
	metadata     bool // see ReadsMetadata

	jsonNames    bool              // of fields, in documents
	fieldNamesAt document.Position // of spec.fieldNames, or of what is around it
	objectsAt    document.Position // the same of spec.objects
	protos       map[string]string // where imports were found, by their names, if not there
}

// ReadsMetadata says whether the kind may read more of a spec's metadata than its
// name and namespace, and so may hand annotations on to its objects.
func (k *Kind) ReadsMetadata() bool { return k.metadata }

// selfRead is what of a spec an expression reads: "self" alone is more than the rest.
var selfRead = regexp.MustCompile(`\bself\b(\.spec\b|\.metadata\.name(space)?\b)?`)

func readsMetadata(content []byte) bool {
	return slices.Contains(selfRead.FindAllString(string(content), -1), "self")
}

// APIVersion is what specs of the kind carry. The version is always v1.
func (k *Kind) APIVersion() string { return k.Group + "/v1" }

// SecretMessage is the message of the kind's documents; nil where no field of
// it is marked as secret.
func (k *Kind) SecretMessage() protoreflect.MessageDescriptor {
	if !k.secrets {
		return nil
	}
	return k.envelope
}

// ObjectIDs are the ids of the kind's objects, which overrides may name.
func (k *Kind) ObjectIDs() []string {
	if k.native != nil {
		return slices.Clone(k.native.IDs)
	}
	ids := make([]string, len(k.objects))
	for i, o := range k.objects {
		ids[i] = o.id
	}
	return ids
}

// IsGo says whether the kind is Go code: its objects are known only once a spec is
// rendered.
func (k *Kind) IsGo() bool { return k.native != nil }

// Hash is the address of what was read to compile the kind: the files of its
// folder that were read, imported protos, templates, the kinds that it refers
// to, and the names of the files of data if it reads any. Its tests and other
// kinds are not in it, nor are the hard kinds that its templates are checked
// against, which say whether it loads but not what it renders. Kinds of equal
// hashes that load behave the same, for one version of swell.
func (k *Kind) Hash() string { return k.hash }

// Message is the message that the kind declares, with a field spec; nil when
// the kind was not got as far as that.
func (k *Kind) Message() protoreflect.MessageDescriptor { return k.message }

// Object is what is known of an object of a kind without a spec.
type Object struct {
	ID, APIVersion, Kind string
	When                 string // CEL; empty for always
	Each                 string // "name: CEL", the object is there for each item; empty for once
}

// Objects are the kind's objects, in the order written.
func (k *Kind) Objects() []Object {
	objects := make([]Object, len(k.objects))
	for i, o := range k.objects {
		objects[i] = Object{ID: o.id, APIVersion: scalarText(o.node, "apiVersion"), Kind: scalarText(o.node, "kind")}
		if o.when != nil {
			objects[i].When = o.when.text
		}
		if o.each != nil {
			objects[i].Each = o.eachName + ": " + o.each.text
		}
	}
	return objects
}

type let struct {
	name string
	expression
}

// object is one entry of a kind's objects.
type object struct {
	id   string
	at   document.Position
	node *yaml.Node // the template, to find the line of a path
	when *expression
	// each is bound to the name eachName, item by item; nil for one object.
	each     *expression
	eachName string
	template template
	size     conversion // of the template as it is written
}

// written is what a template holds.
func written(n *yaml.Node) conversion {
	size := conversion{nodes: 1, bytes: len(n.Value)}
	for _, below := range n.Content {
		w := written(below)
		size.nodes += w.nodes
		size.bytes += w.bytes
	}
	return size
}

// loader compiles one kind: declare makes its message known to the others,
// compile does the rest.
type loader struct {
	all       *kindLoader
	tree      *recordingTree
	kind      *Kind
	hard      *schema.Set
	doc       *document.Document
	def       definition
	env       *environment
	templates map[string]*textTemplate
	used      []use
	twice     bool // there is another kind of the name
	reads     dataReads
	bad       []string // names that collect and let were to bind, and that have a problem
	problems  document.Problems
}

func (l *loader) problem(n *yaml.Node, format string, args ...any) {
	l.problems = append(l.problems, l.doc.Problem(n, document.CodeKind, format, args...))
}

// definition is an EasyKind's spec as it is written, without its templates.
type definition struct {
	Message    string
	FieldNames string
	Collect    map[string]struct {
		APIVersion, Kind, Scope string
		OnInvalid, Key          string
	}
	Let     []struct{ Name, Value string }
	Unique  []struct{ Name, Value, In string }
	Objects []struct {
		ID   string `json:"id"`
		When string
		Each map[string]string
	}
}

// declare reads the definition and the message.
func (l *loader) declare() {
	file := path.Join(l.kind.Folder, "kind.yaml")
	content, err := l.tree.ReadFile(file)
	if err != nil {
		p := document.FileProblem(file, err)
		p.Message = "the kind's definition: " + p.Message
		l.problems = append(l.problems, p)
		return
	}
	docs, problems := document.ReadDocuments(file, content)
	if l.problems = problems; len(problems) > 0 {
		return
	}
	if p := config.WantOne(file, docs, "EasyKind", ""); p != nil {
		l.problems = append(l.problems, *p)
		return
	}
	l.doc = docs[0]
	if l.problems = config.DecodeOwn(l.doc, &l.def); len(l.problems) > 0 {
		return
	}
	l.kind.jsonNames, l.kind.metadata = l.def.FieldNames == "json", readsMetadata(content)
	l.kind.fieldNamesAt, l.kind.objectsAt = l.doc.At(l.spec("fieldNames")), l.doc.At(l.spec("objects"))
	from := source{path.Join(l.kind.Folder, path.Base(l.kind.Folder)+".proto"), l.def.Message, l.def.FieldNames}
	if l.reuse(from) {
		return
	}
	if l.declareMessage(from.file); len(l.problems) == 0 {
		shared.add(from, l.kind.declaration)
	}
}

// compile makes the expressions and templates. The messages of all kinds are
// known by now.
func (l *loader) compile() {
	if l.kind.envelope == nil {
		return
	}
	l.collections()
	var err error
	l.env, err = newEnvironment(l.kind.envelope, l.kind.collections, l.kind.data, l.textTemplate)
	if err != nil {
		l.problem(l.spec("message"), "spec.message: %s", err)
		return
	}
	l.kind.adapter = l.env.cel.CELTypeAdapter()
	l.collectionKeys()
	l.lets(l.def)
	l.objects(l.def)
	l.uniques()
	if broken := l.kind.data.broken(&l.reads); len(broken) > 0 {
		l.problem(l.doc.Node, "the kind reads data, of which %s has a problem", strings.Join(broken, ", "))
	}
}

// textTemplate finds a template file beside the kind. What is wrong in the
// file is a problem there; the error says so.
func (l *loader) textTemplate(name string) (*textTemplate, error) {
	if t, ok := l.templates[name]; ok && t != nil {
		return t, nil
	} else if ok {
		return nil, fmt.Errorf("template: %q: has a problem", name)
	}
	content, file, err := readTemplate(l.tree, l.kind.Folder, name)
	if err != nil {
		if p := document.FileProblem(file, err); p.Retry {
			l.problems = append(l.problems, p)
		}
		return nil, err
	}
	t, problem := parseTemplate(file, content)
	l.templates[name] = t
	if problem != nil {
		l.problems = append(l.problems, *problem)
		return nil, fmt.Errorf("template: %q: has a problem", name)
	}
	return t, nil
}

// spec is the node of a field of the document's spec.
func (l *loader) spec(field string) *yaml.Node {
	spec := document.Lookup(l.doc.Node, "spec")
	if n := document.Lookup(spec, field); n != nil {
		return n
	}
	if spec != nil {
		return spec
	}
	return l.doc.Node
}

func (l *loader) lets(def definition) {
	for i, def := range def.Let {
		node := l.spec("let").Content[i]
		if !l.env.free(def.Name) {
			l.problem(node, "spec.let[%d].name: want a new name of letters and digits that is no word of CEL, got %q", i, def.Name)
			l.spoil(def.Name)
			continue
		}
		if def.Value == "" {
			l.problem(node, "spec.let[%d].value: missing", i)
			l.spoil(def.Name)
			continue
		}
		value := valueNode(node, "value")
		compiled, err := l.expression(l.env, value, def.Value)
		if err != nil {
			l.failed(err, value, "spec.let[%d].value", i)
			l.spoil(def.Name)
			continue
		}
		l.kind.lets = append(l.kind.lets, let{name: def.Name, expression: *compiled})
		if l.env, err = l.env.with(def.Name, compiled.typ); err != nil {
			l.problem(node, "spec.let[%d]: %s", i, err)
			return
		}
	}
}

func (l *loader) objects(def definition) {
	first := map[string]int{}
	for i, def := range def.Objects {
		node := l.spec("objects").Content[i]
		if j, ok := first[def.ID]; ok || def.ID == "" {
			if ok {
				l.problem(node, "spec.objects[%d].id: %q is the id of objects[%d] too", i, def.ID, j)
			} else {
				l.problem(node, "spec.objects[%d].id: missing", i)
			}
			continue
		}
		first[def.ID] = i
		o := &object{id: def.ID, node: document.Lookup(node, "template")}
		if o.node == nil {
			l.problem(node, "spec.objects[%d].template: missing", i)
			continue
		}
		o.at, o.size = l.doc.At(o.node), written(o.node)
		env := l.env
		if len(def.Each) > 0 {
			env = l.each(o, node, i, def.Each)
		}
		if env == nil {
			continue
		}
		if def.When != "" {
			o.when = l.condition(env, node, i, def.When)
		}
		o.template = l.template(env, o.node, i, def.When != "" || len(def.Each) > 0)
		l.kind.objects = append(l.kind.objects, o)
	}
}

func (l *loader) each(o *object, node *yaml.Node, i int, each map[string]string) *environment {
	at := document.Lookup(node, "each")
	if len(each) > 1 {
		l.problem(at, "spec.objects[%d].each: want one name, got %d", i, len(each))
		return nil
	}
	for name, text := range each {
		if !l.env.free(name) {
			l.problem(at, "spec.objects[%d].each: want a new name of letters and digits that is no word of CEL, got %q", i, name)
			return nil
		}
		compiled, err := l.expression(l.env, at.Content[1], text)
		if err != nil {
			l.failed(err, at.Content[1], "spec.objects[%d].each.%s", i, name)
			return nil
		}
		item, err := compiled.itemType()
		if err != nil {
			l.problem(at.Content[1], "spec.objects[%d].each.%s: %s", i, name, err)
			return nil
		}
		o.each, o.eachName = compiled, name
		env, err := l.env.with(name, item)
		if err != nil {
			l.problem(at, "spec.objects[%d].each.%s: %s", i, name, err)
			return nil
		}
		return env
	}
	return nil
}

func (l *loader) condition(env *environment, node *yaml.Node, i int, text string) *expression {
	at := valueNode(node, "when")
	compiled, err := l.expression(env, at, text)
	if err == nil {
		err = compiled.wantBool()
	}
	if err != nil {
		l.failed(err, at, "spec.objects[%d].when", i)
		return nil
	}
	return compiled
}

// template compiles an object's template against the schema of its kind: a
// kind of hard objects, or another easy kind, whose spec it then is.
func (l *loader) template(env *environment, n *yaml.Node, i int, conditional bool) template {
	apiVersion, kindName := scalarText(n, "apiVersion"), scalarText(n, "kind")
	where := fmt.Sprintf("spec.objects[%d].template", i)
	if apiVersion == "" || kindName == "" {
		l.problem(n, "%s: want an apiVersion and a kind, both without expressions", where)
		return nil
	}
	c := compiler{loader: l, env: env, where: where, secret: config.MaySecret(kindName)}
	if easy := l.all.named(apiVersion, kindName); easy != nil {
		l.used = append(l.used, use{to: easy, at: n, where: where, nested: true, conditional: conditional})
		if easy.kind.envelope == nil {
			return nil // a problem by the use
		}
		c.secret = c.secret || easy.kind.secrets
		return c.compile(n, schema.OfMessage(easy.kind.envelope))
	}
	hard := l.hard.Kinds(apiVersion, kindName)
	if len(hard) == 0 && l.hard.Open && l.hard.Nowhere(apiVersion, kindName, l.all.names()) {
		hard = append(hard, l.hard.Any(kindName, true))
	}
	if why := l.hard.Unserved(apiVersion, kindName); why != "" {
		l.problem(n, "%s: %s %s: %s", where, document.Shorten(apiVersion), document.Shorten(kindName), why)
		return nil
	}
	if len(hard) == 0 {
		name, names := apiVersion+" "+kindName, append(l.hard.Names(), l.all.names()...)
		l.problem(n, "%s: %s %s: no such kind%s", where, document.Shorten(apiVersion), document.Shorten(kindName), l.all.hint(name, names))
		return nil
	}
	return c.compileByOne(n, hard)
}

// compileByOne compiles a template of a kind that clusters may define in several ways. It
// has to be good by one of them: each object is checked by that of its own cluster. What
// is said is by the first.
func (c *compiler) compileByOne(n *yaml.Node, kinds []*schema.Kind) template {
	before := len(c.loader.problems)
	first := c.compile(n, kinds[0].Type())
	found := slices.Clone(c.loader.problems[before:])
	for _, other := range kinds[1:] {
		if len(c.loader.problems) == before {
			break
		}
		c.loader.problems = c.loader.problems[:before]
		if t := c.compile(n, other.Type()); len(c.loader.problems) == before {
			return t
		}
		c.loader.problems = append(c.loader.problems[:before], found...)
	}
	return first
}

func scalarText(n *yaml.Node, key string) string {
	v := document.Lookup(n, key)
	if v == nil || v.Kind != yaml.ScalarNode || strings.Contains(v.Value, "${") {
		return ""
	}
	return v.Value
}

func valueNode(n *yaml.Node, key string) *yaml.Node {
	if v := document.Lookup(n, key); v != nil {
		return v
	}
	return n
}
