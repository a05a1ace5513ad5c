// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/swell-sh/swell/config"
)

// TestNamespaceOfDefaults: written objects that name no namespace get that of their
// Defaults, on each target its own; those that live in none do without, also when
// kustomize gave them one.
func TestNamespaceOfDefaults(t *testing.T) {
	var c Compiler
	const objects = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: own, namespace: own}\n---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: pv}\nspec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /x}}\n"
	for name, test := range map[string]struct {
		namespace, kustomization string
		want                     string // parts of the objects, or of the problem
	}{
		"plain":            {"web", "", "ConfigMap/own/own ConfigMap/web/c PersistentVolume/pv"},
		"by target":        {"${unit.tenant}-${target.cell}", "", "ConfigMap/own/own ConfigMap/shop-rz00a/c PersistentVolume/pv"},
		"kustomize":        {"web", "resources: [x.yaml]", "ConfigMap/own/own ConfigMap/web/c PersistentVolume/pv"},
		"kustomize's own":  {"", "namespace: web\nresources: [x.yaml, issuer.yaml]", "ConfigMap/web/c ConfigMap/web/own PersistentVolume/pv ClusterIssuer.cert-manager.io/ca"},
		"none":             {"", "", "metadata.namespace: missing, a ConfigMap lives in a namespace"},
		"no name":          {"Web", "", "spec.namespace: want a namespace, or a text with expressions"},
		"no name at last":  {"${target.cluster.upperAscii()}", "", `spec.namespace: want a namespace, got "SAS-1"`},
		"unknown":          {"${cell}", "", "spec.namespace: \"cell\": undeclared reference to 'cell'"},
		"what is not text": {"${target.labels}", "", "spec.namespace: "},
	} {
		t.Run(name, func(t *testing.T) {
			files := exampleFiles(t, ".")
			files["services/shop/notes/x.yaml"] = &fstest.MapFile{Data: []byte(objects)}
			files["schemas/issuer.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: clusterissuers.cert-manager.io}\nspec:\n  group: cert-manager.io\n  scope: Cluster\n  names: {kind: ClusterIssuer, plural: clusterissuers}\n  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]\n")}
			if test.kustomization != "" {
				files["services/shop/notes/issuer.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: cert-manager.io/v1\nkind: ClusterIssuer\nmetadata: {name: ca}\n")}
			}
			if test.kustomization != "" {
				files["services/shop/notes/kustomization.yaml"] = &fstest.MapFile{Data: []byte(test.kustomization)}
			}
			files["services/shop/notes/swell.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: notes}\nspec: {namespace: \"" + test.namespace + "\", placement: {topology: cell, match: {labels: {ring: canary, region: sas}}}}\n")}
			snapshot := c.Snapshot("", config.Files(files))
			unit := snapshot.Units.Get("services/shop/notes")
			if unit == nil {
				t.Fatal(snapshot.Problems)
			}
			var got []string
			for _, p := range unit.Problems {
				got = append(got, p.Message)
			}
			bundles, err := snapshot.Bundles(unit)
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range bundles {
				for _, o := range b.Objects {
					got = append(got, o.ID.String())
				}
			}
			if text := strings.Join(got, " "); !strings.Contains(text, test.want) {
				t.Errorf("got %s\nwant %s", text, test.want)
			}
		})
	}
}
