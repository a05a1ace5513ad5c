// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"slices"
	"strings"
	"testing"
)

// TestExact: what an edit has rendered again, and what it leaves as the very
// same unit. Where that is more than the bytes call for, the line says so.
func TestExact(t *testing.T) {
	text := func(name, old, new string) map[string]string {
		if !strings.Contains(richTexts[name], old) {
			t.Fatalf("%s: no %q in it", name, old)
		}
		return map[string]string{name: strings.Replace(richTexts[name], old, new, 1)}
	}
	const shop, pay, platform = "services/shop/", "services/pay/", "services/platform/"
	every := []string{pay + "ledger", pay + "pipe", pay + "room", pay + "shared", platform + "boxes", platform + "crds", platform + "spaces", platform + "times", platform + "tubes",
		platform + "vector", platform + "web", shop + "cart", shop + "gather", shop + "room", shop + "stack"}
	inCells := []string{pay + "ledger", pay + "pipe", pay + "room", shop + "cart", shop + "gather", shop + "room", shop + "stack"}
	ofTeamPlatform := []string{platform + "boxes", platform + "crds", platform + "spaces", platform + "times", platform + "tubes", platform + "vector", platform + "web"}
	for _, edit := range []struct {
		name     string
		change   map[string]string
		rendered []string
		others   []string // are other units, though nothing was rendered
		judged   []string // anew, by another quota: the same units come out
	}{
		{"nothing", nil, nil, nil, nil},
		{"a file that nothing reads", map[string]string{"README.md": "x"}, nil, nil, nil},
		{"a file beside a spec that it does not read", map[string]string{shop + "cart/conf/other.toml": "x"}, nil, nil, nil},
		{"a file that a spec reads", text(shop+"cart/conf/cart.toml", "[cart]", "[basket]"), []string{shop + "cart"}, nil, nil},
		{"a comment in a spec", text(pay+"ledger/app.yaml", "spec:", "# x\nspec:"), []string{pay + "ledger"}, nil, nil}, // positions
		{"a spec", text(pay+"ledger/app.yaml", "ledger:1", "ledger:2"), []string{pay + "ledger"}, nil, nil},
		{"a comment in Defaults", text(pay+"swell.yaml", "spec:", "# x\nspec:"), nil, nil, nil},
		{"a comment in Defaults with overrides", text(shop+"swell.yaml", "spec:", "# x\nspec:"), []string{shop + "cart", shop + "gather", shop + "room", shop + "stack"}, nil, nil}, // coarse: positions of the overrides
		{"an override of a kind", text(shop+"swell.yaml", "\"yes\"", "\"no\""), []string{shop + "cart", shop + "gather", shop + "room", shop + "stack"}, nil, nil},                  // coarse: the others hold no document of it
		{"rollout of Defaults", text(pay+"swell.yaml", "tenant: pay", "tenant: pay\n  rollout: other"), nil, []string{pay + "ledger", pay + "pipe", pay + "room", pay + "shared"}, nil},
		{"the fleet's rollout", text("fleet/rollout.yaml", "name: all", "name: everything"), nil, nil, nil},
		{"a label of Defaults that nothing reads", text(platform+"swell.yaml", "tenant:", "labels: {a: b}\n  tenant:"), ofTeamPlatform, nil, nil}, // coarse: labels are one value
		{"a variable of a target that some read", text("fleet/one.yaml", "net: n2", "net: n9"), inCells, nil, nil},                                // coarse: facts of a target are one value
		{"a variable of a cluster", text("fleet/two.yaml", "net: n3", "net: n9"), every, nil, nil},
		{"a test of a kind", map[string]string{"kinds/app/tests/x.txtar": "x"}, nil, nil, nil},
		{"a kind", text("kinds/room/kind.yaml", "name: quota", "name: limits"), []string{pay + "room", shop + "room"}, nil, []string{shop + "cart", shop + "stack"}},
		{"a file of a kind", text("kinds/app/app.tmpl", "net=", "net: "), []string{pay + "ledger", shop + "cart", shop + "stack"}, nil, nil}, // coarse: the two others do not fill it in
		{"a nested kind", text("kinds/app/kind.yaml", "zone:", "place:"), []string{pay + "ledger", shop + "cart", shop + "stack"}, nil, nil},
		{"a kind that is collected", text("kinds/pipe/pipe.proto", "body = 2", "text = 2"), []string{pay + "pipe", platform + "vector", shop + "cart", shop + "gather"}, nil, nil},
		{"a new kind", map[string]string{"kinds/near/near.proto": protoOf("Near", ""), "kinds/near/kind.yaml": easyKind("Near", "  objects:\n  - id: own\n    template:\n"+configMapTemplate+"      metadata: {name: x, namespace: x}\n")}, nil, nil, nil},
		{"a value of data that is read", text("data/quotas.yaml", "pods: 5", "pods: 6"), []string{shop + "room"}, nil, []string{shop + "cart", shop + "stack"}},
		{"a value of data that is not", text("data/quotas.yaml", "unused: 1", "unused: 2"), nil, nil, nil},
		{"a comment in data", text("data/quotas.yaml", "unused", "# x\nunused"), nil, nil, nil},
		{"a new file of data", map[string]string{"data/new.yaml": "x: 1\n"}, []string{pay + "ledger", pay + "room", shop + "cart", shop + "room", shop + "stack"}, nil, nil}, // coarse: the names of files are part of a kind that reads data
		{"a collected document", text(pay+"pipe/pipe.yaml", "source: ledger", "source: x"), []string{pay + "pipe", platform + "vector"}, nil, nil},
		{"a comment in a collected document", text(pay+"pipe/pipe.yaml", "spec:", "# x\nspec:"), []string{pay + "pipe"}, nil, nil},
		{"a document beside a collected one", text(shop+"cart/app.yaml", "cart:1", "cart:2"), []string{shop + "cart"}, nil, nil},
		{"a definition that some use", text(platform+"crds/tube.yaml", "type: integer", "type: number"), []string{platform + "crds", platform + "tubes"}, nil, nil},
		{"a definition that nobody uses", map[string]string{platform + "crds/x.yaml": crdOf("Cork", "corks", "corks.example.org")}, []string{platform + "crds"}, nil, nil},
		{"a base elsewhere", text("bases/web/x.yaml", "key: \"1", "key: \"2"), []string{platform + "web"}, nil, nil},
		{"a file beside that base", map[string]string{"bases/web/other.yaml": "x"}, []string{platform + "web"}, nil, nil}, // coarse: a base is one value
		{"a namespace that others live in", text(platform+"spaces/x.yaml", "name: vector", "name: vektor"), []string{platform + "spaces"}, []string{platform + "vector"}, nil},
		{"another unit", map[string]string{pay + "new/x.yaml": easySpec("App", "new", "{}")}, []string{pay + "new"}, nil, nil},
		{"a unit less", map[string]string{pay + "ledger/app.yaml": ""}, nil, nil, nil},
	} {
		var c Compiler
		first := snapshot(&c, richFiles())
		s := snapshot(&c, with(richFiles(), edit.change))
		if len(s.Problems) > 0 {
			t.Errorf("%s: %v", edit.name, s.Problems)
		}
		if s.Rendered != len(edit.rendered)+len(edit.judged) {
			t.Errorf("%s: %d units rendered, want %d", edit.name, s.Rendered, len(edit.rendered)+len(edit.judged))
		}
		for _, unit := range s.Units.Sorted() {
			changed := slices.Contains(edit.rendered, string(unit.Path)) || slices.Contains(edit.others, string(unit.Path))
			if same := unit == first.Units.Get(unit.Path); same == changed {
				t.Errorf("%s: %s is the same: %t", edit.name, unit.Path, same)
			}
		}
	}
}

// TestOtherVersion: results of another version of the program are not used.
func TestOtherVersion(t *testing.T) {
	first := Compiler{Version: "1"}
	snapshot(&first, richFiles())
	for version, want := range map[string]int{"1": 0, "2": 15} {
		c := Compiler{Version: version, Cache: first.Cache}
		if s := snapshot(&c, richFiles()); s.Rendered != want {
			t.Errorf("version %s: %d units rendered, want %d", version, s.Rendered, want)
		}
	}
}

// TestBackAndForth: what was rendered for an earlier state is found again.
func TestBackAndForth(t *testing.T) {
	var c Compiler
	other := with(richFiles(), map[string]string{"kinds/room/kind.yaml": strings.Replace(richTexts["kinds/room/kind.yaml"], "name: quota", "name: limits", 1)})
	snapshot(&c, richFiles())
	snapshot(&c, other)
	for range 3 {
		if a, b := snapshot(&c, richFiles()), snapshot(&c, other); a.Rendered+b.Rendered > 0 {
			t.Errorf("%d and %d units rendered", a.Rendered, b.Rendered)
		}
	}
}
