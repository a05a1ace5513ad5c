// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	_ "embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/schema/easy"
)

//go:embed bound.proto
var boundProto string

// declareMessage makes the declaration of the .proto beside the kind, up to a problem.
func (l *loader) declareMessage(file string) {
	d := l.kind.declaration
	compiled, problems := l.compileProto(file)
	if l.problems = append(l.problems, problems...); len(problems) > 0 {
		return
	}
	message := l.named(compiled.Messages(), l.def.Message, file)
	if message == nil {
		return
	}
	d.easy, problems = easy.New(message)
	l.kind.Group, l.kind.Name = d.easy.Group, d.easy.Kind
	if l.problems = append(l.problems, problems...); len(problems) > 0 {
		return
	}
	d.message = message
	envelope, err := document.Envelope(message)
	if err == nil {
		d.collected, err = collectedMessage(envelope)
	}
	if err != nil {
		l.problem(l.spec("message"), "spec.message: %s", err)
		return
	}
	d.envelope, d.secrets = envelope, document.HasSecrets(envelope)
	d.rules, problems = document.CompileRules(envelope, message)
	l.problems = append(l.problems, problems...)
}

// named is the message of a file that has a name; nil after a problem.
func (l *loader) named(all protoreflect.MessageDescriptors, name, file string) protoreflect.MessageDescriptor {
	var names []string
	for i := range all.Len() {
		if m := all.Get(i); string(m.FullName()) == name {
			return m
		} else {
			names = append(names, string(m.FullName()))
		}
	}
	l.problem(l.spec("message"), "spec.message: %q: no such message in %s%s", name, file, document.DidYouMean(name, names))
	return nil
}

// compileProto compiles the .proto with the names of fields that the kind wants.
// Files that swell brings are options and the like: those stay as they are.
func (l *loader) compileProto(file string) (protoreflect.FileDescriptor, document.Problems) {
	switch l.def.FieldNames {
	case "", "proto":
		return document.CompileProto(file, l.readProto)
	case "json":
		return document.CompileProtoJSON(file, l.readProto, func(file string) bool {
			_, carried := easy.ProtoFile(file)
			return !carried && !strings.HasPrefix(file, "google/protobuf/") && !strings.HasPrefix(file, "google/api/")
		})
	}
	return nil, document.Problems{l.doc.Problem(l.spec("fieldNames"), document.CodeType, "spec.fieldNames: want proto or json, got %q", document.Shorten(l.def.FieldNames))}
}

// Schema is the schemas made from the message that the kind names. It is only
// for kinds without problems.
func (k *Kind) Schema() *easy.Schema { return k.easy }

// readProto is openProto, and notes what came of it.
func (l *loader) readProto(name string) ([]byte, error) {
	content, err := l.openProto(name)
	if l.kind.reads == nil {
		l.kind.reads = map[string]read{}
	}
	l.kind.reads[name] = readOf(content, err)
	return content, err
}

// openProto reads an import: a file in or below the folder of all kinds, whose
// hash says when kinds change, or a file that swell brings.
func (l *loader) openProto(name string) ([]byte, error) {
	if content, ok := easy.ProtoFile(name); ok {
		return content, nil
	}
	if !fs.ValidPath(name) {
		return nil, document.Refusal(fmt.Sprintf("%q: want a path from the root of the monorepo", name))
	}
	if content, ok := l.openOnPath(name); ok {
		return content, nil
	}
	if kinds := path.Dir(l.kind.Folder) + "/"; !strings.HasPrefix(name, kinds) {
		where := strings.Join(append([]string{kinds}, l.all.protoPath...), ", or in ")
		return nil, document.Refusal(fmt.Sprintf("import %q: want a file below %s (spec.protoPath of swell.yaml names folders of protos)", name, where))
	}
	return l.tree.ReadFile(name)
}

// openOnPath reads an import from the first folder of spec.protoPath that has it.
func (l *loader) openOnPath(name string) ([]byte, bool) {
	for _, folder := range l.all.protoPath {
		file := path.Join(folder, name)
		if content, err := l.tree.ReadFile(file); err == nil {
			if l.kind.protos == nil {
				l.kind.protos = map[string]string{}
			}
			l.kind.protos[name] = file
			return content, true
		}
	}
	return nil, false
}

// relocate gives problems in imports the paths that the files have.
func (l *loader) relocate() {
	for i, p := range l.problems {
		l.problems[i].Position = l.kind.located(p.Position)
	}
}

var boundFile = sync.OnceValue(func() protoreflect.FileDescriptor {
	const name = "swell/bound.proto"
	file, problems := document.CompileProto(name, func(path string) ([]byte, error) {
		if path == name {
			return []byte(boundProto), nil
		}
		return nil, fs.ErrNotExist
	})
	if len(problems) > 0 {
		panic(problems.Error()) // the file is part of the program
	}
	return file
})
