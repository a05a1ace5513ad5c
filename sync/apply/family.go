// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply/health"
	"github.com/swell-sh/swell/sync/store"
)

// Relative is a live object and those that it owns.
type Relative struct {
	ID object.ID
	// Missing: the object is in the inventory, and not in the cluster.
	Missing bool
	// Health of the object by itself. State is empty where it is not known:
	// the object is missing, or could not be read.
	Health health.Health
	// Owned are sorted by kind, namespace and name. What an object owns in
	// another namespace is not found.
	Owned []*Relative

	uid     types.UID
	version string
}

// Family finds the live objects of the entries and all that they own, down to
// the pods, by the owner references of all kinds that the cluster serves. It
// returns a Relative for each entry, by index. unknown names the kinds that
// could not be listed, sorted; a user's view leaves out those that the user may
// not list. The contents of Secrets are not asked for.
//
// It costs one metadata LIST for each kind in each namespace, and one GET for
// each object found that has a state.
func (c *Cluster) Family(ctx context.Context, entries []store.Entry) (relatives []*Relative, unknown []string, err error) {
	f := &ownerTree{surveying: surveying{call: c.begin()}, owned: map[types.UID][]*Relative{}}
	kinds, err := f.kinds(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := f.gather(ctx, kinds, namespacesOf(entries)); err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		relatives = append(relatives, &Relative{ID: e.ID, uid: types.UID(e.UID), version: e.Version})
	}
	var all []*Relative
	for _, r := range relatives {
		all = f.attach(r, all)
	}
	f.judgeAll(ctx, all)
	slices.Sort(f.unknown)
	return relatives, slices.Compact(f.unknown), nil
}

type ownerTree struct {
	surveying
	mu    sync.Mutex // guards owned and unknown while lists are read
	owned map[types.UID][]*Relative
}

func namespacesOf(entries []store.Entry) []string {
	var namespaces []string
	for _, e := range entries {
		if e.ID.Namespace != "" && !slices.Contains(namespaces, e.ID.Namespace) {
			namespaces = append(namespaces, e.ID.Namespace)
		}
	}
	return namespaces
}

// childless are kinds that there may be very many of and that say nothing here.
var childless = map[schema.GroupKind]bool{
	{Kind: "Event"}: true, {Group: "events.k8s.io", Kind: "Event"}: true,
}

// gather lists what has owners.
func (f *ownerTree) gather(ctx context.Context, kinds []schema.GroupVersionKind, namespaces []string) error {
	type place struct {
		kind      schema.GroupVersionKind
		namespace string
	}
	var places []place
	for _, kind := range kinds {
		if r, err := f.resource(ctx, kind); err != nil || !r.namespaced || childless[kind.GroupKind()] {
			continue
		}
		for _, namespace := range namespaces {
			places = append(places, place{kind, namespace})
		}
	}
	f.all(len(places), func(i int) {
		if err := f.children(ctx, places[i].kind, places[i].namespace); err != nil && (f.user == "" || !isForbidden(err)) {
			f.mu.Lock()
			f.unknown = append(f.unknown, places[i].kind.GroupKind().String())
			f.mu.Unlock()
		}
	})
	if f.breaker.open.Load() {
		return errors.New("the cluster does not answer any more")
	}
	return ctx.Err()
}

func (f *ownerTree) children(ctx context.Context, kind schema.GroupVersionKind, namespace string) error {
	return f.addressed(ctx, f.resource, kind, func(r resource) error {
		_, err := f.list(ctx, kind.GroupKind(), r.within(namespace), "", func(live *metav1.PartialObjectMetadata) {
			f.mu.Lock()
			defer f.mu.Unlock()
			for _, owner := range live.OwnerReferences {
				f.owned[owner.UID] = append(f.owned[owner.UID], &Relative{
					ID:  object.ID{Group: kind.Group, Kind: kind.Kind, Namespace: live.Namespace, Name: live.Name},
					uid: live.UID, version: kind.Version,
				})
			}
		})
		return err
	})
}

// maxGenerations ends a chain of owners that goes round in a circle.
const maxGenerations = 10

// attach hangs what an object owns below it, and returns all.
func (f *ownerTree) attach(r *Relative, all []*Relative) []*Relative {
	return f.attachBelow(r, all, 0)
}

func (f *ownerTree) attachBelow(r *Relative, all []*Relative, generation int) []*Relative {
	all = append(all, r)
	if r.uid == "" || generation == maxGenerations {
		return all
	}
	for _, child := range f.owned[r.uid] {
		own := *child // one with two owners stands below both
		r.Owned = append(r.Owned, &own)
	}
	slices.SortFunc(r.Owned, func(a, b *Relative) int { return a.ID.Compare(b.ID) })
	r.Owned = slices.CompactFunc(r.Owned, func(a, b *Relative) bool { return a.ID == b.ID })
	for _, child := range r.Owned {
		all = f.attachBelow(child, all, generation+1)
	}
	return all
}

// judgeAll fills in how the objects are.
func (f *ownerTree) judgeAll(ctx context.Context, all []*Relative) {
	f.all(len(all), func(i int) { f.judgeOne(ctx, all[i]) })
}

func (f *ownerTree) judgeOne(ctx context.Context, r *Relative) {
	if health.Steady[kindOf(r.ID, "").GroupKind()] || r.ID.IsSecret() {
		f.searchIn(ctx, r)
		return
	}
	live, _, err := f.readObject(ctx, "get", r.ID, r.version)
	switch {
	case err != nil:
		r.Health.Reason = err.Error()
	case live == nil || r.uid != "" && live.GetUID() != r.uid:
		r.Missing = true
	case r.ID.Kind == "Pod" && r.ID.Group == "":
		var pod corev1.Pod
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &pod); err != nil {
			r.Health.Reason = err.Error()
			return
		}
		r.Health = health.OfPod(&pod)
	default:
		if r.Health, err = health.Of(live); err != nil {
			r.Health.Reason = err.Error()
		}
	}
}

// searchIn finds out whether an object without a state is there.
func (f *ownerTree) searchIn(ctx context.Context, r *Relative) {
	err := f.addressed(ctx, f.anyResource, kindOf(r.ID, r.version), func(found resource) error {
		path, err := found.path("get", r.ID)
		if err != nil {
			return err
		}
		meta, err := f.getMeta(ctx, r.ID.String(), path)
		if err == nil && r.uid != "" && meta.UID != r.uid {
			r.Missing = true
		}
		return err
	})
	switch {
	case isGone(err, r.ID.Name), errors.Is(err, ErrNoKind):
		r.Missing = true
	case err != nil:
		r.Health.Reason = err.Error()
	case !r.Missing:
		r.Health.State = health.Healthy
	}
}
