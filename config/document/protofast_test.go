// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"io/fs"
	"testing"

	"github.com/bufbuild/protocompile/linker"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// TestIndexed: what is compiled is descriptors that look fields up by an index,
// with their lines and with all that they import.
func TestIndexed(t *testing.T) {
	files := map[string]string{
		"a.proto": "syntax = \"proto3\";\npackage a;\nimport public \"b.proto\";\nimport \"buf/validate/validate.proto\";\nimport \"google/protobuf/struct.proto\";\n" +
			"message A {\n  b.B b = 1;\n  string c = 2 [(buf.validate.field).string.min_len = 1];\n  google.protobuf.Value d = 3;\n}\n",
		"b.proto": "syntax = \"proto3\";\npackage b;\nmessage B { B again = 1; }\n",
	}
	file, problems := CompileProto("a.proto", func(name string) ([]byte, error) {
		if text, ok := files[name]; ok {
			return []byte(text), nil
		}
		return nil, fs.ErrNotExist
	})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	var look func(f protoreflect.FileDescriptor)
	look = func(f protoreflect.FileDescriptor) {
		if _, slow := f.(linker.File); slow {
			t.Errorf("%s: %T looks fields up one by one", f.Path(), f)
		}
		for i := range f.Imports().Len() {
			look(f.Imports().Get(i).FileDescriptor)
		}
	}
	look(file)
	c := file.Messages().ByName("A").Fields().ByName("c")
	if line := file.SourceLocations().ByDescriptor(c).StartLine; line != 7 {
		t.Errorf("the field is on line %d, want 7, counted from 0", line)
	}
	if !hasRules(file.Messages().ByName("A")) {
		t.Error("the rule of a field is lost")
	}
}

// TestHalve: a few that fail among many are found without trying each alone.
func TestHalve(t *testing.T) {
	fields := metadata().Fields()
	all := make([]protoreflect.Descriptor, 0, 4096)
	for len(all) < 4096 {
		all = append(all, fields.Get(0))
	}
	bad := fields.Get(1)
	all[7], all[3000] = bad, bad
	tried, found := 0, 0
	halve(all, func(some map[protoreflect.Descriptor]bool, only protoreflect.Descriptor) bool {
		tried++
		if only == bad {
			found++
		}
		return !some[bad]
	})
	if found != 2 || tried > 60 {
		t.Errorf("found %d of 2 in %d tries", found, tried)
	}
}
