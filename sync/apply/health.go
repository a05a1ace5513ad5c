// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/sync/store"
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

// Health is the health of the objects by the rules of kstatus, with three
// differences: a Job is progressing until it has completed, unless it is
// suspended; an object that is not there is progressing too; and a claim that is
// bound when a pod first uses it is healthy until one does. Kinds that
// are what they are as soon as they are stored, such as ConfigMaps and Secrets,
// are not asked for. Where there is one of [Work.Rules] for the kind, it takes
// the place of all that. No objects are healthy.
//
// An object that can be held against [Work.Known], and that somebody changed
// since, is one of the drifts: how well it is says nothing about what was
// applied, so it is progressing. So is one that is not there, known or not,
// unless it is a Job. What [Work.Ignore] names may change, and so may what is
// [Work.Tolerated].
//
// With an error the Health is that of the objects that could be read; the
// others are unknown.
func (c *Cluster) Health(ctx context.Context, work Work) (Health, []Drift, error) {
	call, objects := c.begin(), work.Objects
	healths := make([]Health, len(objects))
	found := make([]*Drift, len(objects))
	errs := make([]error, len(objects))
	var ask []int
	for i, o := range objects {
		healths[i].State = Healthy
		if work.Asks(o) && !(isRun(o) && work.Known[o.ID].Ran != "") {
			ask = append(ask, i)
		}
	}
	call.each(ask, func(i int) {
		healths[i], found[i], errs[i] = call.health(ctx, objects[i], work.Known[objects[i].ID], work)
	})

	worst := Health{State: Healthy}
	var drifts []Drift
	for i, h := range healths {
		if found[i] != nil {
			drifts = append(drifts, *found[i])
		}
		if errs[i] == nil && severity[h.State] > severity[worst.State] {
			worst = Health{State: h.State, Reason: fmt.Sprintf("%s: %s", objects[i].ID, h.Reason)}
		}
	}
	return worst, drifts, errors.Join(errs...)
}

// Asks says whether the health of an object is to be read. A Secret is never.
func (w *Work) Asks(o *render.Object) bool {
	kind := kindOf(o.ID, "").GroupKind()
	return !steady[kind] || w.Rules.For(o.ID) != nil && kind != (schema.GroupKind{Kind: "Secret"})
}

// steady are the kinds without a state of their own, or with one that says
// nothing about health.
var steady = map[schema.GroupKind]bool{
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

// health is that of one object; its Reason does not name the object.
func (c *call) health(ctx context.Context, o *render.Object, known store.Entry, work Work) (Health, *Drift, error) {
	var live *unstructured.Unstructured
	err := c.addressed(ctx, c.resource, kindOf(o.ID, o.Version), func(found resource) error {
		path, err := found.path("get", o.ID)
		if err == nil {
			live, err = c.getObject(ctx, o.ID, path)
		}
		return err
	})
	switch {
	case isGone(err, o.ID.Name) && !o.ID.IsJob(): // a Job may have gone by its time to live
		known.ID = o.ID
		return Health{Progressing, "not found"}, &Drift{Entry: known, Missing: true}, nil
	case errors.Is(err, ErrNoKind), isGone(err, o.ID.Name):
		return Health{Progressing, "not found"}, nil, nil
	case err != nil:
		return Health{}, nil, on("get", o.ID, err)
	}
	if drift := c.changed(live, known, pointersFor(work.Ignore, o.ID)); drift != nil && !work.Tolerated[o.ID] {
		return Health{Progressing, "changed since it was applied: " + drift.Changes[0].String()}, drift, nil
	}
	if rule := work.Rules.For(o.ID); rule != nil && !isRun(o) { // whether a hook has run is no matter of health
		return c.judgeByRule(ctx, live, rule), nil, nil
	}
	h, err := c.judgeLive(ctx, live)
	if err != nil {
		return Health{}, nil, fmt.Errorf("health of %s: %w", o.ID, err)
	}
	return h, nil, nil
}

// judgeLive is the health of a live object, with what its pods say.
func (c *call) judgeLive(ctx context.Context, live *unstructured.Unstructured) (Health, error) {
	h, err := judge(live)
	if err != nil {
		return Health{}, err
	}
	// Without what follows the state is as good, only the reason is poorer.
	switch {
	case h.State == Healthy:
	case isWorkload(live):
		h.Reason = withoutPodNames(h.Reason, live.GetName())
		if why, _ := c.podTrouble(ctx, live); why != "" {
			h.Reason = oneLine(h.Reason + ": " + why)
		}
	case live.GroupVersionKind().GroupKind() == schema.GroupKind{Kind: "PersistentVolumeClaim"} && live.GetDeletionTimestamp() == nil:
		phase, _, _ := unstructured.NestedString(live.Object, "status", "phase")
		return c.healthOfClaim(ctx, live.GetNamespace(), live.GetUID(), corev1.PersistentVolumeClaimPhase(phase)), nil
	}
	return h, nil
}

// changed holds a live object against what is known of it; nil when it is as it
// was applied, or when that is not known.
func (c *connection) changed(live *unstructured.Unstructured, known store.Entry, ignored []pointer) *Drift {
	if !Judged(known) {
		return nil
	}
	return c.compare(known, metaOf(live), ignored...)
}

// getObject reads an object in full. It must not be used for Secrets.
func (c *call) getObject(ctx context.Context, id render.ObjectID, path string) (*unstructured.Unstructured, error) {
	req := &request{op: "get", object: id.String(), method: http.MethodGet, path: path, accept: jsonType}
	answer, err := c.do(ctx, req)
	if err != nil {
		return nil, err
	}
	var live unstructured.Unstructured
	if err := live.UnmarshalJSON(answer.body); err != nil {
		return nil, undecodable(req, answer, err)
	}
	if live.GetKind() != id.Kind || live.GetName() != id.Name {
		return nil, undecodable(req, answer, fmt.Errorf("got %s/%s", live.GetKind(), live.GetName()))
	}
	return &live, nil
}

// judge is the rule for one live object.
func judge(live *unstructured.Unstructured) (Health, error) {
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
		if message, ok := condition(job, "Failed")["message"].(string); ok {
			h.Reason = phrase(message)
		}
		return h
	case hasCondition(job, "Complete"):
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

func hasCondition(o *unstructured.Unstructured, kind string) bool {
	return condition(o, kind)["status"] == "True"
}

// condition is one of an object's conditions, nil when it has none such.
func condition(o *unstructured.Unstructured, kind string) map[string]any {
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
	message = oneLine(message)
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
