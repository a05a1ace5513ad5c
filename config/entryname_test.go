// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// heldUnits are the units with problems and what those are.
func heldUnits(r *Repository) map[string]string {
	held := map[string]string{}
	for unit := range r.Units() {
		var lines []string
		for _, p := range append(unit.Defaults.Problems, unit.Problems...) {
			lines = append(lines, p.String())
		}
		if len(lines) > 0 {
			held[Printable(string(unit.Path))] = strings.Join(lines, "\n")
		}
	}
	return held
}

// TestOddNames: units that a file system may merge, or that a person cannot
// tell apart, are held; others are not; and it ends when the other one goes.
func TestOddNames(t *testing.T) {
	files := fstest.MapFS{
		"swell.yaml":   {Data: []byte("apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: x}\nspec: {}\n")},
		"fleet/a.yaml": {Data: []byte("apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: a}\nspec: {}\n")},
	}
	unit := &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: b}\n")}
	for _, name := range []string{"Shop/cart", "shop/cart", "shop/Cart/deep", "pay/a", "team/a\u202eb", "team/a\nb"} {
		files["services/"+name+"/x.yaml"] = unit
	}
	r := Load(Files(files), nil)
	const apart = " in case only, which not every file system tells apart"
	want := map[string]string{
		"services/Shop/cart":      `services/Shop: "Shop": differs from "shop"` + apart,
		"services/shop/cart":      `services/shop: "shop": differs from "Shop"` + apart + "\n" + `services/shop/cart: "cart": differs from "Cart"` + apart,
		"services/shop/Cart/deep": `services/shop: "shop": differs from "Shop"` + apart + "\n" + `services/shop/Cart: "Cart": differs from "cart"` + apart,
		`services/team/a\u202eb`:  `services/team/a\u202eb: "a\u202eb": a name with characters that do not show`,
		`services/team/a\nb`:      `services/team/a\nb: "a\nb": a name with characters that do not show`,
	}
	if diff := cmp.Diff(want, heldUnits(r)); diff != "" {
		t.Errorf("first (-want +got):\n%s", diff)
	}
	fewer := maps.Clone(files)
	delete(fewer, "services/Shop/cart/x.yaml")
	delete(fewer, "services/shop/Cart/deep/x.yaml")
	again := Load(Files(fewer), r)
	delete(want, "services/Shop/cart")
	delete(want, "services/shop/cart")
	delete(want, "services/shop/Cart/deep")
	// The hashes of different trees must not be compared; here they are of one
	// kind, so that what is remembered is tried.
	if diff := cmp.Diff(want, heldUnits(again)); diff != "" {
		t.Errorf("one gone (-want +got):\n%s", diff)
	}
}
