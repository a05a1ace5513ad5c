// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"pgregory.net/rapid"

	"github.com/swell-sh/swell/config/rapidtest"
)

const someObject = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"

// defaultsOf is a swell.yaml of a folder.
func defaultsOf(spec string) string {
	return "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: x}\nspec: {" + spec + "}\n"
}

// TestBasesOfLayouts: in the layouts of others, what is deployed is a unit, and bases and
// components are none, wherever they stand.
func TestBasesOfLayouts(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"flux": {map[string]string{
			"apps/base/podinfo/kustomization.yaml":           "resources: [release.yaml]",
			"apps/base/podinfo/release.yaml":                 someObject,
			"apps/production/kustomization.yaml":             "resources: [../base/podinfo]\npatches: [{path: values.yaml, target: {kind: ConfigMap}}]",
			"apps/production/values.yaml":                    someObject,
			"apps/staging/kustomization.yaml":                "resources: [../base/podinfo]",
			"infrastructure/configs/kustomization.yaml":      "resources: [issuers.yaml]",
			"infrastructure/configs/issuers.yaml":            someObject,
			"infrastructure/controllers/kustomization.yaml":  "resources: [ingress.yaml]",
			"infrastructure/controllers/ingress.yaml":        someObject,
			"clusters/production/apps.yaml":                  someObject,
			"clusters/production/flux-system/components.yml": someObject,
		}, "apps/production \napps/staging \nclusters/production \nclusters/production/flux-system \ninfrastructure/configs \ninfrastructure/controllers \n"},
		"kustomize": {map[string]string{
			"wordpress/kustomization.yaml":           "resources: [app, db]",
			"wordpress/app/kustomization.yaml":       "resources: [x.yaml]",
			"wordpress/app/x.yaml":                   someObject,
			"wordpress/db/kustomization.yaml":        "resources: [x.yaml]",
			"wordpress/db/x.yaml":                    someObject,
			"ldap/base/kustomization.yaml":           "resources: [x.yaml]",
			"ldap/base/x.yaml":                       someObject,
			"ldap/components/log/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n",
			"ldap/overlays/test/kustomization.yaml":  "resources: [../../base]\ncomponents: [../../components/log]",
			"ldap/overlays/prod/kustomization.yaml":  "resources: [../../base]",
		}, "ldap/overlays/prod \nldap/overlays/test \nwordpress \n"},
		"asked for": {map[string]string{
			"base/kustomization.yaml":   "namePrefix: x",
			"base/swell.yaml":           defaultsOf("unit: true"),
			"other/kustomization.yaml":  "resources: [../base]",
			"shared/swell.yaml":         defaultsOf("unit: false"),
			"shared/kustomization.yaml": "namePrefix: x",
			"shared/below/x.yaml":       someObject,
			"shared/below/deep/x.yaml":  someObject,
		}, "base \nother \nshared/below services/shared/below/x.yaml: stands below services/shared/kustomization.yaml, which does not name it: " +
			"a folder below a kustomization is no unit of its own; name it there or move it out\n" +
			"shared/below/deep services/shared/below/deep/x.yaml: stands below services/shared/kustomization.yaml, which does not name it: " +
			"a folder below a kustomization is no unit of its own; name it there or move it out\n"},
		"off, without any kustomization": {map[string]string{
			"apps/plain/x.yaml":        someObject,
			"apps/off/swell.yaml":      defaultsOf("unit: false"),
			"apps/off/x.yaml":          someObject,
			"apps/off/below/deep.yaml": someObject,
		}, "apps/off/below \napps/plain \n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := units(Load(Files(repositoryOf(test.files)), nil)); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// TestBaseOfAnotherTenant: a tenant cannot take another one's unit out of the fleet by
// naming it.
func TestBaseOfAnotherTenant(t *testing.T) {
	files := repositoryOf(map[string]string{
		"pay/swell.yaml":              defaultsOf("tenant: pay"),
		"pay/x/kustomization.yaml":    "resources: [../../shop/cart, ../base]",
		"pay/base/kustomization.yaml": "namePrefix: x",
		"shop/swell.yaml":             defaultsOf("tenant: shop"),
		"shop/cart/x.yaml":            someObject,
		"shop/cart/Kustomization":     "resources: [x.yaml]",
	})
	files["fleet/tenants.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: swell.sh/v1\nkind: Tenant\nmetadata: {name: pay}\n---\napiVersion: swell.sh/v1\nkind: Tenant\nmetadata: {name: shop}\n")}
	if got, want := units(Load(Files(files), nil)), "pay/x \nshop/cart \n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestTenantsChangeBases: the first Tenant of a fleet, in a commit that changes no unit,
// makes another tenant's base a unit again.
func TestTenantsChangeBases(t *testing.T) {
	files := repositoryOf(map[string]string{
		"pay/swell.yaml":           defaultsOf("tenant: pay"),
		"pay/x/kustomization.yaml": "resources: [../../shop/cart]",
		"shop/swell.yaml":          defaultsOf("tenant: shop"),
		"shop/cart/Kustomization":  "namePrefix: x",
	})
	first := Load(Files(files), nil)
	if got, want := units(first), "pay/x \n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	files["fleet/tenants.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: swell.sh/v1\nkind: Tenant\nmetadata: {name: pay}\n---\napiVersion: swell.sh/v1\nkind: Tenant\nmetadata: {name: shop}\n")}
	if got, want := units(Load(Files(files), first)), "pay/x \nshop/cart \n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestPropertyBasesOfNextCommit: from one commit to the next the units are those of the
// second one read by itself, and Changes has each that came or went.
func TestPropertyBasesOfNextCommit(t *testing.T) {
	rapidtest.Check(t, 100, 200*time.Millisecond, func(t *rapid.T) {
		files := map[string]string{}
		var previous *Repository
		for range 4 {
			files = maps.Clone(files)
			folder := rapid.SampledFrom(someFolders).Draw(t, "folder")
			if rapid.Bool().Draw(t, "empty") {
				for name := range files {
					if strings.HasPrefix(name, folder+"/") {
						delete(files, name)
					}
				}
			}
			name, content := randomFile(t, folder)
			files[folder+"/"+name] = content
			if rapid.IntRange(0, 4).Draw(t, "declare") == 0 {
				files[folder+"/swell.yaml"] = defaultsOf(fmt.Sprintf("unit: %t", rapid.Bool().Draw(t, "unit")))
			}
			tree := Files(repositoryOf(files))
			fresh, next := Load(tree, nil), Load(tree, previous)
			if units(fresh) != units(next) {
				t.Fatalf("after the commit before:\n%s\nby itself:\n%s", units(next), units(fresh))
			}
			was, is := pathsOf(previous), pathsOf(next)
			changed, gone := next.Changes(previous)
			for _, u := range changed {
				was[u.Path] = true
			}
			for _, path := range gone {
				delete(was, path)
			}
			if !maps.Equal(was, is) {
				t.Fatalf("Changes lead to %v, want %v", was, is)
			}
			previous = next
		}
	})
}

func pathsOf(r *Repository) map[UnitPath]bool {
	paths := map[UnitPath]bool{}
	if r == nil {
		return paths
	}
	for u := range r.Units() {
		paths[u.Path] = true
	}
	return paths
}
