// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"maps"
	"strings"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	server "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"

	"github.com/swell-sh/swell/config/document"
)

// Object is a hard object as it is applied.
type Object struct {
	APIVersion, Kind string
	Resource         string // "deployments"
	Namespaced       bool
	Namespace, Name  string
	Content          map[string]any // is not changed
	// Convertible: the object is the same in all versions of its kind.
	Convertible bool
	// Secret keeps the object's values out of all messages.
	Secret bool
}

// Namespace is what is known of one.
type Namespace struct {
	Labels      map[string]string     `json:"labels"`
	Annotations map[string]string     `json:"annotations"`
	Limits      []core.LimitRangeItem `json:"-"`
	Quotas      []Quota               `json:"-"`
	// Known is false where neither Git nor facts of the cluster have the Namespace.
	Known bool `json:"-"`
}

// Quota is a ResourceQuota.
type Quota struct {
	Name string
	Spec core.ResourceQuotaSpec
}

// Surroundings are what a verdict depends on besides the object.
type Surroundings struct {
	// Kubernetes is the minor version of the cluster, like 1.36; "" is the newest.
	Kubernetes string
	// Namespace is one of the object's cluster, whether or not it is known there.
	Namespace func(name string) *Namespace
	// Scope says whether objects of a kind live in namespaces; known is false when
	// there is no such kind.
	Scope func(apiVersion, kind string) (namespaced, known bool)
	// Versions are the other apiVersions that the cluster serves a kind in.
	Versions func(apiVersion, kind string) []string
	// About is told of each bound ValidatingAdmissionPolicy whose rules for resources take the
	// object, by its name and where it stands. Nil: nobody asks.
	About func(name string, position document.Position)
}

// request is the creation of an object.
type request struct {
	object     *Object
	in         Surroundings
	labels     map[string]string
	attributes server.Attributes
	judged     *server.VersionedAttributes
	found      *Namespace
	decoded    runtime.Object
	isDecoded  bool
}

func newRequest(o *Object, in Surroundings) *request {
	r := &request{object: o, in: in, labels: labelsOf(o.Content)}
	gv, _ := schema.ParseGroupVersion(o.APIVersion) // its schema was found by it
	namespace := o.Namespace
	if r.isNamespace() {
		namespace = o.Name
		r.labels[core.LabelMetadataName] = o.Name
	}
	r.attributes = server.NewAttributesRecord(&unstructured.Unstructured{Object: o.Content}, nil, gv.WithKind(o.Kind), namespace, o.Name,
		gv.WithResource(o.Resource), "", server.Create, &metav1.CreateOptions{FieldManager: "swell"}, false, nil)
	return r
}

// as is the request as a policy for another version sees it. ok is false where the
// API server would convert the object and nobody here can.
func (r *request) as(version string) (as *request, ok bool) {
	if version == r.object.APIVersion {
		return r, true
	}
	if !r.object.Convertible {
		return nil, false
	}
	o := *r.object
	o.APIVersion, o.Content = version, maps.Clone(o.Content)
	o.Content["apiVersion"] = version
	return newRequest(&o, r.in), true
}

// exempt says whether no policy judges the object: an API server lets policies be
// mended that would refuse everything.
func (r *request) exempt() bool { return rules.IsExemptAdmissionConfigurationResource(r.attributes) }

func (r *request) isNamespace() bool {
	return r.object.Kind == "Namespace" && r.object.APIVersion == "v1"
}

func (r *request) namespaceName() string {
	if r.isNamespace() {
		return r.object.Name
	}
	return r.object.Namespace
}

// namespace is the one that the object lives in.
func (r *request) namespace() *Namespace {
	if r.found == nil {
		r.found = r.in.Namespace(r.object.Namespace)
	}
	return r.found
}

// unsure ends a message that depends on the object's namespace, where no more than its
// name is known.
func (r *request) unsure() string {
	if !r.object.Namespaced || r.namespace().Known {
		return ""
	}
	return fmt.Sprintf(" (of namespace %s only the name is known: it is neither in Git nor in facts of the cluster)", r.object.Namespace)
}

// namespaceObject is what expressions see of it; nil for what lives in none.
func (r *request) namespaceObject() *core.Namespace {
	if !r.object.Namespaced {
		return nil
	}
	n := r.namespace()
	return &core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.object.Namespace, Labels: n.Labels, Annotations: n.Annotations},
		Status: core.NamespaceStatus{Phase: core.NamespaceActive}}
}

// versioned is the object as expressions see it.
func (r *request) versioned() *server.VersionedAttributes {
	if r.judged == nil {
		r.judged = &server.VersionedAttributes{Attributes: r.attributes, VersionedKind: r.attributes.GetKind()}
		r.judged.VersionedObject.Set(r.attributes.GetObject())
		if o := r.typed(); o != nil {
			r.judged.VersionedObject.Set(o)
		}
	}
	return r.judged
}

// typed is the object as an API server decodes it; nil where its type is not known.
func (r *request) typed() runtime.Object {
	if !r.isDecoded {
		r.decoded, r.isDecoded = typed(r.attributes.GetKind(), r.object.Content), true
	}
	return r.decoded
}

// labelsOf are the labels of an object.
func labelsOf(object map[string]any) labels.Set {
	metadata, _ := object["metadata"].(map[string]any)
	values, _ := metadata["labels"].(map[string]any)
	set := make(labels.Set, len(values))
	for key, value := range values {
		set[key], _ = value.(string)
	}
	return set
}

// GroupOf is that of an apiVersion.
func GroupOf(apiVersion string) string {
	group, _, grouped := strings.Cut(apiVersion, "/")
	if !grouped {
		return ""
	}
	return group
}
