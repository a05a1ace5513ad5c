// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
)

// TestHostNamesOfOtherTenants: where two tenants have a host name, the base says who had it, and the
// other one is stopped. Where it does not, both are. In a state, shop/web=a,b is a unit with these
// hosts, shop/web= is none, shop/web>zed is another tenant's, and shop!a,b are the hosts of a Tenant.
func TestHostNamesOfOtherTenants(t *testing.T) {
	for name, c := range map[string]struct {
		before, change string
		want           string // units with problems
	}{
		"nobody had it":         {"", "shop/web=a.example zed/web=a.example", "shop/web zed/web"},
		"one had it":            {"shop/web=a.example", "zed/web=b.example,a.example", "zed/web"},
		"one had a wildcard":    {"shop/web=*.a.example", "zed/web=x.a.example", "zed/web"},
		"a wildcard comes":      {"shop/web=x.a.example", "zed/web=*.a.example", "zed/web"},
		"both had it":           {"shop/web=a.example zed/web=a.example", "zed/more=c.example", "shop/web zed/web"},
		"another had a problem": {"shop/web=a.example zed/web=a.example,a.example/", "zed/web=a.example", "zed/web"},
		"it is given away":      {"shop/web=a.example", "shop/web= zed/web=a.example", ""},
		"one more of a tenant":  {"zed/web=a.example", "zed/more=a.example shop/web=a.example", "shop/web"},
		"its tenant changed":    {"zed/web=a.example", "zed/web>shop zed/more=a.example", "zed/more zed/web"},
		"listed at once":        {"shop/web=a.example", "zed/web=a.example zed!a.example,zed.example", "zed/web"},
		"listed before":         {"shop/web=a.example zed!a.example,zed.example", "zed/web=a.example", "shop/web"},
		"listed by both":        {"shop/web=a.example zed!*.example shop!*.example", "zed/web=a.example", ""},
	} {
		t.Run(name, func(t *testing.T) {
			base := config.Load(config.Files(hostFiles(c.before)), nil)
			var kept Compiler
			kept.Snapshot("", base.Tree)
			kept.Base = base
			for _, compiler := range []*Compiler{{Base: base}, &kept} {
				s := compiler.Snapshot("", config.Files(hostFiles(c.before, c.change)))
				var units []string
				for _, p := range s.Problems {
					units = append(units, strings.TrimPrefix(p.Unit, "services/"))
				}
				slices.Sort(units)
				if diff := cmp.Diff(c.want, strings.Join(slices.Compact(units), " ")); diff != "" {
					t.Errorf("units with problems (-want +got):\n%s%s", diff, s.Problems)
				}
			}
		})
	}
}

// hostFiles is a repository after some edits, with two tenants that have a unit each.
func hostFiles(edits ...string) fstest.MapFS {
	files, hosts := fstest.MapFS{}, map[string]string{}
	write := func(name, text string, args ...any) {
		files[name] = &fstest.MapFile{Data: fmt.Appendf(nil, text, args...)}
	}
	write("swell.yaml", "apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: hosts}\n")
	write("fleet/fleet.yaml", "apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: sas-1}\n---\n"+
		"apiVersion: swell.sh/v1\nkind: Rollout\nmetadata: {name: default}\nspec: {waves: [{name: all}]}\n")
	const defaults = "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: all}\nspec: {tenant: %s, placement: {topology: cluster}}\n"
	const ingress = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: %s, namespace: %s}\nspec: {rules: [%s]}\n"
	for _, edit := range strings.Fields("shop/other=shop.example zed/other=zed.example " + strings.Join(edits, " ")) {
		if unit, tenant, moves := strings.Cut(edit, ">"); moves {
			write("services/"+unit+"/swell.yaml", defaults, tenant)
			continue
		}
		unit, names, isUnit := strings.Cut(edit, "=")
		if !isUnit {
			tenant, names, _ := strings.Cut(edit, "!")
			hosts[tenant] = `"` + strings.ReplaceAll(names, ",", `", "`) + `"`
			continue
		}
		tenant, name, _ := strings.Cut(unit, "/")
		rules := `{host: "` + strings.ReplaceAll(names, ",", `"}, {host: "`) + `"}`
		write("services/"+unit+"/x.yaml", ingress, name, tenant, rules)
		if names == "" {
			delete(files, "services/"+unit+"/x.yaml")
		}
	}
	for _, tenant := range []string{"shop", "zed"} {
		const doc = "apiVersion: swell.sh/v1\nkind: Tenant\nmetadata: {name: %s}\nspec: {hosts: [%s]}\n"
		write("fleet/"+tenant+".yaml", doc, tenant, hosts[tenant])
		write("services/"+tenant+"/swell.yaml", defaults, tenant)
	}
	return files
}
