// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package object holds the values that the compiler makes and the daemon carries to
// clusters: hard objects, what identifies them, and the bundles of a unit for a target. It
// has values only: it renders, reads and asks nothing, and imports no compiler and no client.
package object

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"strings"
)

// ID is what makes a hard object the same object over time and over
// units: its identity in one cluster. The version is no part of it.
type ID struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"` // empty for a cluster-scoped object
	Name      string `json:"name"`
}

// String is for people and logs: "Deployment/shop-rz00a/cart", or
// "Certificate.cert-manager.io/shop/cart" outside the built-in groups.
func (id ID) String() string {
	kind := id.Kind
	if id.Group != "" && !builtinGroups[id.Group] {
		kind += "." + id.Group
	}
	if id.Namespace == "" {
		return kind + "/" + id.Name
	}
	return kind + "/" + id.Namespace + "/" + id.Name
}

// IsSecret says whether the object is a Secret: its values are shown to nobody,
// and never asked for.
func (id ID) IsSecret() bool { return id.Group == "" && id.Kind == "Secret" }

// IsNamespace says whether the object is a Namespace.
func (id ID) IsNamespace() bool { return id.Group == "" && id.Kind == "Namespace" }

// IsSystem says whether the object is a namespace that comes with Kubernetes.
// Those are never deleted, whatever anybody says.
func (id ID) IsSystem() bool {
	return id.IsNamespace() && (id.Name == "default" || strings.HasPrefix(id.Name, "kube-"))
}

// IsCustom says whether the object's kind is none of Kubernetes' own.
func (id ID) IsCustom() bool {
	return strings.Contains(id.Group, ".") && !builtinGroups[id.Group]
}

// IsDefinition says whether the object defines a kind.
func (id ID) IsDefinition() bool {
	return id.Group == "apiextensions.k8s.io" && id.Kind == "CustomResourceDefinition"
}

// IsContainer says whether other objects end with the
func (id ID) IsContainer() bool { return id.IsNamespace() || id.IsDefinition() }

// IsJob says whether the object is a Job, which ends, and may be a hook.
func (id ID) IsJob() bool { return id.Group == "batch" && id.Kind == "Job" }

// Compare orders by namespace, group, kind and name.
func (id ID) Compare(other ID) int {
	return cmp.Or(cmp.Compare(id.Namespace, other.Namespace), cmp.Compare(id.Group, other.Group),
		cmp.Compare(id.Kind, other.Kind), cmp.Compare(id.Name, other.Name))
}

var builtinGroups = map[string]bool{
	"apps": true, "batch": true, "autoscaling": true, "policy": true,
	"networking.k8s.io": true, "rbac.authorization.k8s.io": true, "storage.k8s.io": true,
	"apiextensions.k8s.io": true, "admissionregistration.k8s.io": true, "apiregistration.k8s.io": true,
	"coordination.k8s.io": true, "scheduling.k8s.io": true, "discovery.k8s.io": true,
	"certificates.k8s.io": true, "events.k8s.io": true, "node.k8s.io": true,
	"flowcontrol.apiserver.k8s.io": true, "authentication.k8s.io": true, "authorization.k8s.io": true,
}

// Hash is the same in every process. Nobody can choose a name that has the hash
// of another object.
func (id ID) Hash() uint64 {
	text := make([]byte, 0, 256)
	for _, part := range [...]string{id.Group, id.Kind, id.Namespace, id.Name} {
		text = append(append(text, part...), 0)
	}
	sum := sha256.Sum256(text)
	return binary.BigEndian.Uint64(sum[:])
}
