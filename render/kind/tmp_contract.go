// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/schema"
)

type Kinds struct {
	byName   map[string]*Kind
	broken   map[string]string
	unnamed  []string
	Problems config.Problems
	hash     string
}

func (k *Kinds) ByName(apiVersion, kind string) *Kind  { return k.byName[apiVersion+" "+kind] }
func (k *Kinds) Broken(apiVersion, kind string) string { return k.broken[apiVersion+" "+kind] }
func (k *Kinds) Unnamed() []string                     { return k.unnamed }
func (k *Kinds) Names() []string {
	var names []string
	for n := range k.byName {
		names = append(names, n)
	}
	return names
}
func (k *Kind) Hash() string { return k.hash }

func LoadAll(tree config.Tree, folders []config.Folder, hard *schema.Set, data *Data) *Kinds {
	set := &Kinds{byName: map[string]*Kind{}, broken: map[string]string{}}
	first := map[string]string{} // folders by the kind's name
	for _, folder := range folders {
		k, problems := Load(tree, folder.Path, hard)
		k.hash = folder.Hash
		set.Problems = append(set.Problems, problems...)
		name := k.APIVersion() + " " + k.Name
		switch {
		case len(problems) > 0 && k.Name == "":
			set.unnamed = append(set.unnamed, folder.Path)
			continue
		case len(problems) > 0:
			set.broken[name] = folder.Path
		case first[name] == "":
			set.byName[name] = k
		}
		if other := first[name]; other != "" { // nobody knows which one is meant
			set.Problems = append(set.Problems, config.Problem{Position: config.Position{File: folder.Path}, Code: config.CodeDuplicate,
				Message: fmt.Sprintf("kind %s: defined twice, first in %s", name, other)})
			set.broken[name] = folder.Path
			delete(set.byName, name)
			continue
		}
		first[name] = folder.Path
	}
	return set
}

type Data struct{}

func (*Data) Hash([]string) string { return "" }

func LoadData(tree config.Tree, folder string) (*Data, config.Problems) { return &Data{}, nil }

func (k *Kind) DecodeValue(value map[string]any, at func(path []any) config.Position, doc *config.Document, file func(path string) ([]byte, error)) (*Spec, config.Problems) {
	return nil, nil
}
func (k *Kind) Message() protoreflect.MessageDescriptor { return nil }

type Inputs struct {
	Files   func(folder string) ([]string, error)
	File    func(path string) ([]byte, error)
	Data    func(path []string)
	Collect func(c *Collection) ([]*Collected, error)
}

type Scope string
type OnInvalid string

const (
	ScopeTenant      Scope     = "tenant"
	ScopeFleet       Scope     = "fleet"
	OnInvalidExclude OnInvalid = "exclude"
)

func (k *Kinds) All() []*Kind {
	var all []*Kind
	for _, k := range k.byName {
		all = append(all, k)
	}
	return all
}
func (s *Spec) Message() proto.Message { return nil }

type Collection struct {
	Name, APIVersion, Kind string
	Scope                  Scope
	OnInvalid              OnInvalid
}
type Collected struct{}

func (k *Kind) Collections() []*Collection { return nil }

func NewCollected(spec *Spec, unit *config.Unit) *Collected { return &Collected{} }

func (k *Kinds) HashOf(apiVersion, kind string) string {
	if k := k.ByName(apiVersion, kind); k != nil {
		return k.Hash()
	}
	if b := k.Broken(apiVersion, kind); b != "" {
		return "broken " + b
	}
	return ""
}

func (k *Kinds) BrokenName(name string) bool { return len(k.broken) > 0 }
func (s *Spec) Kind() *Kind                  { return s.kind }
