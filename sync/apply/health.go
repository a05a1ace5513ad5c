// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/kind"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply/health"
	"github.com/swell-sh/swell/sync/apply/line"
	"github.com/swell-sh/swell/sync/drift"
	"github.com/swell-sh/swell/sync/store"
)

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
func (c *Cluster) Health(ctx context.Context, work Work) (health.Health, []drift.Finding, error) {
	call, objects := c.begin(), work.Objects
	healths := make([]health.Health, len(objects))
	found := make([]*drift.Finding, len(objects))
	errs := make([]error, len(objects))
	var ask []int
	for i, o := range objects {
		healths[i].State = health.Healthy
		_, isChanging := work.Changing[o.ID]
		if (work.Asks(o) || isChanging) && !(o.IsRun() && work.Known[o.ID].Ran != "") {
			ask = append(ask, i)
		}
	}
	call.each(ask, func(i int) {
		healths[i], found[i], errs[i] = call.health(ctx, objects[i], work.Known[objects[i].ID], work)
	})

	worst := health.Health{State: health.Healthy}
	var drifts []drift.Finding
	for i, h := range healths {
		if found[i] != nil {
			drifts = append(drifts, *found[i])
		}
		if errs[i] == nil && h.IsWorse(worst) {
			worst = health.Health{State: h.State, Reason: fmt.Sprintf("%s: %s", objects[i].ID, h.Reason)}
		}
	}
	return worst, drifts, errors.Join(errs...)
}

// Asks says whether the health of an object is to be read.
func (w *Work) Asks(o *object.Object) bool { return Asks(o.ID, w.Rules) }

// Asks says whether the health of an object is to be read: of some kinds only presence
// matters, unless a rule says more. A Secret is never read.
func Asks(id object.ID, rules render.HealthRules) bool {
	kind := kindOf(id, "").GroupKind()
	return !health.Steady[kind] || rules.For(id) != nil && kind != (schema.GroupKind{Kind: "Secret"})
}

// health is that of one object; its Reason does not name the object.
func (c *call) health(ctx context.Context, o *object.Object, known store.Entry, work Work) (health.Health, *drift.Finding, error) {
	var live *unstructured.Unstructured
	var meta *metav1.PartialObjectMetadata
	err := c.addressed(ctx, c.resource, kindOf(o.ID, o.Version), func(found resource) error {
		path, err := found.path("get", o.ID)
		switch {
		case err != nil:
		case work.Asks(o):
			if live, err = c.getObject(ctx, o.ID, path); err == nil {
				meta = metaOf(live)
			}
		default:
			meta, err = c.getMeta(ctx, o.ID.String(), path)
		}
		return err
	})
	switch {
	case isGone(err, o.ID.Name) && !o.ID.IsJob(): // a Job may have gone by its time to live
		known.ID = o.ID
		return health.Health{State: health.Progressing, Reason: "not found"}, &drift.Finding{Entry: known, Missing: true}, nil
	case errors.Is(err, ErrNoKind), isGone(err, o.ID.Name):
		return health.Health{State: health.Progressing, Reason: "not found"}, nil, nil
	case err != nil:
		return health.Health{}, nil, on("get", o.ID, err)
	}
	ignored := pointersFor(work.Ignore, o.ID)
	if finding := c.changed(meta, known, ignored); finding != nil && (!work.Tolerated[o.ID] || work.isUndone(o, finding)) {
		return health.Health{State: health.Progressing, Reason: "changed since it was applied: " + finding.Changes[0].String()}, finding, nil
	}
	if live == nil {
		return health.Health{State: health.Healthy}, nil, nil
	}
	if rule := work.Rules.For(o.ID); rule != nil && !o.IsRun() { // whether a hook has run is no matter of health
		return c.judgeByRule(ctx, live, rule), nil, nil
	}
	h, err := c.judgeLive(ctx, live)
	if err != nil {
		return health.Health{}, nil, fmt.Errorf("health of %s: %w", o.ID, err)
	}
	return h, nil, nil
}

// judgeLive is the health of a live object, with what its pods say.
func (c *call) judgeLive(ctx context.Context, live *unstructured.Unstructured) (health.Health, error) {
	h, err := health.Of(live)
	if err != nil {
		return health.Health{}, err
	}
	// Without what follows the state is as good, only the reason is poorer.
	switch {
	case h.State == health.Healthy:
	case health.IsWorkload(live):
		h.Reason = health.WithoutPodNames(h.Reason, live.GetName())
		if why, _ := c.podTrouble(ctx, live); why != "" {
			h.Reason = line.One(h.Reason + ": " + why)
		}
	case live.GroupVersionKind().GroupKind() == schema.GroupKind{Kind: "PersistentVolumeClaim"} && live.GetDeletionTimestamp() == nil:
		phase, _, _ := unstructured.NestedString(live.Object, "status", "phase")
		events, _ := c.eventsOf(ctx, live.GetNamespace(), live.GetUID()) // without them only the reason is poorer
		return health.OfClaim(events, corev1.PersistentVolumeClaimPhase(phase)), nil
	}
	return h, nil
}

// changed holds a live object against what is known of it; nil when it is as it
// was applied, or when that is not known.
func (c *connection) changed(live *metav1.PartialObjectMetadata, known store.Entry, ignored []pointer) *drift.Finding {
	if !Judged(known) {
		return nil
	}
	return c.compare(known, live, ignored...)
}

// getObject reads an object in full. It must not be used for Secrets.
func (c *call) getObject(ctx context.Context, id object.ID, path string) (*unstructured.Unstructured, error) {
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

// judgeByRule is the health of a live object by the fleet's rule for its kind.
func (c *call) judgeByRule(ctx context.Context, live *unstructured.Unstructured, rule *kind.HealthRule) health.Health {
	h, said := health.ByRule(live, rule)
	if said {
		return h
	}
	if without, err := c.judgeLive(ctx, live); err == nil && without.Reason != "" {
		h.Reason = without.Reason // its conditions and its pods say more
	}
	return h
}
