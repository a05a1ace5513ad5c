// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/ssa"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/sync/store"
)

// sharers are the appliers that hold fields of the object that are ours too, without a time:
// kubectl, and other deployment tools.
func sharers(meta *metav1.PartialObjectMetadata) (names []string) {
	appliers := func(e metav1.ManagedFieldsEntry) bool { return isApplier(&e) }
	if !slices.ContainsFunc(meta.ManagedFields, appliers) { // as after most applies: no fields need be read
		return nil
	}
	own := fieldsOf(ownEntry(meta))
	for _, other := range otherManagers(meta) {
		if isApplier(other.ManagedFieldsEntry) && !own.Intersection(other.fields).Empty() {
			var c store.Change
			setAuthor(&c, other.ManagedFieldsEntry)
			names = append(names, c.Author())
		}
	}
	slices.Sort(names)
	return names
}

// isApplier says whether an entry is of somebody who applies whole objects, and may have
// made one that was adopted.
func isApplier(e *metav1.ManagedFieldsEntry) bool {
	if e.Subresource != "" {
		return false
	}
	if e.Manager == managerBefore || strings.HasPrefix(e.Manager, kubectlManagers) {
		return true
	}
	return slices.ContainsFunc(tools, func(t tool) bool {
		return slices.ContainsFunc(t.managers, func(manager string) bool { return strings.HasPrefix(e.Manager, manager) })
	})
}

// unshare makes the fields that are ours ours alone, before the first write after an adoption:
// what Git drops with it would stay for the sake of whoever applied the object before. What
// only they had set stays, and a warning names it.
func (s *sending) unshare(ctx context.Context, uid types.UID) error {
	var left []fieldpath.Path
	_, err := s.amend(ctx, s.o, uid, nil, func(meta *metav1.PartialObjectMetadata) ([]ssa.JSONPatch, error) {
		own, others := fieldsOf(ownEntry(meta)), fieldpath.NewSet()
		var entries []metav1.ManagedFieldsEntry
		changed := false
		for i := range meta.ManagedFields {
			e := *meta.ManagedFields[i].DeepCopy()
			if fields := fieldsOf(&e); isOurs(&e) || !isApplier(&e) {
				entries = append(entries, e)
				continue
			} else if rest := fields.Difference(own); !rest.Equals(fields) {
				text, err := rest.ToJSON()
				if err != nil {
					return nil, unsendable(s.o, err)
				}
				e.FieldsV1, changed = metav1.NewFieldsV1(string(text)), true
			}
			if rest := fieldsOf(&e); !rest.Empty() {
				entries, others = append(entries, e), others.Union(rest)
			}
		}
		left = nil
		own.Union(others).Leaves().Difference(own).Iterate(func(path fieldpath.Path) { left = append(left, path.Copy()) })
		if !changed {
			return nil, nil
		}
		return []ssa.JSONPatch{ssa.NewPatchReplace("/metadata/managedFields", entries)}, nil
	})
	if isGone(err, s.o.ID.Name) {
		return otherObject(s.o, &metav1.PartialObjectMetadata{})
	}
	s.leftovers = fieldTexts(left)
	return err
}

// leftoverText begins a warning.
const leftoverText = "stays as it is, for it was set by others and Git does not say: "

// cleanse finishes a take-over, and keeps it so: the field managers of the tool and of kubectl
// go, so that a field which Git drops later is nobody's and goes too, and so do
// the marks by which the tool claims the object. What only they had set stays as
// it is, and is named in a warning.
func (s *sending) cleanse(ctx context.Context, meta *metav1.PartialObjectMetadata) (*metav1.PartialObjectMetadata, error) {
	tool, _ := claim(s.o.ID, meta)
	if fields := fieldTexts(s.orphans(tool, meta)); len(fields) > 0 {
		s.r.Warnings = append(s.r.Warnings, leftoverText+document.Some(fields, maxNamed))
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
