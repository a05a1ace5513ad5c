// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	_ "embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

// WrittenFields are the fields of the message that a kind declares which stand
// in a document, beside apiVersion, kind and metadata, which are Kubernetes'
// own: all but status, which a server writes. They are in the order declared.
func WrittenFields(message protoreflect.MessageDescriptor) []protoreflect.FieldDescriptor {
	var written []protoreflect.FieldDescriptor
	for i := range message.Fields().Len() {
		switch f := message.Fields().Get(i); f.Name() {
		case "apiVersion", "kind", "metadata", "status":
		default:
			written = append(written, f)
		}
	}
	return written
}

// Envelope makes the message of a whole easy document out of the message that
// a kind declares: apiVersion, kind and metadata are laid around its
// [WrittenFields].
func Envelope(message protoreflect.MessageDescriptor) (protoreflect.MessageDescriptor, error) {
	spec := message.Fields().ByName("spec")
	if spec == nil || spec.Kind() != protoreflect.MessageKind || spec.IsList() || spec.IsMap() {
		return nil, fmt.Errorf("message %s: want a field spec of a message type", message.FullName())
	}
	const pkg = "swell.envelope"
	metadata := metadata()
	declared := protodesc.ToDescriptorProto(message)
	whole := &descriptorpb.DescriptorProto{
		Name:    new(strings.ReplaceAll(string(message.FullName()), ".", "_")),
		Options: declared.Options, // rules among them
		Field: []*descriptorpb.FieldDescriptorProto{
			stringField("apiVersion", 1), stringField("kind", 2), messageField("metadata", 3, metadata),
		},
	}
	for _, nested := range declared.NestedType { // others are known by their full names
		if nested.GetOptions().GetMapEntry() {
			whole.NestedType = append(whole.NestedType, nested)
		}
	}
	file := &descriptorpb.FileDescriptorProto{
		Name:        new("swell/envelope/" + string(message.FullName()) + ".proto"),
		Package:     new(pkg),
		MessageType: []*descriptorpb.DescriptorProto{whole},
	}
	takeSyntax(file, message.ParentFile())
	imports := new(protoregistry.Files)
	depend := func(on protoreflect.FileDescriptor) error {
		if !slices.Contains(file.Dependency, on.Path()) {
			file.Dependency = append(file.Dependency, on.Path())
		}
		return RegisterWithImports(imports, on)
	}
	for _, on := range []protoreflect.FileDescriptor{message.ParentFile(), metadata.ParentFile()} { // what both import is the kind's
		if err := depend(on); err != nil {
			return nil, err
		}
	}
	oneofs := map[int32]int32{}
	for i, f := range WrittenFields(message) {
		field := declared.Field[f.Index()]
		field.Number = new(int32(4 + i))
		if f.IsMap() {
			field.TypeName = new("." + pkg + "." + whole.GetName() + "." + string(f.Message().Name()))
		}
		for _, typ := range typesOf(f) {
			if err := depend(typ.ParentFile()); err != nil {
				return nil, err
			}
		}
		if of := field.OneofIndex; of != nil {
			if _, known := oneofs[*of]; !known {
				oneofs[*of] = int32(len(whole.OneofDecl))
				whole.OneofDecl = append(whole.OneofDecl, declared.OneofDecl[*of])
			}
			field.OneofIndex = new(oneofs[*of])
		}
		whole.Field = append(whole.Field, field)
	}
	built, err := protodesc.NewFile(file, imports)
	if err != nil {
		return nil, fmt.Errorf("message %s: %w", message.FullName(), err)
	}
	return built.Messages().Get(0), nil
}

// typesOf are the messages and enums that a field names.
func typesOf(f protoreflect.FieldDescriptor) []protoreflect.Descriptor {
	if f.IsMap() {
		f = f.MapValue()
	}
	var types []protoreflect.Descriptor
	if m := f.Message(); m != nil {
		types = append(types, m)
	}
	if e := f.Enum(); e != nil {
		types = append(types, e)
	}
	return types
}

// takeSyntax gives a file the syntax or edition of another one, so that fields
// mean the same in both.
func takeSyntax(file *descriptorpb.FileDescriptorProto, from protoreflect.FileDescriptor) {
	source := protodesc.ToFileDescriptorProto(from)
	file.Syntax, file.Edition = source.Syntax, source.Edition
	if features := source.GetOptions().GetFeatures(); features != nil {
		file.Options = &descriptorpb.FileOptions{Features: proto.CloneOf(features)}
	}
}

// RegisterWithImports makes a file known, and all that it imports. Files that are known
// already stay.
func RegisterWithImports(files *protoregistry.Files, file protoreflect.FileDescriptor) error {
	if _, err := files.FindFileByPath(file.Path()); err == nil {
		return nil
	}
	for i := range file.Imports().Len() {
		if err := RegisterWithImports(files, file.Imports().Get(i).FileDescriptor); err != nil {
			return err
		}
	}
	return files.RegisterFile(file)
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

//go:embed metadata.proto
var metadataProto string

const metadataFile = "swell/metadata.proto" // a path that nobody else has

// metadata compiles the message of the metadata of all documents, once.
var metadata = sync.OnceValue(func() protoreflect.MessageDescriptor {
	return CompileOwn(metadataFile, metadataProto).Messages().Get(0)
})

// CompileOwn compiles a .proto that is part of the program. It may import
// "swell/metadata.proto".
func CompileOwn(name, content string) protoreflect.FileDescriptor {
	files := map[string]string{metadataFile: metadataProto, name: content}
	file, problems := CompileProto(name, func(path string) ([]byte, error) {
		if text, ok := files[path]; ok {
			return []byte(text), nil
		}
		return nil, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
	})
	if len(problems) > 0 {
		panic(problems.Error())
	}
	return file
}
