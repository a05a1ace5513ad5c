// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"maps"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/swell-sh/swell/render"
)

// outlived warns of what was sent and is not there in the answer: fields that
// did not become ours, and labels and annotations with other values. That a
// webhook changes any other value cannot be seen in the answer, which holds
// metadata only: the server counts such fields as ours all the same.
func (s *sending) outlived(meta *metav1.PartialObjectMetadata) {
	root := s.root
	if len(s.left) > 0 {
		var err error
		if root, err = parsed(s.o); err != nil {
			return
		}
		without(root, s.left)
	}
	own := ownEntry(meta)
	if own == nil {
		return // an API server without managed fields
	}
	var fields []string
	metadata := metadataOf(root)
	for key, live := range map[string]map[string]string{"labels": meta.Labels, "annotations": meta.Annotations} {
		sent := texts(metadata, key)
		for _, name := range slices.Sorted(maps.Keys(sent)) {
			if live[name] != sent[name] {
				fields = append(fields, fieldText(fieldpath.MakePathOrDie("metadata", key, name)))
			}
		}
	}
	all := fieldsOf(own)
	for _, name := range slices.Sorted(maps.Keys(root)) {
		if !notOwned(s.o.ID, name) {
			fields = append(fields, lacking(all, fieldpath.Path{element(name)}, root[name])...)
		}
	}
	slices.Sort(fields)
	if fields = slices.Compact(fields); len(fields) > 0 {
		s.r.Warnings = append(s.r.Warnings, "not as it was sent, the server or an admission webhook changed it: "+enumerate(fields))
	}
}

// notOwned says whether a field at the top of an object is never in managed
// fields: what identifies it, and what only stands for something else.
func notOwned(id render.ObjectID, name string) bool {
	switch name {
	case "apiVersion", "kind", "metadata":
		return true
	}
	return name == "stringData" && id.IsSecret()
}

func element(name string) fieldpath.PathElement { return fieldpath.PathElement{FieldName: &name} }

// lacking are the fields of value, which stands at the end of the path, that the
// set around it does not have.
func lacking(around *fieldpath.Set, path fieldpath.Path, value any) []string {
	last := path[len(path)-1]
	inside, ok := around.Children.Get(last)
	switch {
	case !ok && (around.Members.Has(last) || isEmpty(value)):
		return nil // held as a whole
	case !ok:
		return []string{fieldText(path)}
	}
	var fields []string
	switch value := value.(type) {
	case map[string]any:
		for name, child := range value {
			fields = append(fields, lacking(inside, append(slices.Clone(path), element(name)), child)...)
		}
	case []any:
		elements := elementsOf(inside)
		for i, item := range value {
			at := slices.IndexFunc(elements, func(e fieldpath.PathElement) bool { return means(e, item) })
			if at < 0 {
				fields = append(fields, fieldText(path)+"["+strconv.Itoa(i)+"]")
				continue
			}
			fields = append(fields, lacking(inside, append(slices.Clone(path), elements[at]), item)...)
		}
	}
	return fields
}

// isEmpty says whether a value has nothing in it that could be owned.
func isEmpty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case map[string]any:
		for _, child := range value {
			if !isEmpty(child) {
				return false
			}
		}
		return true
	case []any:
		return len(value) == 0
	}
	return false
}

// elementsOf are the items of a list that a set has.
func elementsOf(set *fieldpath.Set) []fieldpath.PathElement {
	var elements []fieldpath.PathElement
	set.Members.Iterate(func(e fieldpath.PathElement) { elements = append(elements, e) })
	set.Children.Iterate(func(e fieldpath.PathElement) {
		if !set.Members.Has(e) {
			elements = append(elements, e)
		}
	})
	return elements
}
