// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/schema"
)

// leastCaught is the share of a real API server's refusals that the offline
// check has to find.
const leastCaught = 0.90

// TestRefusals asks a real API server for a dry run of random objects and holds
// the offline check against it: what the server takes is never refused, and of
// what it refuses most is found. SWELL_REFUSALS=100000 tries as many objects.
func TestRefusals(t *testing.T) {
	t.Parallel()
	n := 1500
	if s := os.Getenv("SWELL_REFUSALS"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	server := newReferee(t)
	valid := validObjects(t)
	for i, object := range valid {
		if reason := offline(t, []map[string]any{object})[0]; reason != "" {
			t.Errorf("valid.yaml, object %d, offline: %s", i, reason)
		}
		if reason, _ := server.refuses(object); reason != "" {
			t.Errorf("valid.yaml, object %d, API server: %s", i, reason)
		}
	}
	if t.Failed() {
		return
	}
	objects, changes := generated(t, valid, n)
	ours := offline(t, objects)
	theirs, judged := make([]string, n), make([]bool, n)
	var g errgroup.Group
	g.SetLimit(8)
	for i, object := range objects {
		g.Go(func() error {
			theirs[i], judged[i] = server.refuses(object)
			return nil
		})
	}
	_ = g.Wait()
	refused, caught, passed := 0, 0, map[string]int{}
	for i := range objects {
		content, _ := json.Marshal(objects[i])
		switch {
		case !judged[i]:
		case theirs[i] == "" && ours[i] != "":
			t.Errorf("object %d, %s: a real API server takes it; offline: %s\n%s", i, changes[i], ours[i], content)
		case theirs[i] != "":
			refused++
			if ours[i] != "" {
				caught++
			} else {
				passed[fmt.Sprintf("%s: %s: %s", objects[i]["kind"], changes[i], theirs[i])]++
			}
		}
	}
	share := float64(caught) / float64(refused)
	t.Logf("%d objects: the API server refused %d, of which %d (%.1f %%) are refused offline", n, refused, caught, 100*share)
	for reason := range passed {
		if testing.Verbose() {
			t.Logf("passed offline: %s", reason)
		}
	}
	if share < leastCaught {
		t.Errorf("%.1f %% of what the API server refused is refused offline, want at least %.0f %%", 100*share, 100*leastCaught)
	}
}

// generated are n changed objects and what was changed; the same ones each time.
func generated(t *testing.T, valid []map[string]any, n int) (objects []map[string]any, changes []string) {
	set, err := schema.Kubernetes("1.36")
	if err != nil {
		t.Fatal(err)
	}
	m := newMutator(set, valid)
	for i := range n {
		m.Rand = rand.New(rand.NewPCG(1, uint64(i)))
		object := deepCopy(valid[i%len(valid)]).(map[string]any)
		change := m.mutate(object)
		if m.IntN(4) == 0 {
			change += ", " + m.mutate(object)
		}
		metadata := object["metadata"].(map[string]any)
		metadata["name"] = fmt.Sprintf("%s-%d", metadata["name"], i)
		if m.IntN(60) == 0 {
			name := someTexts[m.IntN(len(someTexts))]
			if name != "" && !strings.ContainsAny(name, "/% ä") { // the last ones are no names for swell, whoever takes them
				metadata["name"] = fmt.Sprintf("%d%s", i, name)
				change += ", renamed"
			}
		}
		objects, changes = append(objects, object), append(changes, change)
	}
	return objects, changes
}

// offline says of each object why it is refused; empty when it is not.
func offline(t *testing.T, objects []map[string]any) []string {
	files := fstest.MapFS{}
	write := func(name, content string) { files[name] = &fstest.MapFile{Data: []byte(content)} }
	write("swell.yaml", "apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: test}\nspec: {fleet: fleet, units: [services]}\n")
	write("fleet/c.yaml", "apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: c}\nspec: {kubernetes: \"1.36\", tenants: [\"*\"]}\n---\n"+
		"apiVersion: swell.sh/v1\nkind: Rollout\nmetadata: {name: default}\nspec: {waves: [{name: all}]}\n")
	write("services/swell.yaml", "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: x}\nspec: {placement: {topology: cluster}}\n")
	for i, object := range objects {
		content, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		write(fmt.Sprintf("services/u%d/object.yaml", i), string(content))
	}
	var c render.Compiler
	s := c.Snapshot("", config.Files(files))
	if s.Held {
		t.Fatal(s.Problems)
	}
	reasons := make([]string, len(objects))
	for _, unit := range s.Units.All() {
		i, err := strconv.Atoi(strings.TrimPrefix(string(unit.Path), "services/u"))
		if err != nil {
			t.Fatal(err)
		}
		if len(unit.Problems) > 0 {
			reasons[i] = unit.Problems.String()
		}
	}
	return reasons
}

// referee asks a real API server.
type referee struct {
	client dynamic.Interface
	mapper meta.RESTMapper
}

func newReferee(t *testing.T) *referee {
	t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(apiServer(t))
	if err != nil {
		t.Fatal(err)
	}
	groups, err := restmapper.GetAPIGroupResources(d)
	if err != nil {
		t.Fatal(err)
	}
	j := &referee{client: somebody(t), mapper: restmapper.NewDiscoveryRESTMapper(groups)}
	for _, object := range []string{
		`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"valid"}}`,
		`{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default","namespace":"valid"}}`,
	} {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON([]byte(object)); err != nil {
			t.Fatal(err)
		}
		if _, err := j.apply(u, metav1.PatchOptions{FieldManager: "test"}); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		_ = j.client.Resource(namespaces).Delete(context.Background(), "valid", metav1.DeleteOptions{})
	})
	return j
}

func (r *referee) apply(u *unstructured.Unstructured, opt metav1.PatchOptions) (*unstructured.Unstructured, error) {
	gvk := u.GroupVersionKind()
	mapping, err := r.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, err
	}
	body, err := u.MarshalJSON()
	if err != nil {
		return nil, err
	}
	var client dynamic.ResourceInterface = r.client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		client = r.client.Resource(mapping.Resource).Namespace(u.GetNamespace())
	}
	return client.Patch(context.Background(), u.GetName(), types.ApplyPatchType, body, opt)
}

// beside are refusals that depend on other objects or on how the cluster was
// set up; ok is false then.
var beside = []int32{http.StatusForbidden, http.StatusNotFound, http.StatusConflict, http.StatusTooManyRequests}

// refuses says why the API server refuses an object, empty when it does not. ok
// is false when the reason is not in the object.
func (r *referee) refuses(object map[string]any) (reason string, ok bool) {
	force := true
	u := &unstructured.Unstructured{Object: deepCopy(object).(map[string]any)}
	_, err := r.apply(u, metav1.PatchOptions{FieldManager: FieldManager, FieldValidation: "Strict", Force: &force, DryRun: []string{metav1.DryRunAll}})
	if err == nil {
		return "", true
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || slices.Contains(beside, status.Status().Code) {
		return err.Error(), false
	}
	return err.Error(), true
}
