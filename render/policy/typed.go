// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"sync"

	apps "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	networking "k8s.io/api/networking/v1"
	disruption "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	scheduling "k8s.io/api/scheduling/v1"
	storage "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/swell-sh/swell/render/schema/defaults"
)

// types are Kubernetes' own kinds that most monorepos have. Policies judge them in
// the form in which an API server has them: with the fields that are always there,
// numbers and quantities in one form, and the defaults.
var types = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{core.AddToScheme, apps.AddToScheme, autoscaling.AddToScheme, autoscalingv1.AddToScheme, batch.AddToScheme,
		discovery.AddToScheme, networking.AddToScheme, disruption.AddToScheme, rbac.AddToScheme, scheduling.AddToScheme, storage.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err) // there is no input
		}
	}
	return scheme
})

// typed is the object as an API server decodes it, with its defaults; nil for kinds
// that are not among types.
func typed(kind schema.GroupVersionKind, content map[string]any) runtime.Object {
	object, err := types().New(kind)
	if err != nil {
		return nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, object); err != nil {
		return nil // its schema was checked: a form that only a newer version has
	}
	defaults.Set(object)
	if n, ok := object.(*core.Namespace); ok { // once it is stored
		n.Spec.Finalizers = []core.FinalizerName{core.FinalizerKubernetes}
	}
	return object
}

// podOf is the pod that an object stands for, and what its metadata is; nil for
// others.
func podOf(object runtime.Object) (*metav1.ObjectMeta, *core.PodSpec) {
	switch o := object.(type) {
	case *core.Pod:
		return &o.ObjectMeta, &o.Spec
	default:
		if template := defaults.PodTemplate(object); template != nil {
			return &template.ObjectMeta, &template.Spec
		}
	}
	return nil, nil
}
