// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/store"
)

// Work is one bundle to bring to the cluster, and how.
type Work struct {
	// Objects of the bundle, in apply order.
	Objects []*object.Object
	// Bundle is their digest as a whole.
	Bundle object.Digest
	// Event is what the bundle is to the unit on the target. Objects has no hooks for
	// another event.
	Event object.Event
	// Known is the inventory of the unit on the target. Its entries carry Unit
	// and Target over to the results.
	Known map[object.ID]store.Entry
	// Adopt is what to do with objects that others made. Empty is
	// [config.AdoptIfSame].
	Adopt config.Adoption
	// Ignore are the rules of the policy that hold on the target.
	Ignore []config.IgnoreRule
	// Changing are the objects that the release under way changed, each as it was before;
	// nil when it is new. [Cluster.Check] does not tolerate that what was changed is
	// taken back.
	Changing map[object.ID]*object.Object
	// Rules say for some kinds when an object is healthy.
	Rules render.HealthRules
	// Tolerated are the objects that stay as somebody made them until Git brings
	// something else: their health counts as it is, and they have no drift.
	Tolerated map[object.ID]bool
	// TakenOver are the objects that another monorepo was found to have taken over.
	// What is new of one is brought as at first contact, which mostly is refused.
	TakenOver map[object.ID]bool
	// PutBack says that the bundle takes the place of one that failed: what that
	// one allowed to replace may be replaced to undo it.
	PutBack bool
	// Frees says that a pod may be deleted which a StatefulSet of the bundle waits for and
	// never replaces. Spares says why not even a command for that is named, in words that
	// follow a colon; empty: it is.
	Frees  bool
	Spares string
	// Cluster is the name that commands for people have for the cluster; empty: none.
	Cluster string
	// Open gives an object with its encrypted values decrypted. Nil where there are
	// none to decrypt.
	Open func(context.Context, *object.Object) (*object.Object, error)
}

// Apply brings the objects to the cluster and returns a result for each, by
// index. An object whose digest is known together with a UID costs no request,
// any other one PATCH, and more only where the server was too busy to answer or
// where somebody is in the way: see first contact in contact.go, and below.
//
// Objects go out phase by phase, see [config.AnnotationPhase]: each phase when
// the one before is healthy, and hooks ([object.Hook]) complete before and after.
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
	a.carryOut(ctx, a.plan())
	return a.results
}
