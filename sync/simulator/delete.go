// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// delete is a DELETE of one object, or of those that a selector picks.
func (c *Cluster) delete(q *request) (any, int, error) {
	opt, err := q.deleteOptions()
	if err != nil {
		return nil, 0, err
	}
	q.dryRun = len(opt.DryRun) > 0
	if q.name == "" {
		return c.deleteCollection(q, opt)
	}
	there := c.find(q.kind, key{q.namespace, q.name})
	if there == nil {
		return nil, 0, q.missing()
	}
	o, err := c.remove(q, there, opt)
	return o, http.StatusOK, err
}

func (q *request) deleteOptions() (*metav1.DeleteOptions, error) {
	opt := &metav1.DeleteOptions{}
	if len(q.body) > 0 {
		if err := json.Unmarshal(q.body, opt); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	} else {
		if policy := q.query.Get("propagationPolicy"); policy != "" {
			opt.PropagationPolicy = new(metav1.DeletionPropagation(policy))
		}
		opt.DryRun = q.query["dryRun"]
	}
	if err := q.known("propagationPolicy", "dryRun", "labelSelector", "pretty"); err != nil {
		return nil, err
	}
	//lint:ignore SA1019 requests may still have it
	if opt.OrphanDependents != nil {
		return nil, unmodelled("orphanDependents")
	}
	if errs := metavalidation.ValidateDeleteOptions(opt); len(errs) > 0 {
		return nil, apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("DeleteOptions").GroupKind(), "", errs)
	}
	return opt, nil
}

func (c *Cluster) deleteCollection(q *request, opt *metav1.DeleteOptions) (any, int, error) {
	gone, _, err := c.list(q)
	if err != nil {
		return nil, 0, err
	}
	for _, o := range gone.(*listed).items {
		if _, err := c.remove(q, o, opt); err != nil {
			return nil, 0, err
		}
	}
	return gone, http.StatusOK, nil
}

// remove deletes an object, or marks it when somebody has to let go of it first.
func (c *Cluster) remove(q *request, there object, opt *metav1.DeleteOptions) (any, error) {
	if err := q.checkPreconditions(there, opt.Preconditions); err != nil {
		return nil, err
	}
	if q.GroupVersionKind == nsKind {
		return c.removeNamespace(q, there, opt)
	}
	finalizers := q.deletionFinalizers(there, opt)
	if len(finalizers) > 0 || !slices.Equal(finalizers, there.GetFinalizers()) {
		o := there.DeepCopyObject().(object)
		o.SetFinalizers(finalizers)
		if len(finalizers) > 0 {
			markDeleted(o)
			return c.saveUnless(q, o, there), nil
		}
		if opt.Preconditions != nil && opt.Preconditions.ResourceVersion != nil { // a defect of the API server
			return nil, apierrors.NewConflict(q.groupResource(), q.name, preconditionFailed("ResourceVersion", "", there.GetResourceVersion()))
		}
	}
	if q.dryRun {
		return q.deleted(there), nil
	}
	last := c.erase(q.kind, there)
	c.afterDelete(q.kind, there)
	return q.deleted(last), nil
}

// checkPreconditions holds what the request says of the object against what is there.
func (q *request) checkPreconditions(there object, want *metav1.Preconditions) error {
	if want == nil {
		return nil
	}
	ns := q.GroupVersionKind == nsKind
	what, uid, version := resource{q.Group, q.Kind}.groupResource(), "the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated",
		"the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified"
	if ns {
		what, uid = q.groupResource(), "Precondition failed: UID in precondition: %v, UID in object meta: %v"
		version = "Precondition failed: ResourceVersion in precondition: %v, ResourceVersion in object meta: %v"
	}
	if want.UID != nil && *want.UID != there.GetUID() {
		return apierrors.NewConflict(what, q.name, fmt.Errorf(uid, *want.UID, there.GetUID()))
	}
	if want.ResourceVersion != nil && *want.ResourceVersion != there.GetResourceVersion() {
		return apierrors.NewConflict(what, q.name, fmt.Errorf(version, *want.ResourceVersion, there.GetResourceVersion()))
	}
	return nil
}

// deletionFinalizers are those of an object that is to be deleted: the garbage
// collector has one where the policy says so.
func (q *request) deletionFinalizers(there object, opt *metav1.DeleteOptions) []string {
	var own []string
	policy := metav1.DeletePropagationBackground
	if q.rules.orphans {
		policy = metav1.DeletePropagationOrphan
	}
	for _, f := range there.GetFinalizers() {
		switch f {
		case metav1.FinalizerOrphanDependents:
			policy = metav1.DeletePropagationOrphan
		case metav1.FinalizerDeleteDependents:
			policy = metav1.DeletePropagationForeground
		default:
			own = append(own, f)
		}
	}
	if opt.PropagationPolicy != nil {
		policy = *opt.PropagationPolicy
	}
	switch policy {
	case metav1.DeletePropagationOrphan:
		own = append(own, metav1.FinalizerOrphanDependents)
	case metav1.DeletePropagationForeground:
		own = append(own, metav1.FinalizerDeleteDependents)
	}
	if there := there.GetFinalizers(); sets.New(own...).Equal(sets.New(there...)) {
		return there // in the order that they have
	}
	return own
}

func markDeleted(o object) {
	if o.GetDeletionTimestamp() == nil {
		if o.GetGeneration() > 0 {
			o.SetGeneration(o.GetGeneration() + 1)
		}
		o.SetDeletionTimestamp(new(metav1.NewTime(time.Now())))
	}
	o.SetDeletionGracePeriodSeconds(new(int64))
}

// saveUnless stores a change that may be none.
func (c *Cluster) saveUnless(q *request, o, there object) object {
	wholeSeconds(o)
	switch {
	case unchanged(o, there):
		return there
	case q.dryRun:
		return o
	}
	return c.save(q.kind, o)
}

// deleted is the answer to a DELETE that did it.
func (q *request) deleted(last object) any {
	if q.rules.returnsDeleted {
		return last
	}
	return typed(&metav1.Status{Status: metav1.StatusSuccess, Details: &metav1.StatusDetails{
		Name: last.GetName(), Group: q.Group, Kind: q.plural, UID: last.GetUID(),
	}})
}

// endsWith says whether an object is gone with a change: it was deleted, and the last
// of those who held it lets go.
func (c *Cluster) endsWith(q *request, o, there object) bool {
	if len(o.GetFinalizers()) > 0 || there.GetDeletionTimestamp() == nil {
		return false
	}
	if ns, ok := o.(*corev1.Namespace); ok && len(ns.Spec.Finalizers) > 0 {
		return false
	}
	seconds := there.GetDeletionGracePeriodSeconds()
	return seconds == nil || *seconds == 0
}

var immortal = []string{"default", "kube-system", "kube-public"}

// removeNamespace marks a namespace. What is in it goes first.
func (c *Cluster) removeNamespace(q *request, there object, opt *metav1.DeleteOptions) (any, error) {
	if slices.Contains(immortal, q.name) {
		return nil, apierrors.NewForbidden(q.groupResource(), q.name, fmt.Errorf("this namespace may not be deleted"))
	}
	if there.GetDeletionTimestamp() != nil {
		return there, nil
	}
	ns := there.DeepCopyObject().(*corev1.Namespace)
	ns.DeletionTimestamp = new(metav1.NewTime(time.Now()))
	ns.Status.Phase = corev1.NamespaceTerminating
	if opt.PropagationPolicy != nil {
		ns.Finalizers = q.deletionFinalizers(there, opt)
	}
	if q.dryRun {
		wholeSeconds(ns)
		return ns, nil
	}
	saved := c.save(q.kind, ns)
	c.later(0, func() { c.empty(q.name) })
	return saved, nil
}

// namespace is one by its name; nil when it is not there.
func (c *Cluster) namespace(name string) (*corev1.Namespace, *kind) {
	k := c.kinds.served[coreV1.WithResource("namespaces")]
	ns, _ := c.find(k, key{name: name}).(*corev1.Namespace)
	return ns, k
}

// empty deletes what is in a namespace that was deleted, and then the namespace. It
// is called again when something in it goes.
func (c *Cluster) empty(name string) {
	ns, k := c.namespace(name)
	if ns == nil || ns.DeletionTimestamp == nil {
		return
	}
	left := false
	for _, s := range c.sortedStores() {
		for _, o := range s.sorted(name) {
			c.controllerDelete(s.kind, o, metav1.DeletePropagationBackground)
		}
		left = left || len(s.sorted(name)) > 0
	}
	if left || len(ns.Finalizers) > 0 {
		return
	}
	c.erase(k, ns)
}

// controllerDelete is a DELETE by a controller.
func (c *Cluster) controllerDelete(k *kind, o object, policy metav1.DeletionPropagation) {
	if o.GetDeletionTimestamp() != nil {
		return
	}
	q := &request{kind: k, namespace: o.GetNamespace(), name: o.GetName()}
	_, _ = c.remove(q, o, &metav1.DeleteOptions{PropagationPolicy: &policy}) // there are no preconditions
}

// afterDelete does what the garbage collector and the namespace controller do about
// an object that went.
func (c *Cluster) afterDelete(k *kind, gone object) {
	uid := gone.GetUID()
	c.later(0, func() { c.collect(uid) })
	if ns := gone.GetNamespace(); ns != "" {
		c.later(0, func() { c.empty(ns) })
	}
	for _, r := range gone.GetOwnerReferences() {
		if owner := c.kindOf(schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)); owner != nil {
			at := key{name: r.Name}
			if owner.namespaced {
				at.namespace = gone.GetNamespace()
			}
			c.later(0, func() { c.finalize(owner, at, r.UID) })
			if c.Ready.KeepsPods && k.GroupVersionKind == podKind {
				c.later(0, func() { c.lookAgain(owner, at, r.UID) })
			}
		}
	}
	if k.GroupVersionKind == crdKind {
		c.withdraw(gone)
	}
}

// ownedBy are the objects with an owner of that UID.
func (c *Cluster) ownedBy(uid types.UID, see func(k *kind, o object)) {
	for _, s := range c.sortedStores() {
		for _, o := range s.sorted("") {
			if slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == uid }) {
				see(s.kind, o)
			}
		}
	}
}

// collect deletes what lost its last owner.
func (c *Cluster) collect(uid types.UID) {
	c.ownedBy(uid, func(k *kind, o object) {
		for _, r := range o.GetOwnerReferences() {
			if c.uidThere(r.UID) {
				return
			}
		}
		c.controllerDelete(k, o, metav1.DeletePropagationBackground)
	})
}

func (c *Cluster) uidThere(uid types.UID) bool {
	for _, s := range c.stores {
		for _, o := range s.objects {
			if o.GetUID() == uid {
				return true
			}
		}
	}
	return false
}

// finalize is the garbage collector's work on an object that waits for it.
func (c *Cluster) finalize(k *kind, at key, uid types.UID) {
	o := c.find(k, at)
	if o == nil || o.GetUID() != uid || o.GetDeletionTimestamp() == nil {
		return
	}
	own := ""
	switch {
	case slices.Contains(o.GetFinalizers(), metav1.FinalizerDeleteDependents):
		own = metav1.FinalizerDeleteDependents
		blocked := false
		c.ownedBy(uid, func(k *kind, o object) { c.controllerDelete(k, o, metav1.DeletePropagationForeground) })
		c.ownedBy(uid, func(_ *kind, o object) {
			for _, r := range o.GetOwnerReferences() {
				blocked = blocked || r.UID == uid && r.BlockOwnerDeletion != nil && *r.BlockOwnerDeletion
			}
		})
		if blocked {
			return // until one of them goes, see afterDelete
		}
	case slices.Contains(o.GetFinalizers(), metav1.FinalizerOrphanDependents):
		own = metav1.FinalizerOrphanDependents
		c.ownedBy(uid, func(k *kind, o object) {
			c.controllerUpdate(k, keyOf(o), "", func(o object) {
				o.SetOwnerReferences(slices.DeleteFunc(slices.Clone(o.GetOwnerReferences()), func(r metav1.OwnerReference) bool { return r.UID == uid }))
			})
		})
	case slices.Contains(o.GetFinalizers(), claimFinalizer):
		own = claimFinalizer
	default:
		return
	}
	c.controllerUpdate(k, at, "", func(o object) {
		o.SetFinalizers(slices.DeleteFunc(slices.Clone(o.GetFinalizers()), func(f string) bool { return f == own }))
	})
	c.later(0, func() { c.finalize(k, at, uid) }) // there may be more
}

// preconditionFailed is an API server's text, with its capital.
func preconditionFailed(what, asked, is string) error {
	return errors.New("Precondition failed: " + what + " in precondition: " + asked + ", " + what + " in object meta: " + is)
}
