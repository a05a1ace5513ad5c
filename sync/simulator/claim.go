// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// claimFinalizer keeps a claim while a pod uses it. Here none does.
	claimFinalizer = "kubernetes.io/pvc-protection"
	// storageClass is the default one, as in a devcluster. It is no object here.
	storageClass = "standard"
)

func newClaim(_ *Cluster, o object) field.ErrorList {
	claim := o.(*corev1.PersistentVolumeClaim)
	claim.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}
	if !slices.Contains(claim.Finalizers, claimFinalizer) {
		claim.Finalizers = append(claim.Finalizers, claimFinalizer)
	}
	presetPointer(&claim.Spec.StorageClassName, storageClass)
	return nil
}

func checkClaim(o, old object) field.ErrorList {
	if old == nil {
		return nil
	}
	now, before := o.(*corev1.PersistentVolumeClaim).Spec, old.(*corev1.PersistentVolumeClaim).Spec
	if old.(*corev1.PersistentVolumeClaim).Status.Phase == corev1.ClaimBound {
		now.Resources, now.VolumeAttributesClassName = before.Resources, before.VolumeAttributesClassName
	}
	if before.VolumeName == "" {
		now.VolumeName = ""
	}
	if equality.Semantic.DeepEqual(now, before) {
		return nil
	}
	return field.ErrorList{field.Forbidden(specPath, "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"+OwnText)}
}

// bind gives a claim its volume, which is no object here.
func (c *Cluster) bind(k *kind, at key) {
	c.controllerUpdate(k, at, "", func(o object) {
		claim := o.(*corev1.PersistentVolumeClaim)
		preset(&claim.Spec.VolumeName, "pvc-"+string(claim.UID))
	})
	c.controllerUpdate(k, at, "status", func(o object) {
		claim := o.(*corev1.PersistentVolumeClaim)
		claim.Status.Phase, claim.Status.AccessModes = corev1.ClaimBound, claim.Spec.AccessModes
		claim.Status.Capacity = claim.Spec.Resources.Requests
	})
}
