// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/swell-sh/swell/render/object"
)

// Others counts by kind the objects that go when a Namespace or a definition is deleted, and
// that no unit of this monorepo applied. unknown names the kinds that could not be listed. It
// counts no objects that belong to another one, and none that a cluster makes by itself in each
// Namespace: nothing is lost with them.
//
// A Namespace costs a discovery request for each group and version, and a metadata LIST of each
// kind in it; a definition a LIST of its objects.
func (c *Cluster) Others(ctx context.Context, id object.ID) (counts map[string]int, unknown []string, err error) {
	counts = map[string]int{}
	count := func(kind string, live *metav1.PartialObjectMetadata) {
		if metav1.GetControllerOf(live) == nil && !c.isApplied(live) && !isMadeByTheCluster(kind, live.Name) {
			counts[kind]++
		}
	}
	if id.IsDefinition() {
		return counts, nil, c.ofDefinition(ctx, id, count)
	}
	kinds, unknown, err := eachKind(ctx, c, func(s *surveying, gvk schema.GroupVersionKind) ([]listedIn, error) {
		return s.inNamespace(ctx, gvk, id.Name)
	}, listedIn.compare)
	for i := range kinds {
		count(kinds[i].kind, kinds[i].live)
	}
	return counts, unknown, err
}

// listedIn is an object of a Namespace.
type listedIn struct {
	kind string
	live *metav1.PartialObjectMetadata
}

func (l listedIn) compare(other listedIn) int {
	id := object.ID{Kind: l.kind, Namespace: l.live.Namespace, Name: l.live.Name}
	return id.Compare(object.ID{Kind: other.kind, Namespace: other.live.Namespace, Name: other.live.Name})
}

// inNamespace lists what a Namespace has of a kind; nothing of kinds that are in no Namespace.
func (s *surveying) inNamespace(ctx context.Context, gvk schema.GroupVersionKind, namespace string) (found []listedIn, err error) {
	err = s.each(ctx, gvk, namespace, "", func(live *metav1.PartialObjectMetadata) { found = append(found, listedIn{gvk.Kind, live}) })
	return found, err
}

// ofDefinition lists the objects of a definition.
func (c *Cluster) ofDefinition(ctx context.Context, id object.ID, see func(string, *metav1.PartialObjectMetadata)) error {
	call := c.begin()
	var found definition
	path := "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + id.Name
	if err := call.getJSON(ctx, "CustomResourceDefinition", &request{op: "get", object: id.String(), path: path}, &found); err != nil {
		return err
	}
	for _, v := range found.Spec.Versions {
		if !v.Served {
			continue
		}
		gvk := found.groupKind().WithVersion(v.Name)
		return call.addressed(ctx, call.resource, gvk, func(r resource) error {
			_, err := call.list(ctx, gvk.GroupKind(), r.collection(), "", func(live *metav1.PartialObjectMetadata) { see(gvk.Kind, live) })
			return err
		})
	}
	return nil
}

// isMadeByTheCluster says whether controllers make such an object in each Namespace, or for
// others.
func isMadeByTheCluster(kind, name string) bool {
	switch kind {
	case "Event", "Endpoints", "EndpointSlice", "ControllerRevision":
		return true
	case "ConfigMap":
		return name == "kube-root-ca.crt"
	case "ServiceAccount":
		return name == "default"
	}
	return false
}
