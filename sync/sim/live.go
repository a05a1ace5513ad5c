// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/simulator"
)

// live is an object as a cluster holds it.
type live struct {
	uid, unit, mark string
	ready           bool
	flapped         bool // a controller made it ill
	going           bool // it is being deleted
	edited          bool // its content is not what its mark says
	held            bool // somebody's finalizer keeps it when it is deleted
	replicas        int
}

// kinds are those that the commits have, with where they are.
var kinds = []struct{ kind, group, plural, prefix string }{
	{"ConfigMap", "", "configmaps", "/api/v1"},
	{"Secret", "", "secrets", "/api/v1"},
	{"Namespace", "", "namespaces", "/api/v1"},
	{"Deployment", "apps", "deployments", "/apis/apps/v1"},
	{"Job", "batch", "jobs", "/apis/batch/v1"},
	{"Widget", "example.com", "widgets", "/apis/example.com/v1"},
	{"CustomResourceDefinition", "apiextensions.k8s.io", "customresourcedefinitions", "/apis/apiextensions.k8s.io/v1"},
}

// keyOf is the object that a path is about.
func keyOf(path string) key {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	k := key{}
	for i, part := range parts {
		if part == "namespaces" && i+2 < len(parts) {
			k.namespace = parts[i+1]
		}
		for _, is := range kinds {
			if part == is.plural && i+1 < len(parts) && !(part == "namespaces" && k.namespace != "") {
				k.kind, k.name = is.kind, parts[i+1]
			}
		}
	}
	return k
}

// pathOf is where an object is.
func pathOf(k key) string {
	for _, is := range kinds {
		if is.kind == k.kind {
			if k.namespace == "" {
				return is.prefix + "/" + is.plural + "/" + k.name
			}
			return is.prefix + "/namespaces/" + k.namespace + "/" + is.plural + "/" + k.name
		}
	}
	panic("sim: no such kind " + k.kind)
}

// see looks at what a cluster holds, if anything has changed.
func (j *judge) see(c *cluster) {
	c.Look("", "", func(simulator.Object) {}) // the controllers do what they have to
	if c.seen == c.Cluster && c.version == c.Version() {
		return
	}
	c.seen, c.version, c.live = c.Cluster, c.Version(), map[key]live{}
	for _, is := range kinds {
		c.Look(is.group, is.plural, func(o simulator.Object) {
			l := live{uid: string(o.GetUID()), mark: o.GetAnnotations()[markKey], ready: true, going: o.GetDeletionTimestamp() != nil}
			l.held = slices.Contains(o.GetFinalizers(), finalizer)
			if o.GetLabels()[config.LabelRepository] != "" {
				l.unit = o.GetAnnotations()[config.AnnotationUnit]
			}
			switch o := o.(type) {
			case *corev1.ConfigMap:
				l.edited = o.Data["v"] != l.mark
			case *unstructured.Unstructured:
				v, _, _ := unstructured.NestedString(o.Object, "spec", "v")
				l.edited = is.kind == "Widget" && v != l.mark
			case *appsv1.Deployment:
				l.edited = strings.HasSuffix(o.Spec.Template.Spec.Containers[0].Image, ":hotfix")
				l.replicas = int(*o.Spec.Replicas)
				l.ready = o.Status.ObservedGeneration == o.Generation && int(o.Status.AvailableReplicas) >= l.replicas
				for _, condition := range o.Status.Conditions {
					l.flapped = l.flapped || condition.Reason == "Sim" && condition.Status == "False"
				}
			case *batchv1.Job:
				l.ready = o.Status.Succeeded > 0
			}
			c.live[key{is.kind, o.GetNamespace(), o.GetName()}] = l
		})
	}
	j.hold(c)
}

// identity is that of the cluster at the moment.
func (c *cluster) identity() (uid string) {
	c.Look("", "namespaces", func(o simulator.Object) {
		if o.GetName() == "kube-system" {
			uid = string(o.GetUID())
		}
	})
	return uid
}

// lease is what the Lease of the cluster says: who has it, which orders it carries, as JSON, and
// the name that the cluster has by it. All are empty where there is none.
func (c *cluster) lease() (lease struct{ holder, orders, name string }) {
	c.Look("coordination.k8s.io", "leases", func(o simulator.Object) {
		if l, ok := o.(*coordinationv1.Lease); ok && l.Spec.HolderIdentity != nil {
			lease.holder = *l.Spec.HolderIdentity
		}
		lease.orders, lease.name = o.GetAnnotations()[config.AnnotationOrders], o.GetAnnotations()[config.AnnotationCluster]
	})
	return lease
}
