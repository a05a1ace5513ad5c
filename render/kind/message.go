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

	"github.com/swell-sh/swell/config"
)

//go:embed crd.proto
var crdProto string

//go:embed bound.proto
var boundProto string

// crdNumber is the option on a message that makes it a Kubernetes kind.
const crdNumber = 73394821

// isCRDImport says whether an import means the options of protoc-gen-crd, under
// the path where they are published or the one they have at their home.
func isCRDImport(name string) bool {
	const home = "library/go/k8s/protoc_gen_crd/proto/crd.proto"
	return name == home || name == "github.com/yandex/protoc-gen-crd/"+home
}

// message compiles the .proto beside the kind and finds the message; nil
// after a problem.
func (l *loader) message(name string) protoreflect.MessageDescriptor {
	file := path.Join(l.kind.Folder, path.Base(l.kind.Folder)+".proto")
	compiled, problems := config.CompileProto(file, l.openProto)
	if len(problems) > 0 {
		l.problems = append(l.problems, problems...)
		return nil
	}
	var names []string
	var found protoreflect.MessageDescriptor
	for i := range compiled.Messages().Len() {
		m := compiled.Messages().Get(i)
		names = append(names, string(m.FullName()))
		if string(m.FullName()) == name {
			found = m
		}
	}
	if found == nil {
		l.problem(l.spec("message"), "spec.message: %q: no such message in %s%s", name, file, config.DidYouMean(name, names))
		return nil
	}
	if !l.groupAndKind(found, file) {
		return nil
	}
	return found
}

// openProto reads an import: a file in or below the folder of all kinds, whose
// hash says when kinds change, or a file that swell brings.
func (l *loader) openProto(name string) ([]byte, error) {
	if isCRDImport(name) {
		return []byte(crdProto), nil
	}
	if !fs.ValidPath(name) {
		return nil, config.Refusal(fmt.Sprintf("%q: want a path from the root of the monorepo", name))
	}
	if kinds := path.Dir(l.kind.Folder) + "/"; !strings.HasPrefix(name, kinds) {
		return nil, config.Refusal(fmt.Sprintf("import %q: want a file below %s", name, kinds))
	}
	return l.tree.ReadFile(name)
}

// groupAndKind reads the message's k8s_crd option.
func (l *loader) groupAndKind(message protoreflect.MessageDescriptor, file string) bool {
	var group, kind string
	options := message.Options().ProtoReflect()
	options.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if field.Number() == crdNumber && field.Message() != nil && !field.IsList() && !field.IsMap() {
			group, kind = textField(value.Message(), "api_group"), textField(value.Message(), "kind")
		}
		return true
	})
	at := message.ParentFile().SourceLocations().ByDescriptor(message)
	position := config.Position{File: file, Line: at.StartLine + 1, Column: at.StartColumn + 1}
	switch {
	case group == "" || kind == "":
		l.problems = append(l.problems, config.Problem{Position: position, Code: config.CodeKind,
			Message: fmt.Sprintf("message %s: option (protoc_gen_crd.k8s_crd) with api_group and kind is missing", message.FullName())})
		return false
	case group == config.Group || !strings.Contains(group, "."):
		l.problems = append(l.problems, config.Problem{Position: position, Code: config.CodeKind,
			Message: fmt.Sprintf("message %s: api_group %q: want a domain of your own, like easy.example.com", message.FullName(), group)})
		return false
	}
	l.kind.Group, l.kind.Name = group, kind
	return true
}

// textField is a field of a message that may be another one than it seems;
// empty where it has no such text.
func textField(m protoreflect.Message, name protoreflect.Name) string {
	field := m.Descriptor().Fields().ByName(name)
	if field == nil || field.Kind() != protoreflect.StringKind || field.IsList() {
		return ""
	}
	return m.Get(field).String()
}

var boundFile = sync.OnceValue(func() protoreflect.FileDescriptor {
	const name = "swell/bound.proto"
	file, problems := config.CompileProto(name, func(path string) ([]byte, error) {
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
