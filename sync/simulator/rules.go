// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// rules are how a kind differs from others, as pkg/registry of Kubernetes has it.
type rules struct {
	status     bool // it is not the writer's
	generation bool // counts changes of the spec
	// createOnUpdate: a PUT of an object that is not there creates it.
	createOnUpdate bool
	// versioned: an update has to say which version it is of.
	versioned bool
	// returnsDeleted: a DELETE is answered with the object.
	returnsDeleted bool
	// orphans: without a policy, what it owns stays when it is deleted.
	orphans bool
	// bare: its own check does not look at the metadata.
	bare bool
	// name checks the name; nil is a DNS subdomain.
	name validation.ValidateNameFunc
	// create and update change what was sent, before it is checked. May be nil.
	create func(c *Cluster, o object) field.ErrorList
	update func(o, old object)
	// check is for an object, and for a change when old is not nil. May be nil.
	check func(o, old object) field.ErrorList
}

var (
	coreV1  = schema.GroupVersion{Version: "v1"}
	apps    = schema.GroupVersion{Group: "apps", Version: "v1"}
	batch   = schema.GroupVersion{Group: "batch", Version: "v1"}
	rbac    = schema.GroupVersion{Group: "rbac.authorization.k8s.io", Version: "v1"}
	network = schema.GroupVersion{Group: "networking.k8s.io", Version: "v1"}
	crdKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	podKind = coreV1.WithKind("Pod")
	nsKind  = coreV1.WithKind("Namespace")
)

// modelled are the kinds that can be written.
var modelled = map[schema.GroupVersionKind]*rules{
	coreV1.WithKind("ConfigMap"):      {check: checkConfigMap},
	coreV1.WithKind("Secret"):         {check: checkSecret},
	coreV1.WithKind("ServiceAccount"): {returnsDeleted: true},
	coreV1.WithKind("Event"):          {createOnUpdate: true},
	coreV1.WithKind("Service"): {
		status: true, createOnUpdate: true, returnsDeleted: true, name: validation.NameIsDNSLabel,
		create: (*Cluster).allocate, update: keepAddress, check: checkService,
	},
	coreV1.WithKind("ResourceQuota"):         {status: true, returnsDeleted: true},
	coreV1.WithKind("LimitRange"):            {createOnUpdate: true, bare: true},
	coreV1.WithKind("PersistentVolumeClaim"): {status: true, returnsDeleted: true, create: newClaim, check: checkClaim},
	nsKind:                                   {status: true, returnsDeleted: true, name: validation.ValidateNamespaceName, create: newNamespace, update: keepFinalizers},
	podKind:                                  {status: true, generation: true, returnsDeleted: true},

	apps.WithKind("Deployment"):  {status: true, generation: true, check: checkWorkload},
	apps.WithKind("StatefulSet"): {status: true, generation: true, name: validation.NameIsDNSLabel, check: checkWorkload},
	apps.WithKind("DaemonSet"):   {status: true, generation: true, create: newDaemonSet, update: keepTemplateGeneration, check: checkWorkload},
	batch.WithKind("Job"):        {status: true, generation: true, orphans: true, create: newJob, check: checkJob},
	batch.WithKind("CronJob"):    {status: true, generation: true, check: checkCronJob},

	{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}: {status: true},

	rbac.WithKind("Role"):               {createOnUpdate: true, name: pathSegment},
	rbac.WithKind("RoleBinding"):        {createOnUpdate: true, name: pathSegment, check: checkBinding},
	rbac.WithKind("ClusterRole"):        {createOnUpdate: true, name: pathSegment},
	rbac.WithKind("ClusterRoleBinding"): {createOnUpdate: true, name: pathSegment, check: checkBinding},

	network.WithKind("Ingress"):       {status: true, generation: true},
	network.WithKind("NetworkPolicy"): {generation: true},

	{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"}:      {status: true, generation: true, versioned: true, bare: true, name: pathSegment},
	{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}:       {createOnUpdate: true, versioned: true},
	{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass"}: {generation: true},
	crdKind: {status: true, generation: true, versioned: true, create: newDefinition, update: storedVersions},
}

// Modelled are the kinds of Kubernetes that can be written.
func Modelled() []schema.GroupVersionKind {
	var all []schema.GroupVersionKind
	for gvk := range modelled {
		all = append(all, gvk)
	}
	return all
}

// nameOf is a function that checks names.
func (r *rules) nameOf() validation.ValidateNameFunc {
	if r.name == nil {
		return validation.NameIsDNSSubdomain
	}
	return r.name
}

// prepareCreate sets what is not the writer's to say of a new object.
func (k *kind) prepareCreate(c *Cluster, o object) field.ErrorList {
	if k.rules.status {
		clearField(o, "Status")
	}
	if k.rules.generation {
		o.SetGeneration(1)
	}
	if k.rules.create == nil {
		return nil
	}
	return k.rules.create(c, o)
}

// prepareUpdate does the same for one that is there. When status is true, the status
// is all that may change.
func (k *kind) prepareUpdate(o, old object, status bool) {
	o.SetGeneration(old.GetGeneration())
	if status {
		k.onlyStatus(o, old)
		return
	}
	if k.rules.status {
		copyField(o, old, "Status")
	}
	if k.rules.update != nil {
		k.rules.update(o, old)
	}
	if k.rules.generation && k.changes(o, old) {
		o.SetGeneration(old.GetGeneration() + 1)
	}
}

// changes says whether a change counts for the generation.
func (k *kind) changes(o, old object) bool {
	if k.custom != nil {
		return !equality.Semantic.DeepEqual(withoutMetadata(o), withoutMetadata(old))
	}
	if !equality.Semantic.DeepEqual(fieldOf(o, "Spec"), fieldOf(old, "Spec")) {
		return true
	}
	return k.Kind == "Deployment" && !equality.Semantic.DeepEqual(o.GetAnnotations(), old.GetAnnotations())
}

func (k *kind) onlyStatus(o, old object) {
	if k.custom != nil {
		onlyStatusOfCustom(o, old)
		return
	}
	copyField(o, old, "Spec")
	if k.Kind == "Deployment" {
		o.SetLabels(old.GetLabels())
	}
}

// fieldOf is a top field of an object, nil when it has none.
func fieldOf(o object, name string) any {
	if u, ok := root(o); ok {
		return u[lower(name)]
	}
	if v := reflect.ValueOf(o).Elem().FieldByName(name); v.IsValid() {
		return v.Interface()
	}
	return nil
}

func copyField(to, from object, name string) {
	if u, ok := root(to); ok {
		of, _ := root(from)
		if value, there := of[lower(name)]; there {
			u[lower(name)] = value
		} else {
			delete(u, lower(name))
		}
		return
	}
	if v := reflect.ValueOf(to).Elem().FieldByName(name); v.IsValid() {
		v.Set(reflect.ValueOf(from).Elem().FieldByName(name))
	}
}

func clearField(o object, name string) {
	if u, ok := root(o); ok {
		delete(u, lower(name))
	} else if v := reflect.ValueOf(o).Elem().FieldByName(name); v.IsValid() {
		v.SetZero()
	}
}

func newNamespace(_ *Cluster, o object) field.ErrorList {
	ns := o.(*corev1.Namespace)
	ns.Status = corev1.NamespaceStatus{Phase: corev1.NamespaceActive}
	for _, f := range ns.Spec.Finalizers {
		if f == corev1.FinalizerKubernetes {
			return nil
		}
	}
	ns.Spec.Finalizers = append(ns.Spec.Finalizers, corev1.FinalizerKubernetes)
	return nil
}

func keepFinalizers(o, old object) {
	o.(*corev1.Namespace).Spec.Finalizers = old.(*corev1.Namespace).Spec.Finalizers
}

func newDaemonSet(_ *Cluster, o object) field.ErrorList {
	if d := o.(*appsv1.DaemonSet); d.Annotations[appsv1.DeprecatedTemplateGeneration] == "" || d.Annotations[appsv1.DeprecatedTemplateGeneration] == "0" {
		setAnnotation(d, appsv1.DeprecatedTemplateGeneration, "1")
	}
	return nil
}

func keepTemplateGeneration(o, old object) {
	now, before := o.(*appsv1.DaemonSet), old.(*appsv1.DaemonSet)
	generation := before.Annotations[appsv1.DeprecatedTemplateGeneration]
	if !equality.Semantic.DeepEqual(now.Spec.Template, before.Spec.Template) {
		generation = increment(generation)
	}
	setAnnotation(now, appsv1.DeprecatedTemplateGeneration, generation)
}
