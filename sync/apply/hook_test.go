// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply/health"
	"github.com/swell-sh/swell/sync/simulator"
	"github.com/swell-sh/swell/sync/store"
)

// job has a namespace, a name, the annotations, an image tag, and more of its
// spec. With the tag "broken" it is never complete, until [complete].
const job = `
apiVersion: batch/v1
kind: Job
metadata: {name: %[2]s, namespace: %[1]s, annotations: {%[3]s}}
spec:
  %[5]s
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: "registry.example.com/x:%[4]s"}]
`

func hookJob(t *testing.T, ns, name string, hook object.Hook, tag, spec string) *object.Object {
	return newObject(t, job, ns, name, "swell.sh/hook: "+string(hook), tag, spec)
}

// complete lets the pods of a Job come to a good end.
func complete(t *testing.T, ns, name string) {
	t.Helper()
	// Pods of an earlier Job of the name may still be there.
	selector := "batch.kubernetes.io/controller-uid=" + string(liveJob(t, ns, name).GetUID())
	eventually(t, func() (bool, string) {
		list, err := somebody(t).Resource(pods).Namespace(ns).List(t.Context(), metav1.ListOptions{LabelSelector: selector})
		if err != nil || len(list.Items) == 0 {
			return false, "no pods"
		}
		for _, pod := range list.Items {
			_, err := somebody(t).Resource(pods).Namespace(ns).Patch(t.Context(), pod.GetName(), types.StrategicMergePatchType,
				[]byte(`{"spec":{"containers":[{"name":"main","image":"registry.example.com/x:good"}]}}`), metav1.PatchOptions{})
			if err != nil {
				return false, err.Error()
			}
		}
		return true, ""
	})
}

func liveJob(t *testing.T, ns, name string) *unstructured.Unstructured {
	t.Helper()
	live, err := somebody(t).Resource(jobs).Namespace(ns).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return live
}

func isThere(t *testing.T, ns, name string) bool {
	t.Helper()
	_, err := somebody(t).Resource(jobs).Namespace(ns).Get(t.Context(), name, metav1.GetOptions{})
	return err == nil
}

func TestHookBeforeRunsOnceForEachBundle(t *testing.T) {
	t.Parallel()
	c, w := connect(t, Options{})
	ns := space(t)
	s := newState(t, c)
	before := hookJob(t, ns, "migrate", object.HookBefore, "broken", "")
	bundle := func(value string) []*object.Object { return []*object.Object{before, configMap(t, ns, "a", value)} }

	got := s.apply("x", bundle("1")...)
	waits := "hook Job/" + ns + "/migrate"
	same(t, []string{"Job created (" + waits + ")", "ConfigMap skipped (" + waits + ")"}, outcomes(got))
	same(t, "waits for "+waits+": not complete", got[1].Reason)
	got = s.apply("x", bundle("1")...)
	same(t, []string{"Job unchanged (" + waits + ")", "ConfigMap skipped (" + waits + ")"}, outcomes(got))
	first := liveJob(t, ns, "migrate")
	complete(t, ns, "migrate")
	s.toTheEnd("x", bundle("1")...)
	if live := liveJob(t, ns, "migrate"); live.GetUID() != first.GetUID() {
		t.Error("the hook ran twice")
	}

	// Drift, and a restart: nothing is sent for it.
	entry := s.known[bundle("")[1].ID]
	entry.Digest = ""
	s.known[entry.ID] = entry
	w.take()
	same(t, "Job unchanged", outcomes(s.apply("x", bundle("1")...))[0])
	same(t, map[string]int{"PATCH": 1}, w.methods())

	// Another bundle, though its hook is the same.
	got = s.apply("y", bundle("2")...)
	eventually(t, func() (bool, string) {
		got = s.apply("y", bundle("2")...)
		return isThere(t, ns, "migrate") && liveJob(t, ns, "migrate").GetUID() != first.GetUID(), strings.Join(outcomes(got), "; ")
	})
	same(t, "ConfigMap skipped ("+waits+")", outcomes(got)[1])
	complete(t, ns, "migrate")
	s.toTheEnd("y", bundle("2")...)
}

func TestHookAfterRunsWhenItsPhaseIsHealthy(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{})
	ns := space(t)
	s := newState(t, c)
	bundle := func(tag string) []*object.Object {
		return []*object.Object{newObject(t, deployment, ns, "web", tag), hookJob(t, ns, "announce", object.HookAfter, "1", "")}
	}
	same(t, []string{"Deployment created", "Job skipped (phase 0)"}, outcomes(s.apply("x", bundle("broken")...)))
	if isThere(t, ns, "announce") {
		t.Error("the hook runs before its phase is healthy")
	}
	s.toTheEnd("y", bundle("1")...)
	if !health.HasCondition(liveJob(t, ns, "announce"), "Complete") {
		t.Error("the apply was over before its hook")
	}
	becomes(t, c, health.Health{State: health.Healthy}, bundle("1")[0])
}

// The time to live of a hook's Job begins when it is on record that it ran.
func TestHookThatItsTimeToLiveTakesIsNoDrift(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{})
	ns := space(t)
	s := newState(t, c)
	bundle := []*object.Object{hookJob(t, ns, "migrate", object.HookBefore, "1", "ttlSecondsAfterFinished: 0"), configMap(t, ns, "a", "1")}
	s.toTheEnd("x", bundle...)
	eventually(t, func() (bool, string) { return !isThere(t, ns, "migrate"), "the Job stays" })
	var entries []store.Entry
	for _, e := range s.known {
		entries = append(entries, e)
	}
	found, err := c.Sweep(t.Context(), entries, nil)
	if err != nil || len(found.Drifts) > 0 {
		t.Errorf("drift %v, %v", found.Drifts, err)
	}
	if h, _, err := c.Health(t.Context(), Work{Objects: bundle, Known: s.known}); err != nil || h.State != health.Healthy {
		t.Errorf("health %v, %v", h, err)
	}
	same(t, []string{"Job unchanged", "ConfigMap unchanged"}, outcomes(s.apply("x", bundle...)))
	if isThere(t, ns, "migrate") {
		t.Error("the hook ran twice")
	}
}

// Without the inventory, the live Job says what it ran for.
// TestJobThatRemovesItselfRunsOnce: without a hook's annotation it comes with the other
// objects, runs once for each change of itself, whatever else of the bundle changes, and
// is not missed when it is gone.
func TestJobThatRemovesItselfRunsOnce(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{})
	ns := space(t)
	s := newState(t, c)
	job := func(tag string) *object.Object {
		return newObject(t, job, ns, "migrate", "", tag, "ttlSecondsAfterFinished: 0")
	}
	first := s.apply("x", job("1"), configMap(t, ns, "a", "1"))
	if first[0].Action != Created || first[0].Waits == "" || first[1].Action != Created {
		t.Errorf("at first: %q", outcomes(first))
	}
	s.toTheEnd("x", job("1"), configMap(t, ns, "a", "1"))
	eventually(t, func() (bool, string) { return !isThere(t, ns, "migrate"), "the Job stays" })
	found, err := c.Sweep(t.Context(), slices.Collect(maps.Values(s.known)), nil)
	if err != nil || len(found.Drifts) > 0 {
		t.Errorf("drift %v, %v", found.Drifts, err)
	}
	same(t, []string{"Job unchanged", "ConfigMap configured"}, outcomes(s.apply("y", job("1"), configMap(t, ns, "a", "2"))))
	if isThere(t, ns, "migrate") {
		t.Error("it ran twice")
	}
	if again := s.apply("z", job("2"), configMap(t, ns, "a", "2")); again[0].Action != Created || again[0].Waits == "" {
		t.Errorf("changed: %q", outcomes(again))
	}
}

// TestJobThatRemovesItselfIsAdopted: one that another tool made goes on, and is not
// made anew.
func TestJobThatRemovesItselfIsAdopted(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{})
	ns := space(t)
	o := newObject(t, job, ns, "migrate", "", "broken", "ttlSecondsAfterFinished: 3600")
	create(t, jobs, `{apiVersion: batch/v1, kind: Job, metadata: {name: migrate, namespace: `+ns+`}, spec: {ttlSecondsAfterFinished: 3600, template: {spec: {restartPolicy: Never, containers: [{name: main, image: "registry.example.com/x:broken"}]}}}}`)
	was := liveJob(t, ns, "migrate").GetUID()
	if got := newState(t, c).apply("x", o); got[0].Err != nil || got[0].Waits == "" {
		t.Errorf("got %q, %v", outcomes(got), got[0].Err)
	}
	if is := liveJob(t, ns, "migrate").GetUID(); is != was {
		t.Error("it was made anew")
	}
}

func TestHookDoesNotRunAgainWhenTheStateIsLost(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{})
	ns := space(t)
	bundle := []*object.Object{hookJob(t, ns, "migrate", object.HookBefore, "1", ""), configMap(t, ns, "a", "1")}
	newState(t, c).toTheEnd("x", bundle...)
	uid := liveJob(t, ns, "migrate").GetUID()
	s := newState(t, c)
	same(t, []string{"Job unchanged", "ConfigMap configured"}, outcomes(s.apply("x", bundle...)))
	if liveJob(t, ns, "migrate").GetUID() != uid {
		t.Error("the hook ran twice")
	}
	same(t, object.Digest("x"), s.known[bundle[0].ID].Ran)
}

func TestHookThatFailsSaysWhy(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{})
	ns := space(t)
	s := newState(t, c)
	bundle := []*object.Object{hookJob(t, ns, "migrate", object.HookBefore, "broken", "activeDeadlineSeconds: 1"), configMap(t, ns, "a", "1")}
	fail := func() {
		t.Helper()
		eventually(t, func() (bool, string) {
			got := s.apply("x", bundle...)
			if got[0].Err == nil {
				return false, got[0].Reason
			}
			want := "apply Job/" + ns + "/migrate: the hook failed: job was active longer than specified deadline"
			if !errors.Is(got[0].Err, ErrFailed) || !strings.HasPrefix(got[0].Err.Error(), want) {
				t.Errorf("got %v, want %q", got[0].Err, want)
			}
			if got[1].Action != Skipped || got[1].Waits != "" || exists(t, bundle[1].ID) {
				t.Errorf("got %q", outcomes(got))
			}
			return true, ""
		})
	}
	fail()
	uid := liveJob(t, ns, "migrate").GetUID()
	fail() // it is not run again by itself
	if liveJob(t, ns, "migrate").GetUID() != uid {
		t.Error("the failed hook ran again")
	}
	background := metav1.DeletePropagationBackground
	if err := somebody(t).Resource(jobs).Namespace(ns).Delete(t.Context(), "migrate", metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() (bool, string) {
		got := s.apply("x", bundle...)
		return isThere(t, ns, "migrate") && liveJob(t, ns, "migrate").GetUID() != uid, strings.Join(outcomes(got), "; ")
	})
}

// The pods of a failed hook say why.
func TestHookThatFailsNamesItsContainer(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{})
	ns := space(t)
	s := newState(t, c)
	hook := hookJob(t, ns, "migrate", object.HookAfter, "broken", "backoffLimit: 0")
	s.apply("x", hook)
	patchPod(t, ns, "batch.kubernetes.io/job-name=migrate", `{"phase":"Failed","containerStatuses":[{"name":"main","image":"x","imageID":"","ready":false,"restartCount":0,
"state":{"waiting":null,"terminated":{"exitCode":3,"reason":"Error"}}}]}`)
	eventually(t, func() (bool, string) {
		got := s.apply("x", hook)[0]
		if got.Err == nil {
			return false, got.Reason
		}
		return strings.Contains(got.Err.Error(), "container main: exited with code 3 (Error)"), got.Err.Error()
	})
}

// A unit that is renamed finds the Job of its former name.
func TestHookOfAUnitThatIsRenamed(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{})
	ns := space(t)
	hook := hookJob(t, ns, "migrate", object.HookBefore, "1", "")
	newState(t, c).toTheEnd("x", hook)
	uid := liveJob(t, ns, "migrate").GetUID()
	renamed := *hook
	renamed.JSON = []byte(strings.Replace(string(hook.JSON), testUnit, "services/shop/basket", 1))
	renamed.Digest = "other"
	newState(t, c).toTheEnd("y", &renamed)
	if live := liveJob(t, ns, "migrate"); live.GetUID() == uid || live.GetAnnotations()[config.AnnotationUnit] != "services/shop/basket" {
		t.Errorf("got %v", live.GetAnnotations())
	}
}

func TestHookLeavesAForeignJobAlone(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	hook := hookJob(t, ns, "migrate", object.HookBefore, "1", "")
	theirs := newObject(t, job, ns, "migrate", "", "1", "suspend: true")
	create(t, jobs, strings.NewReplacer(`"app.kubernetes.io/managed-by":"swell"`, `"app.kubernetes.io/managed-by":"helm"`).Replace(string(theirs.JSON)))
	got := newState(t, c).apply("x", hook, configMap(t, ns, "a", "1"))
	if !errors.Is(got[0].Err, ErrRefused) || !strings.Contains(got[0].Err.Error(), "not this unit's") || got[1].Action != Skipped {
		t.Errorf("got %q", outcomes(got))
	}
	if !isSuspended(liveJob(t, ns, "migrate")) {
		t.Error("the foreign Job was changed")
	}
}

// deletes prunes all that is known and keeps what comes of it.
func (s *state) deletes(ids ...object.ID) []Result {
	s.t.Helper()
	var entries []store.Entry
	for _, id := range ids {
		if e, ok := s.known[id]; ok {
			entries = append(entries, e)
		}
	}
	results := s.c.Prune(s.t.Context(), entries)
	s.keep(results)
	return results
}

func TestHookBeforeDelete(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{})
	ns := space(t)
	s := newState(t, c)
	hook, data := hookJob(t, ns, "drain", object.HookBeforeDelete, "broken", ""), configMap(t, ns, "a", "1")
	same(t, []string{"Job created", "ConfigMap created"}, outcomes(s.apply("x", hook, data)))
	becomes(t, c, health.Health{State: health.Healthy}, hook)
	if !isSuspended(liveJob(t, ns, "drain")) {
		t.Error("the hook runs at once")
	}
	same(t, []string{"Job unchanged", "ConfigMap unchanged"}, outcomes(s.apply("x", hook, data)))

	waits := "hook Job/" + ns + "/drain"
	skipped := []string{"Job skipped (" + waits + ")", "ConfigMap skipped (" + waits + ")"}
	got := s.deletes(hook.ID, data.ID)
	same(t, skipped, outcomes(got))
	same(t, []string{"waits for " + waits + ": not complete", "waits for " + waits + ": not complete"}, []string{got[0].Reason, got[1].Reason})
	if isSuspended(liveJob(t, ns, "drain")) || !exists(t, data.ID) {
		t.Error("the hook does not run first")
	}
	eventually(t, func() (bool, string) { // it has started, and is asked again
		got = s.deletes(hook.ID, data.ID)
		return strings.Contains(got[1].Reason, "ImagePullBackOff"), got[1].Reason
	})
	same(t, skipped, outcomes(got))

	complete(t, ns, "drain")
	eventually(t, func() (bool, string) {
		got = s.deletes(hook.ID, data.ID)
		return got[1].Action == Deleted, got[1].Reason
	})
	eventually(t, func() (bool, string) { return !isThere(t, ns, "drain") && !exists(t, data.ID), "something stays" })
}

// TestHookBeforeDeleteThatStays: a hook that is not deleted, since somebody let go of it or wants
// it kept, does not run, and nothing waits for it.
func TestHookBeforeDeleteThatStays(t *testing.T) {
	t.Parallel()
	for _, annotation := range []string{"swell.sh/prune: disabled", annotationDeletion + ": detach"} {
		server := simulator.New()
		cfg := &rest.Config{Host: "http://simulator.invalid", Transport: server}
		c, err := Connect(cfg, testRepository, Options{})
		if err != nil {
			t.Fatal(err)
		}
		hook, data := hookJob(t, "default", "drain", object.HookBeforeDelete, "1", ""), configMap(t, "default", "a", "1")
		var entries []store.Entry
		for _, r := range c.bring(t.Context(), []*object.Object{hook, data}, nil) {
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			entries = append(entries, r.Entry)
		}
		client, err := dynamic.NewForConfig(cfg)
		if err != nil {
			t.Fatal(err)
		}
		live := client.Resource(jobs).Namespace("default")
		name, value, _ := strings.Cut(annotation, ": ")
		change := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, name, value)
		_, err = live.Patch(t.Context(), "drain", types.MergePatchType, []byte(change), metav1.PatchOptions{FieldManager: "kubectl"})
		if err != nil {
			t.Fatal(err)
		}
		same(t, []string{"Job skipped", "ConfigMap deleted"}, outcomes(c.Prune(t.Context(), entries)))
		if found, err := live.Get(t.Context(), "drain", metav1.GetOptions{}); err != nil || !isSuspended(found) {
			t.Errorf("%s: the hook ran, or is gone: %v", annotation, err)
		}
	}
}

func TestHookBeforeDeleteThatFailsKeepsEverything(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{})
	ns := space(t)
	s := newState(t, c)
	hook, data := hookJob(t, ns, "drain", object.HookBeforeDelete, "broken", "activeDeadlineSeconds: 1"), configMap(t, ns, "a", "1")
	s.apply("x", hook, data)
	var got []Result
	for range 2 {
		eventually(t, func() (bool, string) {
			got = s.deletes(hook.ID, data.ID)
			return got[0].Err != nil, got[0].Reason
		})
		if want := "prune Job/" + ns + "/drain: the hook failed, nothing is deleted: "; !errors.Is(got[0].Err, ErrFailed) || !strings.HasPrefix(got[0].Err.Error(), want) {
			t.Errorf("got %v, want %q", got[0].Err, want)
		}
		if got[1].Action != Skipped || got[0].Waits+got[1].Waits != "" || !exists(t, data.ID) || !isThere(t, ns, "drain") {
			t.Errorf("got %q", outcomes(got))
		}
	}
	background := metav1.DeletePropagationBackground
	if err := somebody(t).Resource(jobs).Namespace(ns).Delete(t.Context(), "drain", metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() (bool, string) {
		got = s.deletes(hook.ID, data.ID)
		return got[len(got)-1].Action == Deleted, got[len(got)-1].Reason
	})
}

// A deletion that is taken back leaves a hook that can run once more; and a
// change of the hook's template is a new Job, for nobody misses the old one.
func TestHookBeforeDeleteIsMadeAnew(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	s := newState(t, c)
	hook := hookJob(t, ns, "drain", object.HookBeforeDelete, "broken", "")
	s.apply("x", hook)
	s.deletes(hook.ID)
	if isSuspended(liveJob(t, ns, "drain")) {
		t.Fatal("the hook does not run")
	}
	s.toTheEnd("x", hook)
	first := liveJob(t, ns, "drain")
	if !isSuspended(first) {
		t.Error("the hook goes on")
	}
	s.toTheEnd("y", hookJob(t, ns, "drain", object.HookBeforeDelete, "2", ""))
	second := liveJob(t, ns, "drain")
	if second.GetUID() == first.GetUID() || !isSuspended(second) {
		t.Errorf("the hook was not made anew")
	}
}

// deaf is a transport whose writes get no answer while it is silent.
type deaf struct {
	http.RoundTripper
	silent bool
}

func (d *deaf) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := d.RoundTripper.RoundTrip(r)
	if d.silent && r.Method == http.MethodPatch && err == nil {
		_ = answer.Body.Close()
		return nil, io.ErrUnexpectedEOF
	}
	return answer, err
}

// remove deletes an object of the namespace default.
func (d *deaf) remove(t *testing.T, path string) error {
	url := "http://simulator.invalid/apis/batch/v1/namespaces/default/" + path
	r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, url, nil)
	if err != nil {
		return err
	}
	answer, err := d.RoundTrip(r)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

// TestHookAfterTheRunOfAnotherBundle: once the run of another bundle may have begun, the
// earlier bundle's hook runs again when it comes back, whether the answer to that was lost, or
// the process died before it was on record. A Job that is only gone has run.
func TestHookAfterTheRunOfAnotherBundle(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		other func(t *testing.T, s *state, wire *deaf, hook *object.Object)
		again bool
	}{
		{"the answer is lost", func(t *testing.T, s *state, wire *deaf, hook *object.Object) {
			wire.silent = true
			if got := s.apply("y", hook)[0]; got.Err == nil || got.Entry.Ran != "" {
				t.Errorf("got %q, ran %q", outcomes([]Result{got}), got.Entry.Ran)
			}
			wire.silent = false
		}, true},
		{"the process dies", func(t *testing.T, s *state, _ *deaf, hook *object.Object) {
			before := s.known[hook.ID]
			s.apply("y", hook)
			before.Digest = "" // as it is stored ahead of a write
			s.known[hook.ID] = before
		}, true},
		{"nobody knows whether it began, and the Job is gone", func(t *testing.T, s *state, wire *deaf, hook *object.Object) {
			before := s.known[hook.ID]
			s.deletes(hook.ID)
			s.known[hook.ID] = before
			wire.silent = true
			s.apply("y", hook)
			wire.silent = false
			known := s.known[hook.ID]
			s.deletes(hook.ID)
			if err := wire.remove(t, "jobs/migrate"); err != nil {
				t.Fatal(err)
			}
			s.known[hook.ID] = known
		}, true},
		{"nothing began", func(t *testing.T, s *state, _ *deaf, hook *object.Object) {
			before := s.known[hook.ID]
			s.deletes(hook.ID)
			before.Digest = ""
			s.known[hook.ID] = before
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			wire := &deaf{RoundTripper: simulator.New()}
			c, err := Connect(&rest.Config{Host: "http://simulator.invalid", Transport: wire}, testRepository, Options{})
			if err != nil {
				t.Fatal(err)
			}
			s, hook := newState(t, c), hookJob(t, "default", "migrate", object.HookBefore, "1", "")
			s.toTheEnd("x", hook)
			test.other(t, s, wire, hook)
			got := s.apply("x", hook)[0]
			if again := got.Waits != ""; got.Err != nil || again != test.again {
				t.Errorf("it runs again: %t, want %t: %+v", again, test.again, got)
			}
			s.toTheEnd("x", hook)
		})
	}
}
