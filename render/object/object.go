// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package object

import "github.com/swell-sh/swell/config/document"

// Object is one hard object, ready to be applied. It is never changed after
// it was made, and may be shared between bundles and goroutines.
type Object struct {
	ID      ID
	Version string // "v1"
	Phase   int    // see [config.AnnotationPhase]
	// JSON is the canonical form: sorted keys, no spaces, swell's labels and
	// annotations included. It is the body of the apply request as it stands.
	JSON   []byte
	Digest Digest // of JSON
	// Spec is where the document stands that the object was rendered from;
	// Template is where the object stands in the kind. Template is the zero
	// Position for plain Kubernetes YAML.
	Spec, Template document.Position
	// Secrets are texts in it that come from fields which a kind marks as
	// secret. What a Secret holds is not among them.
	Secrets []string
	// Sealed is the file that its encrypted values are from: they stand in JSON as
	// sops wrote them. Empty where there are none.
	Sealed string
}

// APIVersion is "apps/v1", or "v1" in the core group.
func (o *Object) APIVersion() string {
	if o.ID.Group == "" {
		return o.Version
	}
	return o.ID.Group + "/" + o.Version
}
