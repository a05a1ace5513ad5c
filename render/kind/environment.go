// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"fmt"
	"maps"
	"regexp"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/ext"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/swell-sh/swell/config/bounds"
)

// identifier is a name that `let`, `each` and `collect` may bind.
var identifier = regexp.MustCompile(`^[a-z][A-Za-z0-9]*$`)

// environment is the names and functions that expressions may use.
type environment struct {
	cel     *cel.Env
	names   map[string]bool
	files   []string            // of data, which `data` must name
	options []cel.ProgramOption // of every program
}

// Names that functions of expressions find their inputs under. The macros of
// functions.go put them in; nobody can write them.
const (
	placeName        = "@place"
	fileFunction     = "@file"
	templateFunction = "@template"
	matchesFunction  = "@matches"
)

// newEnvironment has the names that every expression of a kind knows; without an
// envelope there is no self. templates finds a template file by its name and compiles it.
func newEnvironment(envelope protoreflect.MessageDescriptor, collections []*Collection, data *Data, templates func(name string) (*textTemplate, error)) (*environment, error) {
	registry, err := newRegistry(envelope, collections)
	if err != nil {
		return nil, err
	}
	options := append(orderedMacros(),
		cel.CustomTypeAdapter(registry), cel.CustomTypeProvider(registry),
		cel.OptionalTypes(),
		ext.Strings(), ext.Lists(ext.ListsMaxRangeSize(bounds.Range)), ext.Encoders(ext.EncodersVersion(0)),
		cel.Variable("target", cel.ObjectType("swell.bound.Target")),
		cel.Variable("unit", cel.ObjectType("swell.bound.Unit")),
		cel.Variable("data", cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable(placeName, cel.DynType),
	)
	options = append(options, ownFunctions(templates)...)
	options = append(options, matching()...)
	options = append(options, timestamps()...)
	names := map[string]bool{"target": true, "unit": true, "data": true}
	if envelope != nil {
		names["self"] = true
		options = append(options, cel.Variable("self", cel.ObjectType(string(envelope.FullName()))))
	}
	for _, c := range collections {
		names[c.Name] = true
		options = append(options, cel.Variable(c.Name, cel.ListType(cel.ObjectType(string(c.message.FullName())))))
	}
	env, err := cel.NewEnv(options...)
	if err != nil {
		return nil, err
	}
	guards, err := bounds.Guarded(env)
	if err != nil {
		return nil, err
	}
	return &environment{cel: env, names: names, files: data.Files(), options: []cel.ProgramOption{guards}}, nil
}

// registry is the types of a kind's messages. Enums are their names: CEL has
// them as integers, which nobody writes in YAML.
type registry struct{ *types.Registry }

func newRegistry(envelope protoreflect.MessageDescriptor, collections []*Collection) (registry, error) {
	r, err := types.NewRegistry()
	if err != nil {
		return registry{}, err
	}
	roots := []protoreflect.FileDescriptor{boundFile()}
	if envelope != nil {
		roots = append(roots, envelope.ParentFile())
	}
	for _, c := range collections {
		roots = append(roots, c.message.ParentFile())
	}
	seen := map[string]protoreflect.FileDescriptor{}
	for _, root := range roots {
		if err := registerFiles(r, root, seen); err != nil {
			return registry{}, err
		}
	}
	return registry{r}, nil
}

// celFiles are those whose messages CEL knows, and that of options, which stand
// in no spec.
var celFiles = map[string]bool{
	"google/protobuf/any.proto": true, "google/protobuf/duration.proto": true, "google/protobuf/struct.proto": true,
	"google/protobuf/timestamp.proto": true, "google/protobuf/wrappers.proto": true, "google/protobuf/descriptor.proto": true,
}

// registerFiles registers a file after all that it imports.
func registerFiles(r *types.Registry, file protoreflect.FileDescriptor, seen map[string]protoreflect.FileDescriptor) error {
	if known := seen[file.Path()]; known != nil || celFiles[file.Path()] {
		if known != nil && known != file && !sameNames(known.Messages(), file.Messages()) {
			return fmt.Errorf("collects a kind that has messages of %s too and names their fields otherwise, see spec.fieldNames", file.Path())
		}
		return nil
	}
	seen[file.Path()] = file
	imports := file.Imports()
	for i := range imports.Len() {
		if err := registerFiles(r, imports.Get(i).FileDescriptor, seen); err != nil {
			return err
		}
	}
	return r.RegisterDescriptor(file)
}

// sameNames says whether fields of the messages of one file, compiled twice, have
// the same names.
func sameNames(a, b protoreflect.MessageDescriptors) bool {
	for i := range a.Len() {
		fields := a.Get(i).Fields()
		for j := range fields.Len() {
			if fields.Get(j).Name() != b.Get(i).Fields().Get(j).Name() {
				return false
			}
		}
		if !sameNames(a.Get(i).Messages(), b.Get(i).Messages()) {
			return false
		}
	}
	return true
}

// reserved words of CEL cannot be names.
var reserved = map[string]bool{"as": true, "break": true, "const": true, "continue": true, "else": true, "false": true, "for": true,
	"function": true, "if": true, "import": true, "in": true, "let": true, "loop": true, "namespace": true, "null": true,
	"package": true, "return": true, "true": true, "var": true, "void": true, "while": true}

// functionNames are the first parts of functions that a variable would hide.
var functionNames = map[string]bool{"yaml": true, "json": true, "base64": true, "lists": true, "strings": true, "optional": true, "google": true}

// free says whether `let`, `each` and `collect` may bind the name.
func (e *environment) free(name string) bool {
	return identifier.MatchString(name) && !reserved[name] && !functionNames[name] && !e.names[name]
}

// with is the environment with one more name.
func (e *environment) with(name string, typ *cel.Type) (*environment, error) {
	extended, err := e.cel.Extend(cel.Variable(name, typ))
	if err != nil {
		return nil, err
	}
	next := *e
	next.cel, next.names = extended, maps.Clone(e.names)
	next.names[name] = true
	return &next, nil
}
