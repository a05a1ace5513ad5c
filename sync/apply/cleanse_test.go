// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/store"
)

// managers of an object, without those that only read.
func managers(o *unstructured.Unstructured) []string {
	var names []string
	for _, e := range o.GetManagedFields() {
		names = append(names, e.Manager+" "+string(e.Operation))
	}
	slices.Sort(names)
	return names
}

func TestContactTakeCleansTheTool(t *testing.T) {
	c, w := connect(t, Options{})
	ns := space(t)
	text := "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: " + ns + "}, data: {%s}}"
	o := newObject(t, text, "same: '1', changed: ours, dropped: '1'")
	applyAs(t, "kustomize-controller", o, `{apiVersion: v1, kind: ConfigMap,
 metadata: {name: a, labels: {kustomize.toolkit.fluxcd.io/name: apps, kustomize.toolkit.fluxcd.io/namespace: flux, team: x}},
 data: {same: '1', changed: theirs, dropped: '1', alone: '1'}}`)
	mergeAs(t, "kubectl-client-side-apply", o, `{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}"}},"data":{"edited":"1"}}`)
	mergeAs(t, "some-controller", o, `{"data":{"controlled":"1"}}`)
	w.take()

	r := one(t, c, o, config.AdoptTake)
	if r.Err != nil || r.Action != Configured || r.Adopted != "Flux Kustomization flux/apps" {
		t.Fatalf("%+v", r)
	}
	var taken []string
	for _, change := range r.Taken {
		taken = append(taken, change.Field+" "+change.Author())
	}
	if diff := cmp.Diff([]string{".data.changed kustomize-controller (Apply)"}, taken); diff != "" {
		t.Error(diff)
	}
	want := []string{"stays as it is, for it was set by others and Git does not say: .data.alone, .data.edited, .metadata.labels.team"}
	if diff := cmp.Diff(want, r.Warnings); diff != "" {
		t.Error(diff)
	}
	got := current(t, o)
	if diff := cmp.Diff([]string{"some-controller Update", "swell Apply"}, managers(got)); diff != "" {
		t.Error(diff)
	}
	if got.GetLabels()["kustomize.toolkit.fluxcd.io/name"] != "" || got.GetAnnotations()[config.AnnotationLastApplied] != "" || got.GetLabels()["team"] != "x" {
		t.Errorf("labels %v, annotations %v", got.GetLabels(), got.GetAnnotations())
	}
	all := map[string]any{"same": "1", "changed": "ours", "dropped": "1", "alone": "1", "edited": "1", "controlled": "1"}
	if diff := cmp.Diff(all, got.Object["data"]); diff != "" {
		t.Error(diff)
	}
	if drifts := swept(t, c, []store.Entry{r.Entry}); drifts != nil {
		t.Error(drifts)
	}

	// A field that Git drops now goes, although the tool had set it too.
	w.take()
	r = again(t, c, newObject(t, text, "same: '1', changed: ours"), r)
	if r.Err != nil || r.Taken != nil {
		t.Fatalf("%+v", r)
	}
	if diff := cmp.Diff(map[string]int{"PATCH": 1}, w.methods()); diff != "" {
		t.Error(diff)
	}
	delete(all, "dropped")
	if diff := cmp.Diff(all, current(t, o).Object["data"]); diff != "" {
		t.Error(diff)
	}
}

// A take-over that was cut short after the apply is finished by the next one.
func TestContactTakeIsFinishedAfterACut(t *testing.T) {
	c, _ := connect(t, Options{})
	o := configMap(t, space(t), "a", "1")
	applyAs(t, "helm", o, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {meta.helm.sh/release-name: x}}, data: {value: '2'}}")
	applyAs(t, FieldManager, o, string(o.JSON)) // as far as it got
	if r := one(t, c, o, config.AdoptTake); r.Err != nil {
		t.Fatal(r.Err)
	}
	got := current(t, o)
	if diff := cmp.Diff([]string{"swell Apply"}, managers(got)); diff != "" {
		t.Error(diff)
	}
	if got.GetAnnotations()["meta.helm.sh/release-name"] != "" {
		t.Error("still Helm's by its annotations")
	}
}

// What was adopted as it is can be taken later, and then Git alone decides.
func TestContactTakeAfterAnAdoption(t *testing.T) {
	c, w := connect(t, Options{})
	ns := space(t)
	text := "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: " + ns + "%s}, data: {%s}}"
	o := newObject(t, text, "", "a: '1', b: '1'")
	bare := unstructuredOf(t, o)
	bare.SetLabels(nil)
	bare.SetAnnotations(nil)
	if _, err := theirs(t, o).Create(t.Context(), bare, metav1.CreateOptions{FieldManager: "kubectl-client-side-apply"}); err != nil {
		t.Fatal(err)
	}
	r := one(t, c, o, config.AdoptIfSame)
	want := []string{"also held by kubectl-client-side-apply (Update) until it changes in Git"}
	if diff := cmp.Diff(want, r.Warnings); r.Err != nil || diff != "" {
		t.Fatal(r.Err, diff)
	}
	r = again(t, c, newObject(t, text, "", "a: '1'"), r)
	if diff := cmp.Diff(map[string]any{"a": "1"}, current(t, o).Object["data"]); r.Err != nil || r.Warnings != nil || diff != "" {
		t.Error(r.Err, r.Warnings, diff)
	}
	r = again(t, c, newObject(t, text, ", annotations: {swell.sh/adopt: take}", "a: '1', c: '1'"), r)
	if r.Err != nil || r.Warnings != nil {
		t.Error(r.Err, r.Warnings)
	}
	w.take()
	r = again(t, c, newObject(t, text, ", annotations: {swell.sh/adopt: take}", "c: '1'"), r)
	if diff := cmp.Diff(map[string]any{"c": "1"}, current(t, o).Object["data"]); r.Err != nil || r.Warnings != nil || diff != "" {
		t.Error(r.Err, r.Warnings, diff)
	}
	if diff := cmp.Diff(map[string]int{"PATCH": 1}, w.methods()); diff != "" {
		t.Error(diff)
	}
}

// TestWhatGitDropsAfterAnAdoption: whoever applied the object before does not keep what Git
// drops, with the first change already, and after others; what Git never had stays, and is
// told once.
func TestWhatGitDropsAfterAnAdoption(t *testing.T) {
	t.Parallel()
	for _, manager := range []string{"kubectl-client-side-apply", "kustomize-controller", "argocd-controller", "helm"} {
		t.Run(manager, func(t *testing.T) {
			t.Parallel()
			c, _ := connect(t, Options{})
			ns := space(t)
			text := "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: " + ns + "}, data: {%s}}"
			o := newObject(t, text, "a: '1', b: '1', c: '1'")
			bare := unstructuredOf(t, o)
			bare.SetLabels(nil)
			bare.SetAnnotations(nil)
			bare.Object["data"].(map[string]any)["extra"] = "x"
			if _, err := theirs(t, o).Create(t.Context(), bare, metav1.CreateOptions{FieldManager: manager}); err != nil {
				t.Fatal(err)
			}
			mergeAs(t, "kubectl-rollout", o, `{"metadata":{"annotations":{"example.com/restartedAt":"now"}}}`)
			r := one(t, c, o, config.AdoptIfSame)
			for _, step := range []struct {
				git  string
				live map[string]any
				warn []string
			}{
				{"a: '1', c: '1'", map[string]any{"a": "1", "c": "1", "extra": "x"}, []string{leftoverText + ".data.extra, " + `.metadata.annotations["example.com/restartedAt"]`}},
				{"a: '2'", map[string]any{"a": "2", "extra": "x"}, nil},
			} {
				r = again(t, c, newObject(t, text, step.git), r)
				if r.Err != nil || r.Entry.Shared {
					t.Fatal(r.Err, r.Entry.Shared)
				}
				if diff := cmp.Diff(step.live, current(t, o).Object["data"]); diff != "" {
					t.Errorf("%s: %s", step.git, diff)
				}
				if diff := cmp.Diff(step.warn, r.Warnings); diff != "" {
					t.Errorf("%s: %s", step.git, diff)
				}
			}
			if text := current(t, o).GetAnnotations()["example.com/restartedAt"]; text != "now" {
				t.Errorf("the annotation is %q", text)
			}
		})
	}
}
