// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// largeForecast has 200 units that go the same way, and one of every other sort.
func largeForecast() *sync.Forecast {
	at := func(d time.Duration) time.Time { return describedAt.Add(d) }
	f := &sync.Forecast{Commit: "c1c1c1c1c1", Digest: "d1d1d1d1d1", At: describedAt, Authors: []string{"ada@example.com"}, Taken: true}
	var sas []config.TargetName
	for i := range 30 {
		sas = append(sas, config.TargetName(fmt.Sprintf("sas-%02d/rz00a", i)))
	}
	for i := range 200 {
		path := config.UnitPath(fmt.Sprintf("services/u%03d", i))
		f.Units = append(f.Units, sync.UnitForecast{Unit: path, Goes: sync.Starts, Tier: "early", Rollout: "careful", Done: at(70 * time.Minute), Waves: []sync.WaveForecast{
			{Wave: "canary", From: at(0), Targets: []config.TargetName{"dev/a"}, Soak: "1h0m0s", Gates: []sync.GateForecast{{Gate: "prometheus", At: "end", Text: "prom: up"}}},
			{Wave: "sas", From: at(time.Hour), Targets: sas, Silent: sas[:1], Gates: []sync.GateForecast{{Gate: "approval", At: "start", Digest: object.Digest(path), By: []string{"zoe"}}},
				Holds: []rollout.Hold{{Kind: rollout.HeldByWindow, Text: "Window night opens at 2026-03-01T22:00:00Z", Targets: sas[:2]}, {Kind: rollout.HeldByMask, Text: "masked by Mask power: \x1b[2Jno\npower", Targets: []config.TargetName{"vla-1"}}}},
		}})
	}
	f.Units = append(f.Units,
		sync.UnitForecast{Unit: "services/old", Goes: sync.Leaves, Rollout: "careful", Waves: []sync.WaveForecast{{Wave: "canary", Cleans: true, From: at(0), Targets: []config.TargetName{"dev/a"}}}, Done: at(0)},
		sync.UnitForecast{Unit: "services/db", Goes: sync.GoesOn, Rollout: "careful", Withheld: "it loses all workloads", Left: "wave canary: paused by bob"})
	f.Stays = []sync.Staying{{Unit: "services/bad", Why: "services/bad/x.yaml:1:1: no"}}
	for i := range 12 {
		f.LeftOut = append(f.LeftOut, config.LeftOut{Path: fmt.Sprintf("services/db/v%02d.yaml", i), Why: "no document\x1b[2J"})
	}
	f.Deletions = []sync.DeletionForecast{{Digest: "e1e1e1e1e1", Unit: "services/db", Deletions: []store.Deletion{{Why: "too many"}, {Why: "a Namespace"}}}}
	return f
}

// TestPlanText: units that go the same way are one, and all that keeps them is told. No text
// of others moves the cursor.
func TestPlanText(t *testing.T) {
	write := func(w *planWriter) string {
		var b strings.Builder
		if err := w.write(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	want := `plan d1d1d1d1 of commit c1c1c1c1 by ada@example.com
200 units, services/u000, services/u001, services/u002 and 197 more: start, tier early, rollout careful
  wave canary now: dev/a, soaks 1h
    gate prometheus at the end: prom: up
  wave sas 13:06:00Z (in 1h): 30 targets, sas-00/rz00a, sas-01/rz00a, sas-02/rz00a and 27 more
    gate approval at the start: zoe may approve
    window: Window night opens at 2026-03-01T22:00:00Z (sas-00/rz00a, sas-01/rz00a): nothing starts before that
    mask: masked by Mask power: \x1b[2Jno\npower (vla-1): waves go on without, and they catch up when it ends
    no answer now from sas-00/rz00a
  done at the earliest 13:16:00Z (in 1h10m)
services/old: leaves, rollout careful
  cleans wave canary now: dev/a
  done at the earliest now
services/db: goes on, rollout careful
  not before deletions are approved: it loses all workloads
  then waits: wave canary: paused by bob
stays as it is:
  services/bad: services/bad/x.yaml:1:1: no
left out, of the folders of these units:
  services/db/v00.yaml: no document\x1b[2J
  services/db/v01.yaml: no document\x1b[2J
  services/db/v02.yaml: no document\x1b[2J
  services/db/v03.yaml: no document\x1b[2J
  services/db/v04.yaml: no document\x1b[2J
  services/db/v05.yaml: no document\x1b[2J
  services/db/v06.yaml: no document\x1b[2J
  services/db/v07.yaml: no document\x1b[2J
  services/db/v08.yaml: no document\x1b[2J
  services/db/v09.yaml: no document\x1b[2J
  and 2 more: --all lists them
deletions that wait for approval:
  plan e1e1e1e1: 2 deletions of services/db: too many (and 1 other reason)
-> swell approve --plan d1d1d1d1: approves 200 gates and 2 deletions
`
	if diff := cmp.Diff(want, write(&planWriter{f: largeForecast(), width: 140})); diff != "" {
		t.Error(diff)
	}
	brief := write(&planWriter{f: largeForecast(), width: 140, brief: true})
	for _, other := range []string{"plan d1", "swell approve", "stays as it is", "left out", "13:06"} {
		if strings.Contains(brief, other) {
			t.Errorf("in brief: %q", other)
		}
	}
	if !strings.Contains(brief, "  wave sas after 1h: 30 targets") {
		t.Errorf("in brief: %s", brief)
	}
	all := write(&planWriter{f: largeForecast(), width: 140, all: true})
	if n := strings.Count(all, ": starts, tier early"); n != 200 {
		t.Errorf("--all: %d units, want 200", n)
	}
	if n := strings.Count(all, "  services/db/v"); n != 12 {
		t.Errorf("--all: %d files that are left out, want 12", n)
	}
	cut := largeForecast()
	cut.Cut, cut.Until = true, describedAt.Add(time.Hour)
	if text := write(&planWriter{f: cut, width: 140}); !strings.Contains(text, "only the beginning was worked out, up to 2026-03-01T13:06:00Z") || strings.Contains(text, "approve --plan") {
		t.Errorf("cut: %s", text)
	}
	early := largeForecast()
	early.Taken = false
	if text := write(&planWriter{f: early, width: 140}); !strings.Contains(text, "deletions can be approved when the daemon is at work on the commit") {
		t.Errorf("not taken: %s", text)
	}
}

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
