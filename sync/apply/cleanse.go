// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"slices"

	"github.com/fluxcd/pkg/ssa"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/sync/store"
)

// shared warns of an adoption after which others still hold fields that are ours
// too: such a field stays when Git drops it.
func (s *sending) shared(meta *metav1.PartialObjectMetadata) {
	own := fieldsOf(ownEntry(meta))
	var names []string
	for _, other := range otherManagers(meta) {
		if other.Subresource == "" && !own.Intersection(other.fields).Empty() {
			var c store.Change
			setAuthor(&c, other.ManagedFieldsEntry)
			names = append(names, c.Author())
		}
	}
	if len(names) > 0 {
		slices.Sort(names)
		s.r.Warnings = append(s.r.Warnings, "also held by "+document.Some(names, maxNamed)+", so that what Git drops later stays: annotate it with "+config.AnnotationAdopt+": take in Git to end that")
	}
}

// cleanse finishes a take-over, and keeps it so: the field managers of the tool and of kubectl
// go, so that a field which Git drops later is nobody's and goes too, and so do
// the marks by which the tool claims the object. What only they had set stays as
// it is, and is named in a warning.
func (s *sending) cleanse(ctx context.Context, meta *metav1.PartialObjectMetadata) (*metav1.PartialObjectMetadata, error) {
	tool, _ := claim(s.o.ID, meta)
	if fields := fieldTexts(s.orphans(tool, meta)); len(fields) > 0 {
		s.r.Warnings = append(s.r.Warnings, "stays as it is, for it was set by others and Git does not say: "+document.Some(fields, maxNamed))
	}
	labels, annotations := s.marks(tool)
	return s.amend(ctx, s.o, meta.UID, meta, func(meta *metav1.PartialObjectMetadata) ([]ssa.JSONPatch, error) {
		live := withManagedFields(meta)
		return slices.Concat(
			ssa.PatchRemoveFieldsManagers(live, tool.fieldManagers()),
			ssa.PatchRemoveLabels(live, labels),
			ssa.PatchRemoveAnnotations(live, annotations),
		), nil
	})
}

// marks are the keys by which the tool claims the object, and kubectl's, less
// those that Git has.
func (b *body) marks(tool *tool) (labels, annotations []string) {
	// kubectl apply compares with it. Kept, it would make a later one delete what is ours now.
	annotations = []string{config.AnnotationLastApplied}
	if tool != nil {
		labels, annotations = slices.Clone(tool.labels), append(annotations, tool.annotations...)
	}
	labels = slices.DeleteFunc(labels, func(key string) bool { _, ok := b.labels[key]; return ok })
	annotations = slices.DeleteFunc(annotations, func(key string) bool { _, ok := b.annotations[key]; return ok })
	return labels, annotations
}

// orphans are the fields that nobody holds after the take-over.
func (b *body) orphans(tool *tool, meta *metav1.PartialObjectMetadata) (paths []fieldpath.Path) {
	operations := ssa.PatchRemoveFieldsManagers(withManagedFields(meta), tool.fieldManagers())
	if len(operations) == 0 {
		return nil
	}
	held := fieldpath.NewSet()
	labels, annotations := b.marks(tool)
	for _, key := range labels {
		held.Insert(fieldpath.MakePathOrDie("metadata", "labels", key))
	}
	for _, key := range annotations {
		held.Insert(annotationPath(key))
	}
	for i := range operations[0].Value {
		held = held.Union(fieldsOf(&operations[0].Value[i]))
	}
	before := fieldpath.NewSet()
	for i := range meta.ManagedFields {
		before = before.Union(fieldsOf(&meta.ManagedFields[i]))
	}
	before.Leaves().Difference(held).Iterate(func(path fieldpath.Path) { paths = append(paths, path.Copy()) })
	return paths
}

// fieldTexts are paths for people, sorted.
func fieldTexts(paths []fieldpath.Path) []string {
	var fields []string
	for _, path := range paths {
		fields = append(fields, fieldText(path))
	}
	slices.Sort(fields)
	return fields
}

// fieldsOf reads an entry's fields; those that cannot be read are none.
func fieldsOf(e *metav1.ManagedFieldsEntry) *fieldpath.Set {
	fields, err := parseFields(rawFields(e))
	if err != nil {
		return fieldpath.NewSet()
	}
	return fields
}
