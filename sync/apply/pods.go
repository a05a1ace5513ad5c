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
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/swell-sh/swell/sync/apply/health"
)

// maxPods is how many pods of a workload are looked through for trouble. One
// is enough in most cases.
const maxPods = 100

// podTrouble says why a workload's pods are not ready, "" when nothing tells.
// It names containers, ordinals of a StatefulSet and nodes of a DaemonSet, but
// no pods of other names: those are others in the next pass.
func (c *call) podTrouble(ctx context.Context, workload *unstructured.Unstructured) (string, error) {
	if failure := health.Condition(workload, "ReplicaFailure"); failure["status"] == "True" {
		return health.WithoutPodNames(fmt.Sprint(failure["message"]), workload.GetName()), nil // no pod could even be made
	}
	pods, err := c.podsOf(ctx, workload)
	if err != nil {
		return "", err
	}
	worst, of, unready := health.WorstOf(pods)
	switch {
	case worst.Claims:
		why, err := c.claimsTrouble(ctx, of)
		return health.Which(workload, of) + health.WithoutPodNames(cmp.Or(why, worst.Text), workload.GetName()), err
	case of != nil:
		return health.Which(workload, of) + worst.Text, nil
	}
	if int64(len(pods)) < health.WantedPods(workload) {
		why, err := c.warning(ctx, workload.GetNamespace(), workload.GetUID(), func(reason string) bool { return reason == "FailedCreate" })
		if err != nil || why != "" {
			return health.WithoutPodNames(why, workload.GetName()), err
		}
	}
	if unready == nil {
		return "", nil
	}
	// It is not even started, mostly for a volume that cannot be mounted.
	why, err := c.warning(ctx, unready.Namespace, unready.UID, func(reason string) bool { return strings.HasPrefix(reason, "Failed") })
	if at := health.Which(workload, unready); why != "" || at != "" {
		why = at + cmp.Or(health.WithoutPodNames(why, workload.GetName()), "not ready")
	}
	return why, err
}

// podsOf are the workload's pods that are not leaving, in the order in which
// their troubles are told: by ordinal, by node, or the newest first.
func (c *call) podsOf(ctx context.Context, workload *unstructured.Unstructured) ([]corev1.Pod, error) {
	pods, err := c.listPods(ctx, workload)
	if err != nil {
		return nil, err
	}
	there := slices.DeleteFunc(pods, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
	health.SortPods(workload, there)
	return there, nil
}

// listPods returns the pods that the workload's selector picks.
func (c *call) listPods(ctx context.Context, workload *unstructured.Unstructured) ([]corev1.Pod, error) {
	selector, err := health.PodSelector(workload)
	if err != nil {
		return nil, err
	}
	query := url.Values{"labelSelector": {selector.String()}, "limit": {strconv.Itoa(maxPods)}}
	var pods corev1.PodList
	err = c.getJSON(ctx, "PodList", &request{
		op: "list", object: "pods of " + workload.GetKind() + "/" + workload.GetNamespace() + "/" + workload.GetName(),
		path: "/api/v1/namespaces/" + url.PathEscape(workload.GetNamespace()) + "/pods", query: query.Encode(),
	}, &pods)
	return pods.Items, err
}
