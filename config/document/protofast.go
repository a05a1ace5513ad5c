// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"github.com/bufbuild/protocompile/linker"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

// indexed is the file as descriptors of the protobuf runtime. Those of the
// compiler look a field up by going over all of them, so that a message of
// 15,000 fields took minutes. What the runtime does not take stays as it is, unless
// fields are to have other names.
func (c *protoCompiler) indexed(compiled linker.File) protoreflect.FileDescriptor {
	files := &protoregistry.Files{}
	file, err := c.index(files, compiled)
	switch {
	case err == nil:
		return file
	case c.renamed != nil:
		c.problems = append(c.problems, Problem{Position: Position{File: compiled.Path()}, Code: CodeKind,
			Message: "fields cannot be named as in JSON: " + Cut(oneLine(err.Error()), maxProtoMessage)})
		return nil
	}
	return compiled
}

// index registers the files that a file imports, and then the file.
func (c *protoCompiler) index(files *protoregistry.Files, f protoreflect.FileDescriptor) (protoreflect.FileDescriptor, error) {
	if known, err := files.FindFileByPath(f.Path()); err == nil {
		return known, nil
	}
	for i := range f.Imports().Len() {
		if _, err := c.index(files, f.Imports().Get(i).FileDescriptor); err != nil {
			return nil, err
		}
	}
	var err error
	if result, ok := f.(linker.Result); ok {
		file := result.FileDescriptorProto()
		if c.renamed != nil && c.renamed(f.Path()) {
			file = withJSONNames(file)
		}
		f, err = protodesc.NewFile(file, files)
	} else if global, known := protoregistry.GlobalFiles.FindFileByPath(f.Path()); known == nil {
		f = global
	}
	if err == nil {
		err = files.RegisterFile(f)
	}
	return f, err
}

// withJSONNames is the file with the fields of its messages named as in JSON.
func withJSONNames(file *descriptorpb.FileDescriptorProto) *descriptorpb.FileDescriptorProto {
	file = proto.CloneOf(file)
	var rename func(messages []*descriptorpb.DescriptorProto)
	rename = func(messages []*descriptorpb.DescriptorProto) {
		for _, m := range messages {
			for _, f := range m.Field {
				f.Name = f.JsonName
			}
			rename(m.NestedType)
		}
	}
	rename(file.MessageType)
	return file
}
