// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

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
	path := PodPath(r.object.APIVersion, r.object.Kind)
	if _, spec := podOf(object); spec != nil && path != nil {
		pod := measured(spec, n.Limits, path)
		pod.checkLimits(n.Limits, refuse(LimitRange))
		if len(n.Limits) > 0 {
			pod.checkDefaults(refuse(LimitRange))
		}
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

// resources are requests and limits.
type resources struct{ requests, limits core.ResourceList }

func (r resources) plus(other resources) resources {
	return resources{Sum(r.requests, other.requests), Sum(r.limits, other.limits)}
}

func (r resources) atLeast(other resources) resources {
	return resources{most(r.requests, other.requests), most(r.limits, other.limits)}
}

// container is what one asks for, with the defaults of the LimitRanges.
type container struct {
	name string
	path []any
	resources
}

// pod is what a pod asks for.
type pod struct {
	path       []any
	containers []container // those of the initialization first
	resources
	together resources // what its containers ask for
	// whole says that the pod asks for all of its containers.
	whole bool
}

// measured is what a pod asks for where there are LimitRanges.
func measured(spec *core.PodSpec, limits []core.LimitRangeItem, path []any) *pod {
	p := &pod{path: path}
	p.containers, p.together = containersOf(spec, limits, path)
	p.resources = resources{maps.Clone(p.together.requests), maps.Clone(p.together.limits)}
	if own := spec.Resources; own != nil {
		_, written := containersOf(spec, nil, path)
		p.override(own, written)
	}
	return p
}

// containersOf are the containers of a pod, and what they need together: those that go
// on at the same time, or more while the pod begins.
func containersOf(spec *core.PodSpec, limits []core.LimitRangeItem, path []any) (list []container, all resources) {
	add := func(field string, i int, c *core.Container) resources {
		one := container{name: c.Name, path: append(slices.Clip(path), field, i), resources: resources{maps.Clone(c.Resources.Requests), maps.Clone(c.Resources.Limits)}}
		one.addDefaults(limits)
		list = append(list, one)
		return one.resources
	}
	var sidecars, begin resources
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		one := sidecars.plus(add("initContainers", i, c))
		if c.RestartPolicy != nil && *c.RestartPolicy == core.ContainerRestartPolicyAlways {
			sidecars = one
		}
		begin = begin.atLeast(one)
	}
	all = sidecars
	for i := range spec.Containers {
		all = all.plus(add("containers", i, &spec.Containers[i]))
	}
	return list, all.atLeast(begin)
}

// override has what the pod itself asks for in the place of what its containers do.
// written is that of the containers without defaults of LimitRanges, from which an API
// server fills in requests of the pod.
func (p *pod) override(own *core.ResourceRequirements, written resources) {
	forPods := func(name core.ResourceName) bool {
		return name == core.ResourceCPU || name == core.ResourceMemory || strings.HasPrefix(string(name), core.ResourceHugePagesPrefix)
	}
	requests := maps.Clone(own.Requests)
	if len(own.Limits) > 0 {
		overcommitted := maps.Clone(written.requests)
		maps.DeleteFunc(overcommitted, func(name core.ResourceName, _ resource.Quantity) bool {
			return name != core.ResourceCPU && name != core.ResourceMemory
		})
		requests = preferring(preferring(requests, overcommitted), own.Limits)
	}
	for _, list := range []struct{ own, of core.ResourceList }{{requests, p.requests}, {own.Limits, p.limits}} {
		for name, quantity := range list.own {
			if forPods(name) {
				list.of[name], p.whole = quantity, true
			}
		}
	}
}

// preferring is a list with what only the other one has.
func preferring(list, other core.ResourceList) core.ResourceList {
	return merged(other, list, func(_, mine resource.Quantity) resource.Quantity { return mine })
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

// Sum adds up two lists, neither of which is changed.
func Sum(a, b core.ResourceList) core.ResourceList {
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

// checkDefaults finds what does not go together once the defaults of LimitRanges are
// there: an API server refuses the pod as invalid.
func (p *pod) checkDefaults(refuse func(field []any, format string, args ...any)) {
	for _, c := range p.containers {
		for _, name := range sorted(c.limits) {
			request, limit := c.requests[name], c.limits[name]
			if request.Cmp(limit) > 0 {
				refuse(append(slices.Clip(c.path), "resources"), "container %q: requests %s of %s, and has a limit of %s: write one that is not below", c.name, &request, name, &limit)
			}
		}
	}
	for _, name := range sorted(p.together.requests) {
		whole, together := p.requests[name], p.together.requests[name]
		if whole.Cmp(together) < 0 {
			refuse(append(slices.Clip(p.path), "resources"), "the pod requests %s of %s, its containers %s", &whole, name, &together)
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

// computed are the resources of a quota that every container must say, where the pod
// does not.
var computed = map[core.ResourceName]func(r resources) (core.ResourceList, core.ResourceName){
	core.ResourceCPU:            func(r resources) (core.ResourceList, core.ResourceName) { return r.requests, core.ResourceCPU },
	core.ResourceMemory:         func(r resources) (core.ResourceList, core.ResourceName) { return r.requests, core.ResourceMemory },
	core.ResourceRequestsCPU:    func(r resources) (core.ResourceList, core.ResourceName) { return r.requests, core.ResourceCPU },
	core.ResourceRequestsMemory: func(r resources) (core.ResourceList, core.ResourceName) { return r.requests, core.ResourceMemory },
	core.ResourceLimitsCPU:      func(r resources) (core.ResourceList, core.ResourceName) { return r.limits, core.ResourceCPU },
	core.ResourceLimitsMemory:   func(r resources) (core.ResourceList, core.ResourceName) { return r.limits, core.ResourceMemory },
}

func (p *pod) checkQuota(q Quota, pods int64, refuse func(field []any, format string, args ...any)) {
	if q.IsScoped() {
		return
	}
	for _, name := range sorted(q.Spec.Hard) {
		of, hard := computed[name], q.Spec.Hard[name]
		if of == nil {
			continue
		}
		total := &resource.Quantity{}
		for i := range p.containers {
			list, kind := of(p.containers[i].resources)
			if _, said := list[kind]; !said && !p.whole {
				refuse(append(slices.Clip(p.containers[i].path), "resources"), "container %q: quota %q wants %s from every container", p.containers[i].name, q.Name, name)
			}
		}
		list, kind := of(p.resources)
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
		if hard, ok := q.Spec.Hard[core.ResourceRequestsStorage]; ok && storage.Cmp(hard) > 0 && !q.IsScoped() {
			refuse(ResourceQuota)(field, "%s, quota %q has %s", &storage, q.Name, &hard)
		}
	}
}

// checkCount refuses an object of which there may be none.
func (r *request) checkCount(q Quota, refuse func(field []any, format string, args ...any)) {
	if q.IsScoped() {
		return
	}
	names := []core.ResourceName{core.ResourceName("count/" + r.object.Resource), core.ResourceName(r.object.Resource)}
	if g := GroupOf(r.object.APIVersion); g != "" {
		names = []core.ResourceName{core.ResourceName("count/" + r.object.Resource + "." + g)}
	}
	for _, name := range names {
		if hard, ok := q.Spec.Hard[name]; ok && hard.CmpInt64(1) < 0 && r.object.Kind != "Pod" {
			refuse(nil, "quota %q has %s %s", q.Name, &hard, name)
		}
	}
}
