// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"

	"github.com/swell-sh/swell/render/schema"
)

// converted is a definition whose versions a webhook converts.
const converted = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.unset.example.com}
spec:
  group: unset.example.com
  scope: Namespaced
  names: {kind: Thing, plural: things}
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: {service: {namespace: a, name: b, path: /}}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: string}}}}
`

// TestUnsetOnAServer: an empty field that is not sent is one that a real API server takes
// for no value: it makes the same of an object with it and of one without it. The fields are
// all those of the good objects of testdata/valid.yaml and of a definition.
func TestUnsetOnAServer(t *testing.T) {
	t.Parallel()
	set := definedSet(t, nil)
	d, err := discovery.NewDiscoveryClientForConfig(apiServer(t))
	if err != nil {
		t.Fatal(err)
	}
	server, ns, tried := &referee{somebody(t), restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(d))}, space(t), 0
	for i, valid := range append(validObjects(t), readObject(t, []byte(converted))) {
		metadata := valid["metadata"].(map[string]any)
		if metadata["namespace"] != nil {
			metadata["namespace"] = ns
		}
		if name, ok := metadata["name"].(string); ok && valid["kind"] == "Namespace" {
			metadata["name"] = name + "-unset"
		}
		apiVersion, _ := valid["apiVersion"].(string)
		kind, _ := valid["kind"].(string)
		eachUnset(set.Kind(apiVersion, kind).Type(), valid, "", func(path string, fields map[string]any, field string, empty any) {
			before, had := fields[field]
			fields[field] = empty
			with, whyWith := server.simulate(t, valid)
			delete(fields, field)
			without, whyWithout := server.simulate(t, valid)
			if had {
				fields[field] = before
			}
			tried++
			if (whyWith == "") != (whyWithout == "") {
				t.Errorf("object %d, %s %s.%s: %v gives %q, and nothing %q", i, kind, path, field, empty, whyWith, whyWithout)
			} else if diff := cmp.Diff(without, with); diff != "" {
				t.Errorf("object %d, %s %s.%s: not taken for nothing (-nothing +%v):\n%s", i, kind, path, field, empty, diff)
			}
		})
	}
	t.Logf("%d fields", tried)
	if tried < 300 {
		t.Errorf("only %d fields were tried", tried)
	}
}

// eachUnset visits the fields that are not sent when they are empty, of all mappings in a value.
func eachUnset(t *schema.Type, value any, path string, visit func(path string, fields map[string]any, field string, empty any)) {
	switch v := value.(type) {
	case map[string]any:
		for _, field := range slices.Sorted(maps.Keys(v)) {
			eachUnset(t.Field(field), v[field], path+"."+field, visit)
		}
		if t == nil || path == ".metadata" || path == ".status" {
			return
		}
		for _, field := range slices.Sorted(maps.Keys(t.Fields)) {
			var empty any = ""
			if t.Fields[field].Form == schema.Integer {
				empty = int64(0)
			}
			if left := schema.WithoutUnset(t, map[string]any{field: empty}); len(left.(map[string]any)) == 0 {
				visit(path, v, field, empty)
			}
		}
	case []any:
		for i, item := range v {
			eachUnset(t.Item(), item, fmt.Sprintf("%s[%d]", path, i), visit)
		}
	}
}

// simulate is the object that the server would make, without all that differs from one
// request to the next; or why it refuses.
func (r *referee) simulate(t *testing.T, object map[string]any) (result map[string]any, refused string) {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var fresh map[string]any
	if err := json.Unmarshal(text, &fresh); err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: fresh}
	mapping, err := r.mapper.RESTMapping(u.GroupVersionKind().GroupKind(), u.GroupVersionKind().Version)
	if err != nil {
		t.Fatal(err)
	}
	where := r.client.Resource(mapping.Resource).Namespace(u.GetNamespace())
	live, err := where.Create(t.Context(), u, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return nil, err.Error()
	}
	whole, err := json.Marshal(live.Object)
	if err != nil {
		t.Fatal(err)
	}
	whole = bytes.ReplaceAll(whole, []byte(live.GetUID()), []byte("UID"))
	whole = moment.ReplaceAll(whole, []byte(`"MOMENT"`))
	whole = assigned.ReplaceAll(tokenVolume.ReplaceAll(whole, []byte("kube-api-access-x")), []byte(`"$1":"assigned"`))
	if err := json.Unmarshal(whole, &result); err != nil {
		t.Fatal(err)
	}
	metadata := result["metadata"].(map[string]any)
	for _, field := range []string{"uid", "creationTimestamp", "managedFields", "resourceVersion", "generation"} {
		delete(metadata, field)
	}
	return result, ""
}

// tokenVolume is the name of the volume with the token of a pod's account.
var tokenVolume = regexp.MustCompile(`kube-api-access-[a-z0-9]{5}`)

// moment is a time, such as that of the request.
var moment = regexp.MustCompile(`"20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z"`)

// assigned are the addresses and ports that a server hands out anew each time.
var assigned = regexp.MustCompile(`"(clusterIP|clusterIPs|nodePort|healthCheckNodePort)":(?:"[0-9a-f.:]+"|\["[0-9a-f.:]+"\]|3[0-9]{4})`)
