// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// IsScoped says whether a quota is about some pods only: which ones is not computed.
func (q *Quota) IsScoped() bool { return len(q.Spec.Scopes) > 0 || q.Spec.ScopeSelector != nil }

// Demand is what an object takes of a quota of its namespace for as long as it is there, by resource:
// requests and limits of its pods, their number, storage, and the object itself. Pods of Jobs come to an
// end and are not counted, nor are more pods during an update, or those of other kinds. A resource
// of which it takes nothing is missing.
func Demand(apiVersion, kind string, content map[string]any, n *Namespace, q *Quota) core.ResourceList {
	demand := core.ResourceList{}
	if q.IsScoped() {
		return demand
	}
	add := func(name core.ResourceName, amount resource.Quantity) {
		if _, bounded := q.Spec.Hard[name]; bounded && !amount.IsZero() {
			demand[name] = amount
		}
	}
	if GroupOf(apiVersion) == "" {
		single := *resource.NewQuantity(1, resource.DecimalSI)
		plural := strings.ToLower(kind) + "s"
		if kind != "Pod" {
			add(core.ResourceName(plural), single)
		}
		add(core.ResourceName("count/"+plural), single)
	}
	object := typed(schema.FromAPIVersionAndKind(apiVersion, kind), content)
	switch o := object.(type) {
	case *core.PersistentVolumeClaim:
		add(core.ResourceRequestsStorage, o.Spec.Resources.Requests[core.ResourceStorage])
	case *core.Pod, *core.ReplicationController, *apps.Deployment, *apps.StatefulSet, *apps.ReplicaSet, *apps.DaemonSet:
		pods := podsOf(object)
		_, spec := podOf(object)
		pod := measured(spec, n.Limits, nil)
		for name, pick := range computed {
			list, kind := pick(pod.resources)
			amount := list[kind].DeepCopy()
			amount.Mul(pods)
			add(name, amount)
		}
		add(core.ResourcePods, *resource.NewQuantity(pods, resource.DecimalSI))
	}
	return demand
}
