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

// TestTheOneBeforeIsBeingDeleted: an object that is refused because one of its name waits for
// a finalizer waits for that, and is no failure of its bundle. It was rolled back at once, put
// into quarantine, and the advice was to allow a replacement.
func TestTheOneBeforeIsBeingDeleted(t *testing.T) {
	t.Parallel()
	immutable := func(value, replace string) string {
		return "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: %s, annotations: {swell.sh/replace: " + replace + "}}, " +
			"immutable: true, data: {value: '" + value + "'}}"
	}
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
				create(t, configMaps, strings.ReplaceAll(immutable("1", "never"), "%s", ns))
			} else {
				s.apply("x", newObject(t, immutable("1", c.replace), ns))
			}
			edit(t, id, types.MergePatchType, `{"metadata":{"finalizers":["example.com/wait"]}}`, "other")
			if c.theirs {
				remove(t, id)
			} else {
				s.deletes(id)
			}
			bring := func() []Result {
				objects := []*object.Object{newObject(t, immutable("2", c.replace), ns)}
				work := Work{Objects: objects, Bundle: "y", Known: maps.Clone(s.known), Adopt: c.adopt, PutBack: c.putBack}
				got := conn.Apply(t.Context(), work)
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

// noPods is the rest of a workload's spec.
const noPods = "replicas: 0, selector: {matchLabels: {a: b}}, " +
	"template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: x}]}}"

// TestPruneWaitsForWhatIsLeft: an operator, its rights and its definition stay until it has let
// go of its objects, and what a workload runs with stays with the workload. All went in the
// same moment, and the object waited for its finalizer for ever.
func TestPruneWaitsForWhatIsLeft(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{})
	ns := space(t)
	discard(t, crds, "", "widgets."+ns+".example.com")
	s := newState(t, c)
	operator := newObject(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: operator, namespace: %s}, spec: {"+noPods+"}}", ns)
	rights := newObject(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: operator, namespace: %s}, "+
		"rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}", ns)
	settings, thing := configMap(t, ns, "config", "1"), newObject(t, widget, ns, "")
	claim := newObject(t, "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: disk, namespace: %s}, "+
		"spec: {accessModes: [ReadWriteOnce], storageClassName: '', volumeName: nowhere, resources: {requests: {storage: 1Gi}}}}", ns)
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
		reported := map[string]string{}
		for _, r := range s.deletes(ids...) {
			if r.Err != nil {
				t.Error(r.Err)
			}
			reported[r.ID.Kind] = strings.TrimSpace(string(r.Action) + " " + r.Reason)
		}
		return reported
	}
	finalizers(thing.ID, `["example.com/operator"]`)
	waits := "skipped goes after " + thing.ID.String()
	for range 2 {
		want := map[string]string{"Deployment": waits, "Role": waits, "ConfigMap": waits, "PersistentVolumeClaim": waits}
		want["Widget"] = "deleted terminating, waits for example.com/operator"
		same(t, want, prune())
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
	if got["Widget"] != "" && !strings.HasPrefix(got["Widget"], "deleted") ||
		got["Deployment"] != "deleted terminating, waits for example.com/last" ||
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
	workload := newObject(t, "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: store, namespace: %s}, "+
		"spec: {serviceName: s, "+noPods+"}}", ns)
	s.apply("x", config, workload)
	entries := []store.Entry{s.known[config.ID], s.known[workload.ID]}
	results := make([]Result, len(entries))
	changing := func(c *call, ctx context.Context, r Result, path string, live *metav1.PartialObjectMetadata) Result {
		touch(t, conn, r.ID, `{"metadata":{"annotations":{"at":"the same moment"}}}`)
		return c.delete(ctx, r, path, live)
	}
	c.begin().pruneAll(t.Context(), entries, results, changing, true)
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
	_, err := kindAt(t, c, id).Patch(t.Context(), id.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "other"})
	if err != nil {
		t.Fatal(err)
	}
}

func isLive(t *testing.T, c *Cluster, id object.ID) bool {
	t.Helper()
	_, err := kindAt(t, c, id).Get(t.Context(), id.Name, metav1.GetOptions{})
	return err == nil
}

// TestPruneOfAJobThatWasMadeAnew: a hook that was made anew by a process that died then was
// taken for somebody else's, and stayed for good.
func TestPruneOfAJobThatWasMadeAnew(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{})
	ns, s := space(t), newState(t, c)
	hook := hookJob(t, ns, "migrate", object.HookBefore, "broken", "")
	s.apply("x", hook)
	known := s.known[hook.ID]
	s.deletes(hook.ID)
	s.apply("y", hook)
	if s.known[hook.ID].UID == known.UID {
		t.Fatal("not made anew")
	}
	r := c.Prune(t.Context(), []store.Entry{known})[0]
	if r.Action != Skipped || !strings.Contains(r.Reason, "somebody deleted and recreated it") {
		t.Errorf("with a record of what is there: %+v", r)
	}
	known.Digest = ""
	if r := c.Prune(t.Context(), []store.Entry{known})[0]; r.Err != nil || r.Action != Deleted {
		t.Errorf("where a write was under way: %+v", r)
	}
	known.Unit = "services/other"
	s.known = map[object.ID]store.Entry{}
	s.apply("z", hook)
	if r := c.Prune(t.Context(), []store.Entry{known})[0]; r.Action != Skipped {
		t.Errorf("of another unit: %+v", r)
	}
}
