// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package compat_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/kind"
	"github.com/swell-sh/swell/render/schema"
	"github.com/swell-sh/swell/render/schema/compat"
)

// fieldTypes are the types that fields may have, and written values that tell them apart.
var (
	fieldTypes = []string{"string", "bytes", "bool", "int32", "sint32", "uint32", "fixed32", "int64", "uint64", "float", "double", "Mode", "Part",
		"google.protobuf.Duration", "google.protobuf.Timestamp", "google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue",
		"google.protobuf.FieldMask", "google.protobuf.Int32Value", "google.protobuf.StringValue", "google.protobuf.Int64Value",
		"repeated int32", "repeated string", "repeated int64", "repeated google.protobuf.Value", "repeated Part",
		"map<string, int32>", "map<string, string>", "map<int32, int32>", "map<string, google.protobuf.Value>"}
	fieldValues = []string{"text", "YQ==", "true", "0", "1", "7", "-1", "2147483647", "4000000000", "9007199254740993", "\"9007199254740993\"", "16777217", "0.5", "0.1",
		"1.0000000001", "FAST", "30s", "\"2026-01-31T12:00:00Z\"", "a.b", "{n: 1}", "{n: 1, m: 2}", "{a: 1}", "{\"1\": 1}", "{a: x}", "{a: [1]}", "[]", "[1]", "[a]", "[4000000000]",
		"[\"9007199254740993\"]", "[{n: 1}]", "{fromFile: x.txt}", "[{fromFile: x.txt}]", "{a: {fromFile: x.txt}}"}
)

// fromFiles are the types whose texts may be read from files.
var fromFiles = []string{"string", "bytes", "google.protobuf.StringValue", "repeated string", "map<string, string>"}

func typeKinds(t *testing.T) map[string]*kind.Kind {
	t.Helper()
	hard, err := schema.Kubernetes("")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]*kind.Kind{}
	for _, typ := range fieldTypes {
		files := fstest.MapFS{"kinds/app/kind.yaml": {Data: []byte(plainKind)}, "kinds/app/app.proto": {Data: []byte(fmt.Sprintf(`syntax = "proto3";
package app.v1;
import "google/protobuf/duration.proto";
import "google/protobuf/field_mask.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
import "library/go/k8s/protoc_gen_crd/proto/crd.proto";
message App {
  option (protoc_gen_crd.k8s_crd) = {api_group: "apps.example.com", kind: "App"};
  AppSpec spec = 1;
}
message AppSpec { %s v = 1; }
message Part { int32 n = 1; }
enum Mode { NONE = 0; FAST = 1; }
`, typ))}}
		all := kind.LoadAll(config.Files(files), []config.Folder{{Path: "kinds/app"}}, hard, nil)
		if len(all.Problems) > 0 {
			t.Fatal(all.Problems)
		}
		kinds[typ] = loaded(all)
	}
	return kinds
}

// TestTypes: where nothing is found between two types, each value that the first one takes
// is taken by the other one, and a text that is read from a file stays one.
func TestTypes(t *testing.T) {
	kinds := typeKinds(t)
	takes := func(k *kind.Kind, value string) bool {
		docs, problems := document.ReadDocuments("document.yaml", []byte("apiVersion: apps.example.com/v1\nkind: App\nmetadata: {name: a}\nspec: {v: "+value+"}\n"))
		if len(problems) > 0 {
			return false
		}
		_, problems = k.Decode(docs[0], func(string) ([]byte, error) { return []byte("x"), nil })
		return len(problems) == 0
	}
	pairs := 0
	for _, was := range fieldTypes {
		for _, is := range fieldTypes {
			found := compat.Kinds(kinds[was].State(), kinds[is].State())
			if refused(found) {
				continue
			}
			pairs++
			for _, value := range fieldValues {
				if takes(kinds[was], value) && !takes(kinds[is], value) {
					t.Errorf("%s to %s is let through, but %s is taken by the first one alone", was, is, value)
				}
				if strings.Contains(value, "fromFile") && takes(kinds[was], value) && slices.Contains(fromFiles, was) && !slices.Contains(fromFiles, is) {
					t.Errorf("%s to %s is let through, but %s means another thing", was, is, value)
				}
			}
		}
	}
	if pairs < 2*len(fieldTypes) {
		t.Errorf("%d pairs are let through", pairs)
	}
}
