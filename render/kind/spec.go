// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"errors"
	"fmt"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config"
)

// Spec is an easy spec that has been read and found to fit its kind.
type Spec struct {
	kind *Kind
	doc  *config.Document
	self ref.Val
}

// OverrideField is the field of spec with the medium-mode patches.
const OverrideField = "override"

// Decode reads a document of the kind. file reads the files named by fromFile.
func (k *Kind) Decode(doc *config.Document, file func(path string) ([]byte, error)) (*Spec, config.Problems) {
	how := config.Decoding{File: file, Lift: []string{OverrideField}}
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
	if doc.Name == "" {
		return nil, config.Problems{doc.Problem(doc.Node, config.CodeDocument, "metadata.name: missing")}
	}
	return &Spec{kind: k, doc: doc, self: k.adapter.NativeToValue(message)}, nil
}

// Place is what a template knows of the place it is rendered for. It is made
// once per unit and target and shared by all specs.
type Place struct{ target, unit ref.Val }

// NewPlace describes a unit on a target to templates.
func NewPlace(unit *config.Unit, target *config.Target) *Place {
	messages := boundFile().Messages()
	t := dynamicpb.NewMessage(messages.ByName("Target"))
	setText(t, "name", string(target.Name))
	setText(t, "cluster", target.Cluster)
	setText(t, "cell", target.Cell)
	setTexts(t, "labels", target.Labels)
	setTexts(t, "variables", target.Variables)
	u := dynamicpb.NewMessage(messages.ByName("Unit"))
	setText(u, "path", string(unit.Path))
	setText(u, "name", unit.Name())
	setText(u, "tenant", unit.Defaults.Tenant)
	setTexts(u, "labels", unit.Defaults.Labels)
	adapter := boundAdapter()
	return &Place{target: adapter.NativeToValue(t), unit: adapter.NativeToValue(u)}
}

func setText(m *dynamicpb.Message, field protoreflect.Name, value string) {
	m.Set(m.Descriptor().Fields().ByName(field), protoreflect.ValueOfString(value))
}

func setTexts(m *dynamicpb.Message, field protoreflect.Name, values map[string]string) {
	into := m.Mutable(m.Descriptor().Fields().ByName(field)).Map()
	for k, v := range values {
		into.Set(protoreflect.ValueOfString(k).MapKey(), protoreflect.ValueOfString(v))
	}
}

// Rendered is one object that a spec stands for, before overrides.
type Rendered struct {
	ID     string          // of the object in the kind
	Object map[string]any  // parts of it may be shared: copy before changing
	At     config.Position // of the object's template
	Node   *yaml.Node      // the template, to find the line of a path
}

// Render evaluates the kind's templates for one spec in one place. The
// problems are at the spec, via the line of the kind.
func (s *Spec) Render(place *Place) ([]Rendered, config.Problems) {
	scope := &scope{self: s.self, place: place}
	var problems config.Problems
	fail := func(err error, at config.Position) {
		var evaluation *evalError
		if errors.As(err, &evaluation) {
			at = evaluation.at
		}
		p := s.doc.Problem(s.doc.Node, config.CodeRender, "%s %s: %s", s.kind.Name, s.doc.Name, err)
		p.Via = []config.Position{at}
		problems = append(problems, p)
	}
	for _, let := range s.kind.lets {
		value, _, err := let.program.Eval(scope)
		if err != nil {
			fail(fmt.Errorf("%q: %s", let.text, oneLine(err)), let.at)
			return nil, problems
		}
		scope.bind(let.name, value)
	}
	lets := len(scope.bound)
	var rendered []Rendered
	for _, o := range s.kind.objects {
		items := []ref.Val{nil}
		if o.each != nil {
			var err error
			if items, err = o.items(scope); err != nil {
				fail(err, o.at)
				continue
			}
		}
		for _, item := range items {
			scope.bound = scope.bound[:lets]
			if item != nil {
				scope.bind(o.eachName, item)
			}
			object, present, err := o.render(scope)
			if err != nil {
				fail(err, o.at)
				break
			}
			if present {
				rendered = append(rendered, Rendered{ID: o.id, Object: object, At: o.at, Node: o.node})
			}
		}
		scope.bound = scope.bound[:lets]
	}
	return rendered, problems
}

func (o *object) items(scope *scope) ([]ref.Val, error) {
	result, _, err := o.each.program.Eval(scope)
	if err != nil {
		return nil, &evalError{o.each.at, fmt.Errorf("%q: %s", o.each.text, oneLine(err))}
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
		items = append(items, it.Next())
	}
	if _, isMap := result.(traits.Mapper); isMap {
		sortKeys(items)
	}
	return items, nil
}

func (o *object) render(scope *scope) (object map[string]any, present bool, err error) {
	if o.when != nil {
		result, _, err := o.when.program.Eval(scope)
		if err != nil {
			return nil, false, &evalError{o.when.at, fmt.Errorf("%q: %s", o.when.text, oneLine(err))}
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
