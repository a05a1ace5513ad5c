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
	"github.com/swell-sh/swell/render/helm"
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

// lateChart renders an Ingress with a host name, but for values that are late.
type lateChart struct{ late string }

func (c *lateChart) Render(r helm.Request) helm.Answer {
	if c.late != "" && strings.Contains(string(r.Values), c.late) {
		return helm.Answer{Problems: []helm.Finding{{Text: "takes longer", Retry: true}}}
	}
	const text = `{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":{"name":"web","namespace":"shop"},` +
		`"spec":{"rules":[{"host":"a.example"}]}}`
	return helm.Answer{Objects: []helm.Object{{File: "templates/x.yaml", JSON: []byte(text), Text: text, Line: 1}}}
}

// TestHostNamesOfALateBase: who had a host name in the base is asked once more where a chart of the base
// was not rendered in time.
func TestHostNamesOfALateBase(t *testing.T) {
	withChart := func(files fstest.MapFS, version string) config.Tree {
		const chart = "apiVersion: swell.sh/v1\nkind: HelmChart\nmetadata: {name: web}\n" +
			"spec: {chart: chart, namespace: shop, values: {x: %s}}\n"
		files["services/shop/web/x.yaml"] = &fstest.MapFile{Data: fmt.Appendf(nil, chart, version)}
		files["services/shop/web/chart/Chart.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n")}
		return config.Files(files)
	}
	charts := &lateChart{late: "old"}
	compiler := Compiler{Base: config.Load(withChart(hostFiles(), "old"), nil), Charts: charts}
	head := withChart(hostFiles("zed/web=a.example"), "new")
	if s := compiler.Snapshot("", head); len(s.Problems) == 0 || !s.Retry {
		t.Errorf("retry %t\n%s", s.Retry, s.Problems)
	}
	charts.late = ""
	s := compiler.Snapshot("", head)
	if len(s.Problems) != 1 || s.Problems[0].Unit != "services/zed/web" || s.Retry {
		t.Errorf("retry %t, want a problem of zed/web\n%s", s.Retry, s.Problems)
	}
}

// hostFiles is a repository after some edits, with two tenants that have a unit each.
func hostFiles(edits ...string) fstest.MapFS {
	files, hosts := oneCluster("hosts"), map[string]string{}
	const defaults = "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: all}\nspec: {tenant: %s, placement: {topology: cluster}}\n"
	const ingress = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: %s, namespace: %s}\nspec: {rules: [%s]}\n"
	for _, edit := range strings.Fields("shop/other=shop.example zed/other=zed.example " + strings.Join(edits, " ")) {
		if unit, tenant, moves := strings.Cut(edit, ">"); moves {
			files.write("services/"+unit+"/swell.yaml", defaults, tenant)
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
		files.write("services/"+unit+"/x.yaml", ingress, name, tenant, rules)
		if names == "" {
			delete(files, "services/"+unit+"/x.yaml")
		}
	}
	for _, tenant := range []string{"shop", "zed"} {
		const doc = "apiVersion: swell.sh/v1\nkind: Tenant\nmetadata: {name: %s}\nspec: {hosts: [%s]}\n"
		files.write("fleet/"+tenant+".yaml", doc, tenant, hosts[tenant])
		files.write("services/"+tenant+"/swell.yaml", defaults, tenant)
	}
	return fstest.MapFS(files)
}
