// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTrace(t *testing.T) {
	const spec = `  let:
  - {name: here, value: target.labels.region}
  - {name: num, value: "self.spec.replicas[here]"}
  objects:
  - id: map
    each: {h: self.spec.hosts}
    when: has(data.a.x)
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "${self.metadata.name}-${h}", namespace: x, labels: "${{'unit': unit.name}}"}
      data:
        a: "${string(num)}"
        b: "${file('app.' + 'toml')}"
        c: "${self.spec.text == '' ? optional.none() : optional.of(data.?a.?y.orValue('d'))}"
        d: "${optional.none()}"
        e: "${self.spec.hosts.map(x, x + self.spec.text + string(self.spec.replicas[x == 'b' ? 'sas' : 'vla'])).join()}"
        f: "${string(self.spec.any.list[0])}"
`
	tree := newTree(spec, map[string]string{"data/a.yaml": "x: 1\n"})
	kinds := loadTree(t, tree)
	if len(kinds.Problems) > 0 {
		t.Fatal(kinds.Problems)
	}
	place := NewPlace(testUnit, testTarget, Inputs{File: testFile})
	traced, problems := decodeThing(t, kinds, thing).Trace(place)
	if len(problems) > 0 || len(traced) != 2 {
		t.Fatal(traced, problems)
	}
	line := func(path []any, o Origin) string {
		var reads []string
		for _, r := range o.Reads {
			reads = append(reads, strings.TrimSuffix(strings.Join(append([]string{r.From}, fmt.Sprint(r.Path...)), ":"), ":"))
		}
		return fmt.Sprintf("%v %d %d %s", path, o.At.Line, len(o.Expressions), strings.Join(reads, " "))
	}
	got := []string{line([]any{traced[0].ID}, traced[0].Origin)}
	for _, leaf := range traced[0].Leaves {
		got = append(got, line(leaf.Path, leaf.Origin))
	}
	want := []string{
		"[map] 14 2 self:spechosts data:ax",
		"[apiVersion] 14 0 ",
		"[kind] 15 0 ",
		"[metadata name] 16 2 self:metadataname self:spechosts",
		"[metadata namespace] 16 0 ",
		"[metadata labels] 16 1 unit:name",
		"[data a] 18 1 self:specreplicassas target:labelsregion",
		"[data b] 19 1 file:app.toml",
		"[data c] 20 1 self:spectext data:ay",
		"[data e] 22 1 self:spechosts self:spectext self:specreplicas",
		"[data f] 23 1 self:specanylist0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestTraceLets: lets that name the one before them twice took 2^40 steps.
func TestTraceLets(t *testing.T) {
	kinds := loadTree(t, newTree(doubled("self.spec.count", "V - V", 40, "string(V)"), nil))
	traced, problems := decodeThing(t, kinds, thing).Trace(NewPlace(testUnit, testTarget, Inputs{}))
	if len(problems) > 0 || len(traced) != 1 {
		t.Fatal(traced, problems)
	}
	leaf := traced[0].Leaves[len(traced[0].Leaves)-1]
	if diff := cmp.Diff([]Read{{From: "self", Path: []any{"spec", "count"}}}, leaf.Reads); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
