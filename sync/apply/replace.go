// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/ssa"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply/health"
)

// goneTime is how long an apply waits for an object that it deletes to make it
// anew. What takes longer, the end of pods mostly, is left to the next apply.
const goneTime = 3 * time.Second

// keptWhileLive says why the live object must not be deleted to make it anew.
func (c *connection) keptWhileLive(live *unstructured.Unstructured, o *object.Object) string {
	if !c.isOfUnit(live, o) {
		return object.NotOfUnit
	}
	whenDeleted, _, _ := unstructured.NestedString(live.Object, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted")
	return object.KeptLive(live.GetAnnotations(), whenDeleted)
}

// replace deletes an object of which fields cannot be changed, and makes it
// anew, where Git allows that and the server would take the new one. For a bundle
// that is put back it is enough that the one which failed allowed it. At any
// moment, it is enough to apply the object again to go on.
func (a *applying) replace(ctx context.Context, i int, fields []string) {
	o, r := a.Objects[i], &a.results[i]
	refusal, never := r.Err, neverReplaced(o, fields)
	allowed := o.Annotation(config.AnnotationReplace) == config.ReplaceAllowed
	if never != "" || !allowed && !a.PutBack {
		if !a.isLeaving(ctx, i) {
			r.Err = explained(o, refusal, fields, never)
		}
		return
	}
	live, path, err := a.readObject(ctx, "replace", o.ID, o.Version)
	if err != nil {
		r.Err = err
		return
	}
	if live == nil { // it went at this moment
		r.Err = nil
		a.anew(ctx, i)
		return
	}
	if !allowed && live.GetAnnotations()[config.AnnotationReplace] != config.ReplaceAllowed {
		if live.GetDeletionTimestamp() != nil {
			a.waitOut(i, metaOf(live))
		} else {
			r.Err = explained(o, refusal, fields, never)
		}
		return
	}
	r.Err, r.Entry.Digest = nil, ""
	// What was begun is brought to an end; each request has its own time.
	certain := context.WithoutCancel(ctx)
	waits := waitsDeletion // that somebody else began
	old, found := a.replaced.Load(o.ID)
	if live.GetDeletionTimestamp() == nil || found && old.(*unstructured.Unstructured).GetDeletionTimestamp() == nil {
		waits = "replacement"
	}
	if live.GetDeletionTimestamp() == nil {
		if kept := a.keptWhileLive(live, o); kept != "" {
			r.Err = explained(o, refusal, fields, kept)
			return
		}
		if uid := string(live.GetUID()); r.Entry.UID != uid {
			// Nothing is deleted that is not on record: it will be by the next apply.
			r.Entry.UID = uid
			a.waitFor(i, "replacement", "was made by an apply that was cut short")
			return
		}
		if r.Err = a.tryOut(ctx, o, live); r.Err != nil {
			return
		}
		uid, version := live.GetUID(), live.GetResourceVersion()
		a.replaced.Store(o.ID, live)
		switch a.remove(certain, i, path, metav1.Preconditions{UID: &uid, ResourceVersion: &version}, propagation(o.ID)) {
		case stays:
			a.replaced.Delete(o.ID)
			a.waitFor(i, "replacement", "somebody changed it at the same moment")
			return
		case unknown:
			if isUnwritten(r.Err) {
				a.replaced.Delete(o.ID)
			}
			return
		}
	} else if a.isOfUnit(live, o) { // what somebody else is deleting is not ours to put back
		a.replaced.LoadOrStore(o.ID, live)
	}
	a.await(certain, i, path, live, waits)
}

// waitOut has an object wait until the one of its name is gone, which somebody deletes:
// what the server said of that one is no verdict on the new one.
func (a *applying) waitOut(i int, live *metav1.PartialObjectMetadata) {
	a.results[i].Err = nil
	a.waitFor(i, waitsDeletion, terminating(live))
}

// isLeaving says whether the object that was refused met one that is being deleted, and
// then waits for that.
func (a *applying) isLeaving(ctx context.Context, i int) bool {
	r := &a.results[i]
	var e *Error
	if !errors.As(r.Err, &e) || !e.met && len(immutableFields(e)) == 0 {
		return false
	}
	live, err := a.liveMeta(ctx, a.Objects[i])
	if err != nil || live.DeletionTimestamp == nil {
		return false
	}
	a.waitOut(i, live)
	return true
}

// waitFor marks an object that is brought later.
func (a *applying) waitFor(i int, what, why string) {
	r := &a.results[i]
	r.Action, r.Waits = Skipped, what+" of "+r.ID.String()
	r.Reason = "waits for " + r.Waits + ": " + why
}

// propagation is how what belongs to a replaced object goes. Old pods must not
// run beside new ones, which may write to the same place, so an object that may
// have pods is gone only when they are. Others are gone at once, which leaves
// less time without them.
func propagation(id object.ID) metav1.DeletionPropagation {
	gk := schema.GroupKind{Group: id.Group, Kind: id.Kind}
	if health.Steady[gk] && gk.Kind != "CronJob" || gk == (schema.GroupKind{Kind: "Service"}) {
		return metav1.DeletePropagationBackground
	}
	return metav1.DeletePropagationForeground
}

// await waits a little for the deleted object to be gone, and makes the new one. waits
// names the reason to wait if that takes longer.
func (a *applying) await(ctx context.Context, i int, path string, live *unstructured.Unstructured, waits string) {
	o := a.Objects[i]
	timed, cancel := context.WithTimeout(ctx, goneTime)
	defer cancel()
	why := "terminating"
	err := poll(timed, func() (bool, error) {
		meta, err := a.getMeta(timed, o.ID.String(), path)
		switch {
		case isGone(err, o.ID.Name), err == nil && meta.UID != live.GetUID():
			return true, nil
		case err == nil:
			why = terminating(meta)
		}
		return errors.Is(err, ErrRefused), err
	})
	if err != nil {
		a.waitFor(i, waits, why)
		return
	}
	a.results[i].Entry.UID = "" // of the one that is gone
	a.anew(ctx, i)
}

// anew makes an object that is gone.
func (a *applying) anew(ctx context.Context, i int) {
	a.object(ctx, i)
	a.replacedBy(ctx, i)
}

// replacedBy takes in what became of the apply that makes a replaced object
// anew, if it does, and puts the old one back where the server did not take the
// new one.
func (a *applying) replacedBy(ctx context.Context, i int) {
	o, r := a.Objects[i], &a.results[i]
	old, under := a.replaced.Load(o.ID)
	if !under {
		return
	}
	if r.Waits != "" || r.Err != nil && !isUnwritten(r.Err) {
		return // nobody knows yet; the next apply will
	}
	a.replaced.Delete(o.ID)
	if r.Err == nil {
		if r.Action == Created {
			r.Action = Recreated
		}
		return
	}
	var e *Error
	if !errors.As(r.Err, &e) {
		return
	}
	said := *e
	said.Op = "replace"
	switch meta, err := a.putBack(ctx, o, old.(*unstructured.Unstructured)); {
	case err != nil:
		said.Message = fmt.Sprintf("the old one is deleted, and the new one was not taken: %s; the old one could not be put back: %v", e.Message, err)
	default:
		r.Entry.UID = string(meta.UID)
		said.Message = fmt.Sprintf("the new one was not taken: %s; the old one was put back", e.Message)
	}
	r.Err = &said
}

// tryOut has the server take the new object under another name, without keeping
// it.
func (a *applying) tryOut(ctx context.Context, o *object.Object, live *unstructured.Unstructured) error {
	object, err := decodeObject(o.JSON)
	if err != nil {
		return refused("replace", o.ID, "%v", err)
	}
	trial := o.ID
	trial.Name = trialName(o.ID.Name)
	(&unstructured.Unstructured{Object: object}).SetName(trial.Name)
	giveUpAddresses(object, live)
	tried := *o
	if tried.JSON, err = json.Marshal(object); err != nil {
		return refused("replace", o.ID, "%v", err)
	}
	err = a.tryOutAs(ctx, &tried, trial)
	var e *Error
	if errors.As(err, &e) && errors.Is(err, ErrRefused) {
		said := *e
		said.Message = fmt.Sprintf("the old one stays, the server would not take the new one, which was tried out as %q: %s", trial.Name, e.Message)
		return &said
	}
	return err
}

// tryOutAs sends an object that is not to be kept, under a name.
func (c *call) tryOutAs(ctx context.Context, o *object.Object, trial object.ID) error {
	return on("replace", o.ID, c.addressed(ctx, c.resource, kindOf(o.ID, o.Version), func(found resource) error {
		path, err := found.path("replace", trial)
		if err != nil {
			return err
		}
		tried, _, err := c.meta(ctx, dryRun("replace", o, o.JSON, path))
		if err == nil && tried.Name != trial.Name {
			const text = "it became %q: something that the server asks at admission, a webhook mostly, gives it another name"
			return refused("replace", trial, text, tried.Name)
		}
		return err
	}))
}

// maxTrial leaves room in the shortest limit on names, the 52 of a CronJob.
const maxTrial = 52 - len("-trial-000000")

// trialName is the name that an object is tried out under. It is the same each
// time, for the errors that quote it.
func trialName(name string) string {
	sum := sha256.Sum256([]byte(name))
	return strings.Trim(name[:min(len(name), maxTrial)], "-.") + "-trial-" + hex.EncodeToString(sum[:3])
}

// giveUpAddresses takes out of a Service what the live one holds and nobody
// else can have before that is gone.
func giveUpAddresses(object map[string]any, live *unstructured.Unstructured) {
	if live.GroupVersionKind().GroupKind() != (schema.GroupKind{Kind: "Service"}) {
		return
	}
	spec, _ := object["spec"].(map[string]any)
	taken, _, _ := unstructured.NestedString(live.Object, "spec", "clusterIP")
	if spec["clusterIP"] == taken && taken != "None" {
		delete(spec, "clusterIP")
		delete(spec, "clusterIPs")
	}
	delete(spec, "healthCheckNodePort")
	ports, _ := spec["ports"].([]any)
	for _, port := range ports {
		if port, ok := port.(map[string]any); ok {
			delete(port, "nodePort")
		}
	}
}

// putBack creates an object as it was, with who owns which of its fields.
func (a *applying) putBack(ctx context.Context, o *object.Object, old *unstructured.Unstructured) (*metav1.PartialObjectMetadata, error) {
	if old.GetKind() == "Job" {
		return nil, errors.New("a Job would run again")
	}
	was := old.DeepCopy()
	delete(was.Object, "status")
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"} {
		unstructured.RemoveNestedField(was.Object, "metadata", field)
	}
	was.SetFinalizers(slices.DeleteFunc(was.GetFinalizers(), func(f string) bool {
		return f == metav1.FinalizerDeleteDependents || f == metav1.FinalizerOrphanDependents
	}))
	owners := slices.DeleteFunc(was.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Subresource != "" })
	was.SetManagedFields(nil)
	body, err := json.Marshal(was)
	if err != nil {
		return nil, err
	}
	var meta *metav1.PartialObjectMetadata
	gvk := kindOf(o.ID, old.GroupVersionKind().Version)
	err = a.addressed(ctx, a.resource, gvk, func(found resource) error {
		path, err := found.path("put back", o.ID)
		if err != nil {
			return err
		}
		meta, _, err = a.meta(ctx, &request{
			op: "put back", object: o.ID.String(), method: http.MethodPost, path: path[:strings.LastIndexByte(path, '/')],
			query: "fieldManager=" + FieldManager, contentType: jsonType, body: body,
		})
		return err
	})
	if err != nil {
		return nil, on("put back", o.ID, err)
	}
	// Who creates an object owns all of it: what Git drops later would stay.
	amended, err := a.amend(ctx, o, meta.UID, meta, func(*metav1.PartialObjectMetadata) ([]ssa.JSONPatch, error) {
		return []ssa.JSONPatch{ssa.NewPatchReplace("/metadata/managedFields", owners)}, nil
	})
	if err != nil {
		return meta, nil // it is back all the same
	}
	return amended, nil
}

// removal is what became of a deletion.
type removal int

const (
	unknown removal = iota // the result has the error
	stays                  // the object is not the one that was looked at
	goes                   // it is being deleted
	gone
)

// remove deletes the very object that was looked at.
func (a *applying) remove(ctx context.Context, i int, path string, exactly metav1.Preconditions, how metav1.DeletionPropagation) removal {
	r := &a.results[i]
	body, err := json.Marshal(metav1.DeleteOptions{
		TypeMeta:          metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		Preconditions:     &exactly,
		PropagationPolicy: &how,
	})
	if err != nil {
		r.Err = err
		return unknown
	}
	answer, err := a.do(ctx, &request{
		op: "delete", object: r.ID.String(), method: http.MethodDelete, path: path, accept: acceptMeta, contentType: jsonType, body: body,
	})
	var e *Error
	switch {
	case isGone(err, r.ID.Name):
		r.Entry.UID = ""
		return gone
	case errors.As(err, &e) && e.Code == http.StatusConflict:
		return stays
	case err != nil:
		r.Err = err
		return unknown
	}
	r.Entry.Digest = ""
	var left metav1.PartialObjectMetadata
	if answer.decode("PartialObjectMetadata", &left) == nil && left.DeletionTimestamp != nil {
		return goes
	}
	r.Entry.UID = ""
	return gone
}
