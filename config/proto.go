// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/linker"
	"github.com/bufbuild/protocompile/reporter"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

//go:embed documents.proto
var documentsProto string

// documents compiles the schema of swell's own documents, once.
var documents = sync.OnceValue(func() protoreflect.MessageDescriptors {
	const name = "documents.proto"
	file, problems := CompileProto(name, func(path string) ([]byte, error) {
		if path == name {
			return []byte(documentsProto), nil
		}
		return nil, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
	})
	if len(problems) > 0 {
		panic(problems.Error()) // the file is part of the program
	}
	return file.Messages()
})

// OwnKinds are the messages of swell's own documents, in the order of
// documents.proto: those with an apiVersion and a kind.
func OwnKinds() []protoreflect.MessageDescriptor {
	var kinds []protoreflect.MessageDescriptor
	all := documents()
	for i := range all.Len() {
		if m := all.Get(i); m.Fields().ByName("apiVersion") != nil && m.Fields().ByName("kind") != nil {
			kinds = append(kinds, m)
		}
	}
	return kinds
}

// CompileProto compiles one .proto file in process. open reads an imported
// file by the name written in the import; the well-known types need no file.
// Every error of the file and its imports is a problem with its position.
func CompileProto(name string, open func(name string) ([]byte, error)) (linker.File, Problems) {
	var problems, unread Problems
	report := func(err reporter.ErrorWithPos) error {
		pos := err.GetPosition()
		problems = append(problems, Problem{
			Position: Position{pos.Filename, pos.Line, pos.Col},
			Code:     CodeKind,
			Message:  err.Unwrap().Error(),
		})
		return nil // go on, to find the others
	}
	compiler := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{
			Accessor: func(path string) (io.ReadCloser, error) {
				content, err := open(path)
				if err != nil && mayPass(err) {
					unread = append(unread, FileProblem(path, err))
				}
				if err != nil {
					return nil, err
				}
				return io.NopCloser(strings.NewReader(string(content))), nil
			},
		}),
		Reporter:       reporter.NewReporter(report, nil),
		SourceInfoMode: protocompile.SourceInfoStandard,
		MaxParallelism: 1,
	}
	files, err := compiler.Compile(context.Background(), name)
	if err != nil && len(problems) == 0 {
		var withPos reporter.ErrorWithPos
		if errors.As(err, &withPos) {
			_ = report(withPos)
		} else {
			problems = append(problems, Problem{Position: Position{File: name}, Code: CodeKind, Message: err.Error()})
		}
	}
	if problems = append(problems, unread...); len(problems) > 0 {
		return nil, problems.Sorted()
	}
	return files[0], nil
}

// Envelope makes the message of a whole easy document out of the message that
// a kind declares: apiVersion, kind and metadata are Kubernetes' own and are
// laid around its spec field.
func Envelope(message protoreflect.MessageDescriptor) (protoreflect.MessageDescriptor, error) {
	spec := message.Fields().ByName("spec")
	if spec == nil || spec.Kind() != protoreflect.MessageKind || spec.IsList() || spec.IsMap() {
		return nil, fmt.Errorf("message %s: want a field spec of a message type", message.FullName())
	}
	specFile := spec.Message().ParentFile()
	metadata := documents().ByName("Metadata")
	file := &descriptorpb.FileDescriptorProto{
		Name:       new("swell/envelope/" + string(message.FullName()) + ".proto"),
		Package:    new("swell.envelope"),
		Syntax:     new("proto3"),
		Dependency: []string{metadata.ParentFile().Path(), specFile.Path()},
		MessageType: []*descriptorpb.DescriptorProto{{
			Name: new(strings.ReplaceAll(string(message.FullName()), ".", "_")),
			Field: []*descriptorpb.FieldDescriptorProto{
				stringField("apiVersion", 1), stringField("kind", 2),
				messageField("metadata", 3, metadata), messageField("spec", 4, spec.Message()),
			},
		}},
	}
	built, err := protodesc.NewFile(file, resolver{metadata.ParentFile(), specFile})
	if err != nil {
		return nil, err
	}
	return built.Messages().Get(0), nil
}

func stringField(name string, number int32) *descriptorpb.FieldDescriptorProto {
	return &descriptorpb.FieldDescriptorProto{
		Name: &name, JsonName: &name, Number: &number,
		Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
		Type:  descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum(),
	}
}

func messageField(name string, number int32, message protoreflect.MessageDescriptor) *descriptorpb.FieldDescriptorProto {
	return &descriptorpb.FieldDescriptorProto{
		Name: &name, JsonName: &name, Number: &number,
		Label:    descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
		Type:     descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(),
		TypeName: new("." + string(message.FullName())),
	}
}

// resolver finds what an envelope imports: a few files, by path or by the
// name of a message in them.
type resolver []protoreflect.FileDescriptor

func (r resolver) FindFileByPath(path string) (protoreflect.FileDescriptor, error) {
	for _, f := range r {
		if f.Path() == path {
			return f, nil
		}
	}
	return nil, fmt.Errorf("%s: not an import of the envelope", path)
}

func (r resolver) FindDescriptorByName(name protoreflect.FullName) (protoreflect.Descriptor, error) {
	for _, f := range r {
		if found := findMessage(f.Messages(), name); found != nil {
			return found, nil
		}
	}
	return nil, fmt.Errorf("%s: not in an import of the envelope", name)
}

func findMessage(messages protoreflect.MessageDescriptors, name protoreflect.FullName) protoreflect.Descriptor {
	for i := range messages.Len() {
		m := messages.Get(i)
		if m.FullName() == name {
			return m
		}
		if nested := findMessage(m.Messages(), name); nested != nil {
			return nested
		}
	}
	return nil
}
