// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/sync/store"
)

// Action is what became of one object.
type Action string

// The actions, in ssa's words. An object that something went wrong with has
// none, unless it was skipped.
const (
	Created    Action = "created"
	Configured Action = "configured"
	Unchanged  Action = "unchanged"
	// Recreated: deleted and made anew, because of a field that cannot be changed.
	Recreated Action = "recreated"
	Deleted   Action = "deleted"
	Skipped   Action = "skipped"
)

// Result is what became of one object.
type Result struct {
	ID     render.ObjectID
	Action Action
	// Entry is what the inventory should hold now. After an error that leaves
	// open what the server has, its Digest is empty, so that the next apply
	// sends the object again whatever is wanted by then.
	Entry store.Entry
	// Reason says why an object was skipped, or what its deletion waits for.
	// It is the same from pass to pass.
	Reason string
	// Adopted says who made an object that was there already and that was taken
	// up; empty when it was not, or was ours.
	Adopted string
	// Taken are fields that others had set to something else, and that were
	// taken from them, sorted by field. What a failed write would have taken is
	// not among them.
	Taken []Change
	// Left are fields with another value in Git that were left to those who
	// hold them through the scale subresource.
	Left []Change
	// Warnings are further things to know about an object that was applied, the
	// same from pass to pass.
	Warnings []string
	// Waits is set when the object, and so the whole call, waits for something
	// that takes its time: "phase 1", "hook Job/shop/migrate". Reason says what
	// is in the way. The same call goes on from there.
	Waits string
	// Forget is set by [Cluster.Prune] when the entry has done its duty: the
	// object is gone, or is not ours.
	Forget bool
	// Changed is set by [Cluster.Prune] when a heavy object changed between the
	// look at it and its deletion, which therefore did not take place.
	Changed bool
	Err     error
}

// waitsDeletion begins the Waits of what waits until something is gone that
// somebody else deleted.
const waitsDeletion = "deletion"

// IsOutside says whether the result waits for something that is not the bundle's
// doing: somebody else's deletion.
func (r *Result) IsOutside() bool { return strings.HasPrefix(r.Waits, waitsDeletion+" of ") }

// Work is one bundle to bring to the cluster, and how.
type Work struct {
	// Objects of the bundle, in apply order.
	Objects []*render.Object
	// Bundle is their digest as a whole.
	Bundle render.Digest
	// Known is the inventory of the unit on the target. Its entries carry Unit
	// and Target over to the results.
	Known map[render.ObjectID]store.Entry
	// Adopt is what to do with objects that others made. Empty is
	// [config.AdoptIfSame].
	Adopt config.Adoption
	// Ignore are the rules of the policy that hold on the target.
	Ignore []config.IgnoreRule
	// Rules say for some kinds when an object is healthy.
	Rules render.HealthRules
	// Tolerated are the objects that stay as somebody made them until Git brings
	// something else: their health counts as it is, and they have no drift.
	Tolerated map[render.ObjectID]bool
	// TakenOver are the objects that another monorepo was found to have taken over.
	// What is new of one is brought as at first contact, which mostly is refused.
	TakenOver map[render.ObjectID]bool
	// PutBack says that the bundle takes the place of one that failed: what that
	// one allowed to replace may be replaced to undo it.
	PutBack bool
}

// Apply brings the objects to the cluster and returns a result for each, by
// index. An object whose digest is known together with a UID costs no request,
// any other one PATCH, and more only where the server was too busy to answer or
// where somebody is in the way: see first contact in contact.go, and below.
//
// Objects go out phase by phase, see [config.AnnotationPhase]: each phase when
// the one before is healthy, and hooks ([render.Hook]) complete before and after.
// The objects behind a phase that is not healthy yet are [Skipped] with Waits:
// nothing is waited for here that takes longer than seconds.
//
// In a phase, objects go out in stages, see [stage], and at the same time within
// one. An
// error concerns its object alone, except that objects in a namespace or of a
// custom kind that could not be brought are skipped, with Err set. A custom
// resource definition counts as brought when the server serves its kinds.
//
// An object that is there and that the inventory has no UID for was made by
// somebody else, or by us before the state was lost. What happens then is up to
// [Work.Adopt]. Fields of known objects that others set are taken from them by
// force, except for those that they hold through the scale subresource, and
// those of [Work.Ignore], which are only set when the object is created. A field
// that the server does not know is an error.
func (c *Cluster) Apply(ctx context.Context, work Work) []Result {
	a := &applying{
		call:    c.begin(),
		Work:    work,
		results: make([]Result, len(work.Objects)),
		blocked: map[need]Result{},
		changed: map[schema.GroupKind]bool{},
	}
	for i, o := range work.Objects {
		a.results[i] = Result{ID: o.ID, Entry: work.Known[o.ID]}
		a.results[i].Entry.ID = o.ID
		a.results[i].Entry.Version = cmp.Or(a.results[i].Entry.Version, o.Version)
	}
	a.inSteps(ctx)
	return a.results
}

// applying is one Apply under way. Its maps are only written between stages.
type applying struct {
	*call
	Work
	results []Result
	// blocked holds what others need and what failed, or waits.
	blocked map[need]Result
	// changed holds the custom kinds whose definition was just written.
	changed map[schema.GroupKind]bool
}

// need is a namespace or a kind that an object cannot be applied without; the
// other half is zero.
type need struct {
	namespace string
	kind      schema.GroupKind
}

func (a *applying) gvk(i int) schema.GroupVersionKind {
	return kindOf(a.Objects[i].ID, a.Objects[i].Version)
}

func (a *applying) stage(ctx context.Context, numbers []int) {
	var send []int
	for _, i := range numbers {
		switch o, r := a.Objects[i], &a.results[i]; {
		case r.Entry.UID != "" && r.Entry.Digest != "" && r.Entry.Digest == o.Digest:
			r.Action, r.Entry.Keep, r.Entry.Phase = Unchanged, keeps(o), o.Phase
		case a.skip(i):
		default:
			send = append(send, i)
		}
	}
	a.each(send, func(i int) { a.one(ctx, i) })
	a.settle(ctx, send)
}

// skip marks an object that lacks something that could not be brought.
func (a *applying) skip(i int) bool {
	id, r := a.Objects[i].ID, &a.results[i]
	for _, n := range []need{{namespace: id.Namespace}, {kind: a.gvk(i).GroupKind()}} {
		if lacking, ok := a.blocked[n]; ok {
			r.Action, r.Waits, r.Reason = Skipped, lacking.Waits, lacking.Reason
			if lacking.Waits != "" {
				return true
			}
			r.Reason = lacking.ID.String() + " was not applied"
			r.Err = &Error{Op: "apply", Object: id.String(), Message: "skipped: " + r.Reason, cause: lacking.Err, unsent: true}
			return true
		}
	}
	return false
}

// settle waits until the definitions just written are served, and notes what
// later stages have to do without.
func (a *applying) settle(ctx context.Context, numbers []int) {
	served := make([]definition, len(a.Objects))
	a.each(numbers, func(i int) {
		if r := &a.results[i]; r.ID.IsDefinition() {
			served[i] = a.establish(ctx, a.Objects[i], r)
		}
	})
	for _, i := range numbers {
		r := &a.results[i]
		switch {
		case r.ID.IsDefinition():
			kind := served[i].groupKind()
			a.changed[kind] = true
			if r.Err != nil || r.Waits != "" {
				a.blocked[need{kind: kind}] = *r
			}
		case r.ID.IsNamespace() && (r.Err != nil || r.Waits != ""):
			a.blocked[need{namespace: r.ID.Name}] = *r
		}
	}
}

// object sends one object and fills its result in.
func (a *applying) object(ctx context.Context, i int) {
	o, r := a.Objects[i], &a.results[i]
	sent, err := a.wire(i)
	if err != nil {
		r.Err = err
		return
	}
	meta, info, err := a.send(ctx, sent, r)
	if err != nil && a.changed[a.gvk(i).GroupKind()] {
		meta, info, err = a.sendSettling(ctx, sent, r, err)
	}
	switch {
	case isNamespaceLeaving(err): // waiting is enough
		r.Action, r.Waits = Skipped, waitsDeletion+" of Namespace/"+o.ID.Namespace
		r.Reason = "waits for " + r.Waits + ": terminating"
		return
	case err != nil:
		r.Err = err
		if !isUnwritten(err) {
			r.Entry.Digest = ""
		}
		return
	}
	before := r.Entry.Fingerprint
	r.Entry = entryOf(r.Entry, o, meta)
	switch {
	case meta.DeletionTimestamp != nil: // what was written will not last
		r.Entry.Digest = ""
		a.waitFor(i, waitsDeletion, terminating(meta))
	case info.code == http.StatusCreated:
		r.Action = Created
	case before == r.Entry.Fingerprint && entryTime(ownEntry(meta)).Before(info.asked):
		r.Action = Unchanged
	default: // or it was changed twice in a second, which leaves no trace
		r.Action = Configured
	}
}

// What every apply is sent with: see [Cluster.Apply].
const (
	applyQuery = "fieldManager=" + FieldManager + "&fieldValidation=Strict"
	applyType  = "application/apply-patch+yaml"
)

// patchOptions are how a body is sent.
type patchOptions struct {
	query, contentType string
	// once: a conflict is an answer, not a reason to try again.
	once bool
}

// patchBody sends a patch of an object and returns what the server made of it.
func (a *applying) patchBody(ctx context.Context, o *render.Object, body []byte, opt patchOptions) (meta *metav1.PartialObjectMetadata, info answerInfo, err error) {
	err = a.addressed(ctx, a.resource, kindOf(o.ID, o.Version), func(found resource) error {
		path, err := found.path("apply", o.ID)
		if err != nil {
			return err
		}
		meta, info, err = a.meta(ctx, &request{
			op: "apply", object: o.ID.String(), method: http.MethodPatch, path: path, query: opt.query,
			contentType: opt.contentType, body: body, hide: hider(o), once: opt.once,
		})
		return err
	})
	return meta, info, on("apply", o.ID, err)
}

// entryOf is the inventory's entry for an object that the server has accepted.
func entryOf(known store.Entry, o *render.Object, meta *metav1.PartialObjectMetadata) store.Entry {
	own := ownEntry(meta)
	known.ID, known.Version = o.ID, o.Version
	known.UID, known.Digest = string(meta.UID), o.Digest
	known.Ran = ""
	known.Fields = rawFields(own)
	known.Fingerprint, known.Written = fingerprint(known.Fields, entryTime(own)), store.Written(entryTime(own))
	known.Keep, known.Found, known.Phase = keeps(o), false, o.Phase
	return known
}

// each runs do for every number, as many at a time as requests may be, starting
// them in order.
func (c *call) each(numbers []int, do func(i int)) {
	var group sync.WaitGroup
	next := make(chan int)
	for range min(len(numbers), c.options.Concurrency) {
		group.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for _, i := range numbers {
		next <- i
	}
	close(next)
	group.Wait()
}

// all runs do for 0 to n-1, like each.
func (c *call) all(n int, do func(i int)) {
	numbers := make([]int, n)
	for i := range numbers {
		numbers[i] = i
	}
	c.each(numbers, do)
}
