// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import "slices"

// KeyPrefix is what the keys of swell's own labels and annotations begin with.
const KeyPrefix = Group + "/"

// Labels and annotations that swell sets or reads on hard objects. Their keys are
// written here and nowhere else.
const (
	// LabelRepository holds [Repository.Name] and marks every object that swell applied;
	// the fleet is its own inventory. Several monorepos may share a cluster.
	LabelRepository = KeyPrefix + "repository"
	// AppliedSelector selects what swell applied, from whatever monorepo.
	AppliedSelector = LabelRepository
	// LabelManagedBy has the value [ManagedBy] for people and other tools, where Git gives
	// it no other one. swell does not read it.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	ManagedBy      = "swell"
	// LabelUnit holds the unit's path, shortened to what a label takes.
	LabelUnit = KeyPrefix + "unit"
	// AnnotationUnit holds the unit's whole path, which a label cannot.
	AnnotationUnit = KeyPrefix + "unit"
	// AnnotationHookRun is set on the live Job of a hook that runs with its
	// bundle: the digest of that bundle. Should the inventory be lost, it says
	// that the hook need not run once more.
	AnnotationHookRun = KeyPrefix + "hook-run"

	// AnnotationPhase orders the objects of a unit: those of phase 1 follow
	// those of phase 0, which is where objects without it are.
	AnnotationPhase = KeyPrefix + "phase"
	// AnnotationHook makes a Job a hook, which says when it runs.
	AnnotationHook = KeyPrefix + "hook"
	// AnnotationReplace with the value [ReplaceAllowed] lets an object be
	// deleted and made anew where a field that cannot be changed is to change.
	AnnotationReplace = KeyPrefix + "replace"
	ReplaceAllowed    = "allowed"
	// AnnotationAdopt holds an [Adoption] for the object, and wins over that of
	// its unit.
	AnnotationAdopt = KeyPrefix + "adopt"
	// AnnotationPrune with the value [PruneDisabled], in Git or on the live object,
	// keeps the object from being deleted: it is orphaned instead.
	AnnotationPrune = KeyPrefix + "prune"
	PruneDisabled   = "disabled"
	// AnnotationDeletion with the value [DeletionDetach] on a live object lets go of it: it is
	// not deleted. Other tools know it too.
	AnnotationDeletion = "client.lifecycle.config.k8s.io/deletion"
	DeletionDetach     = "detach"
	// AnnotationOwned says by patterns which of the object's annotations are ours:
	// one that matches and that Git does not have is removed. Those that match
	// none are their writers'.
	AnnotationOwned = KeyPrefix + "owned-annotations"
	// AnnotationOptional with the value [OptionalTrue] on an admission policy or its binding says that
	// what it names may not be there yet.
	AnnotationOptional = KeyPrefix + "optional"
	OptionalTrue       = "true"

	// AnnotationCluster on a Lease of swell has the name that the cluster has in the monorepo.
	AnnotationCluster = KeyPrefix + "cluster"
	// AnnotationOrders on a Lease of swell has the orders that keep writes from places, as the
	// daemon wrote them.
	AnnotationOrders = KeyPrefix + "orders"
	// AnnotationWriter on a Lease of swell has the random name of the process that last began
	// to write to the cluster.
	AnnotationWriter = KeyPrefix + "writer"
)

var (
	// LabelsSet are the labels that only swell sets, on all that it applies.
	LabelsSet = []string{LabelRepository, LabelUnit}
	// AnnotationsSet are the annotations that swell sets.
	AnnotationsSet = []string{AnnotationHookRun, AnnotationUnit}
	// AnnotationsOnLeases are those that swell sets on its own Leases.
	AnnotationsOnLeases = []string{AnnotationCluster, AnnotationOrders, AnnotationWriter}
	// AnnotationsInGit are the annotations of swell that may stand in Git.
	AnnotationsInGit = []string{
		AnnotationAdopt, AnnotationHook, AnnotationOptional, AnnotationOwned, AnnotationPhase, AnnotationPrune, AnnotationReplace,
	}
)

// commonLabels are those that Kubernetes recommends.
var commonLabels = []string{
	"app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/component", "app.kubernetes.io/part-of",
}

// isCommonKey says whether everybody knows a key of labels or annotations.
func isCommonKey(key string) bool {
	for _, keys := range [][]string{commonLabels, {LabelManagedBy}, LabelsSet, AnnotationsSet, AnnotationsInGit} {
		if slices.Contains(keys, key) {
			return true
		}
	}
	return false
}
