// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"fmt"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/openapi"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// Schemas gives what kustomize is to know of an easy kind: its OpenAPI v2
// document, as `openapi: {path: ...}` of a kustomization takes it. It is nil for
// a kind that is not easy.
type Schemas func(apiVersion, kind string) []byte

// installed are the easy kinds that kustomize's schema has, which is global to
// the process, and their documents. It is guarded by building.
var installed = map[string]string{}

// install makes kustomize know the easy kinds among the documents of a build,
// and no others of that name: what one build leaves behind is put right by the
// next one that has documents of the kind.
func install(wanted map[string][]byte) error {
	for name, schema := range wanted {
		apiVersion, kind, _ := strings.Cut(name, " ")
		is, there := installed[name]
		if there && (is != string(schema) || openapi.SchemaForResourceType(yaml.TypeMeta{APIVersion: apiVersion, Kind: kind}) == nil) {
			openapi.ResetOpenAPI() // nothing can be taken out of it, but for all by somebody else
			clear(installed)
			break
		}
	}
	for name, schema := range wanted {
		if _, there := installed[name]; there || schema == nil {
			continue
		}
		openapi.SchemaForResourceType(yaml.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}) // it reads its own schema first
		if err := openapi.AddSchema(schema); err != nil {
			return fmt.Errorf("schema of %s: %w", name, err)
		}
		installed[name] = string(schema)
	}
	return nil
}

// easyKinds are the kinds of the documents that the build begins with, and the
// schemas of those that are easy.
func (c *closure) easyKinds(schemas Schemas) map[string][]byte {
	kinds := map[string][]byte{}
	for _, doc := range c.origins {
		name := doc.APIVersion + " " + doc.Kind
		if _, known := kinds[name]; known {
			continue
		}
		kinds[name] = nil
		if schemas != nil {
			kinds[name] = schemas(doc.APIVersion, doc.Kind)
		}
	}
	return kinds
}
