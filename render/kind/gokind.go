// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"fmt"
	"io/fs"
	"sync"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/schema/easy"
)

// Go is an easy kind that is Go code in swell, for what templates do badly.
// Callers see a [Kind] like any other.
type Go struct {
	Kind string // its apiVersion is swell's own
	// Version is raised with every change of what it renders: it takes the
	// place of the files that another kind's hash is made of.
	Version int
	// Message has a field spec of a message type.
	Message protoreflect.MessageDescriptor
	// IDs are those of all objects that Render may return.
	IDs []string
	// Render must give the same objects for the same input. It may read
	// nothing else, and must not keep or change what it is given. Errors name
	// a field of the spec.
	Render func(in GoInput) ([]GoObject, error)
	// Reads tells what the fields of an object that Render made are made of, in
	// Path and Decides of leaves in any order. Nil: of the spec as a whole.
	Reads func(in GoInput, object map[string]any) []Leaf
}

// GoInput is what a kind in Go renders.
type GoInput struct {
	Name     string               // metadata.name
	Document protoreflect.Message // apiVersion, kind, metadata and spec
	Spec     protoreflect.Message
	Unit     protoreflect.Message // swell.bound.Unit
	Target   protoreflect.Message // swell.bound.Target
	File     func(path string) ([]byte, error)
	Files    func(folder string) ([]string, error)
}

// GoObject is an object that a kind in Go renders.
type GoObject struct {
	ID     string
	Object map[string]any // of plain values
}

// goKinds returns all kinds in Go. Their messages are compiled once, and only where kinds are
// loaded: every start of the program would wait for it.
var goKinds = sync.OnceValue(func() []*Go { return []*Go{configFolder()} })

// kind is the kind as others see it.
func (g *Go) kind() *Kind {
	envelope, err := document.Envelope(g.Message)
	if err != nil {
		panic(err) // it is part of the program
	}
	return &Kind{Group: config.Group, Name: g.Kind, native: g,
		declaration: &declaration{message: g.Message, easy: easy.Own(g.Message, g.Kind), envelope: envelope}}
}

// embeddedMessage compiles a .proto that is part of swell.
func embeddedMessage(name, content string) protoreflect.MessageDescriptor {
	file, problems := document.CompileProto(name, func(path string) ([]byte, error) {
		if path == name {
			return []byte(content), nil
		}
		return nil, fs.ErrNotExist
	})
	if len(problems) > 0 {
		panic(problems.Error()) // it is part of the program
	}
	return file.Messages().Get(0)
}

// renderGo renders a spec of a kind in Go. A mistake of the kind is a problem
// of the spec.
func (s *Spec) renderGo(budget *Budget, place *Place) (rendered []Rendered, problems document.Problems) {
	defer document.Recover(s.doc.File, &problems)
	objects, err := s.kind.native.Render(s.goInput(place))
	for range objects {
		if err == nil {
			err = budget.object()
		}
	}
	if err != nil {
		p := s.problem(place, err, document.Position{})
		p.Via = s.via
		return nil, document.Problems{p}
	}
	for _, o := range objects {
		rendered = append(rendered, Rendered{ID: o.ID, Object: o.Object, At: s.doc.Position(), Node: s.doc.Node})
	}
	return rendered, nil
}

func (s *Spec) goInput(place *Place) GoInput {
	in := GoInput{Name: s.name, Document: s.message, Unit: place.unitMessage, Target: place.targetMessage}
	in.Spec = s.message.Get(s.message.Descriptor().Fields().ByName("spec")).Message()
	in.File = func(path string) ([]byte, error) {
		if place.inputs.File == nil {
			return nil, fmt.Errorf("%q: there are no files here", path)
		}
		content, err := place.inputs.File(path)
		if err != nil {
			err = &readError{err}
		}
		return content, err
	}
	in.Files = func(folder string) ([]string, error) {
		if place.inputs.Files == nil {
			return nil, fmt.Errorf("%q: there are no folders here", folder)
		}
		names, err := place.inputs.Files(folder)
		if err != nil {
			err = &readError{err}
		}
		return names, err
	}
	return in
}
