// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/swell-sh/swell/sync/apply/line"
)

// IsWorkload says whether an object has pods that can tell why it is not ready.
func IsWorkload(live *unstructured.Unstructured) bool {
	switch kind := live.GetKind(); live.GroupVersionKind().Group {
	case "apps":
		return kind == "Deployment" || kind == "StatefulSet" || kind == "DaemonSet" || kind == "ReplicaSet"
	case "batch":
		return kind == "Job"
	}
	return false
}

// SortPods sorts the pods of a workload as their troubles are told: by ordinal, by
// node, or the newest first.
func SortPods(workload *unstructured.Unstructured, pods []corev1.Pod) {
	slices.SortStableFunc(pods, func(a, b corev1.Pod) int {
		switch workload.GetKind() {
		case "StatefulSet":
			return cmp.Compare(ordinal(a.Name), ordinal(b.Name))
		case "DaemonSet":
			return cmp.Compare(a.Spec.NodeName, b.Spec.NodeName)
		}
		return cmp.Compare(b.CreationTimestamp.Unix(), a.CreationTimestamp.Unix())
	})
}

// WorstOf is the worst trouble of some pods, the pod that has it, and the first pod
// that is not ready.
func WorstOf(pods []corev1.Pod) (worst Trouble, of, unready *corev1.Pod) {
	for i := range pods {
		pod := &pods[i]
		if t := troubleOf(pod); t.weight > worst.weight {
			worst, of = t, pod
		}
		if unready == nil && pod.Status.Phase != corev1.PodSucceeded && !isReady(pod) {
			unready = pod
		}
	}
	return worst, of, unready
}

// ordinal is that of a StatefulSet's pod; -1 when it has none.
func ordinal(pod string) int {
	n, err := strconv.Atoi(pod[strings.LastIndexByte(pod, '-')+1:])
	if err != nil {
		return -1
	}
	return n
}

// Which says which of a workload's pods something is about, where that is
// something that lasts.
func Which(workload *unstructured.Unstructured, pod *corev1.Pod) string {
	switch n := ordinal(pod.Name); {
	case workload.GetKind() == "StatefulSet" && n >= 0:
		return fmt.Sprintf("pod %d: ", n)
	case workload.GetKind() == "DaemonSet" && pod.Spec.NodeName != "":
		return fmt.Sprintf("on node %s: ", pod.Spec.NodeName)
	}
	return ""
}

// WantedPods is how many pods a workload is to have at the moment, at least.
func WantedPods(workload *unstructured.Unstructured) int64 {
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

// WithoutPodNames is a server's text about a workload's pods, fit for a line,
// with the workload's name in place of theirs. Those end in five characters that
// make no word, see k8s.io/apimachinery/pkg/util/rand, and a long name is cut
// before it is made a pod's.
func WithoutPodNames(text, workload string) string {
	const sure = 40 // what is left of a name at least
	start, dash := workload, "-"
	if len(workload) > sure {
		start, dash = workload[:sure], "-?"
	}
	names := regexp.MustCompile(`\b` + regexp.QuoteMeta(start) + `[a-z0-9.-]*` + dash + `[bcdfghjklmnpqrstvwxz2456789]{5}\b`)
	return line.One(names.ReplaceAllLiteralString(text, workload))
}

// PodSelector is the selector of a workload.
func PodSelector(workload *unstructured.Unstructured) (labels.Selector, error) {
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

// Trouble is what is wrong with a pod. The heavier one is the better reason;
// nothing wrong weighs nothing.
type Trouble struct {
	weight int
	Text   string
	Claims bool // it waits for claims
}

// weightContainer is the least weight of a trouble that a container has by itself.
const weightContainer = 4

func troubleOf(pod *corev1.Pod) Trouble {
	var worst Trouble
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if t := containerTrouble(s); t.weight > worst.weight {
			worst = t
		}
	}
	if worst.weight > 0 {
		return worst
	}
	if pod.Status.Phase == corev1.PodFailed && pod.Status.Reason != "" { // evicted, mostly
		return Trouble{weight: 3, Text: line.One(pod.Status.Reason + ": " + pod.Status.Message)}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Status != corev1.ConditionFalse {
			continue
		}
		text := line.One(condition.Reason + ": " + condition.Message)
		switch {
		case condition.Type == corev1.PodScheduled:
			return Trouble{weight: 2, Text: text, Claims: strings.Contains(strings.ToLower(text), "persistentvolumeclaim")}
		case condition.Type == corev1.PodReady && condition.Reason == "ReadinessGatesNotReady":
			return Trouble{weight: 1, Text: text}
		}
	}
	return probeTrouble(pod)
}

// containerTrouble is what is wrong with one container. The text is the same
// while the container goes from one attempt to the next.
func containerTrouble(s corev1.ContainerStatus) Trouble {
	text := "container " + s.Name + ": "
	ended := cmp.Or(s.State.Terminated, s.LastTerminationState.Terminated)
	switch waiting := s.State.Waiting; {
	case waiting != nil && (waiting.Reason == "ImagePullBackOff" || waiting.Reason == "ErrImagePull"):
		return Trouble{weight: 6, Text: line.One(fmt.Sprintf("%sImagePullBackOff: back-off pulling image %q", text, s.Image))}
	case ended != nil && ended.ExitCode != 0 && !s.Ready:
		if s.RestartCount > 0 {
			text += "CrashLoopBackOff: "
		}
		return Trouble{weight: 5, Text: line.One(fmt.Sprintf("%sexited with code %d (%s)", text, ended.ExitCode, cmp.Or(ended.Reason, "Error")))}
	case waiting != nil && waiting.Reason != "" && waiting.Reason != "ContainerCreating" && waiting.Reason != "PodInitializing":
		return Trouble{weight: weightContainer, Text: line.One(text + waiting.Reason + ": " + waiting.Message)}
	}
	return Trouble{}
}

// probeTrouble is that of the first container which runs and is not ready.
func probeTrouble(pod *corev1.Pod) Trouble {
	probed := map[string]corev1.Container{}
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		probed[container.Name] = container
	}
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		container := probed[s.Name]
		switch started := s.Started != nil && *s.Started; {
		case s.State.Running == nil || s.Ready:
		case container.StartupProbe != nil && !started:
			return Trouble{weight: 1, Text: line.One("container " + s.Name + ": running, but its startup probe has not succeeded")}
		case container.ReadinessProbe != nil:
			return Trouble{weight: 1, Text: line.One("container " + s.Name + ": running, but its readiness probe does not succeed")}
		}
	}
	return Trouble{}
}

// OfPod is that of one pod, with what is wrong in it as the reason.
func OfPod(pod *corev1.Pod) Health {
	if t := troubleOf(pod); t.weight > 0 {
		return Health{Progressing, t.Text}
	}
	switch pod.Status.Phase {
	case corev1.PodFailed:
		return Health{Failed, line.One(fmt.Sprintf("%s %s", pod.Status.Reason, pod.Status.Message))}
	case corev1.PodSucceeded:
		return Health{State: Healthy}
	}
	if isReady(pod) {
		return Health{State: Healthy}
	}
	return Health{Progressing, "not ready"}
}

// waitsForConsumer is the reason of the event that tells, as the latest one, of a
// claim which nothing is to be done for before a pod uses it. Its storage class
// says the same, but a tenant may mostly not read those.
const waitsForConsumer = "WaitForFirstConsumer"

// OfClaim is the health of a claim that is not bound, by the events about it, the
// latest one first.
func OfClaim(events []corev1.Event, phase corev1.PersistentVolumeClaimPhase) Health {
	if phase == corev1.ClaimPending && len(events) > 0 && events[0].Reason == waitsForConsumer {
		return Health{State: Healthy}
	}
	return Health{Progressing, Unbound(events, phase)}
}

// Unbound says why a claim is not bound: what the latest warning about it says,
// or else the latest event.
func Unbound(events []corev1.Event, phase corev1.PersistentVolumeClaimPhase) string {
	text := "not bound"
	if phase == corev1.ClaimLost {
		text = "its volume is lost"
	}
	if len(events) == 0 {
		return text
	}
	latest := events[0]
	if i := slices.IndexFunc(events, func(e corev1.Event) bool { return e.Type == corev1.EventTypeWarning }); i >= 0 {
		latest = events[i]
	}
	return text + ": " + EventText(latest)
}

// EventText is what an event says, in one line.
func EventText(e corev1.Event) string {
	return line.One(e.Reason + ": " + strings.TrimPrefix(e.Message, "(combined from similar events): "))
}
