// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/ssa"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/swell-sh/swell/render/object"
)

// looks is how often something is done anew because the object changed
// meanwhile. Controllers write to a new object several times a second.
const looks = 5

// amend changes the metadata of a live object by a JSON patch that holds for
// exactly the version that was seen, and returns it as it is then. When somebody
// was faster, change is asked again with what is there now. No operations are
// no request. A nil meta is looked up first; another object than that of uid is
// an error for which [isOtherObject] holds.
//
// It must not be used for anything but labels, annotations and managed fields:
// only the metadata is seen.
func (a *applying) amend(ctx context.Context, o *object.Object, uid types.UID, meta *metav1.PartialObjectMetadata,
	change func(*metav1.PartialObjectMetadata) ([]ssa.JSONPatch, error),
) (*metav1.PartialObjectMetadata, error) {
	var err error
	seen := ""
	for range looks {
		if meta == nil {
			var unseen error
			if meta, unseen = a.liveMeta(ctx, o); unseen != nil {
				return nil, unseen
			}
		}
		if meta.ResourceVersion == seen {
			return nil, err // nobody was faster, so it is for another reason
		}
		if meta.UID != uid {
			return nil, otherObject(o, meta)
		}
		var operations []ssa.JSONPatch
		if operations, err = change(meta); err != nil || len(operations) == 0 {
			return meta, err
		}
		var amended *metav1.PartialObjectMetadata
		all := make([]any, len(operations))
		for i, op := range operations {
			all[i] = op
		}
		if amended, err = a.patchMeta(ctx, o, meta.ResourceVersion, all); !isTaken(err) && !isInapplicable(err) {
			return amended, err
		}
		seen, meta = meta.ResourceVersion, nil
	}
	return nil, err
}

// isInapplicable says whether the server could not carry a JSON patch out, as
// when what it removes has gone: that is found before the version is looked at.
func isInapplicable(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == http.StatusUnprocessableEntity
}

// liveMeta reads the metadata of the live object.
func (a *applying) liveMeta(ctx context.Context, o *object.Object) (meta *metav1.PartialObjectMetadata, err error) {
	err = a.addressed(ctx, a.resource, kindOf(o.ID, o.Version), func(found resource) error {
		path, err := found.path("apply", o.ID)
		if err == nil {
			meta, err = a.getMeta(ctx, o.ID.String(), path)
		}
		return err
	})
	return meta, on("apply", o.ID, err)
}

// amendQuery: the manager is named although it comes to own nothing new.
const amendQuery = "fieldManager=" + FieldManager + "&fieldValidation=Strict"

// patchMeta sends the operations of a JSON patch for a version of the object.
func (a *applying) patchMeta(
	ctx context.Context, o *object.Object, version string, operations []any,
) (*metav1.PartialObjectMetadata, error) {
	only := map[string]string{"op": "replace", "path": "/metadata/resourceVersion", "value": version}
	return a.patchObject(ctx, o, append(slices.Clip(operations), only))
}

// patchObject sends the operations of a JSON patch, for whatever version is there.
func (a *applying) patchObject(ctx context.Context, o *object.Object, operations []any) (*metav1.PartialObjectMetadata, error) {
	body, err := json.Marshal(operations)
	if err != nil {
		return nil, unsendable(o, err)
	}
	meta, _, err := a.patch(ctx, o, body, patchOptions{query: amendQuery, contentType: "application/json-patch+json", once: true})
	return meta, err
}

// otherObject is the error for an object that was recreated by somebody.
func otherObject(o *object.Object, meta *metav1.PartialObjectMetadata) *Error {
	return &Error{
		Op: "apply", Object: o.ID.String(), class: ErrRefused, unsent: true, Code: http.StatusConflict,
		Message: fmt.Sprintf("UID in the precondition is another one than %s", meta.UID),
		status:  &metav1.Status{Reason: metav1.StatusReasonConflict},
	}
}

// withManagedFields is the part of an object that ssa makes patches for.
func withManagedFields(meta *metav1.PartialObjectMetadata) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetManagedFields(meta.ManagedFields)
	u.SetLabels(meta.Labels)
	u.SetAnnotations(meta.Annotations)
	return u
}

// disown takes fields out of our managed fields: they stay as they are, and an
// apply without them does not remove them, as it would while they are ours.
func (a *applying) disown(ctx context.Context, o *object.Object, uid types.UID, meta *metav1.PartialObjectMetadata,
	ignored func(fieldpath.Path) bool,
) (*metav1.PartialObjectMetadata, error) {
	return a.amend(ctx, o, uid, meta, func(meta *metav1.PartialObjectMetadata) ([]ssa.JSONPatch, error) {
		own, err := parseFields(rawFields(ownEntry(meta)))
		if err != nil {
			return nil, unsendable(o, fmt.Errorf("managed fields: %w", err))
		}
		ours := subset(own, ignored)
		if ours.Empty() {
			return nil, nil
		}
		rest, err := own.Difference(ours).ToJSON()
		if err != nil {
			return nil, unsendable(o, err)
		}
		entries := make([]metav1.ManagedFieldsEntry, len(meta.ManagedFields))
		for i := range meta.ManagedFields {
			entries[i] = *meta.ManagedFields[i].DeepCopy()
			if isOurs(&entries[i]) {
				entries[i].FieldsV1 = metav1.NewFieldsV1(string(rest))
			}
		}
		return []ssa.JSONPatch{ssa.NewPatchReplace("/metadata/managedFields", entries)}, nil
	})
}

// migrate writes the version that the object is applied in into all entries of
// its managed fields. An entry in another version is what the server fails on
// when that version is gone, or lacks a field that the new one has by default.
func (a *applying) migrate(ctx context.Context, o *object.Object) error {
	meta, err := a.liveMeta(ctx, o)
	if err != nil {
		return err
	}
	_, err = a.amend(ctx, o, meta.UID, meta, func(meta *metav1.PartialObjectMetadata) ([]ssa.JSONPatch, error) {
		return ssa.PatchMigrateToVersion(withManagedFields(meta), o.APIVersion())
	})
	return err
}

// isStale says whether a refusal of an apply is about the versions of managed
// fields, not about what was sent. Both texts are those of the API server
// (apiextensions, conversion, and apimachinery, managedfields); that what was
// sent has an unknown field is told by another beginning.
func isStale(err error) bool {
	var e *Error
	if !errors.As(err, &e) || e.Code != http.StatusInternalServerError || e.status == nil {
		return false
	}
	return strings.HasPrefix(e.Message, "request to convert CR to an invalid group/version: ") ||
		strings.HasSuffix(e.Message, ": field not declared in schema") && !strings.HasPrefix(e.Message, "failed to create typed patch object")
}
