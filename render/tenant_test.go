// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

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
