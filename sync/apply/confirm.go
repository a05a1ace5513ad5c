// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swell-sh/swell/render"
)

// Weight is how much depends on an object that is to be deleted.
type Weight int

const (
	// Light objects may be deleted without asking, in small numbers.
	Light Weight = iota
	// Heavy ones take other people's objects or data along: a person has to
	// approve it, however few they are.
	Heavy
	// Anchor is heavy, and at work as long as it is there: what its unit has
	// beside it must not go first. A webhook configuration without its
	// webhook refuses everything, an APIService without its server breaks
	// discovery, a StatefulSet without its Secret cannot restart.
	Anchor
)

// WeightOf is the weight of an object, by its kind.
func WeightOf(id render.ObjectID) Weight {
	switch id.Group + "/" + id.Kind {
	case "/Namespace", "/PersistentVolume", "/PersistentVolumeClaim", "apiextensions.k8s.io/CustomResourceDefinition":
		return Heavy
	case "apps/StatefulSet", "apiregistration.k8s.io/APIService":
		return Anchor
	}
	switch {
	case id.Group == "admissionregistration.k8s.io": // webhooks, policies and their bindings
		return Anchor
	case strings.HasSuffix(id.Kind, "Class"): // of storage, ingress, priority, gateways, snapshots, ...
		return Heavy
	}
	return Light
}

// IsSystem says whether an object is a namespace that comes with Kubernetes.
// Those are never deleted, whatever anybody says.
func IsSystem(id render.ObjectID) bool {
	return id.IsNamespace() && (id.Name == "default" || strings.HasPrefix(id.Name, "kube-"))
}

// keeps says whether an object, as rendered, is marked to be kept when nobody
// wants it any more.
func keeps(o *render.Object) bool {
	if !bytes.Contains(o.JSON, []byte(render.AnnotationPrune)) {
		return false
	}
	var object metav1.PartialObjectMetadata
	return json.Unmarshal(o.JSON, &object) == nil && isKept(object.Annotations)
}

// Definition is the name that the definition of an object's kind has if it is a
// custom one: "widgets.example.com".
func (c *Cluster) Definition(ctx context.Context, id render.ObjectID, version string) (string, error) {
	found, err := c.begin().anyResource(ctx, kindOf(id, version))
	return found.plural + "." + found.Group, err
}
