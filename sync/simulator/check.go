// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	apischema "github.com/swell-sh/swell/render/schema"
)

var metadataPath = field.NewPath("metadata")

// checkCreate checks a new object: what all have in common comes last, and only where
// nothing was found before.
func (k *kind) checkCreate(o object) field.ErrorList {
	errs := validation.ValidateObjectMetaAccessor(o, k.namespaced, k.rules.nameOf(), metadataPath)
	if k.rules.check != nil {
		errs = append(errs, k.rules.check(o, nil)...)
	}
	if errs = k.addContent(errs, o); len(errs) > 0 {
		return errs
	}
	return validation.ValidateObjectMetaAccessor(o, k.namespaced, pathSegment, metadataPath)
}

// pathSegment is what names must be that have no rule of their own.
func pathSegment(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}

// OwnText ends the message of a check that says the same as an API server, in other
// words.
const OwnText = " (in the simulator's words)"

// checkContent holds an object of Kubernetes' own against the rules that swell has for
// its kind: what each API server refuses.
func (k *kind) checkContent(o object) (errs field.ErrorList) {
	if !k.typed {
		return nil
	}
	set, err := apischema.Kubernetes(kubernetes)
	if err != nil {
		panic(err) // it was read before
	}
	root, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	for _, v := range apischema.Check(set.Kind(k.GroupVersion().String(), k.Kind).Type(), root) {
		at := apischema.PathText(v.Path)
		if v.Missing != "" {
			at = strings.TrimPrefix(at+"."+v.Missing, ".")
		}
		errs = append(errs, field.Invalid(field.NewPath(at), "", v.Message+OwnText))
	}
	return errs
}

// checkUpdate checks a change. What all have in common is checked twice, as in the API
// server: once for all kinds, and once by each.
func (k *kind) checkUpdate(o, old object, status bool) field.ErrorList {
	errs := validation.ValidateObjectMetaAccessor(o, k.namespaced, pathSegment, metadataPath)
	changed := validation.ValidateObjectMetaAccessorUpdate(o, old, metadataPath)
	errs = append(errs, changed...)
	if !k.rules.bare && !(status && k.Kind == "CronJob") {
		errs = append(errs, changed...)
	}
	if status && k.custom == nil {
		return errs
	}
	if k.rules.check != nil {
		errs = append(errs, k.rules.check(o, old)...)
	}
	return k.addContent(errs, o)
}

// addContent adds what is wrong with an object by itself to what was found before.
func (k *kind) addContent(errs field.ErrorList, o object) field.ErrorList {
	for _, err := range k.checkContent(o) {
		if !slices.ContainsFunc(errs, func(known *field.Error) bool {
			return strings.HasPrefix(err.Field, known.Field) || strings.HasPrefix(known.Field, err.Field)
		}) {
			errs = append(errs, err)
		}
	}
	return errs
}

var specPath = field.NewPath("spec")

func checkConfigMap(o, old object) field.ErrorList {
	if old == nil {
		return nil
	}
	now, before := o.(*corev1.ConfigMap), old.(*corev1.ConfigMap)
	return checkImmutable(now.Immutable, before.Immutable,
		kept{"data", now.Data, before.Data}, kept{"binaryData", now.BinaryData, before.BinaryData})
}

func checkSecret(o, old object) field.ErrorList {
	if old == nil {
		return nil
	}
	now, before := o.(*corev1.Secret), old.(*corev1.Secret)
	errs := validation.ValidateImmutableField(now.Type, before.Type, field.NewPath("type"))
	return append(errs, checkImmutable(now.Immutable, before.Immutable, kept{"data", now.Data, before.Data})...)
}

// kept is a field that cannot be changed of what is immutable.
type kept struct {
	name        string
	now, before any
}

// checkImmutable is what ConfigMaps and Secrets share: is and was are their field
// immutable.
func checkImmutable(is, was *bool, fields ...kept) (errs field.ErrorList) {
	if was == nil || !*was {
		return nil
	}
	const text = "field is immutable when `immutable` is set"
	if is == nil || !*is {
		errs = append(errs, field.Forbidden(field.NewPath("immutable"), text))
	}
	for _, f := range fields {
		if !equality.Semantic.DeepEqual(f.now, f.before) {
			errs = append(errs, field.Forbidden(field.NewPath(f.name), text))
		}
	}
	return errs
}

func checkService(o, old object) (errs field.ErrorList) {
	now := o.(*corev1.Service)
	if now.Spec.ClusterIP != corev1.ClusterIPNone && len(now.Spec.Ports) == 0 {
		errs = append(errs, field.Required(specPath.Child("ports"), ""))
	}
	if old == nil {
		return errs
	}
	if before := old.(*corev1.Service).Spec.ClusterIPs; len(before) > 0 && len(now.Spec.ClusterIPs) > 0 && before[0] != now.Spec.ClusterIPs[0] {
		errs = append(errs, field.Invalid(specPath.Child("clusterIPs").Index(0), now.Spec.ClusterIPs, "may not change once set"))
	}
	return errs
}

// checkWorkload is for what makes pods by a template.
func checkWorkload(o, old object) (errs field.ErrorList) {
	selector, template := podsOf(o)
	if selector == nil {
		errs = append(errs, field.Required(specPath.Child("selector"), ""))
	} else if picks, err := metav1.LabelSelectorAsSelector(selector); err == nil && !picks.Matches(labels.Set(template.Labels)) {
		errs = append(errs, field.Invalid(specPath.Child("template", "metadata", "labels"), template.Labels, "`selector` does not match template `labels`"))
	}
	if len(template.Spec.Containers) == 0 {
		errs = append(errs, field.Required(specPath.Child("template", "spec", "containers"), ""))
	}
	if old == nil {
		return errs
	}
	if now, ok := o.(*appsv1.StatefulSet); ok {
		return append(errs, checkStatefulSetUpdate(now, old.(*appsv1.StatefulSet))...)
	}
	before, _ := podsOf(old)
	kept := validation.ValidateImmutableField(selector, before, specPath.Child("selector"))
	if _, ok := o.(*appsv1.DaemonSet); ok {
		return append(kept, errs...)
	}
	return append(errs, kept...)
}

// podsOf is how a workload picks and makes its pods.
func podsOf(o object) (*metav1.LabelSelector, *corev1.PodTemplateSpec) {
	switch o := o.(type) {
	case *appsv1.Deployment:
		return o.Spec.Selector, &o.Spec.Template
	case *appsv1.StatefulSet:
		return o.Spec.Selector, &o.Spec.Template
	case *appsv1.DaemonSet:
		return o.Spec.Selector, &o.Spec.Template
	case *batchv1.Job:
		return o.Spec.Selector, &o.Spec.Template
	}
	return nil, nil
}

func checkStatefulSetUpdate(now, before *appsv1.StatefulSet) field.ErrorList {
	changed := now.Spec.DeepCopy()
	changed.Replicas, changed.Template, changed.UpdateStrategy = before.Spec.Replicas, before.Spec.Template, before.Spec.UpdateStrategy
	changed.MinReadySeconds, changed.Ordinals = before.Spec.MinReadySeconds, before.Spec.Ordinals
	changed.PersistentVolumeClaimRetentionPolicy, changed.RevisionHistoryLimit = before.Spec.PersistentVolumeClaimRetentionPolicy, before.Spec.RevisionHistoryLimit
	if equality.Semantic.DeepEqual(*changed, before.Spec) {
		return nil
	}
	return field.ErrorList{field.Forbidden(specPath, "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "+
		"'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden")}
}

func checkBinding(o, old object) field.ErrorList {
	roleOf := func(o object) rbacv1.RoleRef {
		if b, ok := o.(*rbacv1.RoleBinding); ok {
			return b.RoleRef
		}
		return o.(*rbacv1.ClusterRoleBinding).RoleRef
	}
	if old == nil || roleOf(o) == roleOf(old) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("roleRef"), struct{ APIGroup, Kind, Name string }(roleOf(o)), "cannot change roleRef")}
}
