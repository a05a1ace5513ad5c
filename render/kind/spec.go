// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"errors"
	"fmt"
	"slices"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"google.golang.org/protobuf/reflect/protoreflect"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/bounds"
	"github.com/swell-sh/swell/config/document"
)

// Spec is an easy spec that has been read and found to fit its kind.
type Spec struct {
	kind    *Kind
	doc     *document.Document // the document of its problems
	written *document.Document // what was decoded; of a rendered spec, with the lines of its template
	name    string
	message protoreflect.Message
	self    ref.Val
	via     []document.Position // of the template that it came from
	secrets *config.Redactor    // what its secret fields hold; nil without any
}

// OverrideField is the field of spec with the medium-mode patches.
const OverrideField = "override"

// Overridable says whether specs of the kind may have [OverrideField].
func (k *Kind) Overridable() bool { return k.easy.Overridable() }

// Kind is the kind that the spec is of.
func (s *Spec) Kind() *Kind { return s.kind }

// Written is the document that was decoded. That of a spec which a template
// rendered has the lines of the template.
func (s *Spec) Written() *document.Document { return s.written }

// Secrets are the texts that the fields of the spec hold which the kind marks
// as secret.
func (s *Spec) Secrets() []string { return s.secrets.Texts() }

// Message is the spec as a message: apiVersion, kind, metadata and spec. It must
// not be changed.
func (s *Spec) Message() protoreflect.Message { return s.message }

// Decode reads a document of the kind. file reads the files named by fromFile.
func (k *Kind) Decode(doc *document.Document, file func(path string) ([]byte, error)) (*Spec, document.Problems) {
	how := document.Decoding{File: file, Lift: []string{OverrideField}}
	if k.easy.FromFileForbidden() {
		how.File = nil
	}
	if k.easy.OverrideForbidden() {
		how.Lift = nil
	}
	message, problems := doc.Decode(k.envelope, how)
	if len(problems) > 0 {
		return nil, problems
	}
	problems = append(k.rules.Check(doc, message), k.easy.CheckKeys(doc, message)...)
	if doc.Name == "" {
		problems = append(problems, doc.Problem(doc.Node, document.CodeDocument, "metadata.name: missing"))
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return k.spec(doc, doc.Name, message), nil
}

func (k *Kind) spec(doc *document.Document, name string, message protoreflect.Message) *Spec {
	s := &Spec{kind: k, doc: doc, written: doc, name: name, message: message}
	if k.secrets {
		s.secrets = &config.Redactor{}
		s.secrets.AddMessage(message)
	}
	if k.adapter != nil {
		s.self = k.adapter.NativeToValue(message.Interface())
	}
	return s
}

// Rendered is one object that a spec stands for, before overrides.
type Rendered struct {
	ID     string            // of the object in the kind
	Object map[string]any    // parts of it may be shared: copy before changing
	At     document.Position // of the object's template
	Node   *yaml.Node        // the template, to find the line of a path
}

// Render evaluates the kind's templates for one spec in one place. The
// problems are at the spec, via the line of the kind.
func (s *Spec) Render(place *Place) ([]Rendered, document.Problems) {
	return s.RenderWithin(new(Budget), place)
}

// RenderWithin is Render of a spec that others may have spent a part of the
// budget for.
func (s *Spec) RenderWithin(budget *Budget, place *Place) ([]Rendered, document.Problems) {
	if s.kind.native != nil {
		return s.renderGo(budget, place)
	}
	charged := *place
	charged.budget = budget
	r := s.renderer(budget, &charged)
	r.render()
	return r.rendered, r.problems
}

func (s *Spec) renderer(budget *Budget, place *Place) *renderer {
	budget.made.most = objectsTimes
	return &renderer{spec: s, scope: &scope{self: s.self, place: place, data: s.kind.data, Budget: budget}}
}

// renderer renders one spec.
type renderer struct {
	spec     *Spec
	scope    *scope
	rendered []Rendered
	problems document.Problems
	// each is called after an object was rendered, with its names still bound;
	// nil when nobody traces.
	each func(o *object)
}

func (r *renderer) render() {
	if err := r.bind(); err != nil {
		r.fail(err, document.Position{File: r.spec.kind.Folder})
		return
	}
	if err := r.tellUnique(); err != nil {
		r.fail(err, document.Position{File: r.spec.kind.Folder})
		return
	}
	for _, o := range r.spec.kind.objects {
		if r.object(o); r.scope.Over() {
			return // it was said
		}
	}
}

// fail records a problem at the spec, via the place of the error in the kind,
// which is at when the error does not know.
func (r *renderer) fail(err error, at document.Position) {
	var evaluation *evalError
	if errors.As(err, &evaluation) {
		at = evaluation.at
	}
	r.problems = append(r.problems, r.spec.problem(r.scope.place, err, at))
}

// problem is a problem of rendering.
func (s *Spec) problem(place *Place, err error, at document.Position) document.Problem {
	text := err.Error()
	if secrets := place.secretsOf(s); secrets.Quotes(text) {
		text = "an expression cannot be evaluated for this spec; why is not said, since it may show what a secret field holds"
	}
	p := s.doc.Problem(s.doc.Node, document.CodeRender, "%s %s: %s", s.kind.Name, s.name, text)
	p.Via = append(slices.Clip(s.via), at)
	var unread *readError
	if errors.As(err, &unread) {
		p.Code, p.Retry = document.CodeReference, document.FileProblem("", unread.err).Retry
	}
	return p
}

// bind evaluates what all objects know.
func (r *renderer) bind() error {
	if err := r.scope.spend(uint64(1 + len(r.spec.kind.lets) + len(r.spec.kind.objects))); err != nil {
		return err
	}
	if err := r.spec.collect(r.scope); err != nil {
		return err
	}
	for i := range r.spec.kind.lets {
		let := &r.spec.kind.lets[i]
		value, err := let.run(r.scope)
		if err == nil {
			if err = bounds.Check(value); err != nil {
				err = &evalError{let.at, fmt.Errorf("%q: %w", let.text, err)}
			}
		}
		if err != nil {
			return err
		}
		r.scope.bind(let.name, value)
	}
	return nil
}

// object renders one entry of the kind's objects, once or for each item.
func (r *renderer) object(o *object) {
	bound := len(r.scope.bound)
	defer func() { r.scope.bound = r.scope.bound[:bound] }()
	items := []ref.Val{nil}
	if o.each != nil {
		var err error
		if items, err = o.items(r.scope); err != nil {
			r.fail(err, o.at)
			return
		}
	}
	for _, item := range items {
		r.scope.bound = r.scope.bound[:bound]
		if item != nil {
			r.scope.bind(o.eachName, item)
		}
		object, present, err := o.render(r.scope)
		if err == nil {
			err = r.scope.spend(1)
		}
		if err == nil && present {
			err = r.scope.object()
		}
		if err == nil && present {
			err = r.scope.charge(o.size)
		}
		if err != nil {
			r.fail(err, o.at)
			return
		}
		if present {
			r.rendered = append(r.rendered, Rendered{ID: o.id, Object: object, At: o.at, Node: o.node})
			if r.each != nil {
				r.each(o)
			}
		}
	}
}

func (o *object) items(scope *scope) ([]ref.Val, error) {
	result, err := o.each.run(scope)
	if err != nil {
		return nil, err
	}
	if optional, ok := result.(*types.Optional); ok {
		if !optional.HasValue() {
			return nil, nil
		}
		result = optional.GetValue()
	}
	iterable, ok := result.(traits.Iterable)
	if !ok {
		return nil, &evalError{o.each.at, fmt.Errorf("%q: want a list or a map, got %s", o.each.text, result.Type().TypeName())}
	}
	var items []ref.Val
	for it := iterable.Iterator(); it.HasNext() == types.True; {
		if len(items) == maxObjects {
			return nil, &evalError{o.each.at, fmt.Errorf("%q: more than %d items", o.each.text, maxObjects)}
		}
		items = append(items, it.Next())
	}
	if _, isMap := result.(traits.Mapper); isMap {
		sortKeys(items)
	}
	return items, nil
}

func (o *object) render(scope *scope) (object map[string]any, present bool, err error) {
	if o.when != nil {
		result, err := o.when.run(scope)
		if err != nil {
			return nil, false, err
		}
		if result != types.True {
			return nil, false, nil
		}
	}
	value, _, err := o.template.eval(scope)
	if err != nil {
		return nil, false, err
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, false, &evalError{o.at, errors.New("the template is no object")}
	}
	return object, true, nil
}
