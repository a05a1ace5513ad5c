// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"slices"

	"github.com/fluxcd/pkg/ssa"
	"github.com/fluxcd/pkg/ssa/utils"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// stage is a part of a bundle whose objects do not need each other, so that
// they can be sent at the same time. A stage starts when the one before it has
// been answered for.
type stage int

const (
	// definitions are what others are instances of or live in: custom resource
	// definitions, namespaces, cluster roles, classes.
	definitions stage = iota
	// foundations are the other kinds that ssa puts before the workloads:
	// quotas, service accounts, roles, config. A pod that starts without them
	// fails or, with limits and quotas, starts as it should not.
	foundations
	// workloads are all kinds not named elsewhere.
	workloads
	// interceptors are the webhook configurations. They come last, because they
	// may refuse the very objects that make them work.
	interceptors

	stageCount
)

var kindRanks = rankKinds()

// rankKinds numbers the kinds of ssa's order: below zero before all others,
// above zero after them. Ssa's own comparison builds this for each pair.
func rankKinds() map[string]int {
	ranks := map[string]int{}
	for i, kind := range ssa.ReconcileOrder.First {
		ranks[kind] = i - len(ssa.ReconcileOrder.First)
	}
	for i, kind := range ssa.ReconcileOrder.Last {
		ranks[kind] = i + 1
	}
	return ranks
}

func stageOf(gvk schema.GroupVersionKind) stage {
	var u unstructured.Unstructured
	u.SetGroupVersionKind(gvk)
	rank := kindRanks[gvk.Kind]
	switch {
	case utils.IsClusterDefinition(&u), utils.IsClassDefinition(&u):
		return definitions
	case rank < kindRanks["Deployment"]:
		return foundations
	case rank > 0:
		return interceptors
	}
	return workloads
}

// stages sorts the numbers of n objects into stages and, within a stage, into
// ssa's order of kinds; what is of one kind keeps its order.
func stages(n int, kind func(i int) schema.GroupVersionKind) [stageCount][]int {
	var all [stageCount][]int
	known := map[schema.GroupVersionKind]stage{}
	rank := make([]int, n)
	for i := range n {
		gvk := kind(i)
		s, ok := known[gvk]
		if !ok {
			s = stageOf(gvk)
			known[gvk] = s
		}
		all[s] = append(all[s], i)
		rank[i] = kindRanks[gvk.Kind]
	}
	for _, numbers := range all {
		slices.SortStableFunc(numbers, func(a, b int) int { return cmp.Compare(rank[a], rank[b]) })
	}
	return all
}
