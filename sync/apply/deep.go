// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fluxcd/pkg/ssa/normalize"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/drift"
	"github.com/swell-sh/swell/sync/store"
)

// DeepItem is an object to compare in full: what was applied, and the entry
// that it has been known by since.
type DeepItem struct {
	Entry  store.Entry
	Object *object.Object
}

// Deep compares live objects in full with what another apply would make of
// them. It finds what their managed fields do not show: the order of a list
// whose items have keys, and fields that a webhook rewrites. It costs one GET and one server dry run per object, and never
// writes. Secrets are not looked at, nor is an object that changes meanwhile:
// in [Swept.Looked] they are unknown.
func (c *Cluster) Deep(ctx context.Context, items []DeepItem, ignore Ignored) (Swept, error) {
	call := c.begin()
	found := Swept{Looked: make([]bool, len(items))}
	drifts := make([]*drift.Finding, len(items))
	errs := make([]error, len(items))
	var numbers []int
	for i, item := range items {
		if Judged(item.Entry) && !item.Entry.ID.IsSecret() {
			numbers = append(numbers, i)
		}
	}
	call.each(numbers, func(i int) { drifts[i], found.Looked[i], errs[i] = call.deep(ctx, items[i], ignore.of(items[i].Entry)) })
	for _, d := range drifts {
		if d != nil {
			found.Drifts = append(found.Drifts, *d)
		}
	}
	found.Lost = call.breaker.open.Load() || slices.ContainsFunc(errs, IsLost)
	return found, errors.Join(errs...)
}

// deep compares one object; looked is false when nothing can be said.
func (c *call) deep(ctx context.Context, item DeepItem, ignored []pointer) (finding *drift.Finding, looked bool, err error) {
	id := item.Entry.ID
	var live, again *unstructured.Unstructured
	err = c.addressed(ctx, c.resource, kindOf(id, item.Object.Version), func(found resource) error {
		path, err := found.path("compare", id)
		if err != nil {
			return err
		}
		if live, err = c.getObject(ctx, id, path); err != nil {
			return err
		}
		if finding = c.changed(metaOf(live), item.Entry, ignored); finding != nil {
			return nil // plain to see, so nobody has to ask the server
		}
		again, err = c.tryApply(ctx, "dry run", item.Object, item.Object.JSON, path)
		return err
	})
	switch {
	case isGone(err, id.Name):
		return &drift.Finding{Entry: item.Entry, Missing: true}, true, nil
	case err != nil:
		return nil, false, on("compare", id, err)
	case finding != nil:
		return finding, true, nil
	case live.GetResourceVersion() != again.GetResourceVersion():
		return nil, false, nil // somebody wrote in between
	}
	finding, err = item.differs(live, again, ignored)
	return finding, err == nil, err
}

// differs compares the live object with the result of a dry run, and that with
// what was sent; all without what is ignored, or is held through the scale
// subresource.
func (item *DeepItem) differs(live, again *unstructured.Unstructured, ignored []pointer) (*drift.Finding, error) {
	var sent unstructured.Unstructured
	if err := sent.UnmarshalJSON(item.Object.JSON); err != nil {
		return nil, fmt.Errorf("compare %s: %w", item.Entry.ID, err)
	}
	meta := metaOf(live)
	own := ownEntry(meta)
	d := &drift.Finding{Entry: item.Entry, Deep: true, Fingerprint: fingerprint(rawFields(own), entryTime(own))}
	for _, o := range []*unstructured.Unstructured{live, again} {
		// An object that its own kind's type cannot read is compared as it is.
		_ = normalize.DryRunUnstructured(o)
	}
	left := slices.Concat(ignored, scaledPointers(meta))
	if isScalable(item.Entry.ID) && isReplicasOrphaned(meta) {
		left = append(left, replicasPointer)
	}
	for _, o := range []*unstructured.Unstructured{&sent, live, again} {
		leave(o, left)
	}
	var found fields
	if found.rewritten("", sent.Object, again.Object); len(found) > 0 {
		d.Kept = true
		for _, field := range found {
			d.Changes = append(d.Changes, store.Change{Field: field, Manager: "admission", Note: "not as sent: the server makes something else of it at each apply"})
		}
		return d, nil
	}
	if found.between("", changeable(live), changeable(again)); len(found) == 0 {
		return nil, nil
	}
	culprit := culpritOf(otherManagers(meta), nil, entryTime(own))
	for _, field := range found {
		change := store.Change{Field: field, Manager: store.UnknownManager, Note: "another apply would change it"}
		if culprit != nil {
			setAuthor(&change, culprit)
		}
		d.Changes = append(d.Changes, change)
	}
	return d, nil
}
