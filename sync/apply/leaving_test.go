// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"maps"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/store"
)

// TestTheOneBeforeIsBeingDeleted: what is refused because an object of its name waits for a
// finalizer waits for that, and is no failure of its bundle. It was rolled back at once, put
// into quarantine, and the advice was to allow a replacement.
func TestTheOneBeforeIsBeingDeleted(t *testing.T) {
	t.Parallel()
	const (
		held = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: %s, annotations: {swell.sh/replace: $}}, immutable: true, data: {value: '1'}}"
		next = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: %s, annotations: {swell.sh/replace: $}}, immutable: true, data: {value: '2'}}"
	)
	with := func(text, replace string) string { return strings.ReplaceAll(text, "$", replace) }
	for name, c := range map[string]struct {
		replace string
		theirs  bool
		adopt   config.Adoption
		putBack bool
	}{
		"changed":  {replace: "never"},
		"replaced": {replace: "allowed"},
		"putback":  {replace: "allowed", putBack: true},
		"never":    {replace: "never", theirs: true, adopt: config.AdoptNever},
		"values":   {replace: "never", theirs: true, adopt: config.AdoptIfSame},
		"taken":    {replace: "allowed", theirs: true, adopt: config.AdoptTake},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, _ := connect(t, Options{})
			ns, s := space(t), newState(t, conn)
			id := object.ID{Kind: "ConfigMap", Namespace: ns, Name: "a"}
			if c.theirs {
				create(t, configMaps, strings.ReplaceAll(with(held, "never"), "%s", ns))
			} else {
				s.apply("x", newObject(t, with(held, c.replace), ns))
			}
			edit(t, id, types.MergePatchType, `{"metadata":{"finalizers":["example.com/wait"]}}`, "other")
			if c.theirs {
				remove(t, id)
			} else {
				s.deletes(id)
			}
			bring := func() []Result {
				known := maps.Clone(s.known)
				got := conn.Apply(t.Context(), Work{Objects: []*object.Object{newObject(t, with(next, c.replace), ns)}, Bundle: "y", Known: known, Adopt: c.adopt, PutBack: c.putBack})
				s.keep(got)
				return got
			}
			for range 2 {
				got := bring()
				same(t, []string{"ConfigMap skipped (deletion of ConfigMap/" + ns + "/a)"}, outcomes(got))
				same(t, "waits for deletion of ConfigMap/"+ns+"/a: terminating, waits for example.com/wait", got[0].Reason)
				if !got[0].IsOutside() {
					t.Error("it counts against the bundle")
				}
			}
			edit(t, id, types.MergePatchType, `{"metadata":{"finalizers":null}}`, "other")
			got := bring()
			if got[0].Err != nil || got[0].Waits != "" {
				t.Errorf("afterwards: %+v", got[0])
			}
		})
	}
}

// TestPruneWaitsForWhatIsLeft: an operator, its rights and its definition stay until it has let
// go of its objects, and what a workload runs with stays with the workload. All went in the
// same moment, and the object waited for its finalizer for ever.
func TestPruneWaitsForWhatIsLeft(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{})
	ns := space(t)
	discard(t, crds, "", "widgets."+ns+".example.com")
	s := newState(t, c)
	operator := newObject(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: operator, namespace: %s}, spec: {replicas: 0, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: x}]}}}}", ns)
	rights := newObject(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: operator, namespace: %s}, rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}", ns)
	settings, thing := configMap(t, ns, "config", "1"), newObject(t, widget, ns, "")
	claim := newObject(t, "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: disk, namespace: %s}, spec: {accessModes: [ReadWriteOnce], storageClassName: '', volumeName: nowhere, resources: {requests: {storage: 1Gi}}}}", ns)
	definition := newObject(t, widgets, ns, "Widget", "size: {type: string}")
	for _, r := range s.apply("x", definition, rights, settings, claim, operator, thing) {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	finalizers := func(id object.ID, list string) {
		t.Helper()
		touch(t, c, id, `{"metadata":{"finalizers":`+list+`}}`)
	}
	ids := []object.ID{rights.ID, settings.ID, claim.ID, operator.ID, thing.ID}
	prune := func() map[string]string {
		said := map[string]string{}
		for _, r := range s.deletes(ids...) {
			if r.Err != nil {
				t.Error(r.Err)
			}
			said[r.ID.Kind] = strings.TrimSpace(string(r.Action) + " " + r.Reason)
		}
		return said
	}
	finalizers(thing.ID, `["example.com/operator"]`)
	waits := "skipped goes after " + thing.ID.String()
	for range 2 {
		same(t, map[string]string{"Widget": "deleted terminating, waits for example.com/operator", "Deployment": waits, "Role": waits, "ConfigMap": waits, "PersistentVolumeClaim": waits}, prune())
	}
	for _, id := range ids {
		if !isLive(t, c, id) {
			t.Errorf("%s is gone", id)
		}
	}
	finalizers(thing.ID, "null")
	finalizers(operator.ID, `["example.com/last"]`)
	waits = "skipped goes after " + operator.ID.String()
	got := prune()
	if got["Widget"] != "" && !strings.HasPrefix(got["Widget"], "deleted") || got["Deployment"] != "deleted terminating, waits for example.com/last" ||
		got["Role"] != waits || got["ConfigMap"] != waits || got["PersistentVolumeClaim"] != waits {
		t.Errorf("with the operator on its way out: %v", got)
	}
	finalizers(operator.ID, "null")
	prune()
	for _, id := range []object.ID{rights.ID, settings.ID, operator.ID, thing.ID} {
		if isLive(t, c, id) {
			t.Errorf("%s is there", id)
		}
	}
}

// TestPruneSparesWhatAChangedOneNeeds: what may be needed by something that could not be deleted stays
// with it.
func TestPruneSparesWhatAChangedOneNeeds(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{})
	conn := c
	ns := space(t)
	s := newState(t, c)
	config := configMap(t, ns, "config", "1")
	workload := newObject(t, "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: store, namespace: %s}, spec: {replicas: 0, serviceName: s, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: x}]}}}}", ns)
	s.apply("x", config, workload)
	entries := []store.Entry{s.known[config.ID], s.known[workload.ID]}
	results := make([]Result, len(entries))
	c.begin().pruneAll(t.Context(), entries, results, func(c *call, ctx context.Context, r Result, path string, live *metav1.PartialObjectMetadata) Result {
		touch(t, conn, r.ID, `{"metadata":{"annotations":{"at":"the same moment"}}}`)
		return c.delete(ctx, r, path, live)
	}, true)
	if !results[1].Changed || !results[0].After || results[0].Action != Skipped || results[0].Reason != "goes after "+workload.ID.String() {
		t.Errorf("got %+v", results)
	}
	if !isLive(t, c, config.ID) || !isLive(t, c, workload.ID) {
		t.Error("something is gone")
	}
}

// kindAt is where a test finds objects of whatever kind.
func kindAt(t *testing.T, c *Cluster, id object.ID) dynamic.ResourceInterface {
	t.Helper()
	found, err := c.begin().resource(t.Context(), kindOf(id, "v1"))
	if err != nil {
		t.Fatal(err)
	}
	return somebody(t).Resource(found.WithResource(found.plural)).Namespace(id.Namespace)
}

func touch(t *testing.T, c *Cluster, id object.ID, patch string) {
	t.Helper()
	if _, err := kindAt(t, c, id).Patch(t.Context(), id.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "other"}); err != nil {
		t.Fatal(err)
	}
}

func isLive(t *testing.T, c *Cluster, id object.ID) bool {
	t.Helper()
	_, err := kindAt(t, c, id).Get(t.Context(), id.Name, metav1.GetOptions{})
	return err == nil
}
