// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ReplacesInOrder says that a StatefulSet has pods to replace and waits for each pod to be
// ready before it touches the next one. Its status must be about the object as it is now.
func ReplacesInOrder(set *appsv1.StatefulSet) bool {
	switch {
	case set.Spec.PodManagementPolicy == appsv1.ParallelPodManagement,
		set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType,
		set.DeletionTimestamp != nil,
		set.Status.ObservedGeneration != set.Generation,
		set.Status.UpdateRevision == "":
		return false
	}
	return set.Status.UpdatedReplicas < wantedReplicas(set)
}

func wantedReplicas(set *appsv1.StatefulSet) int32 {
	if set.Spec.Replicas == nil {
		return 1
	}
	return *set.Spec.Replicas
}

// StuckPod returns the pod that a StatefulSet waits for and never replaces; nil where it
// waits for none such. pods are all that its selector picks, those that are leaving too.
//
// A StatefulSet which [ReplacesInOrder] does nothing before the first of its pods that is
// not ready is ready. A pod of an earlier revision that never gets ready therefore keeps
// all others from the present revision, also after the template was put back:
// https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#forced-rollback.
// It is not stuck while a pod is leaving, or before its turn: while a pod before it is
// missing or not ready, or where a partition has it keep its revision.
func StuckPod(set *appsv1.StatefulSet, pods []corev1.Pod) *corev1.Pod {
	if !ReplacesInOrder(set) {
		return nil
	}
	start, kept := 0, 0
	if set.Spec.Ordinals != nil {
		start = int(set.Spec.Ordinals.Start)
	}
	if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.Partition != nil {
		kept = int(*rolling.Partition)
	}
	byOrdinal := map[int]*corev1.Pod{}
	for i := range pods {
		if !metav1.IsControlledBy(&pods[i], set) {
			continue
		}
		if pods[i].DeletionTimestamp != nil {
			return nil
		}
		byOrdinal[ordinal(pods[i].Name)] = &pods[i]
	}
	for n := range int(wantedReplicas(set)) {
		pod := byOrdinal[start+n]
		switch {
		case pod == nil:
			return nil
		case isReady(pod):
		case n < kept || hasEnded(pod) || !hasEarlierRevision(set, pod):
			return nil
		default:
			return pod
		}
	}
	return nil
}

// hasEnded says that the StatefulSet replaces the pod by itself.
func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// Revision returns the revision of the template that a pod was made of.
func Revision(pod *corev1.Pod) string { return pod.Labels[appsv1.ControllerRevisionHashLabelKey] }

func hasEarlierRevision(set *appsv1.StatefulSet, pod *corev1.Pod) bool {
	return Revision(pod) != "" && Revision(pod) != set.Status.UpdateRevision
}

// NeverReady says that a pod was not ready at any time since it was made. It is false where
// that is not proved.
//
// The proof is the condition Ready: a kubelet writes it together with the start time, as
// False, and its time of transition changes only with its status. Both are in whole
// seconds, and written one after the other. The number of restarts proves nothing, and
// neither does one container that was ready: the pod is when all of them are. A container
// that is not ready must explain the condition: a readiness gate is somebody else's.
func NeverReady(pod *corev1.Pod) bool {
	n := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady })
	statuses := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	started := pod.Status.StartTime
	if n < 0 { // no kubelet has seen it
		return started == nil && len(statuses) == 0
	}
	ready := pod.Status.Conditions[n]
	if ready.Status != corev1.ConditionFalse || started == nil || ready.LastTransitionTime.After(started.Add(time.Second)) {
		return false
	}
	return slices.ContainsFunc(statuses, func(s corev1.ContainerStatus) bool { return !s.Ready })
}

// IsBroken says that a container of the pod cannot be started, or ended with an error. A
// pod that is only slow is not broken.
func IsBroken(pod *corev1.Pod) bool { return troubleOf(pod).weight >= weightContainer }
