// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"maps"
	"slices"

	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
)

// Names of what refuses objects by a namespace's settings.
const (
	LimitRange    = "LimitRange"
	ResourceQuota = "ResourceQuota"
)

// limits finds what can never fit into the namespace: containers and claims outside of
// its LimitRanges, and what is over a quota by itself. As with Pod Security, what makes
// pods that would be refused is refused.
func (r *request) limits() (found []Finding) {
	if !r.object.Namespaced {
		return nil
	}
	n := r.namespace()
	if len(n.Limits)+len(n.Quotas) == 0 {
		return nil
	}
	refuse := func(by string) func(field []any, format string, args ...any) {
		return func(field []any, format string, args ...any) {
			found = append(found, Finding{Effect: Refused, Policy: by, Message: fmt.Sprintf("namespace %s: ", r.object.Namespace) + fmt.Sprintf(format, args...), Field: field})
		}
	}
	object := r.typed()
	if _, spec := podOf(object); spec != nil && makesPods(r.object) {
		pod := measured(spec, n.Limits, podPath(r.object))
		pod.checkLimits(n.Limits, refuse(LimitRange))
		for _, q := range n.Quotas {
			pod.checkQuota(q, podsOf(object), refuse(ResourceQuota))
		}
	}
	if claim, ok := object.(*core.PersistentVolumeClaim); ok {
		checkClaim(claim, n, refuse)
	}
	for _, q := range n.Quotas {
		r.checkCount(q, refuse(ResourceQuota))
	}
	return found
}

// podsOf is how many pods there are at the same time when the object is done.
func podsOf(object runtime.Object) int64 {
	var n *int32
	switch o := object.(type) {
	case *apps.Deployment:
		n = o.Spec.Replicas
	case *apps.StatefulSet:
		n = o.Spec.Replicas
	case *apps.ReplicaSet:
		n = o.Spec.Replicas
	case *core.ReplicationController:
		n = o.Spec.Replicas
	case *batch.Job:
		n = o.Spec.Parallelism
	}
	if n == nil {
		return 1
	}
	return int64(*n)
}

// container is what one asks for, with the defaults of the LimitRanges.
type container struct {
	name             string
	path             []any
	requests, limits core.ResourceList
}

// pod is what a pod asks for.
type pod struct {
	path             []any
	containers       []container // those of the initialization first
	requests, limits core.ResourceList
}

func measured(spec *core.PodSpec, limits []core.LimitRangeItem, path []any) *pod {
	p := &pod{path: path}
	var begin pod
	for _, list := range []struct {
		field      string
		containers []core.Container
		of         *pod
		merge      func(core.ResourceList, core.ResourceList) core.ResourceList
	}{{"initContainers", spec.InitContainers, &begin, most}, {"containers", spec.Containers, p, sum}} {
		for i, c := range list.containers {
			one := container{name: c.Name, path: append(slices.Clip(path), list.field, i), requests: maps.Clone(c.Resources.Requests), limits: maps.Clone(c.Resources.Limits)}
			one.addDefaults(limits)
			p.containers = append(p.containers, one)
			list.of.requests, list.of.limits = list.merge(list.of.requests, one.requests), list.merge(list.of.limits, one.limits)
		}
	}
	p.requests, p.limits = most(p.requests, begin.requests), most(p.limits, begin.limits)
	return p
}

// addDefaults adds those of the API, and of LimitRanges.
func (c *container) addDefaults(items []core.LimitRangeItem) {
	add := func(to *core.ResourceList, from ...core.ResourceList) {
		for _, list := range from {
			for name, quantity := range list {
				if _, there := (*to)[name]; !there {
					if *to == nil {
						*to = core.ResourceList{}
					}
					(*to)[name] = quantity
				}
			}
		}
	}
	add(&c.requests, c.limits)
	for _, item := range items {
		if item.Type == core.LimitTypeContainer {
			add(&c.limits, item.Default, item.Max)
			add(&c.requests, item.DefaultRequest, item.Default, item.Max, item.Min)
		}
	}
}

func sum(a, b core.ResourceList) core.ResourceList {
	return merged(a, b, func(x, y resource.Quantity) resource.Quantity {
		x = x.DeepCopy()
		x.Add(y)
		return x
	})
}

func most(a, b core.ResourceList) core.ResourceList {
	return merged(a, b, func(x, y resource.Quantity) resource.Quantity {
		if x.Cmp(y) < 0 {
			return y
		}
		return x
	})
}

func merged(a, b core.ResourceList, both func(x, y resource.Quantity) resource.Quantity) core.ResourceList {
	all := maps.Clone(a)
	if all == nil {
		all = core.ResourceList{}
	}
	for name, quantity := range b {
		if mine, there := all[name]; there {
			quantity = both(mine, quantity)
		}
		all[name] = quantity
	}
	return all
}

func (p *pod) checkLimits(items []core.LimitRangeItem, refuse func(field []any, format string, args ...any)) {
	for _, item := range items {
		switch item.Type {
		case core.LimitTypeContainer:
			for _, c := range p.containers {
				checkItem(item, c.requests, c.limits, func(format string, args ...any) {
					refuse(append(slices.Clip(c.path), "resources"), "container %q: %s", c.name, fmt.Sprintf(format, args...))
				})
			}
		case core.LimitTypePod:
			checkItem(item, p.requests, p.limits, func(format string, args ...any) { refuse(p.path, "the pod: %s", fmt.Sprintf(format, args...)) })
		}
	}
}

// checkItem holds requests and limits against one item of a LimitRange, as the API
// server does.
func checkItem(item core.LimitRangeItem, requests, limits core.ResourceList, refuse func(format string, args ...any)) {
	for _, name := range sorted(item.Min) {
		least := item.Min[name]
		request, requested := requests[name]
		limit, limited := limits[name]
		switch {
		case !requested:
			refuse("no request for %s, at least %s is wanted", name, &least)
		case request.Cmp(least) < 0:
			refuse("requests %s of %s, at least %s is wanted", &request, name, &least)
		case limited && limit.Cmp(least) < 0:
			refuse("is limited to %s of %s, at least %s is wanted", &limit, name, &least)
		}
	}
	for _, name := range sorted(item.Max) {
		top := item.Max[name]
		request, requested := requests[name]
		limit, limited := limits[name]
		switch {
		case !limited:
			refuse("no limit for %s, at most %s is allowed", name, &top)
		case limit.Cmp(top) > 0:
			refuse("has a limit of %s of %s, at most %s is allowed", &limit, name, &top)
		case requested && request.Cmp(top) > 0:
			refuse("requests %s of %s, at most %s is allowed", &request, name, &top)
		}
	}
	for _, name := range sorted(item.MaxLimitRequestRatio) {
		ratio := item.MaxLimitRequestRatio[name]
		request, requested := requests[name]
		limit, limited := limits[name]
		switch {
		case !requested || request.IsZero(), !limited || limit.IsZero():
			refuse("no request and limit for %s, of which the limit may be %s times the request", name, &ratio)
		case limit.AsApproximateFloat64()/request.AsApproximateFloat64() > ratio.AsApproximateFloat64():
			refuse("has a limit of %s and requests %s of %s, at most %s times as much is allowed", &limit, &request, name, &ratio)
		}
	}
}

func sorted(list core.ResourceList) []core.ResourceName { return slices.Sorted(maps.Keys(list)) }

// computed are the resources of a quota that every container must say.
var computed = map[core.ResourceName]func(c *container) (core.ResourceList, core.ResourceName){
	core.ResourceCPU:            func(c *container) (core.ResourceList, core.ResourceName) { return c.requests, core.ResourceCPU },
	core.ResourceMemory:         func(c *container) (core.ResourceList, core.ResourceName) { return c.requests, core.ResourceMemory },
	core.ResourceRequestsCPU:    func(c *container) (core.ResourceList, core.ResourceName) { return c.requests, core.ResourceCPU },
	core.ResourceRequestsMemory: func(c *container) (core.ResourceList, core.ResourceName) { return c.requests, core.ResourceMemory },
	core.ResourceLimitsCPU:      func(c *container) (core.ResourceList, core.ResourceName) { return c.limits, core.ResourceCPU },
	core.ResourceLimitsMemory:   func(c *container) (core.ResourceList, core.ResourceName) { return c.limits, core.ResourceMemory },
}

// isScoped says whether a quota is about some pods only: which ones is not computed.
func isScoped(q Quota) bool { return len(q.Spec.Scopes) > 0 || q.Spec.ScopeSelector != nil }

func (p *pod) checkQuota(q Quota, pods int64, refuse func(field []any, format string, args ...any)) {
	if isScoped(q) {
		return
	}
	for _, name := range sorted(q.Spec.Hard) {
		of, hard := computed[name], q.Spec.Hard[name]
		if of == nil {
			continue
		}
		total := &resource.Quantity{}
		for i := range p.containers {
			list, kind := of(&p.containers[i])
			if _, said := list[kind]; !said {
				refuse(append(slices.Clip(p.containers[i].path), "resources"), "container %q: quota %q wants %s from every container", p.containers[i].name, q.Name, name)
			}
		}
		whole := container{requests: p.requests, limits: p.limits}
		list, kind := of(&whole)
		one := list[kind]
		total.Add(one)
		total.Mul(pods)
		if total.Cmp(hard) > 0 {
			refuse(p.path, "%s of %s in all, quota %q has %s", total, name, q.Name, &hard)
		}
	}
	if hard, bounded := q.Spec.Hard[core.ResourcePods]; bounded && hard.CmpInt64(pods) < 0 {
		refuse(p.path, "%d pods, quota %q has %s", pods, q.Name, &hard)
	}
}

func checkClaim(claim *core.PersistentVolumeClaim, n *Namespace, refuse func(by string) func(field []any, format string, args ...any)) {
	field := []any{"spec", "resources", "requests", "storage"}
	storage := claim.Spec.Resources.Requests[core.ResourceStorage]
	for _, item := range n.Limits {
		if item.Type == core.LimitTypePersistentVolumeClaim {
			if top, ok := item.Max[core.ResourceStorage]; ok && storage.Cmp(top) > 0 {
				refuse(LimitRange)(field, "%s, at most %s is allowed", &storage, &top)
			}
			if least, ok := item.Min[core.ResourceStorage]; ok && storage.Cmp(least) < 0 {
				refuse(LimitRange)(field, "%s, at least %s is wanted", &storage, &least)
			}
		}
	}
	for _, q := range n.Quotas {
		if hard, ok := q.Spec.Hard[core.ResourceRequestsStorage]; ok && storage.Cmp(hard) > 0 && !isScoped(q) {
			refuse(ResourceQuota)(field, "%s, quota %q has %s", &storage, q.Name, &hard)
		}
	}
}

// checkCount refuses an object of which there may be none.
func (r *request) checkCount(q Quota, refuse func(field []any, format string, args ...any)) {
	if isScoped(q) {
		return
	}
	names := []core.ResourceName{core.ResourceName("count/" + r.object.Resource), core.ResourceName(r.object.Resource)}
	if g := group(r.object.APIVersion); g != "" {
		names = []core.ResourceName{core.ResourceName("count/" + r.object.Resource + "." + g)}
	}
	for _, name := range names {
		if hard, ok := q.Spec.Hard[name]; ok && hard.CmpInt64(1) < 0 && r.object.Kind != "Pod" {
			refuse(nil, "quota %q has %s %s", q.Name, &hard, name)
		}
	}
}
