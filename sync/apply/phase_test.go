// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/store"
)

var (
	jobs = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
)

// inPhase puts an object into a phase.
func inPhase(phase int, o *object.Object) *object.Object {
	o.Phase = phase
	return o
}

// state is what a daemon keeps between the applies of one unit.
type state struct {
	t     *testing.T
	c     *Cluster
	known map[object.ID]store.Entry
}

func newState(t *testing.T, c *Cluster) *state {
	return &state{t, c, map[object.ID]store.Entry{}}
}

// apply applies a bundle as a daemon does: what changes is written ahead, what
// is answered is kept.
func (s *state) apply(bundle object.Digest, objects ...*object.Object) []Result {
	s.t.Helper()
	before := maps.Clone(s.known)
	for _, o := range objects {
		if e, ok := s.known[o.ID]; ok && (e.Digest != o.Digest || o.IsRun() && e.Ran != o.RunOf(bundle)) {
			e.Digest = ""
			s.known[o.ID] = e
		}
	}
	results := s.c.Apply(s.t.Context(), Work{Objects: objects, Bundle: bundle, Known: before})
	s.keep(results)
	return results
}

func (s *state) keep(results []Result) {
	for _, r := range results {
		r.Entry.Unit, r.Entry.Target = testUnit, "dev-1"
		if r.Forget {
			delete(s.known, r.ID)
		} else if r.Entry.UID != "" {
			s.known[r.ID] = r.Entry
		}
	}
}

// toTheEnd applies until nothing waits any more. Nothing may go wrong.
func (s *state) toTheEnd(bundle object.Digest, objects ...*object.Object) []Result {
	s.t.Helper()
	var results []Result
	eventually(s.t, func() (bool, string) {
		results = s.apply(bundle, objects...)
		for _, r := range results {
			if r.Err != nil {
				s.t.Fatal(r.Err)
			}
			if r.Waits != "" {
				return false, r.Reason
			}
		}
		return true, ""
	})
	return results
}

// outcomes are the results in a few words.
func outcomes(results []Result) []string {
	var all []string
	for _, r := range results {
		text := r.ID.Kind + " " + string(r.Action)
		if r.Waits != "" {
			text += " (" + r.Waits + ")"
		}
		if r.Err != nil {
			text += ": " + r.Err.Error()
		}
		all = append(all, text)
	}
	return all
}

func same(t *testing.T, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPhaseWaitsForTheOneBefore(t *testing.T) {
	t.Parallel()
	c, w := connect(t, Options{})
	ns := space(t)
	bundle := func(tag string) []*object.Object {
		return []*object.Object{
			configMap(t, ns, "a", "1"), inPhase(1, newObject(t, deployment, ns, "web", tag)), inPhase(2, configMap(t, ns, "b", "1")),
			inPhase(3, newObject(t, "{apiVersion: v1, kind: Service, metadata: {name: c, namespace: %s}, spec: {selector: {app: c}, ports: [{port: 80}]}}", ns)),
		}
	}
	s := newState(t, c)
	got := s.apply("x", bundle("broken")...)
	same(t, []string{"ConfigMap created", "Deployment created", "ConfigMap skipped (phase 1)", "Service skipped (phase 1)"}, outcomes(got))
	if want := "waits for phase 1: Deployment/" + ns + "/web: "; !strings.HasPrefix(got[2].Reason, want) || got[3].Reason != got[2].Reason {
		t.Errorf("reason %q, want %q", got[2].Reason, want)
	}
	w.take()
	got = s.apply("x", bundle("broken")...)
	same(t, []string{"ConfigMap unchanged", "Deployment unchanged", "ConfigMap skipped (phase 1)", "Service skipped (phase 1)"}, outcomes(got))
	if sent := w.methods(); sent["PATCH"] != 0 || sent["GET"] == 0 {
		t.Errorf("sent %v", sent)
	}
	if exists(t, bundle("")[2].ID) {
		t.Error("the second phase came before the first one was healthy")
	}

	s.toTheEnd("y", bundle("1")...)
	if !exists(t, bundle("")[2].ID) {
		t.Error("the second phase never came")
	}
	w.take()
	got = s.apply("y", bundle("1")...)
	same(t, []string{"ConfigMap unchanged", "Deployment unchanged", "ConfigMap unchanged", "Service unchanged"}, outcomes(got))
	if sent := w.take(); len(sent) > 0 {
		t.Errorf("a bundle that has not changed costs %v", sent)
	}
}

func TestOnePhaseCostsNothingMore(t *testing.T) {
	c, w := connect(t, Options{})
	ns := space(t)
	s := newState(t, c)
	s.apply("x", inPhase(7, configMap(t, ns, "a", "1")), inPhase(7, newObject(t, deployment, ns, "web", "broken")))
	same(t, map[string]int{"PATCH": 2}, w.methods())
}

func TestDefinitionsGoBeforeAllPhases(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	discard(t, crds, "", "widgets."+ns+".example.com")
	got := newState(t, c).apply("x", inPhase(5, newObject(t, widgets, ns, "Widget", "size: {type: string}")), inPhase(1, newObject(t, widget, ns, "size: big")))
	same(t, []string{"CustomResourceDefinition created", "Widget created"}, outcomes(got))
}

func TestPhaseThatFailsStopsTheOthers(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	broken := inPhase(1, newObject(t, strings.Replace(deployment, "replicas: 1", "replicas: 1\n  progressDeadlineSeconds: 1", 1), ns, "web", "broken"))
	s := newState(t, c)
	eventually(t, func() (bool, string) {
		got := s.apply("x", broken, inPhase(2, configMap(t, ns, "b", "1")))
		if got[0].Err == nil {
			return false, got[1].Reason
		}
		if !errors.Is(got[0].Err, ErrFailed) || got[1].Err != nil || got[1].Action != Skipped || got[1].Waits != "" {
			t.Errorf("got %+v", got)
		}
		want := "waits for phase 1: progress deadline exceeded"
		if !strings.HasPrefix(got[1].Reason, want) {
			t.Errorf("got %q, want %q", got[1].Reason, want)
		}
		return true, ""
	})
}

func TestPhaseThatIsRefusedStopsTheOthers(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	bad := inPhase(1, newObject(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: %s}, dota: {a: b}}", ns))
	got := newState(t, c).apply("x", bad, inPhase(1, configMap(t, ns, "c", "1")), inPhase(2, configMap(t, ns, "b", "1")))
	if !errors.Is(got[0].Err, ErrRefused) || got[1].Action != Created || got[2].Action != Skipped || got[2].Waits != "" || got[2].Err != nil {
		t.Errorf("got %q", outcomes(got))
	}
}

// A Job that is no hook is an object like others: it is healthy when complete.
func TestPhaseOfAJobWaitsUntilItIsComplete(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{})
	ns := space(t)
	s := newState(t, c)
	bundle := []*object.Object{inPhase(1, newObject(t, job, ns, "switch", "", "broken", "")), inPhase(2, configMap(t, ns, "b", "1"))}
	got := s.apply("x", bundle...)
	same(t, []string{"Job created", "ConfigMap skipped (phase 1)"}, outcomes(got))
	complete(t, ns, "switch")
	s.toTheEnd("x", bundle...)
}

// What somebody changed in a phase that the next one waits for is sent again.
func TestDriftInAPhaseIsCorrectedOnTheWay(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{})
	ns := space(t)
	s := newState(t, c)
	bundle := []*object.Object{inPhase(1, newObject(t, deployment, ns, "web", "1")), inPhase(2, configMap(t, ns, "b", "1"))}
	s.apply("x", bundle[0])
	_, err := somebody(t).Resource(deployments).Namespace(ns).Patch(t.Context(), "web", types.MergePatchType,
		[]byte(`{"spec":{"replicas":3}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	if err != nil {
		t.Fatal(err)
	}
	got := s.apply("x", bundle...)
	same(t, []string{"Deployment unchanged", "ConfigMap skipped (phase 1)"}, outcomes(got))
	if !strings.Contains(got[1].Reason, "changed since it was applied: .spec.replicas: kubectl-edit") {
		t.Errorf("reason %q", got[1].Reason)
	}
	same(t, "Deployment configured", outcomes(s.apply("x", bundle...))[0])
	s.toTheEnd("x", bundle...)
}

// The server takes an apply to an object that is on its way out, and then it is
// gone: it was taken for applied.
func TestApplyToAnObjectThatIsBeingDeleted(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	s := newState(t, c)
	one, two := configMap(t, ns, "a", "1"), configMap(t, ns, "a", "2")
	s.apply("x", one)
	edit(t, one.ID, types.MergePatchType, `{"metadata":{"finalizers":["example.com/wait"]}}`, "other")
	remove(t, one.ID)
	for range 2 {
		got := s.apply("y", two)
		same(t, []string{"ConfigMap skipped (deletion of ConfigMap/" + ns + "/a)"}, outcomes(got))
		same(t, "waits for deletion of ConfigMap/"+ns+"/a: terminating, waits for example.com/wait", got[0].Reason)
	}
	edit(t, one.ID, types.MergePatchType, `{"metadata":{"finalizers":null}}`, "other")
	same(t, []string{"ConfigMap created"}, outcomes(s.apply("y", two)))
}

// The objects of a namespace that is being deleted were refused, and failed their
// wave, where waiting was enough.
func TestApplyToANamespaceThatIsBeingDeleted(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{})
	ns := space(t) + "-new"
	discard(t, namespaces, "", ns)
	s := newState(t, c)
	bundle := []*object.Object{newObject(t, "{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", ns), configMap(t, ns, "a", "1")}
	s.apply("x", bundle...)
	edit(t, bundle[1].ID, types.MergePatchType, `{"metadata":{"finalizers":["example.com/wait"]}}`, "other")
	if err := somebody(t).Resource(namespaces).Delete(t.Context(), ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.known = map[object.ID]store.Entry{}
	waits := "(deletion of Namespace/" + ns + ")"
	got := s.apply("x", bundle...)
	same(t, []string{"Namespace skipped " + waits, "ConfigMap skipped " + waits}, outcomes(got))
	other := configMap(t, ns, "of-another-unit", "1") // whose bundle does not have the namespace
	eventually(t, func() (bool, string) {             // the server has to see that it goes
		delete(s.known, other.ID)
		got = s.apply("x", other)
		if err := got[0].Err; err != nil {
			t.Fatal(err)
		}
		return got[0].Action == Skipped, strings.Join(outcomes(got), "; ")
	})
	same(t, []string{"ConfigMap skipped " + waits}, outcomes(got))
	same(t, "waits for deletion of Namespace/"+ns+": terminating", got[0].Reason)
	edit(t, bundle[1].ID, types.MergePatchType, `{"metadata":{"finalizers":null}}`, "other")
	// The server may take the new namespace for the old one at first. What is in it
	// waits then as before.
	created := map[string]bool{}
	eventually(t, func() (bool, string) {
		got := s.apply("x", bundle...)
		for _, r := range got {
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			created[r.ID.Kind] = created[r.ID.Kind] || r.Action == Created
		}
		return created["ConfigMap"], strings.Join(outcomes(got), "; ")
	})
	same(t, map[string]bool{"Namespace": true, "ConfigMap": true}, created)
}
