// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package easy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/swell-sh/swell/render/schema/easy"
)

// TestMergePrecedence: a field's own annotation won over what the kind says of
// its path and of its type, the other way round than protoc-gen-crd has it.
func TestMergePrecedence(t *testing.T) {
	const proto = `-- kinds/merged/merged.proto --
syntax = "proto3";
package merged;
import "library/go/k8s/protoc_gen_crd/proto/crd.proto";
import "swell/options.proto";
message Merged {
  option (protoc_gen_crd.k8s_crd) = {
    api_group: "easy.example.com", kind: "Merged"
    %s
  };
  Spec spec = 1;
}
message Spec { repeated Item items = 1 %s; Deep deep = 2; }
message Deep { repeated Item items = 1 [(protoc_gen_crd.k8s_patch) = {merge_key: "byField", merge_strategy: "merge"}]; }
message Item { string byField = 1; string byType = 2; string byPath = 3; string byKeys = 4; }
`
	const (
		ofPath   = `field_patch_strategies: {field_path: "spec.items", k8s_patch: {merge_key: "byPath", merge_strategy: "merge"}}`
		ofType   = `field_patch_strategies: {protobuf_type: "merged.Item", k8s_patch: {merge_key: "byType", merge_strategy: "merge"}}`
		replaced = `field_patch_strategies: {field_path: "spec.items", k8s_patch: {merge_key: "byPath", merge_strategy: "replace"}}`
		ofField  = `[(protoc_gen_crd.k8s_patch) = {merge_key: "byField", merge_strategy: "merge"}]`
		keys     = `[(swell.keys) = "byKeys", (protoc_gen_crd.k8s_patch) = {merge_key: "byField", merge_strategy: "merge"}]`
	)
	for _, test := range []struct {
		kind, field string
		// want is how spec.items is merged by a server and by kustomize, and
		// deep how spec.deep.items is.
		want, deep string
	}{
		{"", ofField, "byField byField", "byField byField"},
		{ofType, ofField, "byType byType", "byType byType"},
		{ofPath, ofField, "byPath byPath", "byField byField"},
		{ofType + ofPath, ofField, "byPath byPath", "byType byType"},
		{ofPath + ofType, ofField, "byPath byPath", "byType byType"},
		{ofType, "", "byType byType", "byType byType"},
		{replaced, ofField, "none replace", "byField byField"},
		{replaced + ofType, ofField, "none replace", "byType byType"},
		{ofType, keys, "byKeys byType", "byType byType"},
	} {
		k := easyOf(t, txtar.Parse(fmt.Appendf(nil, proto, test.kind, test.field)))
		server := below(k.CRD(), "spec", "versions", "0", "schema", "openAPIV3Schema", "properties", "spec", "properties")
		client := below(easy.OpenAPI([]*easy.Schema{k}, nil), "definitions", "com.example.easy.v1.Merged", "properties", "spec", "properties")
		for where, want := range map[string]string{"items": test.want, "deep properties items": test.deep} {
			crd, _ := below(server, strings.Fields(where)...).(map[string]any)
			openapi, _ := below(client, strings.Fields(where)...).(map[string]any)
			got := "none"
			if keys, ok := crd["x-kubernetes-list-map-keys"].([]any); ok {
				got = fmt.Sprint(keys...)
			}
			if key, ok := openapi["x-kubernetes-patch-merge-key"]; ok {
				got += fmt.Sprint(" ", key)
			} else {
				got += fmt.Sprint(" ", openapi["x-kubernetes-patch-strategy"])
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s %s: %s (-want +got):\n%s", test.kind, test.field, where, diff)
			}
		}
	}
}

// below follows names and indexes into a value.
func below(value any, path ...string) any {
	for _, step := range path {
		switch v := value.(type) {
		case map[string]any:
			value = v[step]
		case []any:
			value = v[0]
		}
	}
	return value
}
