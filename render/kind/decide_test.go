// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDecides: what the value is made of, what was asked, and the constants.
func TestDecides(t *testing.T) {
	const lets = `  let:
  - {name: region, value: target.labels.region}
  - {name: both, value: "{'unit': unit.name, 'inner': {'region': region, 'fixed': 'f'}}"}
  objects:
  - id: map
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: x, namespace: x}
      data: "${%s}"
`
	for _, c := range []struct {
		data  string
		below []any
		want  string
	}{
		{"{'k': self.spec.text}", []any{"k"}, "[{self [spec text]}] [] []"},
		{"{'k': 'c', 'l': self.spec.text}", []any{"k"}, "[] [] [c]"},
		{"{'k': 'c', 'l': self.spec.text}", nil, "[{self [spec text]}] [] [k c l]"},
		{"{'k': region == 'sas' ? self.spec.text : unit.name}", []any{"k"}, "[{self [spec text]}] [{target [labels region]}] []"},
		{"{'k': region == 'vla' ? self.spec.text : unit.name}", []any{"k"}, "[{unit [name]}] [{target [labels region]}] []"},
		{"{'k': data.?none.?x.orValue('d')}", []any{"k"}, "[] [{data [none x]}] [d]"},
		{"{'k': both.inner.region}", []any{"k"}, "[{target [labels region]}] [] []"},
		{"{'k': both.inner.fixed}", []any{"k"}, "[] [] [f]"},
		{"both.inner", []any{"region"}, "[{target [labels region]}] [] []"},
		{"{'k': string(self.spec.replicas[region])}", []any{"k"}, "[{self [spec replicas sas]}] [{target [labels region]}] []"},
		{"{'k': (self.spec.hosts + [unit.name])[2]}", []any{"k"}, "[{self [spec hosts]} {unit [name]}] [] [2]"},
		{"{'k': self.spec.hosts.map(h, h + region).join()}", []any{"k"}, "[{target [labels region]} {self [spec hosts]}] [] []"},
		{"{'k': hash(self.spec.hosts) + file('f')}", []any{"k"}, "[{self [spec hosts]} {file [f]}] [] []"},
	} {
		kinds := loadTree(t, newTree(fmt.Sprintf(lets, c.data), nil))
		if len(kinds.Problems) > 0 {
			t.Errorf("%s: %v", c.data, kinds.Problems)
			continue
		}
		traced, problems := decodeThing(t, kinds, thing).Trace(NewPlace(testUnit, testTarget, Inputs{File: func(string) ([]byte, error) { return []byte("f"), nil }}))
		if len(problems) > 0 || len(traced) != 1 {
			t.Errorf("%s: %v", c.data, problems)
			continue
		}
		leaf := traced[0].Leaves[len(traced[0].Leaves)-1]
		o := leaf.Below(c.below)
		var constants []any
		for _, constant := range o.Constants {
			constants = append(constants, constant.Value)
		}
		if diff := cmp.Diff(c.want, fmt.Sprint(o.Decides, o.Asks, constants)); diff != "" {
			t.Errorf("%s at %v (-want +got):\n%s", c.data, c.below, diff)
		}
	}
}

func TestFieldAt(t *testing.T) {
	kinds := loadTree(t, newTree("  objects:\n  - id: x\n    template: {apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: x}}\n", nil))
	k := decodeThing(t, kinds, thing).Kind()
	for path, want := range map[string]bool{"spec text": true, "spec replicas sas": true, "spec": false, "metadata name": false, "spec nothing": false} {
		var steps []any
		for _, s := range strings.Fields(path) {
			steps = append(steps, s)
		}
		at, ok := k.FieldAt(steps)
		if ok != want || ok && (at.Line == 0 || at.File != "kinds/thing/thing.proto") {
			t.Errorf("%s: got %v %v, want %v", path, at, ok, want)
		}
	}
}
