// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/kind"
	"github.com/swell-sh/swell/render/schema"
)

// TestExplainEveryShape: explain of a spec of a well-known type ended in a
// panic. It walks every form of spec and of field, and wants a text for each.
func TestExplainEveryShape(t *testing.T) {
	hard, err := schema.Kubernetes("")
	if err != nil {
		t.Fatal(err)
	}
	objects := []kind.Object{{ID: "a", APIVersion: "v1", Kind: "ConfigMap"}, {ID: "b", APIVersion: "example.com/v1", Kind: "Unknown"}}
	specs := []string{"Spec", "Nothing", "Tree"}
	for _, name := range []string{"Any", "Duration", "Empty", "FieldMask", "Struct", "Value", "ListValue", "Timestamp", "BoolValue", "BytesValue",
		"DoubleValue", "FloatValue", "Int32Value", "Int64Value", "StringValue", "UInt32Value", "UInt64Value"} {
		specs = append(specs, "google.protobuf."+name)
	}
	var fields []string // one of each sort and type
	for i, typ := range append(specs, "Color", "string", "bytes", "bool", "float", "sint32", "fixed64") {
		n := 10 * i
		fields = append(fields, fmt.Sprintf("%s single%d = %d; repeated %s list%d = %d; map<string, %s> map%d = %d; oneof of%d { %s one%d = %d; int32 other%d = %d; }",
			typ, i, n+1, typ, i, n+2, typ, i, n+3, i, typ, i, n+4, i, n+5))
	}
	for _, spec := range specs {
		proto := `syntax = "proto3";
package t;
import "google/protobuf/any.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/empty.proto";
import "google/protobuf/field_mask.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
message Doc { ` + spec + ` spec = 1; repeated Tree more = 2; map<string, google.protobuf.Value> root = 3; }
message Spec { ` + strings.Join(fields, "\n") + ` }
message Nothing {}
message Tree { Tree left = 1; map<string, Tree> right = 2; }
enum Color { RED = 0; }
`
		file, problems := document.CompileProto("t.proto", func(name string) ([]byte, error) {
			if name == "t.proto" {
				return []byte(proto), nil
			}
			return nil, fs.ErrNotExist
		})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		message := file.Messages().ByName("Doc")
		whole, err := document.Envelope(message)
		if err != nil {
			t.Fatal(err)
		}
		k := &explained{apiVersion: "example.com/v1", name: "Doc", easy: true, objects: objects,
			shape: withOverride(documented(messageShape(whole), message), objects, hard)}
		explainAll(t, k, nil, k.shape, 4)
	}
}

// explainAll explains a field and those below it, as a person would ask for
// them.
func explainAll(t *testing.T, k *explained, path []string, s shape, depth int) {
	found, err := k.descend(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, recursive := range []bool{false, true} {
		var b strings.Builder
		e := explanation{out: &b}
		e.write(k, path, found, recursive)
		if first, _, _ := strings.Cut(b.String(), "\n"); len(path) > 0 && (found.typ == "" || !strings.HasSuffix(first, ": "+found.typ)) {
			t.Errorf("%s: got %q, want its type %q", strings.Join(path, "."), first, found.typ)
		}
	}
	for _, f := range s.allFields() {
		if depth > 0 && !f.shape.closed {
			explainAll(t, k, append(path[:len(path):len(path)], f.name), f.shape, depth-1)
		}
	}
}
