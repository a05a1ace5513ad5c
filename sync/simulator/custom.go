// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/version"
	openapierrors "k8s.io/kube-openapi/pkg/validation/errors"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// custom is what a version of a custom resource has of its definition.
type custom struct {
	listKind  string
	schema    map[string]any // as the definition has it
	validator *validate.SchemaValidator
}

// definition is a CustomResourceDefinition.
type definition struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Group string `json:"group"`
		Scope string `json:"scope"`
		Names struct {
			Plural     string   `json:"plural"`
			Singular   string   `json:"singular"`
			Kind       string   `json:"kind"`
			ListKind   string   `json:"listKind"`
			ShortNames []string `json:"shortNames"`
			Categories []string `json:"categories"`
		} `json:"names"`
		Conversion struct {
			Strategy string `json:"strategy"`
		} `json:"conversion"`
		Versions []definedVersion `json:"versions"`
	} `json:"spec"`
}

type definedVersion struct {
	Name         string `json:"name"`
	Served       bool   `json:"served"`
	Storage      bool   `json:"storage"`
	Subresources struct {
		Status *struct{} `json:"status"`
		Scale  *struct{} `json:"scale"`
	} `json:"subresources"`
	Schema struct {
		OpenAPI map[string]any `json:"openAPIV3Schema"`
	} `json:"schema"`
}

func defaultDefinition(u map[string]any) {
	names, _, _ := unstructured.NestedMap(u, "spec", "names")
	if kind, _ := names["kind"].(string); kind != "" {
		if names["singular"] == nil {
			_ = unstructured.SetNestedField(u, strings.ToLower(kind), "spec", "names", "singular")
		}
		if names["listKind"] == nil {
			_ = unstructured.SetNestedField(u, kind+"List", "spec", "names", "listKind")
		}
	}
	if _, found, _ := unstructured.NestedMap(u, "spec", "conversion"); !found {
		_ = unstructured.SetNestedField(u, "None", "spec", "conversion", "strategy")
	}
}

func newDefinition(_ *Cluster, o object) field.ErrorList {
	storedVersions(o, nil)
	return nil
}

// storedVersions notes the version that is stored.
func storedVersions(o, _ object) {
	u, _ := root(o)
	versions, _, _ := unstructured.NestedSlice(u, "spec", "versions")
	stored, _, _ := unstructured.NestedStringSlice(u, "status", "storedVersions")
	for _, v := range versions {
		one, _ := v.(map[string]any)
		if name, _ := one["name"].(string); one["storage"] == true && !slices.Contains(stored, name) {
			_ = unstructured.SetNestedStringSlice(u, append(stored, name), "status", "storedVersions")
		}
	}
}

// establish serves what a definition defines, and says so in its status.
func (c *Cluster) establish(name string) {
	k := c.kindOf(crdKind)
	o := c.find(k, key{name: name})
	if o == nil {
		return
	}
	u, _ := root(o)
	var d definition
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(u, &d)
	if err == nil {
		err = c.define(&d)
	}
	c.controllerUpdate(k, key{name: name}, "status", func(o object) {
		u, _ := root(o)
		names, _, _ := unstructured.NestedMap(u, "spec", "names")
		conditions := []any{condition("NamesAccepted", "True", "NoConflicts", "no conflicts found"), condition("Established", "True", "InitialNamesAccepted", "the initial names have been accepted")}
		if err != nil {
			conditions = []any{condition("NamesAccepted", "False", "NotModelled", err.Error()), condition("Established", "False", "NotAccepted", "not all names are accepted")}
			names = map[string]any{"plural": "", "kind": ""}
		}
		_ = unstructured.SetNestedField(u, names, "status", "acceptedNames")
		_ = unstructured.SetNestedField(u, conditions, "status", "conditions")
	})
}

func condition(kind, status, reason, message string) map[string]any {
	return map[string]any{"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": metav1.Now().UTC().Format("2006-01-02T15:04:05Z")}
}

// define makes the kinds of a definition, in place of those that it had before.
func (c *Cluster) define(d *definition) error {
	if d.Spec.Conversion.Strategy != "None" {
		return unmodelled("the conversion strategy %s", d.Spec.Conversion.Strategy)
	}
	if builtin().documents["/apis/"+d.Spec.Group] != nil {
		return unmodelled("definitions in the group %s", d.Spec.Group)
	}
	own, err := models()
	if err != nil {
		return err
	}
	models := maps.Clone(own)
	of := map[string]*custom{}
	for _, v := range d.Spec.Versions {
		if of[v.Name], err = d.model(v, models); err != nil {
			return err
		}
	}
	types, err := managedfields.NewTypeConverter(models, false)
	if err != nil {
		return err
	}
	served := map[schema.GroupVersionResource]*kind{}
	var stored *kind
	for _, v := range d.Spec.Versions {
		k := d.kind(v, of[v.Name])
		if err := k.manage(types, v.Subresources.Status != nil); err != nil {
			return err
		}
		if v.Served {
			served[k.GroupVersion().WithResource(d.Spec.Names.Plural)] = k
		}
		if v.Storage {
			stored = k
		}
	}
	c.kinds.withdraw(d.Spec.Group, d.Spec.Names.Plural)
	maps.Copy(c.kinds.served, served)
	for _, v := range d.Spec.Versions {
		if v.Served {
			c.kinds.list(d, v)
		}
	}
	if s := c.storeOf(stored); s.kind != stored { // what is stored stays as it was
		s.kind = stored
		for at, o := range s.objects {
			s.objects[at] = stored.as(o)
		}
	}
	return nil
}

func (d *definition) gvk(v definedVersion) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: d.Spec.Group, Version: v.Name, Kind: d.Spec.Names.Kind}
}

func (d *definition) kind(v definedVersion, of *custom) *kind {
	return &kind{
		GroupVersionKind: d.gvk(v), resource: resource{d.Spec.Group, d.Spec.Names.Plural}, namespaced: d.Spec.Scope == "Namespaced",
		verbs: verbs, custom: of,
		rules: &rules{status: v.Subresources.Status != nil, generation: true, versioned: true, check: of.check},
	}
}

// model reads the schema of a version, and adds it to the models.
func (d *definition) model(v definedVersion, models map[string]*spec.Schema) (*custom, error) {
	if word := findWord(v.Schema.OpenAPI, "x-kubernetes-validations", "x-kubernetes-embedded-resource"); word != "" {
		return nil, unmodelled("%s", word)
	}
	if v.Subresources.Scale != nil {
		return nil, unmodelled("the scale subresource of custom resources")
	}
	text, err := json.Marshal(v.Schema.OpenAPI)
	if err != nil {
		return nil, err
	}
	checks, whole := &spec.Schema{}, &spec.Schema{}
	if err := errors.Join(json.Unmarshal(text, checks), json.Unmarshal(text, whole)); err != nil {
		return nil, err
	}
	if whole.Properties == nil {
		whole.Properties = map[string]spec.Schema{}
	}
	whole.Properties["apiVersion"], whole.Properties["kind"] = *spec.StringProperty(), *spec.StringProperty()
	whole.Properties["metadata"] = *spec.RefSchema("#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
	named(whole, d.gvk(v))
	models[d.gvk(v).String()] = whole
	eitherOr(checks)
	return &custom{
		listKind: d.Spec.Names.ListKind, schema: v.Schema.OpenAPI,
		validator: validate.NewSchemaValidator(checks, nil, "", strfmt.Default),
	}, nil
}

// findWord finds the first of some words that a schema uses.
func findWord(schema any, words ...string) string {
	switch v := schema.(type) {
	case map[string]any:
		for _, word := range words {
			if _, ok := v[word]; ok {
				return word
			}
		}
		for _, below := range v {
			if word := findWord(below, words...); word != "" {
				return word
			}
		}
	case []any:
		for _, below := range v {
			if word := findWord(below, words...); word != "" {
				return word
			}
		}
	}
	return ""
}

// eitherOr has x-kubernetes-int-or-string checked.
func eitherOr(s *spec.Schema) {
	if s.Extensions["x-kubernetes-int-or-string"] == true && len(s.AnyOf) == 0 {
		s.AnyOf = []spec.Schema{{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"integer"}}}, {SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"string"}}}}
	}
	for name, below := range s.Properties {
		eitherOr(&below)
		s.Properties[name] = below
	}
	if s.Items != nil && s.Items.Schema != nil {
		eitherOr(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		eitherOr(s.AdditionalProperties.Schema)
	}
}

// parts are the schemas below one.
func parts(schema map[string]any) (properties, others, items map[string]any) {
	properties, _ = schema["properties"].(map[string]any)
	others, _ = schema["additionalProperties"].(map[string]any)
	items, _ = schema["items"].(map[string]any)
	return properties, others, items
}

// setDefaults sets the defaults of the schema.
func (c *custom) setDefaults(o object) {
	u, _ := root(o)
	coerceMetadata(u)
	properties, _, _ := parts(c.schema)
	for name, schema := range properties {
		if name != "apiVersion" && name != "kind" && name != "metadata" {
			defaultField(u, name, schema)
		}
	}
}

// coerceMetadata takes out of the metadata what its type does not have or leaves empty.
func coerceMetadata(u map[string]any) {
	metadata, _ := u["metadata"].(map[string]any)
	var m metav1.ObjectMeta
	if metadata == nil || runtime.DefaultUnstructuredConverter.FromUnstructured(metadata, &m) != nil {
		return
	}
	coerced, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&m)
	if err != nil {
		return
	}
	if m.CreationTimestamp.IsZero() {
		delete(coerced, "creationTimestamp")
	}
	u["metadata"] = coerced
}

func defaultField(in map[string]any, name string, schema any) {
	s, _ := schema.(map[string]any)
	value, there := in[name]
	if preset, ok := s["default"]; ok && (!there || value == nil && s["nullable"] != true) {
		in[name] = runtime.DeepCopyJSONValue(preset)
	}
	if value, there = in[name]; there {
		defaultBelow(value, s)
	}
}

func defaultBelow(value any, schema map[string]any) {
	properties, others, items := parts(schema)
	switch v := value.(type) {
	case map[string]any:
		for name, s := range properties {
			defaultField(v, name, s)
		}
		for name, below := range v {
			if _, known := properties[name]; !known && others != nil {
				defaultBelow(below, others)
			}
		}
	case []any:
		for _, below := range v {
			defaultBelow(below, items)
		}
	}
}

// prune takes out what the schema does not have, and says what that was.
func (c *custom) prune(u *unstructured.Unstructured) (unknown []error) {
	properties, _, _ := parts(c.schema)
	if c.schema["x-kubernetes-preserve-unknown-fields"] == true {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(u.Object)) {
		switch schema, known := properties[name].(map[string]any); {
		case name == "apiVersion" || name == "kind" || name == "metadata":
		case known:
			unknown = append(unknown, pruneBelow(u.Object[name], schema, name)...)
		default:
			delete(u.Object, name)
			unknown = append(unknown, fmt.Errorf("unknown field %q", name))
		}
	}
	return unknown
}

func pruneBelow(value any, schema map[string]any, path string) (unknown []error) {
	properties, others, items := parts(schema)
	switch v := value.(type) {
	case map[string]any:
		if schema["x-kubernetes-preserve-unknown-fields"] == true && properties == nil || schema["additionalProperties"] == true {
			return nil
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			s, known := properties[name].(map[string]any)
			if !known {
				s = others
			}
			switch {
			case s != nil:
				unknown = append(unknown, pruneBelow(v[name], s, path+"."+name)...)
			case schema["x-kubernetes-preserve-unknown-fields"] != true:
				delete(v, name)
				unknown = append(unknown, fmt.Errorf("unknown field %q", path+"."+name))
			}
		}
	case []any:
		for i, below := range v {
			unknown = append(unknown, pruneBelow(below, items, fmt.Sprintf("%s[%d]", path, i))...)
		}
	}
	return unknown
}

// check holds an object against the schema, as k8s.io/apiextensions-apiserver does.
func (c *custom) check(o, _ object) (errs field.ErrorList) {
	u, _ := root(o)
	for _, err := range c.validator.Validate(u).Errors {
		var invalid *openapierrors.Validation
		if !errors.As(err, &invalid) {
			errs = append(errs, field.Invalid(nil, "", err.Error()))
			continue
		}
		errs = append(errs, fieldError(invalid))
	}
	slices.SortFunc(errs, func(a, b *field.Error) int { return strings.Compare(a.Error(), b.Error()) }) // the library finds them in any order
	return errs
}

func fieldError(err *openapierrors.Validation) *field.Error {
	var path *field.Path
	if err.Name != "" && err.Name != "." {
		path = path.Child(strings.TrimPrefix(err.Name, "."))
	}
	value := err.Value
	if value == nil {
		value = ""
	}
	switch err.Code() {
	case openapierrors.RequiredFailCode:
		return field.Required(path, "")
	case openapierrors.EnumFailCode:
		var values []string
		for _, v := range err.Values {
			values = append(values, fmt.Sprint(v))
		}
		return field.NotSupported(path, err.Value, values)
	case openapierrors.InvalidTypeCode:
		return field.TypeInvalid(path, value, err.Error())
	case openapierrors.TooLongFailCode:
		most, _ := err.Valid.(int64)
		return field.TooLong(path, "", int(most))
	case openapierrors.MaxItemsFailCode, openapierrors.TooManyPropertiesCode:
		is, _ := err.Value.(int64)
		most, _ := err.Valid.(int64)
		return field.TooMany(path, int(is), int(most))
	}
	return field.Invalid(path, value, err.Error())
}

func onlyStatusOfCustom(o, old object) {
	u, _ := root(o)
	before, _ := root(old)
	status, there := u["status"]
	fields := o.GetManagedFields()
	maps.DeleteFunc(u, func(string, any) bool { return true })
	maps.Copy(u, runtime.DeepCopyJSON(before))
	if delete(u, "status"); there {
		u["status"] = status
	}
	o.SetManagedFields(fields)
}

// # Discovery

var (
	verbs       = []string{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"}
	statusVerbs = []string{"get", "patch", "update"}
)

// list adds a version of a definition to what discovery shows.
func (k *kinds) list(d *definition, v definedVersion) {
	gv := d.gvk(v).GroupVersion()
	one := metav1.APIResource{
		Name: d.Spec.Names.Plural, SingularName: d.Spec.Names.Singular, Kind: d.Spec.Names.Kind, Namespaced: d.Spec.Scope == "Namespaced",
		ShortNames: d.Spec.Names.ShortNames, Categories: d.Spec.Names.Categories, Verbs: verbs,
	}
	k.custom[gv] = append(k.custom[gv], one)
	if v.Subresources.Status != nil {
		k.custom[gv] = append(k.custom[gv], metav1.APIResource{Name: one.Name + "/status", Kind: one.Kind, Namespaced: one.Namespaced, Verbs: statusVerbs})
	}
}

// withdraw serves a custom resource no more.
func (k *kinds) withdraw(group, plural string) {
	maps.DeleteFunc(k.served, func(r schema.GroupVersionResource, _ *kind) bool { return r.Group == group && r.Resource == plural })
	for gv, resources := range k.custom {
		if gv.Group != group {
			continue
		}
		k.custom[gv] = slices.DeleteFunc(resources, func(r metav1.APIResource) bool { return r.Name == plural || r.Name == plural+"/status" })
		if len(k.custom[gv]) == 0 {
			delete(k.custom, gv)
		}
	}
}

// withdraw deletes the objects of a definition that is gone, and serves them no more.
func (c *Cluster) withdraw(crd object) {
	u, _ := root(crd)
	group, _, _ := unstructured.NestedString(u, "spec", "group")
	plural, _, _ := unstructured.NestedString(u, "spec", "names", "plural")
	at := resource{group, plural}
	if s := c.stores[at]; s != nil {
		for _, o := range s.sorted("") {
			c.erase(s.kind, o)
			uid := o.GetUID()
			c.later(0, func() { c.collect(uid) })
		}
		delete(c.stores, at)
	}
	c.kinds.withdraw(group, plural)
}

// customDocument is what discovery answers where custom resources are among it.
func (k *kinds) customDocument(path string) []byte {
	if path == "/apis" {
		var list metav1.APIGroupList
		_ = json.Unmarshal(k.documents[path], &list) // it is our own
		var names []string
		for gv := range k.custom {
			if !slices.Contains(names, gv.Group) {
				names = append(names, gv.Group)
			}
		}
		slices.Sort(names)
		for _, name := range names {
			list.Groups = append(list.Groups, k.group(name))
		}
		return document(list)
	}
	parts := strings.Split(strings.TrimPrefix(path, "/apis/"), "/")
	switch len(parts) {
	case 1:
		group := k.group(parts[0])
		if len(group.Versions) == 0 {
			return nil
		}
		group.Kind, group.APIVersion = "APIGroup", "v1"
		return document(group)
	case 2:
		gv := schema.GroupVersion{Group: parts[0], Version: parts[1]}
		if len(k.custom[gv]) == 0 {
			return nil
		}
		list := metav1.APIResourceList{GroupVersion: gv.String(), APIResources: k.custom[gv]}
		list.Kind, list.APIVersion = "APIResourceList", "v1"
		return document(list)
	}
	return nil
}

func (k *kinds) group(name string) metav1.APIGroup {
	group := metav1.APIGroup{Name: name}
	for gv := range k.custom {
		if gv.Group == name {
			group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version})
		}
	}
	slices.SortFunc(group.Versions, func(a, b metav1.GroupVersionForDiscovery) int {
		return version.CompareKubeAwareVersionStrings(b.Version, a.Version)
	})
	if len(group.Versions) > 0 {
		group.PreferredVersion = group.Versions[0]
	}
	return group
}

func document(v any) []byte {
	text, _ := json.Marshal(v) // plain structs
	return text
}
