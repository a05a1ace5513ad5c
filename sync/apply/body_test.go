// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
)

// FuzzBody: a body that the object's JSON is part of, and that says
// what the object says and nothing else.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`,
		`{"data":{"metadata":{"name":"x"}},"metadata":{}}`,
		`{"a":[{"metadata":{}}],"b":"\"metadata\":{","metadata": { "labels":{"a":"b"} } }`,
		`{"metadata":null}`, `{"metadata":[]}`, `{"kind":"x"}`, `[]`, `{"metadata":{`, `{"meta\u0064ata":{}}`,
	} {
		f.Add([]byte(seed), "u")
	}
	f.Fuzz(func(t *testing.T, body []byte, value string) {
		b, err := bodyOf(&object.Object{ID: object.ID{Kind: "X", Name: "x"}, JSON: body}, "")
		var got []byte
		if err == nil {
			got, err = b.with("uid", value, nil)
		}
		var before, after map[string]any
		if json.Unmarshal(body, &before) != nil || strings.Count(string(body), "etadata") != 1 {
			return // not to be had, or a key twice
		}
		metadata, ok := before["metadata"].(map[string]any)
		if (err == nil) != ok {
			t.Fatalf("%q: %v", body, err)
		}
		if !ok || metadata["uid"] != nil {
			return
		}
		if err := json.Unmarshal(got, &after); err != nil {
			t.Fatalf("%q: %v", got, err)
		}
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		var want any // as JSON has it: invalid UTF-8 is replaced
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		metadata["uid"] = want
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("%q became %q: %s", body, got, diff)
		}
	})
}

// FuzzPointer: whatever a rule says and an object holds, nothing breaks, and
// what was taken out is not there any more.
func FuzzPointer(f *testing.F) {
	f.Add("/a/0/b", `{"a":[{"b":1}]}`)
	f.Add("/a/name=x", `{"a":[{"name":"x"},{"name":"y"}]}`)
	f.Add("/~1/~0", `{"/":{"~":[]}}`)
	f.Add("/", `{"":{}}`)
	f.Add("/0", `[1,2]`)
	path := fieldpath.MakePathOrDie("a", fieldpath.KeyByFields("name", "x"), "b")
	f.Fuzz(func(t *testing.T, text, object string) {
		var value any
		if json.Unmarshal([]byte(object), &value) != nil {
			return
		}
		pointers := []pointer{config.PointerSegments(text)}
		covers(pointers, path, value)
		covers(pointers, path, nil)
		rest := without(value, pointers)
		if root, ok := rest.(map[string]any); ok && len(pointers[0]) == 1 {
			if _, there := root[pointers[0][0]]; there {
				t.Errorf("%q is still in %v", text, rest)
			}
		}
	})
}

// TestStringDataWins: of a key that is in both, the server takes the value of stringData.
func TestStringDataWins(t *testing.T) {
	t.Parallel()
	secret := map[string]any{"data": map[string]any{"a": "b2xk", "b": "YmFzZTY0"}, "stringData": map[string]any{"a": "new", "c": "text"}}
	want := map[string]any{"data": map[string]any{"a": "bmV3", "b": "YmFzZTY0", "c": "dGV4dA=="}}
	if !encodeStringData(secret) {
		t.Error("nothing was done")
	}
	if diff := cmp.Diff(want, secret); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
