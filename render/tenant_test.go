// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
)

// Where the fleet has Tenants, a unit of none would be applied as swell itself.
func TestUnitWithoutATenant(t *testing.T) {
	files := exampleFiles(t, "swell.yaml", "fleet", "kinds/space")
	files["services/swell.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: a}\nspec: {placement: {topology: cluster, match: {labels: {region: sas}}}}\n")}
	files["services/a/x.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: a}\n")}
	var c Compiler
	if s := c.Snapshot("", config.Files(files)); len(s.Problems) > 0 {
		t.Fatalf("without any Tenant: %s", s.Problems)
	}
	files["fleet/tenants.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: swell.sh/v1\nkind: Tenant\nmetadata: {name: shop}\n---\napiVersion: swell.sh/v1\nkind: Tenant\nmetadata: {name: search}\n")}
	s := c.Snapshot("", config.Files(files))
	want := "services/a: no tenant: say in a swell.yaml here or further up which Tenant of the fleet the unit belongs to, want one of search, shop"
	if got := s.Problems.String(); !strings.Contains(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if s.Held || s.Units.Get("services/a").Placements[0].Digest != "" {
		t.Errorf("held %t: want the unit to be held, and no other", s.Held)
	}
	files["services/swell.yaml"].Data = fmt.Append(files["services/swell.yaml"].Data[:len(files["services/swell.yaml"].Data)-2], ", tenant: shop}\n")
	if s := c.Snapshot("", config.Files(files)); len(s.Problems) > 0 {
		t.Errorf("with a tenant: %s", s.Problems)
	}
}

// TestTenantThatAUnitLeaves: a unit took what another Tenant may have by naming that one. For the
// commit that moves it, both judge it; from the next one on the new one alone does.
func TestTenantThatAUnitLeaves(t *testing.T) {
	files := exampleFiles(t, "swell.yaml", "fleet", "kinds/space")
	write := func(name, text string) { files[name] = &fstest.MapFile{Data: []byte(text)} }
	defaults := func(tenant string) string {
		return "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: a}\nspec: {tenant: " + tenant +
			", placement: {topology: cluster}}\n"
	}
	object := func(namespace string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: " + namespace + "}\n"
	}
	write("fleet/tenants.yaml", "apiVersion: swell.sh/v1\nkind: Tenant\nmetadata: {name: yam}\nspec: {namespaces: [yam]}\n---\n"+
		"apiVersion: swell.sh/v1\nkind: Tenant\nmetadata: {name: zed}\nspec: {namespaces: [yam, kube-system]}\n")
	write("services/swell.yaml", defaults("yam"))
	write("services/a/x.yaml", object("yam"))
	trees := []config.Tree{config.Files(maps.Clone(files))}
	for _, namespace := range []string{"kube-system", "yam", "kube-system"} { // the tenant moves with the first one
		write("services/swell.yaml", defaults("zed"))
		write("services/a/x.yaml", object(namespace))
		trees = append(trees, config.Files(maps.Clone(files)))
	}
	const want = `services/a/x.yaml:3:21: metadata.namespace: "kube-system" is no namespace of tenant yam: ` +
		`want yam (fleet/tenants.yaml), by the tenant that the unit comes from, which counts until the next commit`
	var c Compiler
	for _, step := range []struct {
		name       string
		base, head int
		want       string
	}{{"the base", 0, 0, ""}, {"moves, and takes more", 0, 1, want}, {"moves alone", 0, 2, ""}, {"takes more after it moved", 2, 3, ""},
		{"the same once more", 0, 1, want}, {"judged by what it moved to", 1, 1, ""}} {
		c.Base = config.Load(trees[step.base], nil)
		if got := strings.TrimSpace(c.Snapshot("", trees[step.head]).Problems.String()); got != step.want {
			t.Errorf("%s: got %q, want %q", step.name, got, step.want)
		}
	}
}

// A change cannot allow itself anything: the Tenants that it goes to judge it too.
func TestTenantsOfTheBase(t *testing.T) {
	files := exampleFiles(t, "swell.yaml", "fleet", "kinds/space")
	write := func(name, text string) { files[name] = &fstest.MapFile{Data: []byte(text)} }
	write("services/swell.yaml", "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: a}\nspec: {tenant: shop, placement: {topology: cluster}}\n")
	write("services/a/x.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\n")
	const tenant = "apiVersion: swell.sh/v1\nkind: Tenant\nmetadata: {name: shop}\nspec: {namespaces: [shop], clusters: [sas-1, vla-1], folders: [services]}\n"
	write("fleet/tenants.yaml", tenant)
	base := config.Load(config.Files(maps.Clone(files)), nil)
	if len(base.Problems) > 0 {
		t.Fatal(base.Problems)
	}
	for name, c := range map[string]struct {
		change func()
		want   []string
	}{
		"nothing": {func() {}, nil},
		"a unit of its own": {func() {
			write("services/b/x.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, namespace: shop}\n")
		}, nil},
		"its own namespace": {func() {
			write("fleet/tenants.yaml", strings.Replace(tenant, "[shop]", "[shop, kube-system]", 1))
			write("services/a/x.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: kube-system}\n")
		}, []string{`metadata.namespace: "kube-system" is no namespace of tenant shop: want shop (fleet/tenants.yaml), by the rules that the change goes to, which count until the next commit`}},
		"a tenant of its own": {func() {
			write("fleet/tenants.yaml", strings.Replace(tenant, "services", "services/b", 1)+"---\napiVersion: swell.sh/v1\nkind: Tenant\nmetadata: {name: evil}\n")
			write("services/a/swell.yaml", "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: a}\nspec: {tenant: evil}\n")
		}, []string{`tenant "evil": there is no such Tenant yet: let it come first, and its units after it, by the rules that the change goes to, which count until the next commit`,
			`tenant "shop": is not placed on cluster myt-1 (fleet/tenants.yaml), ` +
				`by the tenant that the unit comes from, which counts until the next commit`}},
		"its own cluster": {func() {
			write("fleet/tenants.yaml", strings.Replace(tenant, ", vla-1", "", 1))
			smaller := config.Load(config.Files(maps.Clone(files)), nil)
			write("fleet/tenants.yaml", tenant)
			write("services/a/x.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop, labels: {b: c}}\n")
			base = smaller
		}, []string{`tenant "shop": is not placed on cluster vla-1, by the rules that the change goes to, which count until the next commit`}},
		"its own cluster, and nothing that goes there": {func() {
			write("fleet/tenants.yaml", strings.Replace(tenant, ", vla-1", "", 1))
			smaller := config.Load(config.Files(maps.Clone(files)), nil)
			write("fleet/tenants.yaml", tenant)
			base = smaller
		}, nil},
		"wrong by both": {func() {
			write("fleet/more.yaml", "apiVersion: swell.sh/v1\nkind: Tenant\nmetadata: {name: other}\n")
			write("services/a/x.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: pay}\n")
		}, []string{`metadata.namespace: "pay" is no namespace of tenant shop: want shop (fleet/tenants.yaml)`}},
	} {
		t.Run(name, func(t *testing.T) {
			kept, keptBase := maps.Clone(files), base
			defer func() { files, base = kept, keptBase }()
			c.change()
			head := config.Files(files)
			judged := Compiler{Base: base}
			var after Compiler // renders the base first, as a preview does
			after.Snapshot("", base.Tree)
			after.Base = base
			for _, compiler := range []*Compiler{&judged, &after} {
				var got []string
				for _, p := range compiler.Snapshot("", head).Problems {
					got = append(got, p.Message)
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("problems (-want +got):\n%s", diff)
				}
			}
		})
	}
}
