// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package health says how well a live object is by what it says of itself, by the
// rules of kstatus or of the fleet, and what is wrong with its pods. It asks nobody.
package health

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/swell-sh/swell/render/kind"
	"github.com/swell-sh/swell/sync/apply/line"
)

// State is how well an object, or a bundle, is.
type State string

// The states, best first. The zero State is none of them.
const (
	Healthy State = "healthy"
	// Progressing is not healthy yet, and nobody has given up.
	Progressing State = "progressing"
	// Failed will not become healthy by itself.
	Failed State = "failed"
)

// severity orders states.
var severity = map[State]int{Healthy: 0, Progressing: 1, Failed: 2}

// Health is the worst state of some objects.
type Health struct {
	State State
	// Reason names the first object in that state and what is wrong with it,
	// in one line; empty when all are healthy:
	//
	//	Deployment/shop-rz00a/cart: 0 of 2 replicas available: container main: ImagePullBackOff: ...
	Reason string
}

// IsWorse says whether one is in a worse state than the other.
func (h Health) IsWorse(than Health) bool { return severity[h.State] > severity[than.State] }

// Steady are the kinds without a state of their own, or with one that says
// nothing about health.
var Steady = map[schema.GroupKind]bool{
	{Kind: "ConfigMap"}:      true,
	{Kind: "Secret"}:         true,
	{Kind: "ServiceAccount"}: true,
	{Kind: "ResourceQuota"}:  true,
	{Kind: "LimitRange"}:     true,
	{Kind: "Endpoints"}:      true,
	{Kind: "Service"}:        true,
	{Kind: "PodTemplate"}:    true,
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:                                true,
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:                         true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:                         true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}:                  true,
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}:                               true,
	{Group: "networking.k8s.io", Kind: "Ingress"}:                                     true,
	{Group: "networking.k8s.io", Kind: "IngressClass"}:                                true,
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:                               true,
	{Group: "storage.k8s.io", Kind: "StorageClass"}:                                   true,
	{Group: "node.k8s.io", Kind: "RuntimeClass"}:                                      true,
	{Group: "batch", Kind: "CronJob"}:                                                 true,
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}:                           true,
	{Group: "policy", Kind: "PodDisruptionBudget"}:                                    true,
	{Group: "discovery.k8s.io", Kind: "EndpointSlice"}:                                true,
	{Group: "coordination.k8s.io", Kind: "Lease"}:                                     true,
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:     true,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}:   true,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicy"}:        true,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicyBinding"}: true,
	{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicy"}:          true,
	{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicyBinding"}:   true,
	{Group: "flowcontrol.apiserver.k8s.io", Kind: "FlowSchema"}:                       true,
	{Group: "flowcontrol.apiserver.k8s.io", Kind: "PriorityLevelConfiguration"}:       true,
}

// Of is the health of a live object.
func Of(live *unstructured.Unstructured) (Health, error) {
	result, err := status.Compute(live)
	if err != nil {
		return Health{}, err
	}
	h := Health{Reason: phrase(result.Message)}
	switch result.Status {
	case status.CurrentStatus:
		h = Health{State: Healthy}
	case status.FailedStatus:
		h.State = Failed
	default:
		h.State = Progressing
	}
	if gk := live.GroupVersionKind().GroupKind(); gk == (schema.GroupKind{Group: "batch", Kind: "Job"}) {
		return judgeJob(live, h), nil
	}
	return h, nil
}

// judgeJob corrects kstatus, for which a Job is fine as soon as it has started.
func judgeJob(job *unstructured.Unstructured, h Health) Health {
	suspended, _, _ := unstructured.NestedBool(job.Object, "spec", "suspend")
	switch {
	case h.State == Failed:
		if message, ok := Condition(job, "Failed")["message"].(string); ok {
			h.Reason = phrase(message)
		}
		return h
	case HasCondition(job, "Complete"):
		return h
	case suspended:
		return Health{State: Healthy}
	}
	failed, _, _ := unstructured.NestedInt64(job.Object, "status", "failed")
	switch {
	case h.State == Progressing:
	case failed > 0:
		h.Reason = fmt.Sprintf("not complete, %d pods failed", failed)
	default:
		h.Reason = "not complete"
	}
	h.State = Progressing
	return h
}

// HasCondition says whether a condition holds.
func HasCondition(o *unstructured.Unstructured, kind string) bool {
	return Condition(o, kind)["status"] == "True"
}

// Condition is one of an object's conditions, nil when it has none such.
func Condition(o *unstructured.Unstructured, kind string) map[string]any {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == kind {
			return c
		}
	}
	return nil
}

// count matches what kstatus says of replicas: "Available: 0/2".
var count = regexp.MustCompile(`^([A-Za-z]+): (\d+)/(\d+)$`)

// phrase puts a message of kstatus into our own voice.
func phrase(message string) string {
	message = line.One(message)
	if m := count.FindStringSubmatch(message); m != nil {
		what := " " + strings.ToLower(m[1])
		if what == " replicas" {
			what = " created"
		}
		return m[2] + " of " + m[3] + " replicas" + what
	}
	if first, rest, _ := strings.Cut(message, " "); strings.ToUpper(first) != first && !isKind(first) {
		return strings.ToLower(first[:1]) + first[1:] + strings.TrimRight(" "+rest, " .")
	}
	return message
}

// isKind says whether a word is written like a kind, "ReplicaSet".
func isKind(word string) bool { return word != "" && strings.ToLower(word[1:]) != word[1:] }

// ByRule is the health of a live object by the fleet's rule for its kind. said is
// false where the rule gives no reason, and another one is to be found. One that is
// being deleted, or whose controller has not seen it as it is now, is not asked:
// what its status says is of another time.
func ByRule(live *unstructured.Unstructured, rule *kind.HealthRule) (h Health, said bool) {
	if why := outdated(live); why != "" {
		return Health{Progressing, why}, true
	}
	v := rule.Judge(live.Object)
	if v.Healthy {
		return Health{State: Healthy}, true
	}
	h = Health{Progressing, line.One(v.Reason)}
	if v.Failed {
		h.State = Failed
	}
	if h.Reason != "" {
		return h, true
	}
	h.Reason = line.One(v.Otherwise)
	return h, false
}

// outdated says why the status of an object says nothing about it as it is now.
// Unlike kstatus it reads an observedGeneration that is a text, as some
// controllers write it.
func outdated(live *unstructured.Unstructured) string {
	if live.GetDeletionTimestamp() != nil {
		return "resource scheduled for deletion"
	}
	written, found, _ := unstructured.NestedFieldNoCopy(live.Object, "status", "observedGeneration")
	observed, err := strconv.ParseInt(fmt.Sprint(written), 10, 64)
	if found && err == nil && live.GetGeneration() != 0 && observed != live.GetGeneration() {
		return fmt.Sprintf("generation is %d, but latest observed generation is %d", live.GetGeneration(), observed)
	}
	return ""
}
