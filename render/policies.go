// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/render/policy"
	"github.com/swell-sh/swell/render/schema"
)

// policies are those of a commit: of its folder, and of the facts of its clusters. A
// problem with one of the folder holds the commit: an object that it would have refused
// must not pass.
type policies struct {
	hash, folder string // of all that they are made of
	docs         []*document.Document
	good         []policy.Document      // of docs, those without a problem
	from         []*document.Document   // of good
	idle         []config.IdleReference // see [policies.findIdle]
	problems     document.Problems
	notes        document.Problems // on those of clusters
	tree         *policy.Policies
	clusters     map[string]*policy.Policies // of those whose facts have some
}

// of are the policies that judge the objects of a cluster.
func (p *policies) of(cluster string) *policy.Policies {
	if own := p.clusters[cluster]; own != nil {
		return own
	}
	return p.tree
}

// loadPolicies reads and compiles policies. What is as it was before, which may be nil,
// is taken over.
func loadPolicies(r *config.Repository, before *policies) *policies {
	hash := r.PoliciesHash
	for _, name := range slices.Sorted(maps.Keys(r.Facts)) {
		hash += fmt.Sprintf(" %s %s", name, r.Facts[name].PoliciesHash)
	}
	if before != nil && before.hash == hash && before.folder == r.Policies && !before.problems.Retry() {
		return before
	}
	p := &policies{hash: hash, folder: r.Policies, clusters: map[string]*policy.Policies{}}
	if r.PoliciesHash != "" {
		p.read(r)
	}
	p.compile()
	p.compileFacts(r)
	p.findIdle(r.Facts)
	return p
}

// read reads the folder.
func (p *policies) read(r *config.Repository) {
	err := fs.WalkDir(r.Tree, r.Policies, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !config.IsYAML(name) {
			return err
		}
		content, err := r.Tree.ReadFile(name)
		if err != nil {
			p.problems = append(p.problems, document.FileProblem(name, err))
			return nil
		}
		docs, problems := document.ReadDialect(name, content, document.Kubectl)
		p.docs, p.problems = append(p.docs, docs...), append(p.problems, problems...)
		return nil
	})
	if err != nil {
		p.problems = append(p.problems, document.FileProblem(r.Policies, err))
	}
}

// compile checks the documents, and compiles those without a problem.
func (p *policies) compile() {
	kinds, err := schema.Kubernetes("")
	if err != nil {
		panic(err) // it is embedded
	}
	for _, doc := range p.docs {
		if object := p.check(kinds, doc); object != nil {
			p.good, p.from = append(p.good, policy.Document{Object: object, At: doc.Position()}), append(p.from, doc)
		}
	}
	compiled, flaws := policy.Compile(p.good)
	for _, flaw := range flaws {
		if flaw.Unbound { // see [policies.findIdle]
			continue
		}
		doc := p.from[flaw.Document]
		p.problems = append(p.problems, doc.Problem(document.NodeAt(doc.Node, flaw.Path), document.CodePolicy, "%s", flawText(flaw)))
	}
	p.tree = compiled
}

// compileFacts compiles those of clusters, with those of the folder in the place of the
// ones that have the same name. One that the cluster has and that does not compile here
// is of a newer version: it is left out, and noted.
func (p *policies) compileFacts(r *config.Repository) {
	same := map[string]*policy.Policies{} // clusters mostly have the same ones
	for _, name := range slices.Sorted(maps.Keys(r.Facts)) {
		f := r.Facts[name]
		if f.PoliciesHash == "" {
			continue
		}
		if same[f.PoliciesHash] == nil {
			docs := slices.Clone(p.good)
			for _, object := range slices.Concat(f.Policies, f.Params) {
				if !slices.ContainsFunc(p.good, func(mine policy.Document) bool { return nameOf(mine.Object) == nameOf(object) }) {
					docs = append(docs, policy.Document{Object: object, At: f.Position})
				}
			}
			compiled, flaws := policy.Compile(docs)
			for _, flaw := range flaws {
				if flaw.Document >= len(p.good) {
					p.notes = append(p.notes, document.Problem{Position: f.Position, Code: document.CodePolicy,
						Message: fmt.Sprintf("cluster %s: %s: cannot judge here: %s", name, nameOf(docs[flaw.Document].Object), flawText(flaw))})
				}
			}
			same[f.PoliciesHash] = compiled
		}
		p.clusters[name] = same[f.PoliciesHash]
	}
}

// nameOf tells the documents of policies apart, in whatever version.
func nameOf(object map[string]any) string {
	kindName, _ := object["kind"].(string)
	metadata, _ := object["metadata"].(map[string]any)
	namespace, _ := metadata["namespace"].(string)
	name, _ := metadata["name"].(string)
	return strings.TrimPrefix(kindName+" "+strings.TrimPrefix(namespace+"/"+name, "/"), " ")
}

func flawText(flaw policy.Flaw) string {
	text := flaw.Text()
	if len(flaw.Path) > 0 {
		text = schema.PathText(flaw.Path) + ": " + text
	}
	return text
}

// check holds a document against its schema; nil after a problem.
func (p *policies) check(kinds *schema.Set, doc *document.Document) map[string]any {
	value, problems := doc.Plain(doc.Node)
	p.problems = append(p.problems, problems...)
	object, ok := value.(map[string]any)
	if !ok || len(problems) > 0 {
		return nil
	}
	p.checkAnnotations(doc, object)
	kind := kinds.Kind(doc.APIVersion, doc.Kind)
	if kind == nil {
		return object // a custom resource that policies take as a parameter
	}
	object = schema.WithoutNulls(kind.Type(), object).(map[string]any)
	found := schema.Check(kind.Type(), object)
	for _, v := range found {
		p.problems = append(p.problems, doc.Problem(document.NodeAt(doc.Node, v.Path), v.Code, "%s: %s", schema.PathText(v.Path), v.Message))
	}
	if len(found) > 0 {
		return nil
	}
	return object
}

// checkAnnotations finds annotations of swell that say nothing here.
func (p *policies) checkAnnotations(doc *document.Document, object map[string]any) {
	annotations, _ := fieldOf(object, "metadata", "annotations").(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		message := ""
		switch value := annotations[key]; {
		case unknownAnnotation(key):
			message = "unknown annotation of swell" + document.DidYouMean(key, config.AnnotationsInGit)
		case key == config.AnnotationOptional && value != config.OptionalTrue:
			message = fmt.Sprintf("want %q or no annotation, got %q", config.OptionalTrue, document.Shorten(fmt.Sprint(value)))
		default:
			continue
		}
		path := []any{"metadata", "annotations", key}
		node := document.NodeAt(doc.Node, path)
		p.problems = append(p.problems, doc.Problem(node, document.CodePolicy, "%s: %s", schema.PathText(path), message))
	}
}

// judgeAll judges the objects, once all that the unit sets is known.
func (e *expansion) judgeAll() {
	e.noteScaled()
	for _, each := range e.unjudged {
		d, o := each.draft, each.object
		packed := d.object == nil
		if packed {
			d.object = schema.Decode(o.JSON)
		}
		e.judge(d, o)
		e.found.add(d.problems...)
		if packed {
			d.object = nil
		}
	}
}

// judge holds an object against the policies and the facts of its cluster, and against
// those of what the change goes to. One that is a policy itself is judged by none, and compiled.
func (e *expansion) judge(d *draft, o *object.Object) {
	if o.ID.Group == policy.Group && strings.HasSuffix(o.ID.Kind, "AdmissionPolicy") {
		_, flaws := policy.Compile([]policy.Document{{Object: d.object, At: o.Spec}})
		for _, flaw := range flaws {
			d.problem(document.CodeObject, flaw.Path, "%s", flaw.Text())
		}
		return
	}
	object := &policy.Object{APIVersion: o.APIVersion(), Kind: o.ID.Kind, Resource: d.sealed.Resource(), Namespaced: o.ID.Namespace != "",
		Namespace: o.ID.Namespace, Name: o.ID.Name, Content: d.sealed.Defaulted(d.object), Convertible: d.sealed.Definition() != "", Secret: config.MaySecret(o.ID.Kind) || len(d.secrets) > 0}
	findings := e.policies.of(e.cluster.Name).Judge(object, e.surroundings(false))
	for _, f := range findings {
		e.take(d, o, f, "")
	}
	if e.basePolicies == nil {
		return
	}
	for _, f := range e.basePolicies.of(e.cluster.Name).Judge(object, e.surroundings(true)) {
		said := func(own policy.Finding) bool {
			return own.Policy == f.Policy && own.Message == f.Message && own.Effect == policy.Refused
		}
		if f.Effect == policy.Refused && !slices.ContainsFunc(findings, said) {
			e.take(d, o, f, ofBase)
		}
	}
}

// take makes a problem or a note of what a policy found; of ends the message.
func (e *expansion) take(d *draft, o *object.Object, f policy.Finding, of string) {
	name := f.Policy
	if f.Binding != "" {
		name = fmt.Sprintf("policy %q (binding %q)", f.Policy, f.Binding)
	}
	switch f.Effect {
	case policy.Refused:
		d.problem(document.CodePolicy, f.Field, "refused by %s: %s%s", name, f.Message, of)
		d.problems[len(d.problems)-1].Basis = document.Modelled
	case policy.Warned:
		d.problem(document.CodePolicy, f.Field, "%s warns: %s", name, f.Message)
		last := len(d.problems) - 1
		e.note(d.problems[last])
		d.problems = d.problems[:last]
	case policy.Changed:
		e.note(document.Problem{Position: document.Position{File: string(e.unit.Path)}, Code: document.CodePolicy,
			Message: fmt.Sprintf("objects of kind %s will be changed by MutatingAdmissionPolicy %q (binding %q)", o.ID.Kind, f.Policy, f.Binding)})
	case policy.Unjudged: // the same note for all units
		e.note(document.Problem{Position: f.At, Code: document.CodePolicy, Message: fmt.Sprintf("policy %q (binding %q): not judged: %s", f.Policy, f.Binding, f.Message)})
	}
}

// note adds a note to the unit, once.
func (u *unitRenderer) note(note document.Problem) {
	key := note.String()
	if u.noted[key] {
		return
	}
	if u.noted == nil {
		u.noted = map[string]bool{}
	}
	u.noted[key] = true
	u.notes = append(u.notes, note)
}

// surroundings are what policies see around an object, by the facts of the commit or by
// those of the base.
func (e *expansion) surroundings(base bool) policy.Surroundings {
	var about func(string, document.Position)
	if e.judged != nil && !base {
		about = func(name string, position document.Position) { e.judged[judgedBy{name, position}]++ }
	}
	return policy.Surroundings{
		Kubernetes: e.cluster.Kubernetes,
		About:      about,
		Namespace: func(name string) *policy.Namespace {
			cluster := e.target.Cluster
			o := own{e.unit.Path, e.placed, e.settings}
			if n := spaceName(cluster, name); !e.reads.has(readSpace, n) {
				e.reads.add(read{readSpace, n, e.world.spaceHash(n, o)})
			}
			return e.world.namespace(namespaceKey{cluster, name, base}, o)
		},
		Scope: func(apiVersion, kindName string) (namespaced, known bool) {
			k := e.hard.Kind(apiVersion, kindName)
			if k == nil || k.Definition() != "" {
				e.reads.note(readHard, hardName(e.on, apiVersion, kindName))
			}
			return k != nil && k.Namespaced, k != nil
		},
		Versions: e.hard.OtherVersions,
	}
}
