// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io/fs"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/policy"
	"github.com/swell-sh/swell/render/schema"
)

// policies are those of a commit's folder. A problem with one of them holds the
// commit: an object that it would have refused must not pass.
type policies struct {
	hash     string // of the folder
	folder   string
	compiled *policy.Policies
	docs     []*document.Document
	problems document.Problems
}

// loadPolicies reads and compiles the folder of policies. What is as it was before,
// which may be nil, is taken over.
func loadPolicies(r *config.Repository, before *policies) *policies {
	if before != nil && before.hash == r.PoliciesHash && before.folder == r.Policies && !before.problems.Retry() {
		return before
	}
	p := &policies{hash: r.PoliciesHash, folder: r.Policies}
	if p.hash == "" {
		p.compile()
		return p
	}
	err := fs.WalkDir(r.Tree, r.Policies, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !config.IsYAML(name) {
			return err
		}
		content, err := r.Tree.ReadFile(name)
		if err != nil {
			p.problems = append(p.problems, document.FileProblem(name, err))
			return nil
		}
		docs, problems := document.ReadDocuments(name, content)
		p.docs, p.problems = append(p.docs, docs...), append(p.problems, problems...)
		return nil
	})
	if err != nil {
		p.problems = append(p.problems, document.FileProblem(r.Policies, err))
	}
	p.compile()
	return p
}

// compile checks the documents, and compiles those without a problem.
func (p *policies) compile() {
	kinds, err := schema.Kubernetes("")
	if err != nil {
		panic(err) // it is embedded
	}
	var good []policy.Document
	var from []*document.Document
	for _, doc := range p.docs {
		if object := p.check(kinds, doc); object != nil {
			good, from = append(good, policy.Document{Object: object, At: doc.Position()}), append(from, doc)
		}
	}
	compiled, flaws := policy.Compile(good)
	for _, flaw := range flaws {
		doc := from[flaw.Document]
		p.problems = append(p.problems, doc.Problem(document.NodeAt(doc.Node, flaw.Path), document.CodePolicy, "%s", flawText(flaw)))
	}
	p.compiled = compiled
}

func flawText(flaw policy.Flaw) string {
	text := flaw.Message
	if flaw.Line > 0 {
		text = fmt.Sprintf("%d:%d: %s", flaw.Line, flaw.Column, text)
	}
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

// judge holds an object against the policies of its cluster.
func (e *expansion) judge(d *draft, o *Object) {
	findings := e.policies.compiled.Judge(&policy.Object{APIVersion: o.APIVersion(), Kind: o.ID.Kind, Resource: d.resource, Namespaced: o.ID.Namespace != "",
		Namespace: o.ID.Namespace, Name: o.ID.Name, Content: d.object, Secret: config.MaySecret(o.ID.Kind) || len(d.secrets) > 0}, e.surroundings())
	for _, f := range findings {
		name := f.Policy
		if f.Binding != "" {
			name = fmt.Sprintf("policy %q (binding %q)", f.Policy, f.Binding)
		}
		switch f.Effect {
		case policy.Refused:
			d.problem(document.CodePolicy, f.Field, "refused by %s: %s", name, f.Message)
		case policy.Warned:
			d.problem(document.CodePolicy, f.Field, "%s warns: %s", name, f.Message)
			last := len(d.problems) - 1
			e.note(d.problems[last])
			d.problems = d.problems[:last]
		case policy.Changed:
			e.note(document.Problem{Position: document.Position{File: string(e.unit.Path)}, Code: document.CodePolicy,
				Message: fmt.Sprintf("will be changed by MutatingAdmissionPolicy %q: %s", f.Policy, o.ID)})
		case policy.Unjudged:
			e.note(document.Problem{Position: f.At, Code: document.CodePolicy, Message: fmt.Sprintf("policy %q: not judged for all objects: %s", f.Policy, f.Message)})
		}
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

func (e *expansion) surroundings() policy.Surroundings {
	return policy.Surroundings{
		Kubernetes: e.kubernetes,
		Namespace: func(name string) *policy.Namespace {
			cluster := e.target.Cluster
			e.reads.note(readSpace, spaceName(cluster, name))
			return e.world.namespace(cluster, name)
		},
		Scope: func(apiVersion, kindName string) (namespaced, known bool) {
			k := e.hard.Kind(apiVersion, kindName)
			if k == nil || k.Definition() != "" {
				e.reads.note(readHard, hardName(e.kubernetes, apiVersion, kindName))
			}
			return k != nil && k.Namespaced, k != nil
		},
	}
}
