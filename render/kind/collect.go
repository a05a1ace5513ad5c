// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

// Scope says whose documents a collection holds.
type Scope string

const (
	ScopeTenant Scope = "tenant" // those of units of the spec's tenant; the default
	ScopeFleet  Scope = "fleet"  // those of all units
)

// OnInvalid says what becomes of a collection with a document that has a
// problem.
type OnInvalid string

const (
	OnInvalidExclude OnInvalid = "exclude" // it is left out; the default
	OnInvalidHold    OnInvalid = "hold"    // nothing is rendered from the others either
)

// Collection is a name under which a kind's expressions find the documents of
// another kind.
type Collection struct {
	Name             string
	APIVersion, Kind string
	Scope            Scope
	OnInvalid        OnInvalid
	At               document.Position

	message protoreflect.MessageDescriptor
	key     *expression // nil for none
}

// Collections are what the kind collects, by name. They are read whenever the
// kind is rendered.
func (k *Kind) Collections() []*Collection { return k.collections }

// Collected is an item of a collection. It is safe for concurrent use.
type Collected struct {
	message *dynamicpb.Message
	secrets []string // what its secret fields hold
	what    string   // "Pipe cart at services/shop/cart/pipe.yaml:1:1"
	at      document.Position
	unit    config.UnitPath
}

// Unit is where the document stands.
func (c *Collected) Unit() config.UnitPath { return c.unit }

// What names the document, with its position.
func (c *Collected) What() string { return c.what }

// Position is where the document begins.
func (c *Collected) Position() document.Position { return c.at }

// Secrets are the texts of its fields that are marked as secret.
func (c *Collected) Secrets() []string { return c.secrets }

// NewCollected makes a decoded spec an item of a collection: like `self`, with
// `unit` besides.
func NewCollected(spec *Spec, unit *config.Unit) *Collected {
	k := spec.kind
	item := dynamicpb.NewMessage(k.collected)
	spec.message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		item.Set(k.collected.Fields().ByName(field.Name()), value)
		return true
	})
	item.Set(k.collected.Fields().ByName("unit"), protoreflect.ValueOfMessage(unitMessage(unit)))
	at := spec.doc.Position()
	return &Collected{item, spec.Secrets(), fmt.Sprintf("%s %s at %s", k.Name, spec.name, at), at, unit.Path}
}

// collectedMessage is the kind's envelope with the unit added.
func collectedMessage(envelope protoreflect.MessageDescriptor) (protoreflect.MessageDescriptor, error) {
	unit := boundFile().Messages().ByName("Unit")
	file := protodesc.ToFileDescriptorProto(envelope.ParentFile())
	file.Name = new("swell/collected/" + string(envelope.Name()) + ".proto")
	file.Package = new("swell.collected")
	file.Dependency = append(file.Dependency, unit.ParentFile().Path())
	message := file.MessageType[0]
	for _, field := range message.Field { // its own maps
		if name, ok := strings.CutPrefix(field.GetTypeName(), "."+string(envelope.FullName())+"."); ok {
			field.TypeName = new(".swell.collected." + message.GetName() + "." + name)
		}
	}
	last := message.Field[len(message.Field)-1].GetNumber()
	message.Field = append(message.Field, &descriptorpb.FieldDescriptorProto{
		Name: new("unit"), JsonName: new("unit"), Number: new(last + 1),
		Label:    descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
		Type:     descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(),
		TypeName: new("." + string(unit.FullName())),
	})
	var files protoregistry.Files
	if err := document.RegisterWithImports(&files, envelope.ParentFile()); err != nil {
		return nil, err
	}
	if err := document.RegisterWithImports(&files, unit.ParentFile()); err != nil {
		return nil, err
	}
	built, err := protodesc.NewFile(file, &files)
	if err != nil {
		return nil, err
	}
	return built.Messages().Get(0), nil
}

// collections reads spec.collect, once all kinds are declared.
func (l *loader) collections() {
	for _, name := range slices.Sorted(maps.Keys(l.def.Collect)) {
		def := l.def.Collect[name]
		node := document.Lookup(l.spec("collect"), name)
		where := "spec.collect." + name
		if !(&environment{names: map[string]bool{"self": true, "target": true, "unit": true, "data": true}}).free(name) {
			l.problem(node, "%s: want a new name of letters and digits that is no word of CEL", where)
			l.spoil(name)
			continue
		}
		c := &Collection{Name: name, Scope: ScopeTenant, OnInvalid: OnInvalidExclude, At: l.doc.At(node)}
		switch def.Scope {
		case "":
		case string(ScopeTenant), string(ScopeFleet):
			c.Scope = Scope(def.Scope)
		default:
			l.problem(valueNode(node, "scope"), "%s.scope: want tenant or fleet, got %q", where, document.Shorten(def.Scope))
		}
		switch def.OnInvalid {
		case "":
		case string(OnInvalidExclude), string(OnInvalidHold):
			c.OnInvalid = OnInvalid(def.OnInvalid)
		default:
			l.problem(valueNode(node, "onInvalid"), "%s.onInvalid: want exclude or hold, got %q", where, document.Shorten(def.OnInvalid))
		}
		other := l.collectedKind(node, where, def.APIVersion, def.Kind)
		if other == nil {
			l.spoil(name)
		} else {
			c.APIVersion, c.Kind, c.message = other.kind.APIVersion(), other.kind.Name, other.kind.collected
			l.used = append(l.used, use{to: other, at: node, where: where})
			if clash := sameName(l.kind.envelope, c.message); clash != "" {
				l.problem(node, "%s: message %s is declared by this kind and by %s: give one of them another name or put it into a file that both import", where, clash, other.kind.Folder)
				l.spoil(name)
				continue
			}
			l.kind.collections = append(l.kind.collections, c)
		}
	}
}

// itemName is what the key of a collection calls a document.
const itemName = "item"

// collectionKeys compiles the keys of collections.
func (l *loader) collectionKeys() {
	for _, c := range l.kind.collections {
		text, node := l.def.Collect[c.Name].Key, document.Lookup(l.spec("collect"), c.Name)
		if text == "" {
			continue
		}
		env, err := l.env.with(itemName, cel.ObjectType(string(c.message.FullName())))
		if err != nil {
			l.problem(node, "spec.collect.%s: %s", c.Name, err)
			continue
		}
		c.key, err = l.expression(env, valueNode(node, "key"), text)
		if err == nil && c.key.typ.Kind() != cel.StringKind {
			err = fmt.Errorf("%q: want a string, got %s", text, c.key.typ)
		}
		if err != nil {
			c.key = nil
			l.failed(err, valueNode(node, "key"), "spec.collect.%s.key", c.Name)
		}
	}
}

// collectedKind finds the kind to collect: by apiVersion and kind, or by kind
// alone where only one kind has that name.
func (l *loader) collectedKind(node *yaml.Node, where, apiVersion, kindName string) *loader {
	if kindName == "" {
		l.problem(node, "%s.kind: missing", where)
		return nil
	}
	var found []*loader
	var names []string
	for _, other := range l.all.loaders {
		if other.kind.native != nil || l.all.known[other.name()] != other { // a name twice is that of the first
			continue
		}
		names = append(names, other.kind.Name)
		if other.kind.Name == kindName && (apiVersion == "" || other.kind.APIVersion() == apiVersion) {
			found = append(found, other)
		}
	}
	at := valueNode(node, "kind")
	switch {
	case len(found) == 0:
		l.problem(at, "%s.kind: %s: no such easy kind%s", where, document.Shorten(strings.TrimSpace(apiVersion+" "+kindName)), l.all.hint(kindName, names))
		return nil
	case len(found) > 1:
		l.problem(at, "%s.kind: %s is the name of %d kinds: write its apiVersion too", where, kindName, len(found))
		return nil
	case found[0].kind.collected == nil:
		l.used = append(l.used, use{to: found[0], at: at, where: where + ".kind"})
		return nil
	}
	return found[0]
}

// sameName is the first message that two trees of files declare in different
// files; empty when there is none.
func sameName(a, b protoreflect.MessageDescriptor) string {
	first, second := map[protoreflect.FullName]string{}, map[protoreflect.FullName]string{}
	declared(a.ParentFile(), first)
	declared(b.ParentFile(), second)
	for _, name := range slices.Sorted(maps.Keys(first)) {
		if file, ok := second[name]; ok && file != first[name] {
			return string(name)
		}
	}
	return ""
}

func declared(file protoreflect.FileDescriptor, into map[protoreflect.FullName]string) {
	for i := range file.Messages().Len() {
		declaredIn(file.Messages().Get(i), into)
	}
	for i := range file.Imports().Len() {
		declared(file.Imports().Get(i).FileDescriptor, into)
	}
}

func declaredIn(m protoreflect.MessageDescriptor, into map[protoreflect.FullName]string) {
	into[m.FullName()] = m.ParentFile().Path()
	for i := range m.Messages().Len() {
		declaredIn(m.Messages().Get(i), into)
	}
}

// collect binds the collections of a kind.
func (s *Spec) collect(scope *scope) error {
	for _, c := range s.kind.collections {
		var items []*Collected
		if scope.place.inputs.Collect != nil {
			var err error
			if items, err = scope.place.inputs.Collect(c); err != nil {
				return &evalError{c.At, &readError{fmt.Errorf("collect %s: %w", c.Name, err)}}
			}
		}
		if err := scope.spend(uint64(len(items))); err != nil {
			return &evalError{c.At, err}
		}
		items, err := s.distinct(scope, c, items)
		if err != nil {
			return err
		}
		values := make([]ref.Val, len(items))
		for i, item := range items {
			values[i] = s.kind.adapter.NativeToValue(item.message)
		}
		scope.bind(c.Name, types.NewRefValList(s.kind.adapter, values))
	}
	return nil
}

// distinct are the items whose keys no item before them has. The others are left
// out with a note, or hold, as the collection says.
func (s *Spec) distinct(scope *scope, c *Collection, items []*Collected) ([]*Collected, error) {
	if c.key == nil {
		return items, nil
	}
	var kept []*Collected
	first := map[any]*Collected{}
	for _, item := range items {
		bound := len(scope.bound)
		scope.bind(itemName, s.kind.adapter.NativeToValue(item.message))
		key, _, err := c.key.value(scope)
		scope.bound = scope.bound[:bound]
		if err != nil {
			if err := s.keyless(scope, c, item, err); err != nil {
				return nil, err
			}
			continue
		}
		before := first[key]
		if before == nil {
			first[key] = item
			kept = append(kept, item)
			continue
		}
		why := fmt.Sprintf("%s has the same key as %s", item.what, before.what)
		if text, ok := key.(string); ok && len(item.secrets)+len(before.secrets) == 0 {
			why = fmt.Sprintf("%s has the key %q of %s", item.what, document.Shorten(text), before.what)
		}
		if c.OnInvalid != OnInvalidExclude {
			return nil, &evalError{c.At, document.Refusal(fmt.Sprintf("collect %s: %s: give one of them another name", c.Name, why))}
		}
		if scope.place.inputs.LeftOut != nil {
			scope.place.inputs.LeftOut(c, item, why+": give one of them another name")
		}
	}
	return kept, nil
}

// keyless leaves out an item whose key cannot be evaluated, or returns the error that
// holds. Why is not said beside secrets, since it may show one.
func (s *Spec) keyless(scope *scope, c *Collection, item *Collected, err error) error {
	var unread *readError
	if scope.Over() || errors.As(err, &unread) {
		return err
	}
	why := item.what + ": its key cannot be evaluated"
	if len(item.secrets)+len(s.Secrets()) == 0 {
		why += ": " + err.Error()
	}
	if c.OnInvalid != OnInvalidExclude {
		return &evalError{c.At, document.Refusal(fmt.Sprintf("collect %s: %s", c.Name, why))}
	}
	if scope.place.inputs.LeftOut != nil {
		scope.place.inputs.LeftOut(c, item, why)
	}
	return nil
}
