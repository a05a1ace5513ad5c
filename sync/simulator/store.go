// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// key is where an object is among those of its kind.
type key struct{ namespace, name string }

func (k key) compare(other key) int {
	return cmp.Or(strings.Compare(k.namespace, other.namespace), strings.Compare(k.name, other.name))
}

func keyOf(o object) key { return key{o.GetNamespace(), o.GetName()} }

// store is the objects of a kind. None of them is ever changed: a new one takes its
// place.
type store struct {
	kind    *kind // the version that is stored
	objects map[key]object
}

func (c *Cluster) storeOf(k *kind) *store {
	s := c.stores[k.resource]
	if s == nil {
		s = &store{kind: k, objects: map[key]object{}}
		c.stores[k.resource] = s
	}
	return s
}

// find is a stored object in the version of the kind; nil when it is not there.
func (c *Cluster) find(k *kind, at key) object {
	s := c.stores[k.resource]
	if s == nil {
		return nil
	}
	return k.as(s.objects[at])
}

// as is a stored object in the version of the kind.
func (k *kind) as(o object) object {
	if u, ok := o.(*unstructured.Unstructured); ok && k.custom != nil {
		return inVersion(u, k.GroupVersion())
	}
	return o
}

// sorted are the objects in a namespace, or in all where it is empty, in the order of
// a list.
func (s *store) sorted(namespace string) []object {
	var keys []key
	for k := range s.objects {
		if namespace == "" || k.namespace == namespace {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, key.compare)
	all := make([]object, len(keys))
	for i, k := range keys {
		all[i] = s.objects[k]
	}
	return all
}

// save stores an object as a new change, and tells who watches.
func (c *Cluster) save(k *kind, o object) object {
	s := c.storeOf(k)
	before := s.objects[keyOf(o)]
	c.version++
	o.SetResourceVersion(strconv.FormatUint(c.version, 10))
	o = s.kind.as(s.kind.asStored(o))
	s.objects[keyOf(o)] = o
	event := change{version: c.version, resource: k.resource, kind: watch.Modified, object: o, before: before}
	if before == nil {
		event.kind = watch.Added
	}
	c.note(event)
	c.changedObject(s.kind, o, before)
	return k.as(o)
}

// erase deletes an object, and returns its last state.
func (c *Cluster) erase(k *kind, o object) object {
	s := c.storeOf(k)
	before := s.objects[keyOf(o)]
	delete(s.objects, keyOf(o))
	c.version++
	last := o.DeepCopyObject().(object)
	last.SetResourceVersion(strconv.FormatUint(c.version, 10))
	c.note(change{version: c.version, resource: k.resource, kind: watch.Deleted, object: last, before: before})
	c.changedObject(s.kind, nil, before)
	return last
}

// note tells who watches.
func (c *Cluster) note(event change) {
	c.history.add(event)
	c.wake()
}

func (c *Cluster) wake() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// asStored is an object as a database gives it back: of equal quantities, such as 1000m
// and 1, each has one form.
func (k *kind) asStored(o object) object {
	if _, ok := root(o); ok {
		return o
	}
	text, err := json.Marshal(o)
	if err != nil {
		panic(err) // it was read
	}
	again := reflect.New(reflect.TypeOf(o).Elem()).Interface().(object)
	if err := json.Unmarshal(text, again); err != nil {
		panic(err)
	}
	k.setDefaults(again)
	return again
}

// wholeSeconds makes times what they are on the wire.
func wholeSeconds(o object) {
	if _, ok := o.(*unstructured.Unstructured); ok {
		return // has them as texts
	}
	o.SetCreationTimestamp(o.GetCreationTimestamp().Rfc3339Copy())
	if at := o.GetDeletionTimestamp(); at != nil {
		o.SetDeletionTimestamp(new(at.Rfc3339Copy()))
	}
	fields := o.GetManagedFields()
	for i := range fields {
		if fields[i].Time != nil {
			fields[i].Time = new(fields[i].Time.Rfc3339Copy())
		}
	}
	o.SetManagedFields(fields)
}

// root is the content of an unstructured object.
func root(o object) (map[string]any, bool) {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return nil, false
	}
	return u.Object, true
}

func withoutMetadata(o object) map[string]any {
	u, _ := root(o)
	rest := maps.Clone(u)
	delete(rest, "metadata")
	return rest
}

func lower(field string) string { return strings.ToLower(field[:1]) + field[1:] }

func setAnnotation(o object, name, value string) {
	annotations := maps.Clone(o.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[name] = value
	o.SetAnnotations(annotations)
}

func increment(number string) string {
	n, _ := strconv.ParseInt(number, 10, 64)
	return strconv.FormatInt(n+1, 10)
}

func newSelector(name, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{name: value}}
}
