// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply/health"
	"github.com/swell-sh/swell/sync/drift"
)

// Health is what a check says of health and drift.
func (c *Cluster) Health(ctx context.Context, work Work) (health.Health, []drift.Finding, error) {
	found, err := c.Check(ctx, work)
	return found.Health, found.Drifts, err
}

func healthOf(t *testing.T, c *Cluster, objects ...*object.Object) health.Health {
	t.Helper()
	h, _, err := c.Health(t.Context(), Work{Objects: objects})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// becomes waits for a health.
func becomes(t *testing.T, c *Cluster, want health.Health, objects ...*object.Object) {
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
	objects := []*object.Object{configMap(t, ns, "a", "1"), newObject(t, deployment, ns, "web", "1")}
	if got := healthOf(t, c, objects...); got != (health.Health{State: health.Progressing, Reason: "Deployment/" + ns + "/web: not found"}) {
		t.Errorf("before: %v", got)
	}
	applied(t, c, objects...)
	becomes(t, c, health.Health{State: health.Healthy}, objects...)
}

func TestHealthSaysWhyADeploymentIsNotReady(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	broken := newObject(t, deployment, ns, "web", "broken")
	applied(t, c, broken)
	becomes(t, c, health.Health{State: health.Progressing, Reason: "Deployment/" + ns + "/web: 0 of 1 replicas available: container main: " +
		`ImagePullBackOff: back-off pulling image "registry.example.com/web:broken"`}, broken)
}

func TestHealthFailsWithTheProgressDeadline(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{})
	ns := space(t)
	broken := newObject(t, strings.Replace(deployment, "replicas: 1", "replicas: 1\n  progressDeadlineSeconds: 1", 1), ns, "web", "broken")
	good := newObject(t, deployment, ns, "good", "1")
	applied(t, c, broken, good)
	becomes(t, c, health.Health{State: health.Failed, Reason: "Deployment/" + ns + "/web: progress deadline exceeded: container main: " +
		`ImagePullBackOff: back-off pulling image "registry.example.com/web:broken"`}, good, broken)
}

func TestHealthNamesAPodThatCannotBeScheduled(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	picky := newObject(t, strings.Replace(deployment, "    spec:\n", "    spec:\n      nodeSelector: {no: such}\n", 1), ns, "web", "1")
	applied(t, c, picky)
	eventually(t, func() (bool, string) {
		got := healthOf(t, c, picky)
		want := "Deployment/" + ns + "/web: 0 of 1 replicas available: Unschedulable: 0/"
		return got.State == health.Progressing && strings.HasPrefix(got.Reason, want), got.Reason
	})
}

func TestHealthNamesPodsThatWereRefused(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{})
	ns := space(t)
	quota := newObject(t, "{apiVersion: v1, kind: ResourceQuota, metadata: {name: none, namespace: %s}, spec: {hard: {pods: 0}}}", ns)
	applied(t, c, quota)
	refusesPods(t, ns)
	web := newObject(t, deployment, ns, "web", "1")
	applied(t, c, web)
	eventually(t, func() (bool, string) {
		got := healthOf(t, c, quota, web)
		return got.State == health.Progressing && strings.Contains(got.Reason, "exceeded quota"), got.Reason
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
		o := newObject(t, "{apiVersion: %s, metadata: {name: x, namespace: %s}, spec: {%s}}", test.kind, ns, test.spec)
		applied(t, c, o)
		becomes(t, c, health.Health{State: health.Progressing, Reason: o.ID.String() + ": " + test.want}, o)
	}
}

// refusesPods waits until a namespace admits no pod. An API server goes by a quota once it
// has seen it itself: until then a pod may come in, and it stays.
func refusesPods(t *testing.T, namespace string) {
	t.Helper()
	var pod unstructured.Unstructured
	const text = "{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {containers: [{name: main, image: 'x:1'}]}}"
	if err := yaml.Unmarshal([]byte(text), &pod.Object); err != nil {
		t.Fatal(err)
	}
	pods := somebody(t).Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace(namespace)
	eventually(t, func() (bool, string) {
		_, err := pods.Create(t.Context(), &pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "quota"), fmt.Sprint(err)
	})
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
		o := newObject(t, test.text, ns)
		applied(t, c, o)
		becomes(t, c, health.Health{State: health.Progressing, Reason: o.ID.String() + ": " + test.want}, o)
	}
}

// TestHealthOfAClaimThatWaitsForItsPod: nobody does anything for it until a pod
// uses it, so it is well, alone too; then it is not until it is bound.
func TestHealthOfAClaimThatWaitsForItsPod(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	discard(t, schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}, "", ns)
	class := newObject(t, "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: %s}, provisioner: example.com/none, volumeBindingMode: WaitForFirstConsumer}", ns)
	claim := newObject(t, "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: %[1]s}, spec: {storageClassName: %[1]s, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}", ns)
	applied(t, c, class, claim)
	becomes(t, c, health.Health{State: health.Healthy}, claim)
	uses := newObject(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: uses, namespace: %s}, spec: {selector: {matchLabels: {app: uses}}, template: {metadata: {labels: {app: uses}},
spec: {containers: [{name: main, image: 'x:1'}], volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]}}}}`, ns)
	applied(t, c, uses)
	eventually(t, func() (bool, string) {
		got := healthOf(t, c, claim)
		return got.State == health.Progressing && strings.Contains(got.Reason, "not bound: "), fmt.Sprint(got)
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
	web := newObject(t, workload, "Deployment", "web", ns, "replicas: 1")
	db := newObject(t, workload, "StatefulSet", "db", ns, "replicas: 2")
	agent := newObject(t, workload, "DaemonSet", "agent", ns, "")
	applied(t, c, web, db, agent)
	becomes(t, c, health.Health{State: health.Healthy}, web, db, agent)

	unready := func(started bool) string {
		return fmt.Sprintf(`{"conditions":[{"type":"Ready","status":"False","reason":"ContainersNotReady"},{"type":"ContainersReady","status":"False","reason":"ContainersNotReady"}],
"containerStatuses":[{"name":"side","image":"side:1","imageID":"","ready":true,"started":true,"restartCount":0,"state":{"running":{}}},
{"name":"main","image":"main:1","imageID":"","ready":false,"started":%t,"restartCount":0,"state":{"running":{}}}]}`, started)
	}
	patchPod(t, ns, "app=web", unready(false))
	becomes(t, c, health.Health{State: health.Progressing, Reason: web.ID.String() + ": 0 of 1 replicas available: container main: running, but its startup probe has not succeeded"}, web)
	patchPod(t, ns, "app=web", unready(true))
	becomes(t, c, health.Health{State: health.Progressing, Reason: web.ID.String() + ": 0 of 1 replicas available: container main: running, but its readiness probe does not succeed"}, web)
	patchPod(t, ns, "statefulset.kubernetes.io/pod-name=db-1", unready(true))
	becomes(t, c, health.Health{State: health.Progressing, Reason: db.ID.String() + ": 1 of 2 replicas ready: pod 1: container main: running, but its readiness probe does not succeed"}, db)
	node := nodeOf(t, ns, patchPod(t, ns, "app=agent", unready(true)))
	becomes(t, c, health.Health{State: health.Progressing, Reason: agent.ID.String() + ": 1 of 2 replicas available: on node " + node + ": container main: running, but its readiness probe does not succeed"}, agent)

	// A pod that is not started says nothing in its status.
	pod := patchPod(t, ns, "statefulset.kubernetes.io/pod-name=db-1", `{"containerStatuses":[{"name":"main","image":"main:1","imageID":"","ready":false,"started":false,"restartCount":0,"state":{"waiting":{"reason":"ContainerCreating"}}}]}`)
	becomes(t, c, health.Health{State: health.Progressing, Reason: db.ID.String() + ": 1 of 2 replicas ready: pod 1: not ready"}, db)
	kubelet := func(pod, reason, message string) {
		create(t, schema.GroupVersionResource{Version: "v1", Resource: "events"}, fmt.Sprintf(`{apiVersion: v1, kind: Event, metadata: {name: %[2]s.%[3]s, namespace: %[1]s}, type: Warning, reason: %[4]s, message: %[5]q,
involvedObject: {apiVersion: v1, kind: Pod, namespace: %[1]s, name: %[2]s, uid: %[6]s}}`, ns, pod, strings.ToLower(reason), reason, message, livePod(t, ns, pod).GetUID()))
	}
	kubelet(pod, "BackOff", "another thing")
	kubelet(pod, "FailedMount", `MountVolume.SetUp failed for volume "v" : configmap "lost" not found`)
	becomes(t, c, health.Health{State: health.Progressing, Reason: db.ID.String() + `: 1 of 2 replicas ready: pod 1: FailedMount: MountVolume.SetUp failed for volume "v" : configmap "lost" not found`}, db)
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
		job := newObject(t, `
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
		again := "; a Job that failed runs again only when it is made anew, after kubectl delete job " + test.name + " -n " + ns
		becomes(t, c, health.Health{State: health.Failed, Reason: job.ID.String() + ": " + test.want + again}, job)
	}
}

func TestHealthOfAJobIsItsCompletion(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{})
	ns := space(t)
	job := newObject(t, `
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, namespace: %s}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: "registry.example.com/migrate:1"}]}}}
`, ns)
	applied(t, c, job)
	becomes(t, c, health.Health{State: health.Healthy}, job)
}

func TestHealthReadsOnlyWhatCanBeIll(t *testing.T) {
	c, w := connect(t, Options{})
	ns := space(t)
	var objects []*object.Object
	for kind := range health.Steady {
		o := configMap(t, ns, "a", "1")
		o.ID.Group, o.ID.Kind = kind.Group, kind.Kind
		objects = append(objects, o)
	}
	if got := healthOf(t, c, objects...); got != (health.Health{State: health.Healthy}) {
		t.Error(got)
	}
	if got := healthOf(t, c); got != (health.Health{State: health.Healthy}) {
		t.Errorf("no objects: %v", got)
	}
	if n := len(w.take()); n != 0 {
		t.Errorf("%d requests", n)
	}
}
