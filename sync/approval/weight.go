// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"strings"

	"github.com/swell-sh/swell/render/object"
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

// isAddress says whether others know an object by its name alone, so that one of another
// name does not replace it.
func isAddress(id object.ID) bool { return id.Group == "" && id.Kind == "Service" }

// WeightOf is the weight of an object, by its kind.
func WeightOf(id object.ID) Weight {
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
