// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"

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
		return kind == "Deployment" || kind == "StatefulSet" || kind == "DaemonSet"
	case "batch":
		return kind == "Job"
	}
	return false
}

// podTrouble says why a workload's pods are not ready, "" when nothing tells.
// It names containers but no pods: those have other names in the next pass.
func (c *call) podTrouble(ctx context.Context, workload *unstructured.Unstructured) (string, error) {
	if failure := condition(workload, "ReplicaFailure"); failure["status"] == "True" {
		return oneLine(fmt.Sprint(failure["message"])), nil // no pod could even be made
	}
	selector, err := podSelector(workload)
	if err != nil {
		return "", err
	}
	query := url.Values{"labelSelector": {selector.String()}, "limit": {strconv.Itoa(maxPods)}}
	var pods corev1.PodList
	err = c.getJSON(ctx, "PodList", &request{
		op: "list", object: "pods of " + workload.GetKind() + "/" + workload.GetNamespace() + "/" + workload.GetName(),
		path: "/api/v1/namespaces/" + url.PathEscape(workload.GetNamespace()) + "/pods", query: query.Encode(),
	}, &pods)
	if err != nil {
		return "", err
	}
	// Those of the newest revision come first.
	slices.SortStableFunc(pods.Items, func(a, b corev1.Pod) int {
		return cmp.Compare(b.CreationTimestamp.Unix(), a.CreationTimestamp.Unix())
	})
	var worst trouble
	for i := range pods.Items {
		if t := troubleOf(&pods.Items[i]); t.weight > worst.weight {
			worst = t
		}
	}
	return worst.text, nil
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
}

func troubleOf(pod *corev1.Pod) trouble {
	if pod.DeletionTimestamp != nil {
		return trouble{}
	}
	var worst trouble
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if t := containerTrouble(s); t.weight > worst.weight {
			worst = t
		}
	}
	if worst.weight > 0 {
		return worst
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return trouble{1, oneLine(condition.Reason + ": " + condition.Message)}
		}
	}
	return trouble{}
}

// containerTrouble is what is wrong with one container. The text is the same
// while the container goes from one attempt to the next.
func containerTrouble(s corev1.ContainerStatus) trouble {
	text := "container " + s.Name + ": "
	ended := cmp.Or(s.State.Terminated, s.LastTerminationState.Terminated)
	switch waiting := s.State.Waiting; {
	case waiting != nil && (waiting.Reason == "ImagePullBackOff" || waiting.Reason == "ErrImagePull"):
		return trouble{4, oneLine(fmt.Sprintf("%sImagePullBackOff: back-off pulling image %q", text, s.Image))}
	case ended != nil && ended.ExitCode != 0 && !s.Ready:
		if s.RestartCount > 0 {
			text += "CrashLoopBackOff: "
		}
		return trouble{3, oneLine(fmt.Sprintf("%sexited with code %d (%s)", text, ended.ExitCode, cmp.Or(ended.Reason, "Error")))}
	case waiting != nil && waiting.Reason != "" && waiting.Reason != "ContainerCreating" && waiting.Reason != "PodInitializing":
		return trouble{2, oneLine(text + waiting.Reason + ": " + waiting.Message)}
	}
	return trouble{}
}
