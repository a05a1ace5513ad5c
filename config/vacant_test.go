// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestVacantWaves: where no target of the fleet is in the first waves, the first target of a unit stands in.
func TestVacantWaves(t *testing.T) {
	canary := Match{Labels: map[string][]string{"ring": {"canary"}}}
	first := Wave{Name: "canary", Match: canary}
	rest := Wave{Name: "rest"}
	late := Wave{Name: "late", Targets: []TargetName{"b"}}
	none := Wave{Name: "none", Targets: []TargetName{"x"}}
	for name, test := range map[string]struct {
		waves []Wave
		rings []string // of clusters a, b, c
		want  string
	}{
		"a canary":               {[]Wave{first, rest}, []string{"", "canary", ""}, "a 1, b 0, c 1"},
		"its label is gone":      {[]Wave{first, rest}, []string{"", "canray", ""}, "a 0, b 1, c 1"},
		"two waves are vacant":   {[]Wave{first, none, late, rest}, []string{"", "", ""}, "a 3, b 0, c 3"},
		"a later wave is vacant": {[]Wave{late, first, rest}, []string{"", "", ""}, "a 2, b 0, c 2"},
		"all are vacant":         {[]Wave{first}, []string{"", "", ""}, ""},
	} {
		r := &Rollout{Name: "default", Waves: test.waves}
		var fleet []*Cluster
		labels := map[TargetName]map[string]string{}
		for i, ring := range test.rings {
			c := &Cluster{Name: string(rune('a' + i)), Labels: map[string]string{"ring": ring}}
			fleet, labels[TargetName(c.Name)] = append(fleet, c), c.Labels
		}
		r = r.in(fleet)
		var got []string
		waves := r.WavesOf([]TargetName{"a", "b", "c"}, func(name TargetName) map[string]string { return labels[name] })
		for _, target := range slices.Sorted(maps.Keys(waves)) {
			got = append(got, fmt.Sprintf("%s %d", target, waves[target]))
		}
		if text := strings.Join(got, ", "); text != test.want {
			t.Errorf("%s: %s, want %s", name, text, test.want)
		}
	}
}
