// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/store"
)

// chosen is a workload whose spec, and whose container and volumes, hold one-ofs.
const chosen = `
apiVersion: apps/v1
kind: KIND
metadata: {name: NAME, namespace: %[1]s}
spec:
  SPEC
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec:
      containers:
      - {name: main, image: "registry.example.com/a:1", CONTAINER}
      volumes: [VOLUMES]
`

// TestOneOfs: Git's member of a one-of replaces the one that somebody else set, or that the
// server set by default: as a correction, and with a release.
func TestOneOfs(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{})
	ns := space(t)
	for _, test := range []struct {
		name, before string
		hand         string // a strategic merge patch, of the container where it has no spec
		after        string
		changes      string // the field that is told of
	}{
		{"env-to-reference-by-hand", "CONTAINER: env: [{name: other, value: x}, {name: A, value: x}]",
			`{"env":[{"name":"A","value":null,"valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}]}`, "",
			`.spec.template.spec.containers[name="main"].env[name="A"].valueFrom`},
		{"env-to-value-by-hand", "CONTAINER: env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]",
			`{"env":[{"name":"A","valueFrom":null,"value":"x"}]}`, "",
			`.spec.template.spec.containers[name="main"].env[name="A"].value`},
		{"source-of-env-by-hand", "CONTAINER: env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]",
			`{"env":[{"name":"A","valueFrom":{"fieldRef":null,"configMapKeyRef":{"name":"c","key":"k"}}}]}`, "",
			`.spec.template.spec.containers[name="main"].env[name="A"].valueFrom.configMapKeyRef`},
		{"probe-by-hand", "CONTAINER: livenessProbe: {httpGet: {port: 80}, periodSeconds: 7}",
			`{"livenessProbe":{"httpGet":null,"tcpSocket":{"port":80}}}`, "",
			`.spec.template.spec.containers[name="main"].livenessProbe.tcpSocket`},
		{"hook-by-hand", "CONTAINER: lifecycle: {preStop: {exec: {command: [a]}}}",
			`{"lifecycle":{"preStop":{"exec":null,"sleep":{"seconds":1}}}}`, "",
			`.spec.template.spec.containers[name="main"].lifecycle.preStop.sleep`},
		{"volume-by-hand", "VOLUMES: {name: v, configMap: {name: c}}, {name: w, emptyDir: {}}",
			`{"spec":{"template":{"spec":{"volumes":[{"name":"v","configMap":null,"emptyDir":{}}]}}}}`, "",
			`.spec.template.spec.volumes[name="v"].emptyDir`},
		{"strategy-by-hand", "SPEC: strategy: {type: Recreate}",
			`{"spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":2}}}}`, "",
			`.spec.strategy.rollingUpdate`},
		{"env-by-hand-and-release", "CONTAINER: env: [{name: A, value: x}]",
			`{"env":[{"name":"A","value":null,"valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}]}`,
			"CONTAINER: env: [{name: A, value: z}]",
			`.spec.template.spec.containers[name="main"].env[name="A"].valueFrom`},
		{"deployment-to-recreate", "SPEC: replicas: 1", "", "SPEC: strategy: {type: Recreate}", ""},
		{"stateful-set-to-on-delete", "KIND: StatefulSet; SPEC: serviceName: a", "",
			"KIND: StatefulSet; SPEC: serviceName: a\n  updateStrategy: {type: OnDelete}", ""},
		{"daemon-set-to-on-delete", "KIND: DaemonSet", "", "KIND: DaemonSet; SPEC: updateStrategy: {type: OnDelete}", ""},
		{"volume-of-nothing", "VOLUMES: {name: v}", "", "VOLUMES: {name: v, configMap: {name: c}}", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			render := func(settings string) *object.Object {
				values := map[string]string{"NAME": test.name, "KIND": "Deployment", "SPEC": "", "CONTAINER": "ports: []", "VOLUMES": ""}
				for setting := range strings.SplitSeq(settings, "; ") {
					key, value, _ := strings.Cut(setting, ": ")
					values[key] = value
				}
				text := chosen
				for key, value := range values {
					text = strings.ReplaceAll(text, key, value)
				}
				return newObject(t, text, ns)
			}
			first, last := render(test.before), render(test.before)
			if test.after != "" {
				last = render(test.after)
			}
			known := inventory(t, c.bring(t.Context(), []*object.Object{first}, nil))
			entry := known[first.ID]
			entry.Digest = "" // as of one that drifted
			known[first.ID] = entry
			resource := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: strings.ToLower(first.ID.Kind) + "s"}
			theirs := somebody(t).Resource(resource).Namespace(ns)
			if test.hand != "" {
				patch := test.hand
				if !strings.HasPrefix(patch, `{"spec"`) {
					patch = `{"spec":{"template":{"spec":{"containers":[{"name":"main",` + patch[1:] + `]}}}}`
				}
				kubectl := metav1.PatchOptions{FieldManager: "kubectl-edit"}
				if _, err := theirs.Patch(t.Context(), test.name, types.StrategicMergePatchType, []byte(patch), kubectl); err != nil {
					t.Fatal(err)
				}
			}
			if p := c.Preview(t.Context(), Work{Objects: []*object.Object{last}})[0]; p.Err != nil || p.Action != Configured {
				t.Errorf("preview: %+v", p)
			}
			r := c.bring(t.Context(), []*object.Object{last}, known)[0]
			if r.Err != nil || r.Action != Configured {
				t.Fatalf("%s: %v", r.Action, r.Err)
			}
			isTold := func(c store.Change) bool { return c.Field == test.changes && c.Manager == "kubectl-edit" }
			if test.changes != "" && !slices.ContainsFunc(r.Taken, isTold) {
				t.Errorf("taken: %v, want %s", r.Taken, test.changes)
			}
			if test.changes == "" && len(r.Taken) > 0 {
				t.Errorf("taken: %v", r.Taken)
			}
			if swept, err := c.Sweep(t.Context(), []store.Entry{r.Entry}, nil); err != nil || len(swept.Drifts) > 0 {
				t.Errorf("swept: %+v, %v", swept.Drifts, err)
			}
			live, err := theirs.Get(t.Context(), test.name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range live.GetManagedFields() {
				if e.Manager == FieldManager && e.Operation == metav1.ManagedFieldsOperationUpdate {
					t.Errorf("fields are ours by an update: %s", e.FieldsV1)
				}
			}
			if again := c.bring(t.Context(), []*object.Object{last}, inventory(t, []Result{r}))[0]; again.Action != Unchanged {
				t.Errorf("again: %s, %v", again.Action, again.Err)
			}
		})
	}
}

// TestOneOfOfSomebodyElse: an adoption that takes nothing from others takes no member of a
// one-of away either.
func TestOneOfOfSomebodyElse(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{})
	ns := space(t)
	with := func(env string) string {
		values := strings.NewReplacer("KIND", "Deployment", "NAME", "theirs", "SPEC", "", "VOLUMES", "", "CONTAINER", env, "%[1]s", ns)
		return values.Replace(chosen)
	}
	create(t, deployments, with(`env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]`))
	ours := newObject(t, "%s", with(`env: [{name: A, value: x}]`))
	for _, policy := range []config.Adoption{config.AdoptIfSame, config.AdoptTake} {
		work := Work{Objects: []*object.Object{ours}, Adopt: policy}
		preview := c.Preview(t.Context(), work)[0]
		r := c.Apply(t.Context(), work)[0]
		if takes := policy == config.AdoptTake; (preview.Err == nil) != takes || (r.Err == nil) != takes {
			t.Errorf("%s: preview %v, apply %v", policy, preview.Err, r.Err)
		}
	}
}

// TestNoOneOf: what an object itself has wrong stays wrong.
func TestNoOneOf(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{})
	ns := space(t)
	with := func(env string) *object.Object {
		values := strings.NewReplacer("KIND", "Deployment", "NAME", "both", "SPEC", "", "VOLUMES", "", "CONTAINER", env)
		return newObject(t, values.Replace(chosen), ns)
	}
	both := with(`env: [{name: A, value: x, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]`)
	known := inventory(t, c.bring(t.Context(), []*object.Object{with(`env: [{name: A, value: x}]`)}, nil))
	if r := c.bring(t.Context(), []*object.Object{both}, known)[0]; !errors.Is(r.Err, ErrRefused) {
		t.Errorf("got %v", r.Err)
	}
}
