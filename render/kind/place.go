// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"errors"
	"reflect"
	"slices"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/swell-sh/swell/config"
)

// Inputs is what a render may read besides the spec, its unit and its target.
// The functions are called during [Spec.Render] only, by one goroutine for
// each call of it; a caller that keeps what was read notes it there.
type Inputs struct {
	// File reads a file beside the spec, for file(path) and for Go kinds. Nil:
	// there are none.
	File func(path string) ([]byte, error)
	// Files lists the files in a folder beside the spec and below it, as paths
	// from that folder, sorted. For Go kinds. Nil: there are none.
	Files func(folder string) ([]string, error)
	// Data is called for each value of data/*.yaml that is read, with its path:
	// [file, key, ...]. A mapping or list that is read as a whole is one path;
	// so is one that turns out to be absent. With there set, no more was seen
	// than that a mapping is there. Paths must not be changed. Nil: nobody asks.
	Data func(path []string, there bool)
	// DataFile is called for each file data/*.yaml of which a message names a line. Nil:
	// nobody asks.
	DataFile func(file string)
	// Collect lists the documents of a collection, in the order that templates
	// see them in. Nil: every collection is empty.
	Collect func(c *Collection) ([]*Collected, error)
	// LeftOut is called for an item whose key another one has. Nil: nobody asks.
	LeftOut func(c *Collection, item *Collected, why string)
	// Unique is called for each value of the spec that its kind declares as unique. Nil:
	// nobody asks.
	Unique func(u Unique)
	// Secrets are texts that specs on this target may have taken from others:
	// from what they collect. Nil: none.
	Secrets func() []string
}

func (in *Inputs) tellLines(file string) {
	if in.DataFile != nil {
		in.DataFile(file)
	}
}

// secretsOf are the texts that no message of rendering the spec may show.
func (p *Place) secretsOf(s *Spec) *config.Redactor {
	if p.inputs.Secrets == nil {
		return s.secrets
	}
	collected := p.inputs.Secrets()
	if len(collected) == 0 {
		return s.secrets
	}
	var all config.Redactor
	for _, text := range slices.Concat(s.Secrets(), collected) {
		all.Add(text)
	}
	return &all
}

// Place is what a template knows of the place it is rendered for. It is made
// once per unit and target and shared by all specs. It is safe for concurrent
// use as far as the functions of its inputs are.
type Place struct {
	target, unit ref.Val
	inputs       Inputs
	budget       *Budget // that functions spend from; nil for one without end

	targetMessage, unitMessage protoreflect.Message
}

// NewPlace describes a unit on a target to templates.
func NewPlace(unit *config.Unit, target *config.Target, inputs Inputs) *Place {
	t := dynamicpb.NewMessage(boundFile().Messages().ByName("Target"))
	setText(t, "name", string(target.Name))
	setText(t, "cluster", target.Cluster)
	setText(t, "cell", target.Cell)
	setTexts(t, "labels", target.Labels)
	setTexts(t, "variables", target.Variables)
	u := unitMessage(unit)
	adapter := boundAdapter()
	return &Place{target: adapter.NativeToValue(t), unit: adapter.NativeToValue(u), inputs: inputs, targetMessage: t, unitMessage: u}
}

func unitMessage(unit *config.Unit) *dynamicpb.Message {
	u := dynamicpb.NewMessage(boundFile().Messages().ByName("Unit"))
	setText(u, "path", string(unit.Path))
	setText(u, "name", unit.Name())
	setText(u, "tenant", unit.Defaults.Tenant)
	setTexts(u, "labels", unit.Defaults.Labels)
	return u
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

// Place is a value of CEL, so that functions of expressions find their inputs.
// No expression can name it.
var _ ref.Val = (*Place)(nil)

var placeType = types.NewOpaqueType("swell.Place")

// ConvertToNative implements [ref.Val].
func (p *Place) ConvertToNative(reflect.Type) (any, error) {
	return nil, errors.New("a place is no value")
}

// ConvertToType implements [ref.Val].
func (p *Place) ConvertToType(ref.Type) ref.Val { return types.NewErr("a place is no value") }

// Equal implements [ref.Val].
func (p *Place) Equal(other ref.Val) ref.Val { return types.Bool(ref.Val(p) == other) }

// Type implements [ref.Val].
func (p *Place) Type() ref.Type { return placeType }

// Value implements [ref.Val].
func (p *Place) Value() any { return p }
