// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config/document"
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
			held[document.Printable(string(unit.Path))] = strings.Join(lines, "\n")
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

// TestNamesNotUTF8: such a name in one unit's folder held the whole commit. It
// holds the folder that it stands in, also one without specs, where a unit may
// have been; and not those beside and below it.
func TestNamesNotUTF8(t *testing.T) {
	files := fstest.MapFS{
		"swell.yaml":   {Data: []byte("apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: x}\nspec: {}\n")},
		"fleet/a.yaml": {Data: []byte("apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: a}\nspec: {}\n")},
	}
	unit := &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: b}\n")}
	for _, name := range []string{"shop/x/a.yaml", "shop/x/a\xe9.yaml", "shop/x/below/a.yaml", "shop/y/a.yaml", "pay/was/a\xe9.yaml", "pay/z\xe9/a.yaml", "pay/w/a.yaml"} {
		files["services/"+name] = unit
	}
	first := Load(Files(files), nil)
	want := map[string]string{
		"services/shop/x":  `services/shop/x: entry "a\xe9.yaml": name is not UTF-8`,
		"services/pay":     `services/pay: entry "z\xe9": name is not UTF-8`,
		"services/pay/was": `services/pay/was: entry "a\xe9.yaml": name is not UTF-8`,
	}
	for what, r := range map[string]*Repository{"first": first, "again": Load(Files(files), first)} {
		if diff := cmp.Diff(want, heldUnits(r)); diff != "" || len(r.Problems) > 0 {
			t.Errorf("%s: %v (-want +got):\n%s", what, r.Problems, diff)
		}
		var good []UnitPath
		for unit := range r.Units() {
			if len(unit.Problems) == 0 {
				good = append(good, unit.Path)
			}
		}
		if diff := cmp.Diff([]UnitPath{"services/pay/w", "services/shop/x/below", "services/shop/y"}, good); diff != "" {
			t.Errorf("%s: good (-want +got):\n%s", what, diff)
		}
	}
}

// TestExtensionInCapitals: what held a unit's objects is not left out when
// somebody renames it to a name that is not read.
func TestExtensionInCapitals(t *testing.T) {
	files := fstest.MapFS{
		"swell.yaml":   {Data: []byte("apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: x}\nspec: {}\n")},
		"fleet/a.yaml": {Data: []byte("apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: a}\nspec: {}\n")},
		"fleet/b.YAML": {Data: []byte("apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: b}\nspec: {}\n")},
	}
	unit := &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: b}\n")}
	for _, name := range []string{"alone/X.YAML", "beside/x.yaml", "beside/y.Yml", "other/x.yaml", "other/app.toml", "none/YAML", "none/README.md"} {
		files["services/"+name] = unit
	}
	const message = ": would not be read: want .yaml or .yml in small letters"
	first := Load(Files(files), nil)
	want := map[string]string{
		"services/alone":  "services/alone/X.YAML" + message,
		"services/beside": "services/beside/y.Yml" + message,
	}
	for what, r := range map[string]*Repository{"first": first, "again": Load(Files(files), first)} {
		if diff := cmp.Diff(want, heldUnits(r)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
		if len(r.Problems) != 1 || r.Problems[0].String() != "fleet/b.YAML"+message {
			t.Errorf("%s: %v", what, r.Problems)
		}
	}
	fewer := maps.Clone(files)
	delete(fewer, "services/alone/X.YAML")
	delete(fewer, "services/beside/y.Yml")
	if held := heldUnits(Load(Files(fewer), first)); len(held) > 0 {
		t.Errorf("renamed: %v", held)
	}
}
