// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
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
	t.Parallel()
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
	t.Parallel()
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
	t.Parallel()
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
	const why = " is forbidden: exceeded quota: none, requested: pods=1, used: pods=0, limited: pods=0"
	for _, test := range []struct{ kind, spec, want string }{
		{"apps/v1, kind: Deployment", "selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: main, image: 'x:1'}]}}",
			`0 of 1 replicas created: pods "x"` + why},
		{"apps/v1, kind: ReplicaSet", "selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: main, image: 'x:1'}]}}",
			`replica Failure condition. Check Pods: pods "x"` + why},
		{"apps/v1, kind: StatefulSet", "serviceName: x, selector: {matchLabels: {app: z0}}, template: {metadata: {labels: {app: z0}}, spec: {containers: [{name: main, image: 'x:1'}]}}",
			`0 of 1 replicas created: FailedCreate: Create Pod x-0 in StatefulSet x failed error: pods "x-0"` + why},
		{"apps/v1, kind: DaemonSet", "selector: {matchLabels: {app: z1}}, template: {metadata: {labels: {app: z1}}, spec: {containers: [{name: main, image: 'x:1'}]}}",
			`0 of 2 replicas current: FailedCreate: Error creating: pods "x"` + why},
		{"batch/v1, kind: Job", "template: {spec: {restartPolicy: Never, containers: [{name: main, image: 'x:1'}]}}",
			`not complete: FailedCreate: Error creating: pods "x"` + why},
	} {
		o := object(t, "{apiVersion: %s, metadata: {name: x, namespace: %s}, spec: {%s}}", test.kind, ns, test.spec)
		applied(t, c, o)
		becomes(t, c, Health{Progressing, o.ID.String() + ": " + test.want}, o)
	}
}

// patchPod changes the status of a pod as a kubelet would, once there is one.
func patchPod(t *testing.T, namespace, labels, status string) (pod string) {
	t.Helper()
	client := somebody(t).Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace(namespace)
	eventually(t, func() (bool, string) {
		pods, err := client.List(t.Context(), metav1.ListOptions{LabelSelector: labels})
		if err != nil {
			t.Fatal(err)
		}
		if len(pods.Items) == 0 {
			return false, "no pod of " + labels
		}
		// What kwok sets comes first.
		if all, _, _ := unstructured.NestedSlice(pods.Items[0].Object, "status", "containerStatuses"); len(all) == 0 {
			return false, "not started"
		}
		pod = pods.Items[0].GetName()
		_, err = client.Patch(t.Context(), pod, types.StrategicMergePatchType, []byte(`{"status":`+status+`}`), metav1.PatchOptions{}, "status")
		return err == nil, fmt.Sprint(err)
	})
	return pod
}

func livePod(t *testing.T, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	pod, err := somebody(t).Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

func nodeOf(t *testing.T, namespace, pod string) string {
	node, _, _ := unstructured.NestedString(livePod(t, namespace, pod).Object, "spec", "nodeName")
	return node
}

// TestHealthNamesAClaim: one that is a part of the unit, and those that pods
// wait for.
func TestHealthNamesAClaim(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{})
	ns := space(t)
	const none = `not bound: ProvisioningFailed: storageclass.storage.k8s.io "none" not found`
	for _, test := range []struct{ text, want string }{
		{"{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: %s}, spec: {storageClassName: none, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}", none},
		{`{apiVersion: apps/v1, kind: Deployment, metadata: {name: uses, namespace: %s}, spec: {selector: {matchLabels: {app: uses}}, template: {metadata: {labels: {app: uses}},
spec: {containers: [{name: main, image: 'x:1'}], volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]}}}}`, "0 of 1 replicas available: claim data: " + none},
		{`{apiVersion: apps/v1, kind: Deployment, metadata: {name: lacks, namespace: %s}, spec: {selector: {matchLabels: {app: lacks}}, template: {metadata: {labels: {app: lacks}},
spec: {containers: [{name: main, image: 'x:1'}], volumes: [{name: v, persistentVolumeClaim: {claimName: nothing}}]}}}}`, "0 of 1 replicas available: claim nothing: not found"},
		{`{apiVersion: apps/v1, kind: Deployment, metadata: {name: own, namespace: %s}, spec: {selector: {matchLabels: {app: own}}, template: {metadata: {labels: {app: own}},
spec: {containers: [{name: main, image: 'x:1'}], volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: none, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}]}}}}`,
			"0 of 1 replicas available: claim of volume v: " + none},
		{`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, namespace: %s}, spec: {serviceName: db, replicas: 2, selector: {matchLabels: {app: db}}, template: {metadata: {labels: {app: db}},
spec: {containers: [{name: main, image: 'x:1'}]}}, volumeClaimTemplates: [{metadata: {name: data}, spec: {storageClassName: none, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}}`,
			"1 of 2 replicas created: pod 0: claim data-db-0: " + none},
	} {
		o := object(t, test.text, ns)
		applied(t, c, o)
		becomes(t, c, Health{Progressing, o.ID.String() + ": " + test.want}, o)
	}
}

// TestHealthOfAClaimThatWaitsForItsPod: nobody does anything for it until a pod
// uses it, so it is well, alone too; then it is not until it is bound.
func TestHealthOfAClaimThatWaitsForItsPod(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	discard(t, schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}, "", ns)
	class := object(t, "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: %s}, provisioner: example.com/none, volumeBindingMode: WaitForFirstConsumer}", ns)
	claim := object(t, "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: %[1]s}, spec: {storageClassName: %[1]s, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}", ns)
	applied(t, c, class, claim)
	becomes(t, c, Health{State: Healthy}, claim)
	uses := object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: uses, namespace: %s}, spec: {selector: {matchLabels: {app: uses}}, template: {metadata: {labels: {app: uses}},
spec: {containers: [{name: main, image: 'x:1'}], volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]}}}}`, ns)
	applied(t, c, uses)
	eventually(t, func() (bool, string) {
		got := healthOf(t, c, claim)
		return got.State == Progressing && strings.Contains(got.Reason, "not bound: "), fmt.Sprint(got)
	})
}

const workload = `
apiVersion: apps/v1
kind: %[1]s
metadata: {name: %[2]s, namespace: %[3]s}
spec:
  %[4]s
  selector: {matchLabels: {app: %[2]s}}
  template:
    metadata: {labels: {app: %[2]s}}
    spec: {containers: [{name: side, image: "side:1"}, {name: main, image: "main:1", readinessProbe: {exec: {command: [ready]}}, startupProbe: {exec: {command: [started]}}}]}
`

// TestHealthNamesTheContainerWhoseProbeFails: with the ordinal of a StatefulSet's
// pod, and the node of a DaemonSet's.
func TestHealthNamesTheContainerWhoseProbeFails(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{})
	ns := space(t)
	web := object(t, workload, "Deployment", "web", ns, "replicas: 1")
	db := object(t, workload, "StatefulSet", "db", ns, "replicas: 2")
	agent := object(t, workload, "DaemonSet", "agent", ns, "")
	applied(t, c, web, db, agent)
	becomes(t, c, Health{State: Healthy}, web, db, agent)

	unready := func(started bool) string {
		return fmt.Sprintf(`{"conditions":[{"type":"Ready","status":"False","reason":"ContainersNotReady"},{"type":"ContainersReady","status":"False","reason":"ContainersNotReady"}],
"containerStatuses":[{"name":"side","image":"side:1","imageID":"","ready":true,"started":true,"restartCount":0,"state":{"running":{}}},
{"name":"main","image":"main:1","imageID":"","ready":false,"started":%t,"restartCount":0,"state":{"running":{}}}]}`, started)
	}
	patchPod(t, ns, "app=web", unready(false))
	becomes(t, c, Health{Progressing, web.ID.String() + ": 0 of 1 replicas available: container main: running, but its startup probe has not succeeded"}, web)
	patchPod(t, ns, "app=web", unready(true))
	becomes(t, c, Health{Progressing, web.ID.String() + ": 0 of 1 replicas available: container main: running, but its readiness probe does not succeed"}, web)
	patchPod(t, ns, "statefulset.kubernetes.io/pod-name=db-1", unready(true))
	becomes(t, c, Health{Progressing, db.ID.String() + ": 1 of 2 replicas ready: pod 1: container main: running, but its readiness probe does not succeed"}, db)
	node := nodeOf(t, ns, patchPod(t, ns, "app=agent", unready(true)))
	becomes(t, c, Health{Progressing, agent.ID.String() + ": 1 of 2 replicas available: on node " + node + ": container main: running, but its readiness probe does not succeed"}, agent)

	// A pod that is not started says nothing in its status.
	pod := patchPod(t, ns, "statefulset.kubernetes.io/pod-name=db-1", `{"containerStatuses":[{"name":"main","image":"main:1","imageID":"","ready":false,"started":false,"restartCount":0,"state":{"waiting":{"reason":"ContainerCreating"}}}]}`)
	becomes(t, c, Health{Progressing, db.ID.String() + ": 1 of 2 replicas ready: pod 1: not ready"}, db)
	kubelet := func(pod, reason, message string) {
		create(t, schema.GroupVersionResource{Version: "v1", Resource: "events"}, fmt.Sprintf(`{apiVersion: v1, kind: Event, metadata: {name: %[2]s.%[3]s, namespace: %[1]s}, type: Warning, reason: %[4]s, message: %[5]q,
involvedObject: {apiVersion: v1, kind: Pod, namespace: %[1]s, name: %[2]s, uid: %[6]s}}`, ns, pod, strings.ToLower(reason), reason, message, livePod(t, ns, pod).GetUID()))
	}
	kubelet(pod, "BackOff", "another thing")
	kubelet(pod, "FailedMount", `MountVolume.SetUp failed for volume "v" : configmap "lost" not found`)
	becomes(t, c, Health{Progressing, db.ID.String() + `: 1 of 2 replicas ready: pod 1: FailedMount: MountVolume.SetUp failed for volume "v" : configmap "lost" not found`}, db)
}

func TestHealthSaysHowAJobFailed(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{})
	ns := space(t)
	for _, test := range []struct{ name, policy, want string }{
		{"plain", "", "job has reached the specified backoff limit: container main: exited with code 137 (OOMKilled)"},
		{"policy", "podFailurePolicy: {rules: [{action: FailJob, onExitCodes: {operator: In, values: [137]}}]}",
			"container main for pod " + ns + "/policy failed with exit code 137 matching FailJob rule at index 0: container main: exited with code 137 (OOMKilled)"},
	} {
		job := object(t, `
apiVersion: batch/v1
kind: Job
metadata: {name: %s, namespace: %s}
spec:
  backoffLimit: 0
  %s
  template: {spec: {restartPolicy: Never, containers: [{name: main, image: "main:broken"}]}}
`, test.name, ns, test.policy)
		applied(t, c, job)
		patchPod(t, ns, "batch.kubernetes.io/job-name="+test.name, `{"phase":"Failed","containerStatuses":[{"name":"main","image":"main:broken","imageID":"","ready":false,"restartCount":0,
"state":{"waiting":null,"terminated":{"exitCode":137,"reason":"OOMKilled"}}}]}`)
		becomes(t, c, Health{Failed, job.ID.String() + ": " + test.want}, job)
	}
}

func TestHealthOfAJobIsItsCompletion(t *testing.T) {
	t.Parallel()
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
			if got := troubleOf(&pod).text; got != test.want {
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
		if got := withoutPodNames(test.text, test.workload); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}
