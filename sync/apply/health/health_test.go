// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestJudge(t *testing.T) {
	for _, test := range []struct {
		name, live string
		want       Health
	}{
		{"custom resource without a status", "{apiVersion: x/v1, kind: Thing}", Health{State: Healthy}},
		{"custom resource that is not observed yet",
			"{apiVersion: x/v1, kind: Thing, metadata: {generation: 2}, status: {observedGeneration: 1}}",
			Health{State: Progressing, Reason: "thing generation is 2, but latest observed generation is 1"}},
		{"custom resource that is not ready",
			"{apiVersion: x/v1, kind: Thing, status: {conditions: [{type: Ready, status: 'False', message: no such\n  zone}]}}",
			Health{State: Progressing, Reason: "no such zone"}},
		{"custom resource that gave up",
			"{apiVersion: x/v1, kind: Thing, status: {conditions: [{type: Stalled, status: 'True', message: No quota.}]}}",
			Health{State: Failed, Reason: "no quota"}},
		{"leaving", "{apiVersion: v1, kind: Namespace, metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}}",
			Health{State: Progressing, Reason: "resource scheduled for deletion"}},
		{"job under way", "{apiVersion: batch/v1, kind: Job, status: {startTime: '2026-01-01T00:00:00Z', active: 1}}",
			Health{State: Progressing, Reason: "not complete"}},
		{"job on its second pod", "{apiVersion: batch/v1, kind: Job, status: {startTime: '2026-01-01T00:00:00Z', active: 1, failed: 1}}",
			Health{State: Progressing, Reason: "not complete, 1 pods failed"}},
		{"job not started", "{apiVersion: batch/v1, kind: Job}", Health{State: Progressing, Reason: "job not started"}},
		{"job suspended", "{apiVersion: batch/v1, kind: Job, spec: {suspend: true}}", Health{State: Healthy}},
		{"job done", "{apiVersion: batch/v1, kind: Job, status: {conditions: [{type: Complete, status: 'True'}]}}", Health{State: Healthy}},
		{"job failed", "{apiVersion: batch/v1, kind: Job, status: {failed: 1, conditions: [{type: Failed, status: 'True', message: Too slow}]}}",
			Health{State: Failed, Reason: "too slow"}},
		{"stateful set", "{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 3}, status: {replicas: 3, readyReplicas: 1}}",
			Health{State: Progressing, Reason: "1 of 3 replicas ready"}},
		{"deployment in mid-update",
			"{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 2}, status: {replicas: 3, updatedReplicas: 1, readyReplicas: 2}}",
			Health{State: Progressing, Reason: "1 of 2 replicas updated"}},
		{"deployment without pods", "{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 2}}",
			Health{State: Progressing, Reason: "0 of 2 replicas created"}},
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
			got, err := Of(&live)
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
			if got := troubleOf(pod).Text; got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestTroubleOfAPod(t *testing.T) {
	const spec = "spec: {initContainers: [{name: init}], containers: [{name: side}, {name: main, startupProbe: {}, readinessProbe: {}}, {name: plain, readinessProbe: {}}]}"
	for _, test := range []struct{ name, status, want string }{
		{"well", "containerStatuses: [{name: main, ready: true, started: true, state: {running: {}}}]", ""},
		{"starting", "containerStatuses: [{name: side, ready: false, state: {running: {}}}]", ""},
		{"startup probe", "containerStatuses: [{name: main, started: false, state: {running: {}}}]", "container main: running, but its startup probe has not succeeded"},
		{"readiness probe", "containerStatuses: [{name: main, started: true, state: {running: {}}}]", "container main: running, but its readiness probe does not succeed"},
		{"another one", "containerStatuses: [{name: main, ready: true, started: true, state: {running: {}}}, {name: plain, started: true, state: {running: {}}}]",
			"container plain: running, but its readiness probe does not succeed"},
		{"the worse one", "containerStatuses: [{name: main, started: true, state: {running: {}}}, {name: plain, state: {terminated: {exitCode: 137, reason: OOMKilled}}}]",
			"container plain: exited with code 137 (OOMKilled)"},
		{"an init container", "initContainerStatuses: [{name: init, state: {terminated: {exitCode: 1}}}]", "container init: exited with code 1 (Error)"},
		{"evicted", "{phase: Failed, reason: Evicted, message: 'The node was low on resource: memory. '}", "Evicted: The node was low on resource: memory."},
		{"gates", "conditions: [{type: Ready, status: 'False', reason: ReadinessGatesNotReady, message: no gate}]", "ReadinessGatesNotReady: no gate"},
		{"not ready", "conditions: [{type: Ready, status: 'False', reason: ContainersNotReady, message: x}]", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			status := test.status
			if !strings.HasPrefix(status, "{") {
				status = "{" + status + "}"
			}
			var pod corev1.Pod
			if err := yaml.UnmarshalStrict([]byte("{"+spec+", status: "+status+"}"), &pod); err != nil {
				t.Fatal(err)
			}
			if got := troubleOf(&pod).Text; got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestWithoutPodNames(t *testing.T) {
	long := strings.Repeat("long-", 12) + "name" // 64 characters, of which a pod's name keeps 58
	for _, test := range []struct{ workload, text, want string }{
		{"web", `pods "web-7d4b9c5f68-xk2v9" is forbidden`, `pods "web" is forbidden`},
		{"web", "Pod shop/web-xk2v9 and web-x9s5f", "Pod shop/web and web"},
		{"web", "web-0, web-data, my-web-xk2v9x, webs", "web-0, web-data, my-web-xk2v9x, webs"},
		{"a.b", "a.b-xk2v9 axb-xk2v9", "a.b axb-xk2v9"},
		{long, `pods "` + long[:58] + `xk2v9" and "` + long[:52] + `-5d8f-xk2v9"`, `pods "` + long + `" and "` + long + `"`},
	} {
		if got := WithoutPodNames(test.text, test.workload); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}
