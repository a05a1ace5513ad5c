// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Remedy is what somebody has to do for a workload that does not get well by itself and
// that swell lets be. The zero value: nothing is known to help.
type Remedy struct {
	Why     string
	Command []string // for kubectl, without namespace and context; none: a commit helps
}

// RemedyFor returns the remedy for a live object that is not healthy. wanted is what the
// bundle has of it.
func RemedyFor(live *unstructured.Unstructured, wanted map[string]any) Remedy {
	switch kind := live.GroupVersionKind().GroupKind().String(); {
	case kind == "Job.batch" && HasCondition(live, "Failed"):
		return Remedy{"a Job that failed runs again only when it is made anew, after", []string{"delete", "job", live.GetName()}}
	case kind == "Deployment.apps" && isPaused(live.Object) && isPaused(wanted):
		return Remedy{Why: "spec.paused is true in Git: a commit ends that"}
	case kind == "Deployment.apps" && isPaused(live.Object):
		return Remedy{"spec.paused is true, which Git does not say:", []string{"rollout", "resume", "deployment/" + live.GetName()}}
	case kind == "DaemonSet.apps" && replacesOnDelete(live, "desiredNumberScheduled", "updatedNumberScheduled"),
		kind == "StatefulSet.apps" && replacesOnDelete(live, "replicas", "updatedReplicas"):
		const why = "updateStrategy OnDelete keeps each pod of an earlier revision until somebody deletes it:"
		return Remedy{why, []string{"delete", "pod", "NAME"}}
	}
	return Remedy{}
}

// isPaused says that a Deployment makes no pods of a new template.
func isPaused(deployment map[string]any) bool {
	paused, _, _ := unstructured.NestedBool(deployment, "spec", "paused")
	return paused
}

// replacesOnDelete says that a workload has pods of an earlier revision and waits for
// somebody to delete them.
func replacesOnDelete(live *unstructured.Unstructured, all, updated string) bool {
	strategy, _, _ := unstructured.NestedString(live.Object, "spec", "updateStrategy", "type")
	wanted, _, _ := unstructured.NestedInt64(live.Object, "status", all)
	present, _, _ := unstructured.NestedInt64(live.Object, "status", updated)
	return strategy == "OnDelete" && present < wanted
}
