// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// stuckSet has three pods, of which the last one got revision db-bad before the template was
// put back to db-good.
const stuckSet = `
metadata: {name: db, namespace: shop, uid: set, generation: 3}
spec: {replicas: 3, podManagementPolicy: OrderedReady, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 0}}}
status: {observedGeneration: 3, replicas: 3, updatedReplicas: 2, currentRevision: db-good, updateRevision: db-good}
`

const stuckPods = `
- metadata: {name: db-0, labels: {controller-revision-hash: db-good}, ownerReferences: [{uid: set, controller: true}]}
  status: {phase: Running, conditions: [{type: Ready, status: "True"}]}
- metadata: {name: db-1, labels: {controller-revision-hash: db-good}, ownerReferences: [{uid: set, controller: true}]}
  status: {phase: Running, conditions: [{type: Ready, status: "True"}]}
- metadata: {name: db-2, labels: {controller-revision-hash: db-bad}, ownerReferences: [{uid: set, controller: true}]}
  status: {phase: Pending, conditions: [{type: Ready, status: "False"}]}
`

func parse[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	if err := yaml.UnmarshalStrict([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestStuckPod(t *testing.T) {
	const last = "labels: {controller-revision-hash: db-bad}, ownerReferences: [{uid: set, controller: true}]"
	for _, test := range []struct{ name, set, pods, want string }{
		{"a pod of a revision that was put back", "", "", "db-2"},
		{"a revision before a good one that is not reached", "currentRevision: db-good=>currentRevision: db-bad", "", "db-2"},
		{"the status is of an earlier generation", "generation: 3}=>generation: 4}", "", ""},
		{"the set is being deleted", "uid: set,=>uid: set, deletionTimestamp: 2026-01-01T00:00:00Z,", "", ""},
		{"no revision is known", "updateRevision: db-good=>updateRevision: ''", "", ""},
		{"pods that are replaced at the same time", "OrderedReady=>Parallel", "", ""},
		{"pods that somebody replaces", "type: RollingUpdate=>type: OnDelete", "", ""},
		{"all pods have the revision", "updatedReplicas: 2=>updatedReplicas: 3", "", ""},
		{"it keeps its revision by a partition", "partition: 0=>partition: 3", "", ""},
		{"it is behind a partition", "partition: 0=>partition: 2", "", "db-2"},
		{"it goes because there are to be fewer", "replicas: 3, pod=>replicas: 2, pod", "", ""},
		{"ordinals begin elsewhere", "replicas: 3, pod=>ordinals: {start: 1}, replicas: 2, pod", "", ""},
		{"ordinals begin with the second one", "replicas: 3, pod=>ordinals: {start: 1}, replicas: 3, pod", "db-0=>db-3", "db-2"},
		{"the pod is ready", "", `Ready, status: "False"=>Ready, status: "True"`, ""},
		{"the pod has the revision that is wanted", "", "db-bad=>db-good", ""},
		{"the pod has no revision", "", last + "=>ownerReferences: [{uid: set, controller: true}]", ""},
		{"the pod is of an earlier set of the name", "", last + "=>" + strings.Replace(last, "uid: set", "uid: other", 1), ""},
		{"the set does not control the pod", "", last + "=>" + strings.Replace(last, ", controller: true", "", 1), ""},
		{"the pod ended, and is replaced", "", "Pending=>Failed", ""},
		{"the pod is leaving", "", "db-2,=>db-2, deletionTimestamp: 2026-01-01T00:00:00Z,", ""},
		{"another pod is leaving", "", "db-0,=>db-0, deletionTimestamp: 2026-01-01T00:00:00Z,", ""},
		{"a pod before it is missing", "", "db-1=>db-7", ""},
		{"a pod before it gets ready", "", `"True"=>"False"`, ""},
	} {
		set, pods := replaced(stuckSet, test.set), replaced(stuckPods, test.pods)
		got, name := StuckPod(new(parse[appsv1.StatefulSet](t, set)), parse[[]corev1.Pod](t, pods)), ""
		if got != nil {
			name = got.Name
		}
		if name != test.want {
			t.Errorf("%s: got %q, want %q", test.name, name, test.want)
		}
	}
}

// replaced makes a change that is written as "before=>after".
func replaced(text, change string) string {
	before, after, _ := strings.Cut(change, "=>")
	if before == "" {
		return text
	}
	if !strings.Contains(text, before) {
		panic(before)
	}
	return strings.Replace(text, before, after, 1)
}

func TestNeverReady(t *testing.T) {
	const unready = `
status:
  startTime: 2026-01-01T00:00:00Z
  conditions: [{type: PodScheduled, status: "True"}, {type: Ready, status: "False", lastTransitionTime: 2026-01-01T00:00:01Z}]
  containerStatuses: [{name: side, ready: true, started: true}, {name: main, ready: false, started: false, restartCount: 0}]
`
	for _, test := range []struct {
		name, change string
		want         bool
	}{
		{"one container of two is not ready since the start", "", true},
		{"a container ended again and again", "restartCount: 0=>restartCount: 7", true},
		{"it was ready for a while", "00:00:01Z=>00:00:02Z", false},
		{"it is ready", `Ready, status: "False"=>Ready, status: "True"`, false},
		{"nobody knows", `Ready, status: "False"=>Ready, status: Unknown`, false},
		{"its start is not known", "startTime: 2026-01-01T00:00:00Z=>phase: Pending", false},
		{"all containers are ready, a gate is not", "ready: false=>ready: true", false},
		{"no condition says so", "type: Ready=>type: Other", false},
	} {
		if got := NeverReady(new(parse[corev1.Pod](t, replaced(unready, test.change)))); got != test.want {
			t.Errorf("%s: got %t", test.name, got)
		}
	}
	if !NeverReady(new(parse[corev1.Pod](t, `status: {phase: Pending, conditions: [{type: PodScheduled, status: "False"}]}`))) {
		t.Error("a pod that no node took was ready")
	}
}

func TestIsBroken(t *testing.T) {
	for _, test := range []struct {
		status string
		want   bool
	}{
		{"{containerStatuses: [{name: main, state: {waiting: {reason: ImagePullBackOff}}}]}", true},
		{"{containerStatuses: [{name: main, state: {waiting: {reason: CreateContainerConfigError}}}]}", true},
		{"{containerStatuses: [{name: main, restartCount: 1, lastState: {terminated: {exitCode: 1}}}]}", true},
		{"{containerStatuses: [{name: main, state: {waiting: {reason: ContainerCreating}}}]}", false},
		{"{containerStatuses: [{name: main, state: {running: {}}}]}", false},
		{`{conditions: [{type: PodScheduled, status: "False", reason: Unschedulable}]}`, false},
	} {
		if got := IsBroken(new(parse[corev1.Pod](t, "status: "+test.status))); got != test.want {
			t.Errorf("%s: got %t", test.status, got)
		}
	}
}

func TestRemedyFor(t *testing.T) {
	const (
		onDelete = "updateStrategy OnDelete keeps each pod of an earlier revision until somebody deletes it:/delete pod NAME"
		byHand   = "spec: {updateStrategy: {type: OnDelete}}"
		job      = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: x}\n"
		web      = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n"
		agent    = "apiVersion: apps/v1\nkind: DaemonSet\n"
		set      = "apiVersion: apps/v1\nkind: StatefulSet\n"
	)
	for _, test := range []struct{ wanted, live, want string }{
		{job, job + `status: {conditions: [{type: Failed, status: "True"}]}`,
			"a Job that failed runs again only when it is made anew, after/delete job x"},
		{job, job + "status: {failed: 1}", "/"},
		{web, web + "spec: {paused: true}", "spec.paused is true, which Git does not say:/rollout resume deployment/x"},
		{web + "spec: {paused: true}", web + "spec: {paused: true}", "spec.paused is true in Git: a commit ends that/"},
		{web, web, "/"},
		{agent, agent + byHand + "\nstatus: {desiredNumberScheduled: 2, updatedNumberScheduled: 1}", onDelete},
		{agent, agent + byHand + "\nstatus: {desiredNumberScheduled: 2, updatedNumberScheduled: 2}", "/"},
		{agent, agent + "spec: {updateStrategy: {type: RollingUpdate}}\nstatus: {desiredNumberScheduled: 2}", "/"},
		{set, set + byHand + "\nstatus: {replicas: 2, updatedReplicas: 1}", onDelete},
	} {
		got := RemedyFor(object(t, test.live), object(t, test.wanted).Object)
		if text := got.Why + "/" + strings.Join(got.Command, " "); text != test.want {
			t.Errorf("%s: got %q", test.live, text)
		}
	}
}

// object has numbers as the server's answers have them.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	body, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var o unstructured.Unstructured
	if err := o.UnmarshalJSON(body); err != nil {
		t.Fatal(err)
	}
	return &o
}
