// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	goodImage   = "registry.example.com/x:1"
	brokenImage = "registry.example.com/x:broken"
)

// TestWorkloads has the real controllers and kwok play together.
func TestWorkloads(t *testing.T) {
	t.Parallel()
	r := startUp(t)
	client := r.client(t, "dev-1")
	t.Run("loopback", func(t *testing.T) { wantLoopback(t, r.pids) })
	var broken *corev1.Pod
	t.Run("all", func(t *testing.T) {
		t.Run("deployment", func(t *testing.T) { t.Parallel(); deploymentIsAvailable(t, client) })
		t.Run("broken", func(t *testing.T) { t.Parallel(); broken = brokenIsNot(t, client) })
		t.Run("job", func(t *testing.T) { t.Parallel(); jobCompletes(t, client) })
		t.Run("broken job", func(t *testing.T) { t.Parallel(); brokenJobLetsGo(t, client) })
		t.Run("stateful set", func(t *testing.T) { t.Parallel(); statefulSetHasVolumes(t, client) })
		t.Run("namespace", func(t *testing.T) { t.Parallel(); namespaceGoes(t, client) })
	})
	if broken == nil {
		return
	}
	// Some seconds later: nothing happened to it, not even the same again.
	pod, err := client.CoreV1().Pods(broken.Namespace).Get(t.Context(), broken.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if pod.ResourceVersion != broken.ResourceVersion {
		t.Errorf("the broken pod changed to %+v", pod.Status)
	}
}

func deploymentIsAvailable(t *testing.T, client kubernetes.Interface) {
	ns := newNamespace(t, client, "good")
	newDeployment(t, client, ns, podSpec(goodImage))
	var got *appsv1.Deployment
	eventually(t, "the deployment to be available", func(ctx context.Context) (err error) {
		if got, err = client.AppsV1().Deployments(ns).Get(ctx, "app", metav1.GetOptions{}); err != nil {
			return err
		}
		return condition(deploymentAvailable(got), got.Status)
	})
	// The one who wrote the status is known by the name it has everywhere.
	if !slices.ContainsFunc(got.ManagedFields, func(m metav1.ManagedFieldsEntry) bool { return m.Manager == controllerManagerName }) {
		t.Errorf("field managers: %+v", got.ManagedFields)
	}
}

func brokenIsNot(t *testing.T, client kubernetes.Interface) (broken *corev1.Pod) {
	ns := newNamespace(t, client, "broken")
	spec := podSpec(goodImage)
	spec.Containers = append(spec.Containers, corev1.Container{Name: "second", Image: brokenImage})
	newDeployment(t, client, ns, spec)
	eventually(t, "ImagePullBackOff", func(ctx context.Context) error {
		pods, err := client.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, pod := range pods.Items {
			for _, c := range pod.Status.ContainerStatuses {
				if c.State.Waiting != nil && c.State.Waiting.Reason == "ImagePullBackOff" {
					broken = &pod
					return nil
				}
			}
		}
		return fmt.Errorf("pods: %+v", pods.Items)
	})
	const message = `Back-off pulling image "` + brokenImage + `": ErrImagePull: ` + brokenImage + `: not found`
	second := broken.Status.ContainerStatuses[1]
	if broken.Status.Phase != corev1.PodPending || second.Ready || second.State.Waiting.Message != message {
		t.Errorf("broken pod: %+v", broken.Status)
	}
	for _, c := range broken.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status != corev1.ConditionFalse {
			t.Errorf("broken pod: condition %+v", c)
		}
	}
	got, err := client.AppsV1().Deployments(ns).Get(t.Context(), "app", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if deploymentAvailable(got) || got.Status.ReadyReplicas > 0 {
		t.Errorf("deployment of a broken image: %+v", got.Status)
	}
	return broken
}

func jobCompletes(t *testing.T, client kubernetes.Interface) {
	ns := newNamespace(t, client, "job")
	newJob(t, client, ns, podSpec(goodImage))
	eventually(t, "the job to complete", func(ctx context.Context) error {
		job, err := client.BatchV1().Jobs(ns).Get(ctx, "job", metav1.GetOptions{})
		if err != nil {
			return err
		}
		return condition(job.Status.Succeeded == 1 && job.Status.CompletionTime != nil, job.Status)
	})
}

// brokenJobLetsGo: a pod of a Job carries a finalizer. The controller of a Job
// that replaces pods only when they failed takes it off only when the pod has
// come to an end; deleted without one, the pod stays for ever.
func brokenJobLetsGo(t *testing.T, client kubernetes.Interface) {
	ns := newNamespace(t, client, "broken-job")
	newJob(t, client, ns, podSpec(brokenImage), func(j *batchv1.Job) {
		j.Spec.PodReplacementPolicy = new(batchv1.Failed)
	})
	var first corev1.Pod
	eventually(t, "a pod of the job", func(ctx context.Context) error {
		pods, err := client.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(pods.Items) != 1 || len(pods.Items[0].Status.ContainerStatuses) == 0 {
			return fmt.Errorf("pods: %+v", pods.Items)
		}
		first = pods.Items[0]
		return nil
	})
	if err := client.CoreV1().Pods(ns).Delete(t.Context(), first.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod to go", func(ctx context.Context) error {
		return wantNotFound(client.CoreV1().Pods(ns).Get(ctx, first.Name, metav1.GetOptions{}))
	})
}

func statefulSetHasVolumes(t *testing.T, client kubernetes.Interface) {
	ns := newNamespace(t, client, "stateful")
	labels := map[string]string{"app": "db"}
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "db"},
		Spec: appsv1.StatefulSetSpec{
			ServiceName: "db",
			Replicas:    new(int32(2)),
			Selector:    &metav1.LabelSelector{MatchLabels: labels},
			Template:    corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec(goodImage)},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: "data"},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources: corev1.VolumeResourceRequirements{
						Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
					},
				},
			}},
		},
	}
	if _, err := client.AppsV1().StatefulSets(ns).Create(t.Context(), set, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the stateful set to be ready", func(ctx context.Context) error {
		got, err := client.AppsV1().StatefulSets(ns).Get(ctx, "db", metav1.GetOptions{})
		if err != nil {
			return err
		}
		return condition(got.Status.ReadyReplicas == 2, got.Status)
	})
}

func namespaceGoes(t *testing.T, client kubernetes.Interface) {
	ns := newNamespace(t, client, "gone")
	newDeployment(t, client, ns, podSpec(goodImage))
	newJob(t, client, ns, podSpec(brokenImage))
	if err := client.CoreV1().Namespaces().Delete(t.Context(), ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace to go", func(ctx context.Context) error {
		return wantNotFound(client.CoreV1().Namespaces().Get(ctx, ns, metav1.GetOptions{}))
	})
}

func newNamespace(t *testing.T, client kubernetes.Interface, name string) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return name
}

func newDeployment(t *testing.T, client kubernetes.Interface, ns string, spec corev1.PodSpec) {
	t.Helper()
	labels := map[string]string{"app": "app"}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "app"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
		},
	}
	if _, err := client.AppsV1().Deployments(ns).Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func newJob(t *testing.T, client kubernetes.Interface, ns string, spec corev1.PodSpec, change ...func(*batchv1.Job)) {
	t.Helper()
	spec.RestartPolicy = corev1.RestartPolicyNever
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "job"},
		Spec:       batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: spec}},
	}
	for _, f := range change {
		f(job)
	}
	if _, err := client.BatchV1().Jobs(ns).Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func podSpec(image string) corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}}
}

func deploymentAvailable(d *appsv1.Deployment) bool {
	return slices.ContainsFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
		return c.Type == appsv1.DeploymentAvailable && c.Status == corev1.ConditionTrue
	})
}

// clusterID is what tells one cluster from another.
func clusterID(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	ns, err := client.CoreV1().Namespaces().Get(t.Context(), metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return string(ns.UID)
}

// condition is an error that shows got unless ok.
func condition(ok bool, got any) error {
	if ok {
		return nil
	}
	return fmt.Errorf("%+v", got)
}

// wantNotFound takes the results of a Get.
func wantNotFound[T any](got T, err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("still there: %+v", got)
}
