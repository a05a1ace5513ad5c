// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/swell-sh/swell/config/document"
)

// gateSpec is a gate as it is written.
type gateSpec struct {
	Approval *struct {
		By      []string
		Expires string
	}
	Prometheus *struct {
		Endpoint, Query, Every, Tolerate string
		AtMost, AtLeast                  *float64
	}
	Job  *struct{ Name string }
	HTTP *struct {
		Endpoint, Path, At, Every, Timeout string
	}
	After  *struct{ Unit string }
	Window *struct {
		Schedule, Duration, TimeZone string
	}
}

// gate reads a gate of a wave on the path.
func (r *reading) gate(spec *gateSpec, wave *Wave, path ...any) Gate {
	at := func(format string, args ...any) func(field ...any) {
		return func(field ...any) {
			r.at(append(slices.Clip(path), field...)...).problem(document.CodeFleet, format, args...)
		}
	}
	var g Gate
	count := 0
	if s := spec.Approval; s != nil {
		count++
		g.Approval = &ApprovalGate{By: s.By, Expires: between(s.Expires, defaultApproval, time.Minute, at, "approval", "expires")}
		for i, name := range s.By {
			if strings.TrimSpace(name) != name || name == "" {
				at("%q: want the name of an operator", document.Shorten(name))("approval", "by", i)
			}
		}
	}
	if s := spec.Prometheus; s != nil {
		count++
		g.Prometheus = &PrometheusGate{Endpoint: s.Endpoint, Query: s.Query, AtMost: s.AtMost, AtLeast: s.AtLeast,
			Every:    between(s.Every, defaultEvery, time.Second, at, "prometheus", "every"),
			Tolerate: between(s.Tolerate, 0, 0, at, "prometheus", "tolerate")}
		switch {
		case s.AtMost == nil && s.AtLeast == nil:
			at("want atMost, atLeast or both")("prometheus")
		case s.AtMost != nil && s.AtLeast != nil && *s.AtMost < *s.AtLeast:
			at("no number is at most %g and at least %g, so the gate never passes", *s.AtMost, *s.AtLeast)("prometheus", "atLeast")
		case wave.Soak <= 0:
			at("wave %q has no soak, so there is no time in which the query holds: write soak", wave.Name)("prometheus")
		}
		gateText(s.Endpoint, at, "prometheus", "endpoint")
		gateText(s.Query, at, "prometheus", "query")
	}
	if s := spec.Job; s != nil {
		count++
		g.Job = &JobGate{Name: s.Name}
		switch {
		case strings.TrimSpace(s.Name) == "":
			at("missing")("job", "name")
		case !document.IsName(s.Name): // also one with ${name} in it, which stands for nothing here
			at("%q: want the name of a Job, like smoke", document.Shorten(s.Name))("job", "name")
		}
	}
	if s := spec.HTTP; s != nil {
		count++
		g.HTTP = &HTTPGate{Endpoint: s.Endpoint, Path: s.Path, Start: s.At == "start",
			Every:   between(s.Every, defaultEvery, time.Second, at, "http", "every"),
			Timeout: between(s.Timeout, 0, time.Second, at, "http", "timeout")}
		if s.At != "" && s.At != "start" && s.At != "end" {
			at("want start or end, got %q", s.At)("http", "at")
		}
		gateText(s.Endpoint, at, "http", "endpoint")
		if strings.Contains(s.Path, "://") || s.Path != "" && !strings.HasPrefix(s.Path, "/") {
			at("want a path that begins with /, got %q", document.Shorten(s.Path))("http", "path")
		} else if s.Path != "" {
			gateText(s.Path, at, "http", "path")
		}
	}
	if s := spec.After; s != nil {
		count++
		g.After = &AfterGate{Unit: CleanUnitPath(s.Unit)}
		if gateText(s.Unit, at, "after", "unit"); s.Unit != "" && g.After.Unit == "" {
			at("%q: want the path of a unit, from the root of the monorepo", document.Shorten(s.Unit))("after", "unit")
		}
	}
	if s := spec.Window; s != nil {
		count++
		g.Window = &Timetable{Schedule: s.Schedule, TimeZone: s.TimeZone, Duration: duration(s.Duration)}
		if field, err := g.Window.check(); err != nil {
			at("%s", err)("window", field)
		}
	}
	if count != 1 {
		at("want exactly one of approval, prometheus, job, http, after and window, got %d", count)()
	}
	return g
}

// gateText finds a text that is missing or has an unknown name in it.
func gateText(text string, at func(string, ...any) func(...any), path ...any) {
	if strings.TrimSpace(text) == "" {
		at("missing")(path...)
	} else if name := unknownPlaceholder(text); name != "" {
		at("%s: no such name, want one of %s", document.Shorten(name), strings.Join(placeholders, ", "))(path...)
	}
}

// between reads a duration of a gate.
func between(text string, otherwise, least time.Duration, at func(string, ...any) func(...any), path ...any) time.Duration {
	if text == "" {
		return otherwise
	}
	d := duration(text)
	if d < least {
		at("want at least %s, got %s", least, d)(path...)
	}
	return d
}

// GateJob is a Job that a gate of a Rollout runs.
type GateJob struct {
	Rollout string
	Reference
}

// GateJobs are those of all Rollouts: each unit with the Rollout should have the Job.
func (r *Repository) GateJobs() (jobs []GateJob) {
	for _, doc := range r.rollouts {
		for i, wave := range r.Rollouts[doc.Name].Waves {
			for n, gate := range wave.Gates {
				if gate.Job != nil {
					jobs = append(jobs, GateJob{doc.Name, Reference{
						At:    doc.PositionOf("spec", "waves", i, "gates", n, "job", "name"),
						Place: fmt.Sprintf("spec.waves[%d].gates[%d].job.name", i, n),
						Kind:  "Job", Object: gate.Job.Name,
					}})
				}
			}
		}
	}
	return jobs
}

// checkAfter finds units that gates name and that are not there, and units that wait for
// each other.
func (l *loader) checkAfter() {
	waits := map[string][]*afterEdge{} // by the name of the rollout
	for _, doc := range l.repository.rollouts {
		name, r := doc.Name, l.repository.Rollouts[doc.Name]
		for i := range r.Waves {
			for n := range r.Waves[i].Gates {
				if after := r.Waves[i].Gates[n].After; after != nil && after.Unit != "" {
					waits[name] = append(waits[name], &afterEdge{doc: doc, unit: after.Unit, path: []any{"spec", "waves", i, "gates", n, "after", "unit"}})
				}
			}
		}
	}
	if len(waits) == 0 {
		return
	}
	rolloutOf, paths := map[UnitPath]string{}, []string(nil)
	for unit := range l.repository.Units() {
		rolloutOf[unit.Path] = unit.Defaults.Rollout
		paths = append(paths, string(unit.Path))
	}
	next := func(path UnitPath) []*afterEdge { return waits[rolloutOf[path]] }
	for _, edges := range waits {
		for _, e := range edges {
			if _, there := rolloutOf[e.unit]; !there {
				why := document.Shorten(string(e.unit)) + ": no such unit"
				l.idleInUnits(IdleAt(e.doc, document.CodeReference, document.DidYouMean(string(e.unit), paths), why, e.path...))
			} else if circle := circleFrom(e.unit, next); circle != nil {
				in := &reading{Document: e.doc}
				in.at(e.path...).problem(document.CodeFleet, "units wait for each other: %s", joinUnits(circle))
				l.problem(in.problems()...)
			}
		}
	}
}

// afterEdge is a gate that has the units of a rollout wait for a unit.
type afterEdge struct {
	doc  *document.Document // the rollout
	unit UnitPath
	path []any
}

// circleFrom is a way from a unit to itself over what it waits for; nil when there is
// none.
func circleFrom(from UnitPath, next func(UnitPath) []*afterEdge) []UnitPath {
	seen := map[UnitPath]bool{}
	var walk func(at UnitPath, way []UnitPath) []UnitPath
	walk = func(at UnitPath, way []UnitPath) []UnitPath {
		for _, e := range next(at) {
			if e.unit == from {
				return append(way, at, from)
			}
			if !seen[e.unit] {
				seen[e.unit] = true
				if circle := walk(e.unit, append(slices.Clip(way), at)); circle != nil {
					return circle
				}
			}
		}
		return nil
	}
	return walk(from, nil)
}

func joinUnits(paths []UnitPath) string {
	texts := make([]string, len(paths))
	for i, path := range paths {
		texts[i] = string(path)
	}
	return strings.Join(texts, " -> ")
}
