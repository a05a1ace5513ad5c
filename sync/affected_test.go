// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
)

// ring adds three units that need each other: each has an object in the namespace that the next
// one brings.
func (f files) ring() {
	f["services/ring/swell.yaml"] = "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: ring}\nspec: {tenant: ring, placement: {match: {labels: {ring: canary}}}}\n"
	for i, name := range ringUnits {
		f[ringFile(name)] = fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: ring-%s}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: ring, namespace: ring-%s}\ndata: {a: \"1\"}\n", name, ringUnits[(i+1)%len(ringUnits)])
	}
}

var ringUnits = []string{"a", "b", "c"}

func ringFile(name string) string { return "services/ring/" + name + "/objects.yaml" }

// editsOfRelations are about units that wait for each other.
var editsOfRelations = append([]func(*rapid.T, files){
	func(_ *rapid.T, f files) { f.ring() },
	func(t *rapid.T, f files) {
		for _, name := range ringUnits {
			if rapid.Bool().Draw(t, "ring") {
				f.replace(ringFile(name), `a: "1"`, `a: "2"`)
			}
		}
	},
	func(_ *rapid.T, f files) { // a gate
		f.replace("fleet/rollout.yaml", "ring: canary}}, soak: 10m}", "ring: canary}}, gates: [{at: start, after: {unit: services/platform/smoke}}]}")
	},
}, edits...)

// TestAffected: for random edits of the example monorepo, also in a base with problems, a
// preview that looks at the affected units says the same as one that looks at all. Of a
// single changed spec, few are affected. SWELL_EDITS=all takes all of rapid's edits.
func TestAffected(t *testing.T) {
	t.Parallel()
	example := exampleFiles(t)
	tried, most, fewer := 0, 60, 0
	if os.Getenv("SWELL_EDITS") == "all" {
		most = math.MaxInt
	}
	var compiler render.Compiler
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	said := func(t tester, base, head *render.Snapshot, units affected) string {
		report, plan, err := newPreview(base, head, units, &compiler).plan(config.DefaultGuard, now)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.MarshalIndent([]any{report, plan}, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	draw := func(t *rapid.T, f files, most int) {
		for range rapid.IntRange(0, most).Draw(t, "edits") {
			editsOfRelations[rapid.IntRange(0, len(editsOfRelations)-1).Draw(t, "edit")](t, f)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		if tried++; tried > most {
			return
		}
		f := maps.Clone(example)
		if rapid.Bool().Draw(rt, "related") {
			f.ring()
		}
		draw(rt, f, 2)
		base := compiler.Snapshot("base", f.tree())
		draw(rt, f, 2)
		head := compiler.Snapshot("head", f.tree())
		if base.Held || head.Held {
			return
		}
		units := affectedBy(base, head)
		if len(units) < head.Units.Len()/2 {
			fewer++
		}
		if d := cmp.Diff(said(rt, base, head, everything(base, head)), said(rt, base, head, units)); d != "" {
			rt.Fatalf("of %d units, %d are affected (-all +affected):\n%s", head.Units.Len(), len(units), d)
		}
	})
	if !t.Failed() && fewer < most/10 && tried > most/2 {
		t.Errorf("of %d changes, %d affected less than half of the units", tried, fewer)
	}
}

// TestAffectedRing: of units that need each other, one that does not change is looked at, too.
func TestAffectedRing(t *testing.T) {
	t.Parallel()
	f := exampleFiles(t)
	f.ring()
	var compiler render.Compiler
	base := compiler.Snapshot("base", f.tree())
	if len(base.Problems) > 0 {
		t.Fatal(base.Problems)
	}
	for _, name := range ringUnits[:2] {
		f.replace(ringFile(name), `a: "1"`, `a: "2"`)
	}
	head := compiler.Snapshot("head", f.tree())
	units := affectedBy(base, head)
	if d := cmp.Diff(affected{"services/ring/a": true, "services/ring/b": true, "services/ring/c": true}, units); d != "" {
		t.Error(d)
	}
	_, plan, err := newPreview(base, head, units, &compiler).plan(config.DefaultGuard, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range plan.Units {
		if u.Done.IsZero() {
			t.Errorf("%s is not done: %s", u.Unit, u.Left)
		}
	}
}
