// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/json"
	"strings"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// IsScoped says whether a quota is about some pods only: which ones is not computed.
func (q *Quota) IsScoped() bool { return len(q.Spec.Scopes) > 0 || q.Spec.ScopeSelector != nil }

// A Consumer is an object as quotas count it.
type Consumer struct {
	resource string         // "configmaps" in the core group, else empty
	object   runtime.Object // of a kind whose content counts, else nil
}

// measurable are the kinds whose content counts. Pods of Jobs come to an end and are not counted.
var measurable = map[schema.GroupKind]bool{
	{Kind: "PersistentVolumeClaim"}: true, {Kind: "Pod"}: true, {Kind: "ReplicationController"}: true,
	{Group: apps.GroupName, Kind: "Deployment"}: true, {Group: apps.GroupName, Kind: "StatefulSet"}: true,
	{Group: apps.GroupName, Kind: "ReplicaSet"}: true, {Group: apps.GroupName, Kind: "DaemonSet"}: true,
}

// NewConsumer reads an object. One that is not of the form of its kind takes only its own place.
func NewConsumer(kind schema.GroupVersionKind, text []byte) Consumer {
	var c Consumer
	if kind.Group == "" {
		c.resource = strings.ToLower(kind.Kind) + "s"
	}
	var content map[string]any
	if measurable[kind.GroupKind()] && json.Unmarshal(text, &content) == nil {
		c.object = typed(kind, content)
	}
	return c
}

// Demand is what it takes of a quota of its namespace for as long as it is there, by resource: requests and
// limits of its pods, their number, storage, and the object itself. More pods during an update are not counted,
// nor are those of other kinds. A resource of which it takes nothing is missing.
func (c Consumer) Demand(n *Namespace, q *Quota) core.ResourceList {
	demand := core.ResourceList{}
	if q.IsScoped() {
		return demand
	}
	add := func(name core.ResourceName, amount resource.Quantity) {
		if _, bounded := q.Spec.Hard[name]; bounded && !amount.IsZero() {
			demand[name] = amount
		}
	}
	if c.resource != "" {
		single := *resource.NewQuantity(1, resource.DecimalSI)
		if c.resource != "pods" { // below
			add(core.ResourceName(c.resource), single)
		}
		add(core.ResourceName("count/"+c.resource), single)
	}
	if claim, ok := c.object.(*core.PersistentVolumeClaim); ok {
		add(core.ResourceRequestsStorage, claim.Spec.Resources.Requests[core.ResourceStorage])
		return demand
	}
	if c.object == nil {
		return demand
	}
	pods := podsOf(c.object)
	_, spec := podOf(c.object)
	pod := measured(spec, n.Limits, nil)
	for name, pick := range computed {
		list, kind := pick(pod.resources)
		amount := list[kind].DeepCopy()
		amount.Mul(pods)
		add(name, amount)
	}
	add(core.ResourcePods, *resource.NewQuantity(pods, resource.DecimalSI))
	return demand
}
