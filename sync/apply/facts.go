// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/policy"
)

// Facts asks the cluster for what checks need of it, less what they do not need. It
// reads no Secrets, and needs the right to list definitions, policies, namespaces,
// LimitRanges, ResourceQuotas and the parameters of policies. Pulled is left to the
// caller.
func (c *Cluster) Facts(ctx context.Context) (*config.Facts, error) {
	p := pulling{call: c.begin(), facts: &config.Facts{}}
	version, err := p.version(ctx)
	if err != nil {
		return nil, err
	}
	p.facts.Kubernetes = version.Kubernetes
	for _, pull := range []func(context.Context) error{p.definitions, p.policies, p.params, p.namespaces} {
		if err := pull(ctx); err != nil {
			return nil, err
		}
	}
	return p.facts, nil
}

// Version is what an API server says of itself.
type Version struct {
	Kubernetes string // as "v1.36.3"
	// Clock is the server's when it got the request, or up to a second earlier, in whole
	// seconds; zero when it did not say.
	Clock time.Time
}

// Version asks for the server's version. Every user may.
func (c *Cluster) Version(ctx context.Context) (Version, error) { return c.begin().version(ctx) }

func (c *call) version(ctx context.Context) (Version, error) {
	req := &request{op: "get", object: "version", method: http.MethodGet, path: "/version", accept: jsonType}
	answer, err := c.do(ctx, req)
	if err != nil {
		return Version{}, err
	}
	var content struct{ GitVersion string }
	if err := answer.decode("", &content); err != nil {
		return Version{}, undecodable(req, answer, err)
	}
	return Version{content.GitVersion, answer.asked}, nil
}

// pulling is one call of Facts under way.
type pulling struct {
	*call
	facts *config.Facts
}

// objects lists the objects of a kind, sorted; none where the cluster has no such kind.
func (p *pulling) objects(ctx context.Context, gvk schema.GroupVersionKind, query url.Values) (list []*unstructured.Unstructured, err error) {
	r, err := p.anyResource(ctx, gvk)
	if errors.Is(err, ErrNoKind) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	req := &request{op: "list", object: gvk.GroupKind().String(), path: r.collection(), accept: jsonType}
	err = p.pages(ctx, req, query, func(answer *response) (next string, err error) {
		var page struct {
			Metadata struct{ Continue string }
			Items    []json.RawMessage
		}
		if err := answer.decode(gvk.Kind+"List", &page); err != nil {
			return "", undecodable(req, answer, err)
		}
		for _, item := range page.Items {
			object := map[string]any{}
			if err := json.Unmarshal(item, &object); err != nil {
				return "", err
			}
			object["apiVersion"], object["kind"] = r.GroupVersion.String(), gvk.Kind
			list = append(list, &unstructured.Unstructured{Object: object})
		}
		return page.Metadata.Continue, nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return list, nil
}

func (p *pulling) definitions(ctx context.Context) error {
	list, err := p.objects(ctx, schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, nil)
	for _, crd := range list {
		p.facts.Definitions = append(p.facts.Definitions, reducedDefinition(crd))
	}
	return err
}

// reducedDefinition is a definition without texts, columns and status, but for the
// versions that are stored.
func reducedDefinition(crd *unstructured.Unstructured) map[string]any {
	spec, _ := crd.Object["spec"].(map[string]any)
	reduced := map[string]any{}
	for _, field := range []string{"group", "names", "scope", "preserveUnknownFields"} {
		if spec[field] != nil {
			reduced[field] = spec[field]
		}
	}
	if conversion, ok := spec["conversion"].(map[string]any); ok {
		reduced["conversion"] = map[string]any{"strategy": conversion["strategy"]}
	}
	versions, _ := spec["versions"].([]any)
	for _, item := range versions {
		version, _ := item.(map[string]any)
		delete(version, "additionalPrinterColumns")
		if of, ok := version["schema"].(map[string]any); ok {
			withoutTexts(of["openAPIV3Schema"])
		}
	}
	reduced["versions"] = versions
	object := map[string]any{"apiVersion": crd.GetAPIVersion(), "kind": crd.GetKind(), "metadata": map[string]any{"name": crd.GetName()}, "spec": reduced}
	if stored, ok, _ := unstructured.NestedSlice(crd.Object, "status", "storedVersions"); ok {
		object["status"] = map[string]any{"storedVersions": stored}
	}
	return object
}

// withoutTexts removes from a schema what is for people only.
func withoutTexts(of any) {
	s, _ := of.(map[string]any)
	for _, text := range []string{"description", "title", "example", "externalDocs"} {
		delete(s, text)
	}
	for key, below := range s {
		switch key {
		case "properties", "patternProperties", "definitions":
			fields, _ := below.(map[string]any)
			for _, field := range fields {
				withoutTexts(field)
			}
		case "items", "additionalProperties", "not":
			withoutTexts(below)
		case "allOf", "anyOf", "oneOf":
			list, _ := below.([]any)
			for _, one := range list {
				withoutTexts(one)
			}
		}
	}
}

func (p *pulling) policies(ctx context.Context) error {
	for _, kind := range []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"} {
		list, err := p.objects(ctx, schema.GroupVersionKind{Group: policy.Group, Version: "v1", Kind: kind}, nil)
		if err != nil {
			return err
		}
		for _, object := range list {
			p.facts.Policies = append(p.facts.Policies, map[string]any{"apiVersion": object.GetAPIVersion(), "kind": kind,
				"metadata": map[string]any{"name": object.GetName()}, "spec": object.Object["spec"]})
		}
	}
	return nil
}

// params pulls the parameters that bindings refer to. Secrets are none that anybody may
// see.
func (p *pulling) params(ctx context.Context) error {
	kinds := map[string]schema.GroupVersionKind{} // by the kind and name of the policy
	for _, object := range p.facts.Policies {
		u := &unstructured.Unstructured{Object: object}
		apiVersion, _, _ := unstructured.NestedString(object, "spec", "paramKind", "apiVersion")
		kind, _, _ := unstructured.NestedString(object, "spec", "paramKind", "kind")
		if gvk := schema.FromAPIVersionAndKind(apiVersion, kind); kind != "" && !(gvk.Group == "" && kind == "Secret") {
			kinds[u.GetKind()+" "+u.GetName()] = gvk
		}
	}
	seen := map[string]bool{}
	for _, object := range p.facts.Policies {
		u := &unstructured.Unstructured{Object: object}
		name, _, _ := unstructured.NestedString(object, "spec", "policyName")
		gvk, takes := kinds[strings.TrimSuffix(u.GetKind(), "Binding")+" "+name]
		ref, refers, _ := unstructured.NestedMap(object, "spec", "paramRef")
		if !takes || !refers {
			continue
		}
		list, err := p.paramsOf(ctx, gvk, ref)
		if err != nil {
			return err
		}
		for _, param := range list {
			if key := gvk.String() + " " + param.GetNamespace() + "/" + param.GetName(); !seen[key] {
				seen[key] = true
				p.facts.Params = append(p.facts.Params, reducedParam(param))
			}
		}
	}
	return nil
}

func (p *pulling) paramsOf(ctx context.Context, gvk schema.GroupVersionKind, ref map[string]any) ([]*unstructured.Unstructured, error) {
	query := url.Values{}
	var fields []string
	for _, field := range []string{"name", "namespace"} {
		if value, _ := ref[field].(string); value != "" {
			fields = append(fields, "metadata."+field+"="+value)
		}
	}
	if len(fields) > 0 {
		query.Set("fieldSelector", strings.Join(fields, ","))
	}
	if written, ok := ref["selector"].(map[string]any); ok {
		selector, err := selectorOf(written)
		if err != nil {
			return nil, err
		}
		query.Set("labelSelector", selector.String())
	}
	return p.objects(ctx, gvk, query)
}

func selectorOf(written map[string]any) (labels.Selector, error) {
	text, err := json.Marshal(written)
	if err != nil {
		return nil, err
	}
	var selector metav1.LabelSelector
	if err := json.Unmarshal(text, &selector); err != nil {
		return nil, err
	}
	return metav1.LabelSelectorAsSelector(&selector)
}

func reducedParam(param *unstructured.Unstructured) map[string]any {
	object := param.Object
	metadata := map[string]any{"name": param.GetName()}
	if namespace := param.GetNamespace(); namespace != "" {
		metadata["namespace"] = namespace
	}
	if labels := param.GetLabels(); len(labels) > 0 {
		metadata["labels"] = labels
	}
	object["metadata"] = metadata
	delete(object, "status")
	return object
}

func (p *pulling) namespaces(ctx context.Context) error {
	list, err := p.objects(ctx, schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, nil)
	if err != nil {
		return err
	}
	at := map[string]int{}
	for i, n := range list {
		p.facts.Namespaces = append(p.facts.Namespaces, config.NamespaceFacts{Name: n.GetName(), Labels: n.GetLabels()})
		at[n.GetName()] = i
	}
	for _, kind := range []string{"LimitRange", "ResourceQuota"} {
		list, err := p.objects(ctx, schema.GroupVersionKind{Version: "v1", Kind: kind}, nil)
		if err != nil {
			return err
		}
		for _, object := range list {
			i, known := at[object.GetNamespace()]
			if !known { // made meanwhile
				continue
			}
			spec, _ := object.Object["spec"].(map[string]any)
			into := &p.facts.Namespaces[i].LimitRanges
			if kind == "ResourceQuota" {
				into = &p.facts.Namespaces[i].Quotas
			}
			*into = append(*into, config.SpecFacts{Name: object.GetName(), Spec: spec})
		}
	}
	return nil
}
