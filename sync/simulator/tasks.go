// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// task is what a controller will do.
type task struct {
	at time.Time
	do func()
}

// tasks are in the order of their time. They are done when somebody asks the cluster
// for something, or reads a watch.
type tasks []task

func (t tasks) next() (time.Time, bool) {
	if len(t) == 0 {
		return time.Time{}, false
	}
	return t[0].at, true
}

// later has a controller do something after a while.
func (c *Cluster) later(after time.Duration, do func()) {
	if c.still {
		return
	}
	one := task{time.Now().Add(after), do}
	at, _ := slices.BinarySearchFunc(c.tasks, one.at.Add(1), func(t task, at time.Time) int { return t.at.Compare(at) })
	c.tasks = slices.Insert(c.tasks, at, one)
	c.wake()
}

// maxTasks is how many tasks are done at a time: more go round in circles.
const maxTasks = 100_000

// work does what is due.
func (c *Cluster) work() {
	for range maxTasks {
		if at, ok := c.tasks.next(); !ok || at.After(time.Now()) {
			return
		}
		do := c.tasks[0].do
		c.tasks = c.tasks[1:]
		do()
	}
	panic("simulator: the controllers come to no end")
}

// controllerUpdate is an update by a controller: of the status, or of the object.
// What it may not do, it does not.
func (c *Cluster) controllerUpdate(k *kind, at key, subresource string, change func(o object)) {
	q := &request{kind: k, namespace: at.namespace, name: at.name, subresource: subresource}
	_, _, _ = c.update(q, false, "", func(live object) (object, error) {
		o := live.DeepCopyObject().(object)
		change(o)
		return q.fields().UpdateNoErrors(live, o, controllerManager).(object), nil
	})
}

const controllerManager = "kube-controller-manager"

// controllerCreate creates an object as a controller.
func (c *Cluster) controllerCreate(k *kind, o object) {
	q := &request{kind: k, namespace: o.GetNamespace(), name: o.GetName()}
	o = q.fields().UpdateNoErrors(k.empty(), o, controllerManager).(object)
	if _, err := c.create(q, o, true); err != nil && !apierrors.IsAlreadyExists(err) {
		panic(err) // it is our own
	}
}

// kindOf is one of Kubernetes' own kinds.
func (c *Cluster) kindOf(gvk schema.GroupVersionKind) *kind {
	for _, k := range c.kinds.served {
		if k.GroupVersionKind == gvk {
			return k
		}
	}
	return nil
}

// sortedStores are all stores, in an order that is always the same.
func (c *Cluster) sortedStores() []*store {
	var all []*store
	for _, s := range c.stores {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *store) int {
		return key{a.kind.group, a.kind.plural}.compare(key{b.kind.group, b.kind.plural})
	})
	return all
}

// changedObject starts the controllers that look after an object. now is nil for one
// that is gone.
func (c *Cluster) changedObject(k *kind, now, before object) {
	if now == nil {
		return
	}
	if now.GetDeletionTimestamp() != nil && (before == nil || before.GetDeletionTimestamp() == nil) {
		at, uid := keyOf(now), now.GetUID()
		c.later(0, func() { c.finalize(k, at, uid) })
	}
	if _, ok := now.(*corev1.PersistentVolumeClaim); ok && before == nil {
		at := keyOf(now)
		c.later(0, func() { c.bind(k, at) })
	}
	spec := before == nil || now.GetGeneration() != before.GetGeneration()
	switch {
	case !spec:
	case k.GroupVersionKind == crdKind:
		name := now.GetName()
		c.later(0, func() { c.establish(name) })
	default:
		c.start(k, now)
	}
}

func (c *Cluster) addNamespace(name string) {
	_, k := c.namespace(name)
	o := k.empty()
	o.SetName(name)
	q := &request{kind: k, name: name}
	k.setDefaults(o)
	o = q.fields().UpdateNoErrors(k.empty(), o, "kube-apiserver").(object)
	o.SetManagedFields(slices.DeleteFunc(o.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == "" }))
	if _, err := c.create(q, o, true); err != nil {
		panic(err) // the names are our own
	}
}
