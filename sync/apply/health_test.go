// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/swell-sh/swell/render"
)

func healthOf(t *testing.T, c *Cluster, objects ...*render.Object) Health {
	t.Helper()
	h, _, err := c.Health(t.Context(), Work{Objects: objects})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// becomes waits for a health.
func becomes(t *testing.T, c *Cluster, want Health, objects ...*render.Object) {
	t.Helper()
	eventually(t, func() (bool, string) {
		got := healthOf(t, c, objects...)
		return got == want, cmp.Diff(want, got)
	})
}

func TestHealthOfAGoodDeployment(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	objects := []*render.Object{configMap(t, ns, "a", "1"), object(t, deployment, ns, "web", "1")}
	if got := healthOf(t, c, objects...); got != (Health{Progressing, "Deployment/" + ns + "/web: not found"}) {
		t.Errorf("before: %v", got)
	}
	applied(t, c, objects...)
	becomes(t, c, Health{State: Healthy}, objects...)
}

func TestHealthSaysWhyADeploymentIsNotReady(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	broken := object(t, deployment, ns, "web", "broken")
	applied(t, c, broken)
	becomes(t, c, Health{Progressing, "Deployment/" + ns + "/web: 0 of 1 replicas available: container main: " +
		`ImagePullBackOff: back-off pulling image "registry.example.com/web:broken"`}, broken)
}

func TestHealthFailsWithTheProgressDeadline(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	broken := object(t, strings.Replace(deployment, "replicas: 1", "replicas: 1\n  progressDeadlineSeconds: 1", 1), ns, "web", "broken")
	good := object(t, deployment, ns, "good", "1")
	applied(t, c, broken, good)
	becomes(t, c, Health{Failed, "Deployment/" + ns + "/web: progress deadline exceeded: container main: " +
		`ImagePullBackOff: back-off pulling image "registry.example.com/web:broken"`}, good, broken)
}

func TestHealthNamesAPodThatCannotBeScheduled(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	picky := object(t, strings.Replace(deployment, "    spec:\n", "    spec:\n      nodeSelector: {no: such}\n", 1), ns, "web", "1")
	applied(t, c, picky)
	eventually(t, func() (bool, string) {
		got := healthOf(t, c, picky)
		want := "Deployment/" + ns + "/web: 0 of 1 replicas available: Unschedulable: 0/"
		return got.State == Progressing && strings.HasPrefix(got.Reason, want), got.Reason
	})
}

func TestHealthNamesPodsThatWereRefused(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	objects := []*render.Object{
		object(t, "{apiVersion: v1, kind: ResourceQuota, metadata: {name: none, namespace: %s}, spec: {hard: {pods: 0}}}", ns),
		object(t, deployment, ns, "web", "1"),
	}
	applied(t, c, objects...)
	eventually(t, func() (bool, string) {
		got := healthOf(t, c, objects...)
		return got.State == Progressing && strings.Contains(got.Reason, "exceeded quota"), got.Reason
	})
}

func TestHealthOfAJobIsItsCompletion(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	job := object(t, `
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, namespace: %s}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: "registry.example.com/migrate:1"}]}}}
`, ns)
	applied(t, c, job)
	becomes(t, c, Health{State: Healthy}, job)
}

func TestHealthReadsOnlyWhatCanBeIll(t *testing.T) {
	c, w := connect(t, Options{})
	ns := space(t)
	var objects []*render.Object
	for kind := range steady {
		o := configMap(t, ns, "a", "1")
		o.ID.Group, o.ID.Kind = kind.Group, kind.Kind
		objects = append(objects, o)
	}
	if got := healthOf(t, c, objects...); got != (Health{State: Healthy}) {
		t.Error(got)
	}
	if got := healthOf(t, c); got != (Health{State: Healthy}) {
		t.Errorf("no objects: %v", got)
	}
	if n := len(w.take()); n != 0 {
		t.Errorf("%d requests", n)
	}
}

func TestJudge(t *testing.T) {
	for _, test := range []struct {
		name, live string
		want       Health
	}{
		{"custom resource without a status", "{apiVersion: x/v1, kind: Thing}", Health{State: Healthy}},
		{"custom resource that is not observed yet",
			"{apiVersion: x/v1, kind: Thing, metadata: {generation: 2}, status: {observedGeneration: 1}}",
			Health{Progressing, "thing generation is 2, but latest observed generation is 1"}},
		{"custom resource that is not ready",
			"{apiVersion: x/v1, kind: Thing, status: {conditions: [{type: Ready, status: 'False', message: no such\n  zone}]}}",
			Health{Progressing, "no such zone"}},
		{"custom resource that gave up",
			"{apiVersion: x/v1, kind: Thing, status: {conditions: [{type: Stalled, status: 'True', message: No quota.}]}}",
			Health{Failed, "no quota"}},
		{"leaving", "{apiVersion: v1, kind: Namespace, metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}}",
			Health{Progressing, "resource scheduled for deletion"}},
		{"job under way", "{apiVersion: batch/v1, kind: Job, status: {startTime: '2026-01-01T00:00:00Z', active: 1}}",
			Health{Progressing, "not complete"}},
		{"job on its second pod", "{apiVersion: batch/v1, kind: Job, status: {startTime: '2026-01-01T00:00:00Z', active: 1, failed: 1}}",
			Health{Progressing, "not complete, 1 pods failed"}},
		{"job not started", "{apiVersion: batch/v1, kind: Job}", Health{Progressing, "job not started"}},
		{"job suspended", "{apiVersion: batch/v1, kind: Job, spec: {suspend: true}}", Health{State: Healthy}},
		{"job done", "{apiVersion: batch/v1, kind: Job, status: {conditions: [{type: Complete, status: 'True'}]}}", Health{State: Healthy}},
		{"job failed", "{apiVersion: batch/v1, kind: Job, status: {failed: 1, conditions: [{type: Failed, status: 'True', message: Too slow}]}}",
			Health{Failed, "too slow"}},
		{"stateful set", "{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 3}, status: {replicas: 3, readyReplicas: 1}}",
			Health{Progressing, "1 of 3 replicas ready"}},
		{"deployment in mid-update",
			"{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 2}, status: {replicas: 3, updatedReplicas: 1, readyReplicas: 2}}",
			Health{Progressing, "1 of 2 replicas updated"}},
		{"deployment without pods", "{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 2}}",
			Health{Progressing, "0 of 2 replicas created"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var live unstructured.Unstructured
			body, err := yaml.YAMLToJSON([]byte(test.live))
			if err != nil {
				t.Fatal(err)
			}
			if err := live.UnmarshalJSON(body); err != nil {
				t.Fatal(err)
			}
			got, err := judge(&live)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTroubleOfAPodStaysTheSame(t *testing.T) {
	image := `container main: ImagePullBackOff: back-off pulling image "x:1"`
	crash := "container main: CrashLoopBackOff: exited with code 2 (Error)"
	for _, test := range []struct{ name, status, want string }{
		{"pulling", "{image: 'x:1', state: {waiting: {reason: ErrImagePull, message: rpc error}}}", image},
		{"backing off", "{image: 'x:1', state: {waiting: {reason: ImagePullBackOff, message: Back-off 10s}}}", image},
		{"crashed once", "{state: {terminated: {exitCode: 2}}}", "container main: exited with code 2 (Error)"},
		{"crashed again", "{restartCount: 1, state: {terminated: {exitCode: 2}}}", crash},
		{"waiting after a crash", "{restartCount: 1, state: {waiting: {reason: CrashLoopBackOff, message: back-off 20s}}, lastState: {terminated: {exitCode: 2}}}", crash},
		{"running after a crash", "{restartCount: 1, state: {running: {}}, lastState: {terminated: {exitCode: 2}}}", crash},
		{"ready after a crash", "{ready: true, restartCount: 1, state: {running: {}}, lastState: {terminated: {exitCode: 2}}}", ""},
		{"starting", "{state: {waiting: {reason: ContainerCreating}}}", ""},
		{"without its config", "{state: {waiting: {reason: CreateContainerConfigError, message: no config}}}", "container main: CreateContainerConfigError: no config"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var s corev1.ContainerStatus
			if err := yaml.UnmarshalStrict([]byte(test.status), &s); err != nil {
				t.Fatal(err)
			}
			s.Name = "main"
			pod := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{s}}}
			if got := troubleOf(pod).text; got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
