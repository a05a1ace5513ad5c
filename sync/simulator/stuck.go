// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// revisionOf is the revision of a StatefulSet's template. One that is put back gets
// another name here than it had.
func revisionOf(set *appsv1.StatefulSet) string {
	return fmt.Sprintf("%s-%d", set.Name, set.Generation)
}

// waitsForPod says that a StatefulSet has a pod of an earlier revision that is not ready,
// and keeps it: see [Readiness.KeepsPods].
func (c *Cluster) waitsForPod(set *appsv1.StatefulSet) bool {
	if !c.Ready.KeepsPods {
		return false
	}
	waits := false
	c.ownedBy(set.UID, func(k *kind, pod object) {
		waits = waits || k.GroupVersionKind == podKind && pod.GetLabels()[appsv1.ControllerRevisionHashLabelKey] != revisionOf(set)
	})
	return waits
}

// asFirst makes a pod the first one of a StatefulSet, at a revision that never got ready.
func asFirst(set *appsv1.StatefulSet, pod *corev1.Pod) {
	now := metav1.Now()
	pod.Name = set.Name + "-0"
	pod.Labels = maps.Clone(pod.Labels)
	pod.Labels[appsv1.ControllerRevisionHashLabelKey] = revisionOf(set)
	pod.Status.StartTime = &now
	unready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: now}
	pod.Status.Conditions = []corev1.PodCondition{unready}
}

// lookAgain has the StatefulSet of a pod that was deleted make its pods.
func (c *Cluster) lookAgain(owner *kind, name key, uid types.UID) {
	set, ok := c.find(owner, name).(*appsv1.StatefulSet)
	if ok && c.Ready.KeepsPods && set.UID == uid && set.DeletionTimestamp == nil {
		c.lookAfter(owner, set, !c.Ready.Never, c.Ready.brokenContainer(&set.Spec.Template.Spec))
	}
}
