// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"strings"
	"testing"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/rollout"
)

// TestPictureFits the terminals that people have: it was not drawn at all below
// 144 columns.
func TestPictureFits(t *testing.T) {
	state := &rollout.State{Units: map[config.UnitPath]*rollout.Unit{}}
	for i := range 23 {
		path := config.UnitPath(fmt.Sprintf("services/platform/a-unit-with-a-name-%d", i))
		u := &rollout.Unit{Path: path, Rollout: &rollout.Rollout{Status: rollout.Done}, Targets: map[config.TargetName]*rollout.Target{}}
		for _, name := range []config.TargetName{"myt-1", "sas-1", "sas-1/rz00a", "sas-1/rz01a", "vla-1", "vla-1/rz10a", "vla-1/rz11a"} {
			u.Targets[name] = &rollout.Target{Applied: "d", Wanted: "d", Health: rollout.HealthGood}
		}
		if i == 20 {
			u.Blocked = "runtime.yaml:6:3: no"
		}
		if i == 22 {
			u.Rollout.Status, u.Targets["sas-1/rz00a"].Trouble = rollout.RollingBack, rollout.TroubleFailed
		}
		state.Units[path] = u
	}
	plain := func(_, text string) string { return text }
	for _, size := range [][2]int{{80, 23}, {80, 60}, {144, 50}, {60, 10}} {
		lines := pictureOf(state).lines(size[0], size[1], plain)
		text := strings.Join(lines, "\n")
		if len(lines) == 0 || len(lines) > size[1] {
			t.Errorf("%v: %d lines", size, len(lines))
		}
		for _, line := range lines {
			if len(line) > size[0] {
				t.Errorf("%v: %d columns: %q", size, len(line), line)
			}
		}
		for _, want := range []string{"UNIT", "STATUS", "sas-1", "rolling back", "blocked", "+!+"} {
			if !strings.Contains(text, want) {
				t.Errorf("%v: want %q in\n%s", size, want, text)
			}
		}
	}
	if lines := (picture{}).lines(80, 24, plain); lines != nil {
		t.Errorf("nothing is drawn as %q", lines)
	}
}
