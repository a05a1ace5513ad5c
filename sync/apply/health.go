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

// Checked is what a check found.
type Checked struct {
	Health health.Health // the worst
	Drifts []drift.Finding
	// Freed names the pods that were deleted because a StatefulSet waits for them and
	// never replaces them.
	Freed []string
}

// Check returns the health of the objects by the rules of kstatus, with three
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
// It writes nothing, except where [Work.Frees] lets it delete a pod that a StatefulSet
// waits for: the way on from there is the same as after any other look.
//
// With an error the Health is that of the objects that could be read; the
// others are unknown.
func (c *Cluster) Check(ctx context.Context, work Work) (Checked, error) {
	call, objects := c.begin(), work.Objects
	found := make([]inspection, len(objects))
	errs := make([]error, len(objects))
	var ask []int
	for i, o := range objects {
		found[i].health.State = health.Healthy
		_, isChanging := work.Changing[o.ID]
		if (work.Asks(o) || isChanging) && !(o.IsRun() && work.Known[o.ID].Ran != "") {
			ask = append(ask, i)
		}
	}
	call.each(ask, func(i int) {
		found[i], errs[i] = call.inspect(ctx, objects[i], work.Known[objects[i].ID], work)
	})

	all := Checked{Health: health.Health{State: health.Healthy}}
	for i := range found {
		h := found[i].health
		if found[i].drift != nil {
			all.Drifts = append(all.Drifts, *found[i].drift)
		}
		if found[i].freed != "" {
			all.Freed = append(all.Freed, fmt.Sprintf("%s: %s", objects[i].ID, found[i].freed))
		}
		if errs[i] == nil && h.IsWorse(all.Health) {
			all.Health = health.Health{State: h.State, Reason: fmt.Sprintf("%s: %s", objects[i].ID, h.Reason)}
		}
	}
	return all, errors.Join(errs...)
}

// inspection is what a look at one object found. The reason of its health does not name
// the object.
type inspection struct {
	health health.Health
	drift  *drift.Finding
	freed  string // see [call.help]
}

// Asks says whether the health of an object is to be read.
func (w *Work) Asks(o *object.Object) bool { return Asks(o.ID, w.Rules) }

// Asks says whether the health of an object is to be read: of some kinds only presence
// matters, unless a rule says more. A Secret is never read.
func Asks(id object.ID, rules render.HealthRules) bool {
	kind := kindOf(id, "").GroupKind()
	return !health.Steady[kind] || rules.For(id) != nil && kind != (schema.GroupKind{Kind: "Secret"})
}

// inspect looks at one object, and helps it where it does not get healthy by itself.
func (c *call) inspect(ctx context.Context, o *object.Object, known store.Entry, work Work) (inspection, error) {
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
		return inspection{health: progressing("not found"), drift: &drift.Finding{Entry: known, Missing: true}}, nil
	case errors.Is(err, ErrNoKind), isGone(err, o.ID.Name):
		return inspection{health: progressing("not found")}, nil
	case err != nil:
		return inspection{}, on("get", o.ID, err)
	}
	ignored := pointersFor(work.Ignore, o.ID)
	finding := c.changed(meta, known, ignored)
	if finding != nil && (!work.Tolerated[o.ID] || work.isUndone(o, finding)) {
		reason := "changed since it was applied: " + finding.Changes[0].String()
		if work.Tolerated[o.ID] { // nobody corrects it
			reason += "; drift is only reported here: a commit that has it lets it be, and until the wave fails swell promote does"
		}
		return inspection{health: progressing(reason), drift: finding}, nil
	}
	if live == nil {
		return inspection{health: health.Health{State: health.Healthy}}, nil
	}
	h, err := c.judgeObject(ctx, o, live, work.Rules)
	if err == nil && h.State == health.Healthy && work.Rules.For(o.ID) == nil {
		if why := c.emptied(ctx, &work, o, live); why != "" {
			return inspection{health: progressing(why), drift: finding}, nil
		}
	}
	if err != nil || h.State == health.Healthy || o.IsRun() {
		return inspection{health: h}, err
	}
	text, freed := "", ""
	if finding == nil {
		text, freed = c.help(ctx, &work, o, live, known)
	}
	if text != "" {
		h.Reason += "; " + text
	}
	return inspection{health: h, freed: freed}, nil
}

func progressing(reason string) health.Health {
	return health.Health{State: health.Progressing, Reason: reason}
}

// judgeObject returns the health of a live object, by the fleet's rule where there is one.
func (c *call) judgeObject(
	ctx context.Context, o *object.Object, live *unstructured.Unstructured, rules render.HealthRules,
) (health.Health, error) {
	if rule := rules.For(o.ID); rule != nil && !o.IsRun() { // whether a hook has run is no matter of health
		return c.judgeByRule(ctx, live, rule), nil
	}
	h, err := c.judgeLive(ctx, live)
	if err != nil {
		return health.Health{}, fmt.Errorf("health of %s: %w", o.ID, err)
	}
	return h, nil
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
