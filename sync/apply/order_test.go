// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/fluxcd/pkg/ssa"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/swell-sh/swell/render/object"
)

// The compiler, which must not import a client, keeps its own copy of the order.
func TestRenderOrdersAsSSADoes(t *testing.T) {
	kinds := slices.Concat(ssa.ReconcileOrder.First, ssa.ReconcileOrder.Last, []string{"Aardvark", "DaemonSet", "Zebra"})
	var ours []object.ID
	var theirs ssa.SortableUnstructureds
	for _, kind := range kinds {
		for _, group := range []string{"", "apps", "example.com"} {
			for _, name := range []string{"a/x", "a/y", "b/x"} {
				id := object.ID{Group: group, Kind: kind, Namespace: name[:1], Name: name[2:]}
				ours = append(ours, id)
				var u unstructured.Unstructured
				u.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind})
				u.SetNamespace(id.Namespace)
				u.SetName(id.Name)
				theirs = append(theirs, &u)
			}
		}
	}
	shuffle := rand.New(rand.NewPCG(1, 2))
	shuffle.Shuffle(len(theirs), theirs.Swap)
	shuffle.Shuffle(len(ours), func(i, j int) { ours[i], ours[j] = ours[j], ours[i] })
	sort.Sort(theirs)
	slices.SortFunc(ours, object.CompareApplyOrder)
	var want []object.ID
	for _, u := range theirs {
		gvk := u.GroupVersionKind()
		want = append(want, object.ID{Group: gvk.Group, Kind: gvk.Kind, Namespace: u.GetNamespace(), Name: u.GetName()})
	}
	if diff := cmp.Diff(want, ours); diff != "" {
		t.Error(diff)
	}
}

func TestStages(t *testing.T) {
	kind := func(group, kind string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}
	}
	bundle := []schema.GroupVersionKind{
		kind("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
		kind("apps", "Deployment"),
		kind("example.com", "Widget"),
		kind("", "Secret"),
		kind("", "ServiceAccount"),
		kind("", "Namespace"),
		kind("storage.k8s.io", "StorageClass"),
		kind("apiextensions.k8s.io", "CustomResourceDefinition"),
		kind("rbac.authorization.k8s.io", "ClusterRole"),
		kind("", "LimitRange"),
	}
	want := [stageCount][]int{
		definitions:  {7, 5, 8, 6},
		foundations:  {4, 3, 9},
		workloads:    {1, 2},
		interceptors: {0},
	}
	got := stages(len(bundle), func(i int) schema.GroupVersionKind { return bundle[i] })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
