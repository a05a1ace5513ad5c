// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"maps"
	"reflect"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/swell-sh/swell/render/schema/validation"
)

// fields are paths in the form of [store.Change.Field], in the order of the objects'
// sorted keys.
type fields []string

// changeable is an object by its name, and what an apply can change of it: all but
// the status and what the server keeps in the metadata. It shares values with o.
func changeable(o *unstructured.Unstructured) map[string]any {
	kept := maps.Clone(o.Object)
	delete(kept, "status")
	metadata := map[string]any{}
	for _, key := range []string{"name", "namespace", "labels", "annotations", "finalizers", "ownerReferences"} {
		if value, ok, _ := unstructured.NestedFieldNoCopy(o.Object, "metadata", key); ok {
			metadata[key] = value
		}
	}
	kept["metadata"] = metadata
	return kept
}

// between adds the fields that differ between two values. A list whose items
// cannot be told apart by their names is one field; so is one in another order.
func (f *fields) between(path string, a, b any) {
	if mapA, mapB, ok := both[map[string]any](a, b); ok {
		keys := maps.Clone(mapA)
		maps.Copy(keys, mapB)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			f.between(path+fieldName(key), mapA[key], mapB[key])
		}
		return
	}
	if listA, listB, ok := both[[]any](a, b); ok {
		if names := namesOf(listA); names != nil && slices.Equal(names, namesOf(listB)) {
			for i, name := range names {
				f.between(path+nameKey(name), listA[i], listB[i])
			}
			return
		}
	}
	if !reflect.DeepEqual(a, b) {
		*f = append(*f, path)
	}
}

// rewritten adds the fields of sent that got does not have as they were sent.
// Where a list has more than what was sent, nobody can tell.
func (f *fields) rewritten(path string, sent, got any) {
	switch sent := sent.(type) {
	case nil:
	case map[string]any:
		mapGot, _ := got.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(sent)) {
			if key == "status" && path == "" {
				continue
			}
			f.rewritten(path+fieldName(key), sent[key], mapGot[key])
		}
	case []any:
		listGot, _ := got.([]any)
		f.rewrittenList(path, sent, listGot)
	default:
		if !sameScalar(sent, got) {
			*f = append(*f, path)
		}
	}
}

func (f *fields) rewrittenList(path string, sent, got []any) {
	names, gotNames := namesOf(sent), namesOf(got)
	if names != nil && gotNames != nil {
		for i, name := range names {
			if at := slices.Index(gotNames, name); at >= 0 {
				f.rewritten(path+nameKey(name), sent[i], got[at])
			} else {
				*f = append(*f, path+nameKey(name))
			}
		}
		return
	}
	switch {
	case len(got) < len(sent):
		*f = append(*f, path)
	case len(got) == len(sent):
		for i := range sent {
			f.rewritten(path+"["+strconv.Itoa(i)+"]", sent[i], got[i])
		}
	}
}

// sameScalar says whether the server only wrote a value in its own way.
func sameScalar(sent, got any) bool {
	if sent == got {
		return true
	}
	if got == nil {
		return isZero(sent)
	}
	a, errA := validation.ParseQuantity(scalarText(sent))
	b, errB := validation.ParseQuantity(scalarText(got))
	return errA == nil && errB == nil && a.Cmp(b) == 0
}

// isZero says whether a value is one that the server leaves out when it writes
// an object.
func isZero(v any) bool { return reflect.ValueOf(v).IsZero() }

func scalarText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}

func both[T any](a, b any) (x, y T, ok bool) {
	x, okX := a.(T)
	y, okY := b.(T)
	return x, y, okX && okY
}

// namesOf are the names of a list's items; nil when not all have one, or two
// have the same.
func namesOf(list []any) []string {
	var names []string
	for _, item := range list {
		object, _ := item.(map[string]any)
		name, ok := object["name"].(string)
		if !ok || slices.Contains(names, name) {
			return nil
		}
		names = append(names, name)
	}
	return names
}

func fieldName(key string) string {
	if plainWord.MatchString(key) {
		return "." + key
	}
	return "[" + strconv.Quote(key) + "]"
}

func nameKey(name string) string { return "[name=" + strconv.Quote(name) + "]" }
