// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/swell-sh/swell/render/schema/defaults"
)

// setDefaults sets the defaults that an API server sets, and has the values of Secrets
// in one field.
func (k *kind) setDefaults(o object) {
	if k.custom != nil {
		k.custom.setDefaults(o)
		return
	}
	defaults.Set(o)
	if secret, ok := o.(*corev1.Secret); ok {
		for name, text := range secret.StringData {
			if secret.Data == nil {
				secret.Data = map[string][]byte{}
			}
			secret.Data[name] = []byte(text)
		}
		secret.StringData = nil
	}
	if u, ok := root(o); ok && k.GroupVersionKind == crdKind {
		defaultDefinition(u)
	}
}

// preset sets what is not set.
func preset[T comparable](field *T, value T) {
	if *field == *new(T) {
		*field = value
	}
}

// presetPointer does the same for an optional field.
func presetPointer[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}
