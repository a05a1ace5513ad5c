// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestVoidNames: a rule for an object that the unit had once held the unit. It is a
// note, and none in a folder of many units.
func TestVoidNames(t *testing.T) {
	s := snapshot(new(Compiler), with(richFiles(), map[string]string{
		"services/platform/swell.yaml":         string(richFiles()["services/platform/swell.yaml"].Data) + "  ignore: [{kind: ConfigMap, object: anything, fields: [/data]}]\n",
		"services/platform/spaces/config.yaml": configMapOf("settings", "boxes", "x"),
		"services/platform/spaces/swell.yaml": defaultsOf(`ignore:
  - {kind: ConfigMap, object: setings, fields: [/data]}
  - {kind: ConfigMap, object: settings, fields: [/data]}
  - {kind: Secret, object: gone, fields: [/data]}
  overrides:
  - {kind: ConfigMap, object: seting, set: [{path: data.key, value: b}]}
  - {kind: ConfigMap, object: settings, set: [{path: data.key, value: b}]}`),
	}))
	unit := s.Units.Get("services/platform/spaces")
	if len(unit.Problems) > 0 || unit.Placements[0].Digest == "" {
		t.Errorf("held: %v", unit.Problems)
	}
	var got []string
	for _, note := range unit.Notes {
		got = append(got, note.Message)
	}
	want := []string{
		`spec.ignore[0].object: "setings": the unit has no ConfigMap of this name on any target, did you mean "settings"?`,
		`spec.ignore[2].object: "gone": the unit has no Secret of this name on any target`,
		`spec.overrides[0].object: "seting": the unit has no ConfigMap of this name on any target, did you mean "settings"?`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
