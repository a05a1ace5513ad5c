// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"

	"github.com/swell-sh/swell/config/document"
)

// Embedded is the rule for an object inside a custom resource, where its definition says
// x-kubernetes-embedded-resource: what schemaobjectmeta.Validate of apiextensions-apiserver
// checks, less labels and annotations, which each metadata has rules for.
func Embedded(value any) (found Flaws) {
	m, _ := value.(map[string]any)
	if s, ok := m["apiVersion"].(string); ok && (s == "" || s == "/" || strings.Count(s, "/") > 1) {
		found = append(found, want("a version or a group and a version").at("apiVersion")...)
	}
	if s, ok := m["kind"].(string); ok && !document.IsDNS1035(strings.ToLower(s)) {
		found = append(found, want("at most 63 letters, digits and -, a letter first").at("kind")...)
	}
	metadata, _ := m["metadata"].(map[string]any)
	for field, rule := range map[string]Rule{"name": segment, "namespace": dnsLabel, "generateName": pathPrefix} {
		if s, ok := metadata[field].(string); ok && s != "" {
			found = append(found, rule(s).at(field).at("metadata")...)
		}
	}
	return found
}

// pathPrefix can be the beginning of a part of a URL's path.
var pathPrefix = texts(func(s string) string { return unless(!strings.ContainsAny(s, "/%"), "a prefix without / and %") })
