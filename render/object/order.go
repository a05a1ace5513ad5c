// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"cmp"
	"slices"
)

// first and last are the kinds that are applied before and after all others,
// in this order. It is the order of fluxcd/pkg/ssa, which a test of sync/apply
// holds it against: this package must not import a client.
var (
	first = []string{
		"CustomResourceDefinition", "Namespace", "ClusterRole", "ClusterClass", "RuntimeClass", "PriorityClass",
		"StorageClass", "VolumeSnapshotClass", "IngressClass", "GatewayClass", "ClusterRoleBinding", "ResourceQuota",
		"ServiceAccount", "Role", "RoleBinding", "ConfigMap", "Secret", "Service", "LimitRange", "Deployment",
		"StatefulSet", "CronJob", "PodDisruptionBudget",
	}
	last = []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}
)

var kindRank = func() map[string]int {
	ranks := make(map[string]int, len(first)+len(last))
	for i, kind := range first {
		ranks[kind] = i - len(first)
	}
	for i, kind := range last {
		ranks[kind] = i + 1
	}
	return ranks
}()

// CompareApplyOrder orders objects for applying: by kind as said above, then
// group, kind, namespace and name. Deleting goes the other way round.
func CompareApplyOrder(a, b ID) int {
	return cmp.Or(cmp.Compare(kindRank[a.Kind], kindRank[b.Kind]), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// foundation are the kinds that the objects of every phase may need.
var foundation = map[string]bool{
	"CustomResourceDefinition": true, "Namespace": true, "ClusterClass": true, "RuntimeClass": true, "PriorityClass": true,
	"StorageClass": true, "VolumeSnapshotClass": true, "IngressClass": true, "GatewayClass": true,
}

// IsFoundation says whether an object goes before all phases, whatever its own.
func (id ID) IsFoundation() bool { return foundation[id.Kind] }

// Sort brings objects into apply order: what others live in or are defined by first, then
// by phase, and within one as [CompareApplyOrder] says.
func Sort(objects []*Object) {
	stage := func(o *Object) int {
		if o.ID.IsFoundation() {
			return -1
		}
		return o.Phase
	}
	slices.SortFunc(objects, func(a, b *Object) int {
		return cmp.Or(cmp.Compare(stage(a), stage(b)), CompareApplyOrder(a.ID, b.ID))
	})
}
