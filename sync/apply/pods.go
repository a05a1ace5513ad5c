// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// maxPods is how many pods of a workload are looked through for trouble. One
// is enough in most cases.
const maxPods = 100

// isWorkload says whether an object has pods that can tell why it is not ready.
func isWorkload(live *unstructured.Unstructured) bool {
	switch kind := live.GetKind(); live.GroupVersionKind().Group {
	case "apps":
		return kind == "Deployment" || kind == "StatefulSet" || kind == "DaemonSet" || kind == "ReplicaSet"
	case "batch":
		return kind == "Job"
	}
	return false
}

// podTrouble says why a workload's pods are not ready, "" when nothing tells.
// It names containers, ordinals of a StatefulSet and nodes of a DaemonSet, but
// no pods of other names: those are others in the next pass.
func (c *call) podTrouble(ctx context.Context, workload *unstructured.Unstructured) (string, error) {
	if failure := condition(workload, "ReplicaFailure"); failure["status"] == "True" {
		return withoutPodNames(fmt.Sprint(failure["message"]), workload.GetName()), nil // no pod could even be made
	}
	pods, err := c.podsOf(ctx, workload)
	if err != nil {
		return "", err
	}
	var worst trouble
	var of, unready *corev1.Pod // unready is the first one
	for i := range pods {
		pod := &pods[i]
		if t := troubleOf(pod); t.weight > worst.weight {
			worst, of = t, pod
		}
		if unready == nil && pod.Status.Phase != corev1.PodSucceeded && !isReady(pod) {
			unready = pod
		}
	}
	switch {
	case worst.claims:
		why, err := c.claimsTrouble(ctx, of)
		return which(workload, of) + withoutPodNames(cmp.Or(why, worst.text), workload.GetName()), err
	case worst.weight > 0:
		return which(workload, of) + worst.text, nil
	}
	if int64(len(pods)) < wantedPods(workload) {
		why, err := c.warning(ctx, workload.GetNamespace(), workload.GetUID(), func(reason string) bool { return reason == "FailedCreate" })
		if err != nil || why != "" {
			return withoutPodNames(why, workload.GetName()), err
		}
	}
	if unready == nil {
		return "", nil
	}
	// It is not even started, mostly for a volume that cannot be mounted.
	why, err := c.warning(ctx, unready.Namespace, unready.UID, func(reason string) bool { return strings.HasPrefix(reason, "Failed") })
	if at := which(workload, unready); why != "" || at != "" {
		why = at + cmp.Or(withoutPodNames(why, workload.GetName()), "not ready")
	}
	return why, err
}

// podsOf are the workload's pods that are not leaving, in the order in which
// their troubles are told: by ordinal, by node, or the newest first.
func (c *call) podsOf(ctx context.Context, workload *unstructured.Unstructured) ([]corev1.Pod, error) {
	selector, err := podSelector(workload)
	if err != nil {
		return nil, err
	}
	query := url.Values{"labelSelector": {selector.String()}, "limit": {strconv.Itoa(maxPods)}}
	var pods corev1.PodList
	err = c.getJSON(ctx, "PodList", &request{
		op: "list", object: "pods of " + workload.GetKind() + "/" + workload.GetNamespace() + "/" + workload.GetName(),
		path: "/api/v1/namespaces/" + url.PathEscape(workload.GetNamespace()) + "/pods", query: query.Encode(),
	}, &pods)
	if err != nil {
		return nil, err
	}
	there := slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
	slices.SortStableFunc(there, func(a, b corev1.Pod) int {
		switch workload.GetKind() {
		case "StatefulSet":
			return cmp.Compare(ordinal(a.Name), ordinal(b.Name))
		case "DaemonSet":
			return cmp.Compare(a.Spec.NodeName, b.Spec.NodeName)
		}
		return cmp.Compare(b.CreationTimestamp.Unix(), a.CreationTimestamp.Unix())
	})
	return there, nil
}

// ordinal is that of a StatefulSet's pod; -1 when it has none.
func ordinal(pod string) int {
	n, err := strconv.Atoi(pod[strings.LastIndexByte(pod, '-')+1:])
	if err != nil {
		return -1
	}
	return n
}

// which says which of a workload's pods something is about, where that is
// something that lasts.
func which(workload *unstructured.Unstructured, pod *corev1.Pod) string {
	switch n := ordinal(pod.Name); {
	case workload.GetKind() == "StatefulSet" && n >= 0:
		return fmt.Sprintf("pod %d: ", n)
	case workload.GetKind() == "DaemonSet" && pod.Spec.NodeName != "":
		return fmt.Sprintf("on node %s: ", pod.Spec.NodeName)
	}
	return ""
}

// wantedPods is how many pods a workload is to have at the moment, at least.
func wantedPods(workload *unstructured.Unstructured) int64 {
	switch workload.GetKind() {
	case "DaemonSet":
		n, _, _ := unstructured.NestedInt64(workload.Object, "status", "desiredNumberScheduled")
		return n
	case "Job":
		return 1
	}
	n, found, _ := unstructured.NestedInt64(workload.Object, "spec", "replicas")
	if !found {
		return 1
	}
	return n
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// withoutPodNames is a server's text about a workload's pods, fit for a line,
// with the workload's name in place of theirs. Those end in five characters that
// make no word, see k8s.io/apimachinery/pkg/util/rand, and a long name is cut
// before it is made a pod's.
func withoutPodNames(text, workload string) string {
	const sure = 40 // what is left of a name at least
	start, dash := workload, "-"
	if len(workload) > sure {
		start, dash = workload[:sure], "-?"
	}
	names := regexp.MustCompile(`\b` + regexp.QuoteMeta(start) + `[a-z0-9.-]*` + dash + `[bcdfghjklmnpqrstvwxz2456789]{5}\b`)
	return oneLine(names.ReplaceAllLiteralString(text, workload))
}

func podSelector(workload *unstructured.Unstructured) (labels.Selector, error) {
	raw, _, err := unstructured.NestedMap(workload.Object, "spec", "selector")
	if err != nil {
		return nil, err
	}
	if len(raw) == 0 {
		return nil, fmt.Errorf("no selector") // an empty one would pick every pod
	}
	var selector metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &selector); err != nil {
		return nil, err
	}
	return metav1.LabelSelectorAsSelector(&selector)
}

// trouble is what is wrong with a pod. The heavier one is the better reason;
// nothing wrong weighs nothing.
type trouble struct {
	weight int
	text   string
	claims bool // it waits for claims
}

func troubleOf(pod *corev1.Pod) trouble {
	var worst trouble
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if t := containerTrouble(s); t.weight > worst.weight {
			worst = t
		}
	}
	if worst.weight > 0 {
		return worst
	}
	if pod.Status.Phase == corev1.PodFailed && pod.Status.Reason != "" { // evicted, mostly
		return trouble{weight: 3, text: oneLine(pod.Status.Reason + ": " + pod.Status.Message)}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Status != corev1.ConditionFalse {
			continue
		}
		text := oneLine(condition.Reason + ": " + condition.Message)
		switch {
		case condition.Type == corev1.PodScheduled:
			return trouble{weight: 2, text: text, claims: strings.Contains(strings.ToLower(text), "persistentvolumeclaim")}
		case condition.Type == corev1.PodReady && condition.Reason == "ReadinessGatesNotReady":
			return trouble{weight: 1, text: text}
		}
	}
	return probeTrouble(pod)
}

// containerTrouble is what is wrong with one container. The text is the same
// while the container goes from one attempt to the next.
func containerTrouble(s corev1.ContainerStatus) trouble {
	text := "container " + s.Name + ": "
	ended := cmp.Or(s.State.Terminated, s.LastTerminationState.Terminated)
	switch waiting := s.State.Waiting; {
	case waiting != nil && (waiting.Reason == "ImagePullBackOff" || waiting.Reason == "ErrImagePull"):
		return trouble{weight: 6, text: oneLine(fmt.Sprintf("%sImagePullBackOff: back-off pulling image %q", text, s.Image))}
	case ended != nil && ended.ExitCode != 0 && !s.Ready:
		if s.RestartCount > 0 {
			text += "CrashLoopBackOff: "
		}
		return trouble{weight: 5, text: oneLine(fmt.Sprintf("%sexited with code %d (%s)", text, ended.ExitCode, cmp.Or(ended.Reason, "Error")))}
	case waiting != nil && waiting.Reason != "" && waiting.Reason != "ContainerCreating" && waiting.Reason != "PodInitializing":
		return trouble{weight: 4, text: oneLine(text + waiting.Reason + ": " + waiting.Message)}
	}
	return trouble{}
}

// probeTrouble is that of the first container which runs and is not ready.
func probeTrouble(pod *corev1.Pod) trouble {
	probed := map[string]corev1.Container{}
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		probed[container.Name] = container
	}
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		container := probed[s.Name]
		switch started := s.Started != nil && *s.Started; {
		case s.State.Running == nil || s.Ready:
		case container.StartupProbe != nil && !started:
			return trouble{weight: 1, text: oneLine("container " + s.Name + ": running, but its startup probe has not succeeded")}
		case container.ReadinessProbe != nil:
			return trouble{weight: 1, text: oneLine("container " + s.Name + ": running, but its readiness probe does not succeed")}
		}
	}
	return trouble{}
}
