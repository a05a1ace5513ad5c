// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package easy

import (
	"strings"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/schema"
)

// Claim is the names that the easy kind takes.
func (e *Schema) Claim() schema.Claim {
	return schema.Claim{Group: e.Group, Kind: e.Kind, Plural: e.Plural}
}

// Position is where the message of the kind is declared.
func (e *Schema) Position() document.Position { return document.DeclaredAt(e.message) }

// isReserved says whether a group belongs to Kubernetes or to swell.
func isReserved(group string) bool {
	for _, of := range []string{"k8s.io", "kubernetes.io", config.Group} {
		if group == of || strings.HasSuffix(group, "."+of) {
			return true
		}
	}
	return false
}
