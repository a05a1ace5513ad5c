// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync"
)

// TestUnitsThatGoTogether: units that became healthy some seconds apart are one group of the
// plan, and those minutes apart are not.
func TestUnitsThatGoTogether(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 59, 0, time.UTC)
	unit := func(path config.UnitPath, after time.Duration, targets ...config.TargetName) sync.UnitForecast {
		return sync.UnitForecast{Unit: path, Goes: sync.GoesOn, Done: at.Add(after),
			Waves: []sync.WaveForecast{{Wave: "rest", From: at.Add(after), Targets: targets}}}
	}
	units := []sync.UnitForecast{
		unit("a", 0, "dev-1"), unit("b", 2*time.Second, "dev-1"), unit("c", 2*time.Minute, "dev-1"),
		unit("d", 0, "dev-2"), unit("e", 59*time.Second, "dev-1"), unit("f", 121*time.Second, "dev-1"),
	}
	never := unit("g", 0, "dev-1")
	never.Done = time.Time{}
	var got [][]config.UnitPath
	for _, g := range courses(append(units, never), false) {
		got = append(got, g.units)
	}
	if diff := cmp.Diff([][]config.UnitPath{{"a", "b", "e"}, {"c", "f"}, {"d"}, {"g"}}, got); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	if all := courses(units, true); len(all) != len(units) {
		t.Errorf("each on its own: %d groups of %d units", len(all), len(units))
	}
}
