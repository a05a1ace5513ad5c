// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"fmt"
	"regexp"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Readiness is how workloads become ready. The zero value: as soon as somebody looks,
// but for those with an image that cannot be pulled.
type Readiness struct {
	// After is how long a workload takes to become ready, and a Job to complete.
	After time.Duration
	// Never: none does.
	Never bool
	// Broken says which images cannot be pulled. Nil is those with the tag "broken",
	// as in a devcluster.
	Broken func(image string) bool
	// KeepsPods: a StatefulSet keeps a pod that waits for an image, and makes no other
	// one, until somebody deletes the pod; as Kubernetes does where pods start in order.
	KeepsPods bool
}

var brokenTag = regexp.MustCompile(`:broken(@.*)?$`)

// brokenContainer is the container with an image that cannot be pulled; nil when there is
// none.
func (r Readiness) brokenContainer(s *corev1.PodSpec) *corev1.Container {
	broken := r.Broken
	if broken == nil {
		broken = brokenTag.MatchString
	}
	for i := range s.Containers {
		if broken(s.Containers[i].Image) {
			return &s.Containers[i]
		}
	}
	return nil
}

// start has a workload looked after when its spec changed: at once it is seen, and
// after a while it is ready.
func (c *Cluster) start(k *kind, o object) {
	if k.GroupVersionKind == podKind {
		at := keyOf(o)
		c.later(0, func() { c.mend(at) })
		return
	}
	_, template := podsOf(o)
	job, isJob := o.(*batchv1.Job)
	if template == nil || isJob && job.Spec.ManagedBy != nil && *job.Spec.ManagedBy != batchv1.JobControllerName {
		return
	}
	at, uid, generation := keyOf(o), o.GetUID(), o.GetGeneration()
	look := func(ready bool) func() {
		return func() {
			if now := c.find(k, at); now != nil && now.GetUID() == uid && now.GetGeneration() == generation && now.GetDeletionTimestamp() == nil {
				c.lookAfter(k, now, ready, c.Ready.brokenContainer(&template.Spec))
			}
		}
	}
	if c.Ready.Never || c.Ready.After > 0 {
		c.later(0, look(false))
	}
	if !c.Ready.Never {
		c.later(c.Ready.After, look(true))
	}
	if isJob && job.Spec.ActiveDeadlineSeconds != nil && !*job.Spec.Suspend {
		c.later(time.Duration(*job.Spec.ActiveDeadlineSeconds)*time.Second, func() {
			if now := c.find(k, at); now != nil && now.GetUID() == uid && now.GetGeneration() == generation {
				c.controllerUpdate(k, at, "status", func(o object) { failJob(o.(*batchv1.Job)) })
			}
		})
	}
	if d, ok := o.(*appsv1.Deployment); ok && (c.Ready.Never || c.Ready.brokenContainer(&template.Spec) != nil) {
		c.later(time.Duration(*d.Spec.ProgressDeadlineSeconds)*time.Second, func() {
			if now := c.find(k, at); now != nil && now.GetUID() == uid && now.GetGeneration() == generation {
				c.controllerUpdate(k, at, "status", giveUp)
			}
		})
	}
}

// lookAfter writes the status of a workload, and its pods where they wait for an
// image.
func (c *Cluster) lookAfter(k *kind, o object, ready bool, broken *corev1.Container) {
	if set, ok := o.(*appsv1.StatefulSet); ok && c.waitsForPod(set) {
		c.controllerUpdate(k, keyOf(o), "status", func(o object) {
			setStatus(o, false)
			o.(*appsv1.StatefulSet).Status.UpdatedReplicas = 0
		})
		return
	}
	c.forgetPods(o)
	if job, ok := o.(*batchv1.Job); ok && *job.Spec.Suspend {
		broken, ready = nil, false
	}
	if broken != nil {
		ready = false
		_, template := podsOf(o)
		c.addPod(o, template, broken)
	}
	c.controllerUpdate(k, keyOf(o), "status", func(o object) { setStatus(o, ready) })
}

// mend is for a pod that somebody gave another image: its workload is ready when all
// are there.
func (c *Cluster) mend(at key) {
	pod, _ := c.find(c.kindOf(podKind), at).(*corev1.Pod)
	if pod == nil || c.Ready.brokenContainer(&pod.Spec) != nil {
		return
	}
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return
	}
	k := c.kindOf(schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind))
	if o := c.find(k, key{at.namespace, owner.Name}); o != nil && o.GetUID() == owner.UID {
		c.lookAfter(k, o, true, nil)
	}
}

// forgetPods deletes the pods of a workload.
func (c *Cluster) forgetPods(o object) {
	pods := c.kindOf(podKind)
	c.ownedBy(o.GetUID(), func(k *kind, pod object) {
		if k.GroupVersionKind == podKind {
			c.erase(pods, pod)
		}
	})
}

// addPod makes the one pod that is there while an image is not.
func (c *Cluster) addPod(o object, template *corev1.PodTemplateSpec, broken *corev1.Container) {
	pods := c.kindOf(podKind)
	pod := pods.empty().(*corev1.Pod)
	pod.Namespace, pod.Name = o.GetNamespace(), o.GetName()+"-"+fmt.Sprintf("%05d", o.GetGeneration())
	pod.Labels, pod.Annotations = template.Labels, template.Annotations
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(o, o.GetObjectKind().GroupVersionKind())}
	pod.Spec = *template.Spec.DeepCopy()
	if set, ok := o.(*appsv1.StatefulSet); ok && c.Ready.KeepsPods {
		asFirst(set, pod)
	}
	started := pod.Status.DeepCopy()
	c.controllerCreate(pods, pod)
	c.controllerUpdate(pods, keyOf(pod), "status", func(o object) {
		pod := o.(*corev1.Pod)
		if started.StartTime != nil {
			pod.Status.StartTime, pod.Status.Conditions = started.StartTime, started.Conditions
		}
		pod.Status.Phase = corev1.PodPending
		for _, container := range pod.Spec.Containers {
			waits := corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
			if container.Name == broken.Name {
				waits = corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: fmt.Sprintf("Back-off pulling image %q", container.Image)}
			}
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
				Name: container.Name, Image: container.Image, State: corev1.ContainerState{Waiting: &waits},
			})
		}
	})
}

// setStatus says that a workload is ready, or that it is on its way.
func setStatus(o object, ready bool) {
	switch o := o.(type) {
	case *appsv1.Deployment:
		setDeploymentStatus(o, ready)
	case *appsv1.StatefulSet:
		n := readyOf(*o.Spec.Replicas, ready)
		revision := revisionOf(o)
		o.Status = appsv1.StatefulSetStatus{
			ObservedGeneration: o.Generation, Replicas: *o.Spec.Replicas, ReadyReplicas: n, AvailableReplicas: n, CurrentReplicas: n,
			UpdatedReplicas: *o.Spec.Replicas, CurrentRevision: revision, UpdateRevision: revision, CollisionCount: new(int32),
		}
	case *appsv1.DaemonSet:
		n := readyOf(1, ready) // on one node
		o.Status = appsv1.DaemonSetStatus{
			ObservedGeneration: o.Generation, DesiredNumberScheduled: 1, CurrentNumberScheduled: 1, UpdatedNumberScheduled: 1,
			NumberReady: n, NumberAvailable: n, NumberUnavailable: 1 - n,
		}
	case *batchv1.Job:
		setJobStatus(o, ready)
	}
}

func readyOf(n int32, ready bool) int32 {
	if ready {
		return n
	}
	return 0
}

func setDeploymentStatus(d *appsv1.Deployment, ready bool) {
	all := *d.Spec.Replicas
	n := readyOf(all, ready)
	d.Status.ObservedGeneration, d.Status.Replicas, d.Status.UpdatedReplicas = d.Generation, all, all
	d.Status.ReadyReplicas, d.Status.AvailableReplicas, d.Status.UnavailableReplicas = n, n, all-n
	if n == all {
		setCondition(d, appsv1.DeploymentAvailable, corev1.ConditionTrue, "MinimumReplicasAvailable", "Deployment has minimum availability.")
		setCondition(d, appsv1.DeploymentProgressing, corev1.ConditionTrue, "NewReplicaSetAvailable", fmt.Sprintf("ReplicaSet %q has successfully progressed.", d.Name))
		return
	}
	setCondition(d, appsv1.DeploymentAvailable, corev1.ConditionFalse, "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
	setCondition(d, appsv1.DeploymentProgressing, corev1.ConditionTrue, "ReplicaSetUpdated", fmt.Sprintf("ReplicaSet %q is progressing.", d.Name))
}

// giveUp is the end of a Deployment's deadline.
func giveUp(o object) {
	if d := o.(*appsv1.Deployment); d.Status.AvailableReplicas < *d.Spec.Replicas {
		setCondition(d, appsv1.DeploymentProgressing, corev1.ConditionFalse, "ProgressDeadlineExceeded", fmt.Sprintf("ReplicaSet %q has timed out progressing.", d.Name))
	}
}

func setCondition(d *appsv1.Deployment, kind appsv1.DeploymentConditionType, status corev1.ConditionStatus, reason, message string) {
	now := metav1.Now()
	next := appsv1.DeploymentCondition{Type: kind, Status: status, Reason: reason, Message: message, LastUpdateTime: now, LastTransitionTime: now}
	for i, c := range d.Status.Conditions {
		if c.Type == kind {
			if c.Status == status {
				next.LastTransitionTime = c.LastTransitionTime
			}
			d.Status.Conditions[i] = next
			return
		}
	}
	d.Status.Conditions = append(d.Status.Conditions, next)
}

// failJob is the end of a Job's deadline.
func failJob(job *batchv1.Job) {
	if job.Status.CompletionTime != nil || *job.Spec.Suspend {
		return
	}
	now := metav1.Now()
	job.Status.Active, job.Status.Failed, job.Status.Conditions = 0, 1, nil
	for _, kind := range []batchv1.JobConditionType{batchv1.JobFailureTarget, batchv1.JobFailed} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
			Type: kind, Status: corev1.ConditionTrue, Reason: "DeadlineExceeded", Message: "Job was active longer than specified deadline", LastProbeTime: now, LastTransitionTime: now,
		})
	}
}

func setJobStatus(job *batchv1.Job, ready bool) {
	now := metav1.Now()
	if *job.Spec.Suspend {
		job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue, Reason: "JobSuspended", Message: "Job suspended", LastProbeTime: now, LastTransitionTime: now}}
		return
	}
	presetPointer(&job.Status.StartTime, now)
	job.Status.Conditions = nil
	if !ready {
		job.Status.Active = 1
		return
	}
	job.Status.Active, job.Status.Succeeded, job.Status.CompletionTime = 0, 1, &now
	for _, kind := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
			Type: kind, Status: corev1.ConditionTrue, Reason: "CompletionsReached", Message: "Reached expected number of succeeded pods", LastProbeTime: now, LastTransitionTime: now,
		})
	}
}
