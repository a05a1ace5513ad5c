// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"github.com/bufbuild/protocompile/linker"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// indexed is the file as descriptors of the protobuf runtime. Those of the
// compiler look a field up by going over all of them, so that a message of
// 15,000 fields took minutes. What the runtime does not take stays as it is.
func indexed(compiled linker.File) protoreflect.FileDescriptor {
	files := &protoregistry.Files{}
	file, err := index(files, compiled)
	if err != nil {
		return compiled
	}
	return file
}

// index registers the files that a file imports, and then the file.
func index(files *protoregistry.Files, f protoreflect.FileDescriptor) (protoreflect.FileDescriptor, error) {
	if known, err := files.FindFileByPath(f.Path()); err == nil {
		return known, nil
	}
	for i := range f.Imports().Len() {
		if _, err := index(files, f.Imports().Get(i).FileDescriptor); err != nil {
			return nil, err
		}
	}
	var err error
	if result, ok := f.(linker.Result); ok {
		f, err = protodesc.NewFile(result.FileDescriptorProto(), files)
	} else if global, known := protoregistry.GlobalFiles.FindFileByPath(f.Path()); known == nil {
		f = global
	}
	if err == nil {
		err = files.RegisterFile(f)
	}
	return f, err
}
