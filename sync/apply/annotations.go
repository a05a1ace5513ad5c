// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"maps"
	"slices"

	"github.com/fluxcd/pkg/ssa"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/store"
)

// strange are the live annotations that match, are not Git's, and are not to be
// ignored, sorted.
func (s *sending) strange(meta *metav1.PartialObjectMetadata) []string {
	var keys []string
	if len(s.owned) == 0 {
		return nil
	}
	for key := range meta.Annotations {
		if _, ours := s.annotations[key]; !ours && s.owned.Match(key) && !s.isIgnored(annotationPath(key)) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// trim removes annotations that are ours and not in Git.
func (s *sending) trim(ctx context.Context, meta *metav1.PartialObjectMetadata) (*metav1.PartialObjectMetadata, error) {
	strange := s.strange(meta)
	if len(strange) == 0 {
		return meta, nil
	}
	var removed []store.Change
	for _, key := range strange {
		change := store.Change{Field: fieldText(annotationPath(key)), Manager: store.UnknownManager}
		if by := culpritOf(otherManagers(meta), annotationPath(key), entryTime(ownEntry(meta))); by != nil {
			setAuthor(&change, by)
		}
		removed = append(removed, change)
	}
	meta, err := s.amend(ctx, s.o, meta.UID, meta, func(meta *metav1.PartialObjectMetadata) ([]ssa.JSONPatch, error) {
		return ssa.PatchRemoveAnnotations(withManagedFields(meta), s.strange(meta)), nil
	})
	if err == nil {
		s.r.Taken = append(s.r.Taken, removed...)
	}
	return meta, err
}

// unmark removes the mark that we put on the object when it was orphaned (see [call.mark]): Git has the
// object again, and does not say to keep it. A mark that somebody else set, too, stays.
func (s *sending) unmark(ctx context.Context, meta *metav1.PartialObjectMetadata) (*metav1.PartialObjectMetadata, error) {
	if !s.hasOurMark(meta) {
		return meta, nil
	}
	return s.amend(ctx, s.o, meta.UID, meta, func(meta *metav1.PartialObjectMetadata) ([]ssa.JSONPatch, error) {
		if !s.hasOurMark(meta) {
			return nil, nil
		}
		return ssa.PatchRemoveAnnotations(withManagedFields(meta), []string{config.AnnotationPrune}), nil
	})
}

func (s *sending) hasOurMark(meta *metav1.PartialObjectMetadata) bool {
	if _, wanted := s.annotations[config.AnnotationPrune]; wanted || !isKept(meta.Annotations) {
		return false
	}
	ours := false
	for _, m := range otherManagers(meta) {
		if !m.fields.Has(annotationPath(config.AnnotationPrune)) {
			continue
		}
		if m.Manager != FieldManager {
			return false
		}
		ours = true
	}
	return ours
}

func annotationPath(key string) fieldpath.Path {
	return fieldpath.MakePathOrDie("metadata", "annotations", key)
}

// unappliedAnnotations are changes for the annotations of a live object that are ours by
// its own word and that we did not apply. own are the fields that are ours, or
// were.
func unappliedAnnotations(live *metav1.PartialObjectMetadata, own *fieldpath.Set, ignored []pointer) []store.Change {
	owned, err := object.ParseGlobs(live.Annotations[config.AnnotationOwned])
	if err != nil || len(owned) == 0 {
		return nil
	}
	var changes []store.Change
	for _, key := range slices.Sorted(maps.Keys(live.Annotations)) {
		if at := annotationPath(key); owned.Match(key) && !own.Has(at) && !covers(ignored, at, nil) {
			change := store.Change{Field: fieldText(at), Note: "added", Manager: store.UnknownManager}
			if by := culpritOf(otherManagers(live), at, entryTime(ownEntry(live))); by != nil {
				setAuthor(&change, by)
			}
			changes = append(changes, change)
		}
	}
	return changes
}
