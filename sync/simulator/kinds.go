// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	apischema "github.com/swell-sh/swell/render/schema"
)

// kubernetes is the version whose schemas are used, that of discovery.json.
const kubernetes = "1.36"

// discovery is what a real API server answers, by path. TestAgainstServer holds it to that.
//
//go:embed discovery.json
var discovery []byte

// resource is where objects are stored: all versions of a kind are at one place.
type resource struct{ group, plural string }

func (r resource) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.group, Resource: r.plural}
}

// object is one of the API's own types, or unstructured.
type object interface {
	runtime.Object
	metav1.Object
}

// kind is one kind in one version.
type kind struct {
	schema.GroupVersionKind
	resource
	namespaced bool
	verbs      []string
	// typed: it is one of the types of k8s.io/api.
	typed bool
	rules *rules // nil: not modelled
	// managers of fields, by subresource. It has the subresource "status" if it is there.
	managers map[string]*managedfields.FieldManager
	custom   *custom // nil for Kubernetes' own kinds
}

// kinds are those that a cluster serves.
type kinds struct {
	documents map[string]json.RawMessage // of discovery, without custom resources
	served    map[schema.GroupVersionResource]*kind
	// custom resources by group and version, as discovery shows them
	custom map[schema.GroupVersion][]metav1.APIResource
}

// builtin is made once: it never changes.
var builtin = sync.OnceValue(func() *kinds {
	k, err := readKinds()
	if err != nil {
		panic(fmt.Sprintf("embedded discovery.json: %v", err))
	}
	return k
})

func newKinds() *kinds {
	all := builtin()
	own := &kinds{documents: all.documents, served: make(map[schema.GroupVersionResource]*kind, len(all.served)), custom: map[schema.GroupVersion][]metav1.APIResource{}}
	maps.Copy(own.served, all.served)
	return own
}

func readKinds() (*kinds, error) {
	k := &kinds{served: map[schema.GroupVersionResource]*kind{}}
	if err := json.Unmarshal(discovery, &k.documents); err != nil {
		return nil, err
	}
	models, err := models()
	if err != nil {
		return nil, err
	}
	types, err := managedfields.NewTypeConverter(models, false)
	if err != nil {
		return nil, err
	}
	for path, document := range k.documents {
		var list metav1.APIResourceList
		if err := json.Unmarshal(document, &list); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if list.Kind != "APIResourceList" {
			continue
		}
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		if err := k.add(gv, list.APIResources, types); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// add takes in what a group and version serves.
func (k *kinds) add(gv schema.GroupVersion, resources []metav1.APIResource, types managedfields.TypeConverter) error {
	for _, r := range resources {
		if strings.Contains(r.Name, "/") {
			continue
		}
		one := &kind{
			GroupVersionKind: gv.WithKind(r.Kind), resource: resource{gv.Group, r.Name}, namespaced: r.Namespaced, verbs: r.Verbs,
		}
		k.served[gv.WithResource(r.Name)] = one
		one.typed = scheme.Scheme.Recognizes(one.GroupVersionKind)
		if one.rules = modelled[one.GroupVersionKind]; one.rules == nil {
			continue
		}
		status := slices.ContainsFunc(resources, func(s metav1.APIResource) bool { return s.Name == r.Name+"/status" })
		if err := one.manage(types, status); err != nil {
			return err
		}
	}
	return nil
}

// manage makes the managers of fields.
func (k *kind) manage(types managedfields.TypeConverter, status bool) error {
	k.managers = map[string]*managedfields.FieldManager{}
	resets := map[string]*fieldpath.Set{"": nil}
	if status {
		resets[""] = fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
		resets["status"] = fieldpath.NewSet(fieldpath.MakePathOrDie("spec"))
		switch {
		case k.custom != nil:
			resets["status"].Insert(fieldpath.MakePathOrDie("metadata"))
		case k.Kind == "Deployment":
			resets["status"].Insert(fieldpath.MakePathOrDie("metadata", "labels"))
		}
	}
	create := managedfields.NewDefaultFieldManager
	if k.custom != nil {
		create = managedfields.NewDefaultCRDFieldManager
	}
	for subresource, fields := range resets {
		reset := map[fieldpath.APIVersion]fieldpath.Filter{}
		if fields != nil {
			reset[fieldpath.APIVersion(k.GroupVersion().String())] = fieldpath.NewExcludeSetFilter(fields)
		}
		manager, err := create(types, versions{k}, versions{k}, versions{k}, k.GroupVersionKind, k.GroupVersion(), subresource, reset)
		if err != nil {
			return err
		}
		k.managers[subresource] = manager
	}
	return nil
}

// models are the OpenAPI schemas of Kubernetes' own kinds. They are not to be changed.
var models = sync.OnceValues(readModels)

func readModels() (map[string]*spec.Schema, error) {
	types, kinds, err := apischema.Published(kubernetes)
	if err != nil {
		return nil, err
	}
	models := make(map[string]*spec.Schema, len(types))
	for name, text := range types {
		s := &spec.Schema{}
		if err := json.Unmarshal([]byte(strings.ReplaceAll(string(text), "#/components/schemas/", "#/definitions/")), s); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		models[name] = s
	}
	for name, of := range kinds {
		apiVersion, kind, _ := strings.Cut(name, " ")
		gv, err := schema.ParseGroupVersion(apiVersion)
		if err != nil {
			return nil, err
		}
		named(models[of], gv.WithKind(kind))
	}
	return models, nil
}

// named says which kind a schema is of.
func named(s *spec.Schema, gvk schema.GroupVersionKind) {
	const extension = "x-kubernetes-group-version-kind"
	of, _ := s.Extensions[extension].([]any)
	s.AddExtension(extension, append(of, map[string]any{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind}))
}

// empty is a new object of the kind.
func (k *kind) empty() object {
	var o object = &unstructured.Unstructured{Object: map[string]any{}}
	if k.typed {
		made, err := scheme.Scheme.New(k.GroupVersionKind)
		if err != nil {
			panic(err) // it was recognized
		}
		o = made.(object)
	}
	o.GetObjectKind().SetGroupVersionKind(k.GroupVersionKind)
	return o
}

// versions are what a manager of fields has to know of versions and defaults. There
// is one version of Kubernetes' own kinds; those of a custom resource differ in
// nothing but their apiVersion.
type versions struct{ kind *kind }

func (v versions) New(schema.GroupVersionKind) (runtime.Object, error) { return v.kind.empty(), nil }

func (v versions) Default(o runtime.Object) { v.kind.setDefaults(o.(object)) }

func (v versions) Convert(in, out, context any) error {
	return fmt.Errorf("conversion of a %T is not modelled", in)
}

func (v versions) ConvertToVersion(in runtime.Object, to runtime.GroupVersioner) (runtime.Object, error) {
	u, ok := in.(*unstructured.Unstructured)
	switch gv, exact := to.(schema.GroupVersion); {
	case ok && exact && !v.kind.typed:
		return inVersion(u, gv), nil
	case !ok:
		return in, nil
	}
	out := v.kind.empty()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out); err != nil {
		return nil, err
	}
	return out, nil
}

// inVersion is a custom resource in another version of its kind.
func inVersion(u *unstructured.Unstructured, gv schema.GroupVersion) *unstructured.Unstructured {
	if u.GetAPIVersion() == gv.String() {
		return u
	}
	root := maps.Clone(u.Object)
	root["apiVersion"] = gv.String()
	return &unstructured.Unstructured{Object: root}
}

func (v versions) ConvertFieldLabel(gvk schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}
