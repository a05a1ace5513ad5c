// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/reporter"
	_ "google.golang.org/genproto/googleapis/api/annotations" // google/api/field_behavior.proto and its like
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// rulesProto is where the rules of values are declared. Go carries the file.
const rulesProto = "buf/validate/validate.proto"

// CompileProto compiles one .proto file in process. open reads an imported
// file by the name written in the import; the well-known types and
// buf/validate/validate.proto need no file. Every error of the file and its
// imports is a problem with its position.
func CompileProto(name string, open func(name string) ([]byte, error)) (protoreflect.FileDescriptor, Problems) {
	return compileProto(name, protoCompiler{open: open})
}

// CompileProtoJSON is CompileProto with fields named as in JSON, in all files that
// renamed says yes for: export_to is exportTo.
func CompileProtoJSON(name string, open func(name string) ([]byte, error), renamed func(file string) bool) (protoreflect.FileDescriptor, Problems) {
	return compileProto(name, protoCompiler{open: open, renamed: renamed})
}

func compileProto(name string, c protoCompiler) (compiled protoreflect.FileDescriptor, problems Problems) {
	defer func() {
		if len(problems) > 0 {
			compiled, problems = nil, problems.Sorted()
		}
	}()
	defer Recover(name, &problems)
	compiled = c.compile(name)
	return compiled, append(c.problems, c.unread...)
}

// What is compiled together is bounded: the compiler recurses into messages
// and imports, and takes the square of some counts.
const (
	maxProtoFiles    = 200
	maxProtoSize     = 1 << 20 // bytes of all files
	maxProtoDepth    = 100     // braces within braces
	maxProtoProblems = 100
	maxProtoPublic   = 32  // words "public": names are looked for along every path of public imports
	maxProtoMessage  = 500 // bytes of a problem's text
)

type protoCompiler struct {
	open             func(name string) ([]byte, error)
	renamed          func(file string) bool // nil: no file
	files, size      int
	public           int
	problems, unread Problems
}

func (c *protoCompiler) compile(name string) protoreflect.FileDescriptor {
	sources := &protocompile.SourceResolver{Accessor: c.read}
	resolve := func(path string) (protocompile.SearchResult, error) {
		if path == rulesProto {
			return protocompile.SearchResult{Desc: validate.File_buf_validate_validate_proto}, nil
		}
		found, err := sources.FindFileByPath(path)
		if err != nil && strings.HasPrefix(path, "google/api/") { // unless the monorepo has its own
			if carried, err := protoregistry.GlobalFiles.FindFileByPath(path); err == nil {
				return protocompile.SearchResult{Desc: carried}, nil
			}
		}
		return found, err
	}
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(protocompile.ResolverFunc(resolve)),
		Reporter:       reporter.NewReporter(c.report, nil),
		SourceInfoMode: protocompile.SourceInfoStandard,
		MaxParallelism: 1,
	}
	files, err := compiler.Compile(context.Background(), name)
	if err != nil && len(c.problems) == 0 {
		var withPos reporter.ErrorWithPos
		if errors.As(err, &withPos) {
			_ = c.report(withPos)
		} else {
			c.problems = append(c.problems, Problem{Position: Position{File: name}, Code: CodeKind, Message: Cut(oneLine(err.Error()), maxProtoMessage)})
		}
	}
	if len(files) == 0 {
		return nil
	}
	if len(c.problems)+len(c.unread) > 0 {
		return nil
	}
	return c.indexed(files[0])
}

func (c *protoCompiler) report(err reporter.ErrorWithPos) error {
	pos := err.GetPosition()
	c.problems = append(c.problems, Problem{
		Position: Position{pos.Filename, pos.Line, pos.Col},
		Code:     CodeKind,
		Message:  Cut(oneLine(err.Unwrap().Error()), maxProtoMessage),
	})
	if len(c.problems) >= maxProtoProblems {
		return err
	}
	return nil // go on, to find the others
}

func (c *protoCompiler) read(path string) (io.ReadCloser, error) {
	content, err := c.open(path)
	if err != nil && MayPass(err) {
		c.unread = append(c.unread, FileProblem(path, err))
	}
	var pathError *fs.PathError
	switch {
	case err == nil:
	case c.files == 0 && !MayPass(err): // of the file itself; else an import
		c.problems = append(c.problems, Problem{Position: Position{File: path}, Code: CodeKind, Message: Cause(err).Error()})
		return nil, err
	case c.files > 0 && errors.As(err, &pathError):
		return nil, fmt.Errorf("import %q: %w", path, pathError.Err)
	default:
		return nil, err
	}
	c.files++
	c.size += len(content)
	switch {
	case c.files > maxProtoFiles:
		return nil, Refusal(fmt.Sprintf("more than %d files are imported up to here", maxProtoFiles))
	case c.size > maxProtoSize:
		return nil, Refusal(fmt.Sprintf("more than %d bytes of .proto up to here", maxProtoSize))
	}
	depth, public := measure(content)
	c.public += public
	switch {
	case depth > 0:
		refused := fmt.Sprintf("nested more than %d levels deep", maxProtoDepth)
		c.problems = append(c.problems, Problem{Position: Position{File: path, Line: depth}, Code: CodeKind, Message: refused})
		return nil, Refusal(refused)
	case c.public > maxProtoPublic:
		return nil, Refusal(fmt.Sprintf("more than %d public imports up to here", maxProtoPublic))
	}
	return io.NopCloser(bytes.NewReader(content)), nil
}

// measure finds the line where brackets are open too deep, 0 when none is, and
// counts the words "public". Texts and comments do not count.
func measure(content []byte) (deep, public int) {
	line, depth := 1, 0
	for i := 0; i < len(content); {
		n := 1
		switch c := content[i]; {
		case bytes.HasPrefix(content[i:], []byte("//")):
			n = through(content[i:], 2, "\n")
		case bytes.HasPrefix(content[i:], []byte("/*")):
			n = through(content[i:], 2, "*/")
		case c == '"' || c == '\'':
			n = literal(content[i:])
		case strings.IndexByte("{[(<", c) >= 0:
			depth++
		case strings.IndexByte("}])>", c) >= 0:
			depth = max(0, depth-1)
		case bytes.HasPrefix(content[i:], []byte("public")):
			public++
		}
		if depth > maxProtoDepth {
			return line, public
		}
		line += bytes.Count(content[i:i+n], []byte("\n"))
		i += n
	}
	return 0, public
}

// through is how far the end is, itself included, looking from an offset on.
func through(content []byte, from int, end string) int {
	n := bytes.Index(content[from:], []byte(end))
	if n < 0 {
		return len(content)
	}
	return from + n + len(end)
}

// literal is the length of the text in quotes that content begins with. A line
// break ends it.
func literal(content []byte) int {
	for i := 1; i < len(content); i++ {
		switch content[i] {
		case '\\':
			i++
		case content[0], '\n':
			return i + 1
		}
	}
	return len(content)
}

// DeclaredAt is where d stands in its .proto.
func DeclaredAt(d protoreflect.Descriptor) Position {
	at := d.ParentFile().SourceLocations().ByDescriptor(d)
	return Position{File: d.ParentFile().Path(), Line: at.StartLine + 1, Column: at.StartColumn + 1}
}
