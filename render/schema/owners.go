// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/swell-sh/swell/config"
)

// Claim is the names that no two kinds of a server may share. Version does not
// matter.
type Claim struct{ Group, Kind, Plural string }

// Owners are who has the names of the kinds of a set: "Kubernetes itself", or
// what the definition is called. The keys are those of [Claim.Names].
func (s *Set) Owners() map[string]string {
	if s == nil {
		return nil
	}
	owners := make(map[string]string, 2*len(s.kinds))
	for name, k := range s.kinds {
		owner := k.crd
		if owner == "" {
			owner = "Kubernetes itself"
		} else {
			owners[k.definition] = owner
		}
		owners[groupKind(name)] = owner
	}
	return owners
}

// Names are the keys of what is claimed: the kind in its group, and the name of
// its definition.
func (c Claim) Names() []string { return []string{c.Group + " " + c.Kind, c.Plural + "." + c.Group} }

// Claim is the names that the easy kind takes.
func (e *Easy) Claim() Claim { return Claim{e.Group, e.Kind, e.Plural} }

// ClaimOf is the names that a CustomResourceDefinition takes.
func ClaimOf(object map[string]any) Claim {
	spec, _ := object["spec"].(map[string]any)
	names, _ := spec["names"].(map[string]any)
	var c Claim
	c.Group, _ = spec["group"].(string)
	c.Kind, _ = names["kind"].(string)
	c.Plural, _ = names["plural"].(string)
	return c
}

// Position is where the message of the kind is declared.
func (e *Easy) Position() config.Position { return positionOf(e.message) }

// positionOf is where d is declared.
func positionOf(d protoreflect.Descriptor) config.Position {
	at := d.ParentFile().SourceLocations().ByDescriptor(d)
	return config.Position{File: d.ParentFile().Path(), Line: at.StartLine + 1, Column: at.StartColumn + 1}
}

// isReserved says whether a group belongs to Kubernetes or to swell.
func isReserved(group string) bool {
	for _, of := range []string{"k8s.io", "kubernetes.io", config.Group} {
		if group == of || strings.HasSuffix(group, "."+of) {
			return true
		}
	}
	return false
}
