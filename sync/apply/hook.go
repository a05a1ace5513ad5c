// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply/health"
	"github.com/swell-sh/swell/sync/store"
)

// runHooks runs the hooks of one step, all at the same time, or looks how far
// they are.
func (a *applying) runHooks(ctx context.Context, numbers []int) {
	var run []int
	for _, i := range numbers {
		switch {
		case a.isUnchanged(i):
			a.results[i].Action = Unchanged
		case a.skip(i):
		default:
			run = append(run, i)
		}
	}
	a.each(run, func(i int) { a.hook(ctx, i) })
}

// hook brings one hook a step further: an old run is deleted, a new one
// started, and its end noted. One that ran to its end by the inventory is looked at all the
// same where its digest is gone: the Job of another bundle may have taken its place since,
// and then it runs again.
func (a *applying) hook(ctx context.Context, i int) {
	o, r := a.Objects[i], &a.results[i]
	live, path, err := a.readObject(ctx, "apply", o.ID, o.Version)
	switch {
	case err != nil:
		r.Err = err
	case a.ran(i) && (live == nil || runOf(live) == o.RunOf(a.Bundle)):
		a.release(ctx, i)
	case live == nil:
		a.start(ctx, i)
	case live.GetDeletionTimestamp() != nil:
		a.wait(i, "the earlier one is "+terminating(metaOf(live)))
	case o.Hook() == object.HookOnce && !a.isApplied(metaOf(live)):
		a.start(ctx, i) // adopts it, or says why not
	case !a.isOfUnit(live, o) && !(a.isApplied(metaOf(live)) && runOf(live) != ""): // a unit may be renamed
		r.Err = refused("apply", o.ID, "there is a Job of this name that is not this unit's: delete it, or give the hook another name")
	case runOf(live) != o.RunOf(a.Bundle):
		if a.removeJob(ctx, i, path, live) {
			a.start(ctx, i)
		}
	default:
		a.follow(ctx, i, live)
	}
}

// ran says that a hook ran for this bundle to its good end, by the inventory.
func (a *applying) ran(i int) bool {
	ran := a.results[i].Entry.Ran
	return ran != "" && ran == a.Objects[i].RunOf(a.Bundle)
}

// runOf is what the live Job of a hook runs for; empty for any other.
func runOf(live *unstructured.Unstructured) object.Digest {
	return object.Digest(live.GetAnnotations()[config.AnnotationHookRun])
}

// wait marks a hook that is not over.
func (a *applying) wait(i int, why string) {
	r := &a.results[i]
	r.Action = cmp.Or(r.Action, Skipped)
	r.Waits = "hook " + r.ID.String()
	r.Reason = "waits for " + r.Waits + ": " + why
}

// start makes the Job. It is looked at by the next apply. From here on an earlier run counts
// no more, whether or not there is an answer: this one may have done its work.
func (a *applying) start(ctx context.Context, i int) {
	a.results[i].Entry.Ran = ""
	if a.object(ctx, i); a.results[i].Err == nil && a.results[i].Waits == "" {
		a.wait(i, "not complete")
	}
}

// follow looks at the run that is for this bundle.
func (a *applying) follow(ctx context.Context, i int, live *unstructured.Unstructured) {
	o, r := a.Objects[i], &a.results[i]
	h, err := a.judgeLive(ctx, live)
	switch {
	case err != nil:
		r.Err = fmt.Errorf("health of %s: %w", o.ID, err)
	case h.State == health.Failed:
		r.Entry = entryOf(r.Entry, o, metaOf(live))
		r.Err = failed("apply", o.ID, "the hook failed: "+h.Reason+" (delete the Job to run it again)")
	case health.HasCondition(live, "Complete"):
		r.Action, r.Entry = Unchanged, entryOf(r.Entry, o, metaOf(live))
		r.Entry.Ran = o.RunOf(a.Bundle)
		if o.TimeToLive() != nil {
			r.Entry.Digest = ""
			a.wait(i, "complete, to be released")
		}
	default:
		if r.Action = Unchanged; r.Entry.UID != string(live.GetUID()) || r.Entry.Digest != o.Digest {
			a.object(ctx, i) // it is not known, or was changed
		}
		if h.State == health.Healthy {
			h.Reason = "suspended"
		}
		if r.Err == nil {
			a.wait(i, h.Reason)
		}
	}
}

// release lets the Job of a hook go by its time to live, now that it is on
// record that it ran.
func (a *applying) release(ctx context.Context, i int) {
	o, r := a.Objects[i], &a.results[i]
	if o.TimeToLive() == nil {
		r.Action, r.Entry.Digest = Unchanged, o.Digest
		return
	}
	err := a.merge(ctx, "apply", o.ID, o.Version, map[string]any{
		"metadata": map[string]any{"uid": r.Entry.UID},
		"spec":     map[string]any{"ttlSecondsAfterFinished": o.TimeToLive()},
	})
	var e *Error
	otherUID := errors.As(err, &e) && (e.Code == http.StatusConflict || len(immutableFields(err)) > 0)
	if err != nil && !isGone(err, o.ID.Name) && !otherUID {
		r.Err = err
		return
	}
	r.Action, r.Entry.Digest = Unchanged, o.Digest
}

// ready brings a hook that is to run before a deletion: a Job that is suspended
// and has not run. One that runs or ran, because a deletion was taken back, is
// made anew, and so is one whose template has changed.
func (a *applying) ready(ctx context.Context, i int) {
	o, r := a.Objects[i], &a.results[i]
	live, path, err := a.readObject(ctx, "apply", o.ID, o.Version)
	if err != nil {
		r.Err = err
		return
	}
	if live == nil || !a.isOfUnit(live, o) {
		a.object(ctx, i)
		return
	}
	if live.GetDeletionTimestamp() != nil {
		a.wait(i, "the earlier one is "+terminating(metaOf(live)))
		return
	}
	if isSuspended(live) && !health.HasCondition(live, "Complete") && !health.HasCondition(live, "Failed") {
		if a.object(ctx, i); len(immutableFields(r.Err)) == 0 {
			return
		}
		r.Err = nil
	}
	if a.removeJob(ctx, i, path, live) {
		if a.object(ctx, i); r.Action == Created {
			r.Action = Recreated
		}
	}
}

// removeJob deletes the Job of a hook, and reports whether it is gone. Its status
// may change at any moment, which is no reason not to.
func (a *applying) removeJob(ctx context.Context, i int, path string, live *unstructured.Unstructured) bool {
	uid := live.GetUID()
	switch a.remove(ctx, i, path, metav1.Preconditions{UID: &uid}, metav1.DeletePropagationBackground) {
	case gone:
		return true
	case goes:
		a.wait(i, "the earlier one is terminating")
	case stays:
		a.wait(i, "the earlier one was made anew by somebody")
	}
	return false
}

// isSuspended says whether a Job is told not to run.
func isSuspended(job *unstructured.Unstructured) bool {
	suspend, _, _ := unstructured.NestedBool(job.Object, "spec", "suspend")
	return suspend
}

// isOfUnit says whether a live object was applied by us, for the unit that the
// object is of.
func (c *connection) isOfUnit(live *unstructured.Unstructured, o *object.Object) bool {
	return c.isApplied(metaOf(live)) && live.GetAnnotations()[config.AnnotationUnit] == o.Annotation(config.AnnotationUnit)
}

// isApplied says whether a live object was applied by us.
func (c *connection) isApplied(live *metav1.PartialObjectMetadata) bool {
	return c.isOurs(live.Labels) && isMarked(live)
}

// metaOf is the part of an object's metadata that is looked at here.
func metaOf(live *unstructured.Unstructured) *metav1.PartialObjectMetadata {
	meta := &metav1.PartialObjectMetadata{}
	meta.Namespace, meta.Name = live.GetNamespace(), live.GetName()
	meta.UID, meta.ResourceVersion = live.GetUID(), live.GetResourceVersion()
	meta.Labels, meta.Annotations = live.GetLabels(), live.GetAnnotations()
	meta.OwnerReferences = live.GetOwnerReferences()
	meta.Finalizers, meta.DeletionTimestamp = live.GetFinalizers(), live.GetDeletionTimestamp()
	meta.ManagedFields = live.GetManagedFields()
	return meta
}

// readObject reads an object in full; nil when there is none. It must not be
// used for Secrets.
func (c *call) readObject(ctx context.Context, op string, id object.ID, version string) (live *unstructured.Unstructured, path string, err error) {
	err = c.addressed(ctx, c.anyResource, kindOf(id, version), func(found resource) error {
		if path, err = found.path(op, id); err == nil {
			live, err = c.getObject(ctx, id, path)
		}
		return err
	})
	if isGone(err, id.Name) {
		return nil, path, nil
	}
	return live, path, on(op, id, err)
}

// merge changes fields of an object that is there.
func (c *call) merge(ctx context.Context, op string, id object.ID, version string, change map[string]any) error {
	body, err := json.Marshal(change)
	if err != nil {
		return err
	}
	return on(op, id, c.addressed(ctx, c.anyResource, kindOf(id, version), func(found resource) error {
		path, err := found.path(op, id)
		if err != nil {
			return err
		}
		_, _, err = c.meta(ctx, &request{
			op: op, object: id.String(), method: http.MethodPatch, path: path, query: "fieldManager=" + FieldManager + "&fieldValidation=Strict",
			contentType: "application/merge-patch+json", body: body,
		})
		return err
	}))
}

func refused(op string, id object.ID, format string, args ...any) *Error {
	return &Error{Op: op, Object: id.String(), class: ErrRefused, Message: fmt.Sprintf(format, args...), unsent: true}
}

// hooksFirst runs the hooks among the entries that are to run before they are
// deleted. While the deletions have to wait for one, it returns the results of
// them all; else nil. What is not ours, or is to be kept, does not run. A Job
// that is not there any more has run, or somebody wanted it away.
func (c *Cluster) hooksFirst(ctx context.Context, entries []store.Entry) []Result {
	var jobs []int
	for i, e := range entries {
		if e.ID.IsJob() {
			jobs = append(jobs, i)
		}
	}
	results := make([]Result, len(entries))
	call := c.begin()
	call.each(jobs, func(i int) { results[i] = call.beforeDelete(ctx, entries[i]) })
	why, waits := "", ""
	for _, i := range jobs {
		switch r := results[i]; {
		case why != "":
		case r.Err != nil:
			why = "waits for hook " + r.ID.String() + ": " + messageOf(r.Err)
		case r.Reason != "":
			why, waits = r.Reason, r.Waits
		}
	}
	if why == "" {
		return nil
	}
	for i, e := range entries {
		if r := &results[i]; r.Err == nil && r.Reason == "" {
			*r = Result{ID: e.ID, Entry: e, Action: Skipped, Waits: waits, Reason: why}
		}
	}
	return results
}

// beforeDelete runs one hook, or looks how far it is. A result with neither
// Reason nor Err is one that nothing waits for.
func (c *call) beforeDelete(ctx context.Context, entry store.Entry) Result {
	id := entry.ID
	r := Result{ID: id, Entry: entry}
	live, _, err := c.readObject(ctx, "prune", id, entry.Version)
	switch {
	case errors.Is(err, ErrNoKind):
		return r
	case err != nil:
		return r.failed(err)
	case live == nil || live.GetAnnotations()[config.AnnotationHook] != string(object.HookBeforeDelete):
		return r
	}
	if _, stays := c.judge(r, metaOf(live)); stays || health.HasCondition(live, "Complete") {
		return r
	}
	r.Entry.Digest = "" // whatever comes of it, it is not as it was applied
	r.Waits = "hook " + id.String()
	why := "waits for " + r.Waits + ": "
	if isSuspended(live) {
		err := c.merge(ctx, "resume", id, entry.Version, map[string]any{
			"metadata": map[string]any{"uid": live.GetUID()},
			"spec":     map[string]any{"suspend": false},
		})
		if err != nil {
			r.Waits = ""
			return r.failed(err)
		}
		return r.kept(why+"not complete", false)
	}
	h, err := c.judgeLive(ctx, live)
	if err == nil && h.State != health.Failed {
		return r.kept(why+h.Reason, false)
	}
	r.Waits = ""
	if err != nil {
		return r.failed(fmt.Errorf("health of %s: %w", id, err))
	}
	return r.failed(failed("prune", id, "the hook failed, nothing is deleted: "+h.Reason+" (delete the Job to go on without it)"))
}
