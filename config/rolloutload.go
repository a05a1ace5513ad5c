// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config/document"
)

// waveSpec is a wave as it is written.
type waveSpec struct {
	Name                       string
	Match                      matchSpec
	Targets                    []string
	Share                      string
	Soak, Timeout              string
	MaxConcurrent, MaxFailures any
	MaxObjects                 int
	Gates                      []gateSpec
}

func (l *loader) loadRollout(doc *document.Document) {
	var spec struct {
		Waves       []waveSpec
		OnFailure   string
		Unreachable struct {
			Policy, After string
			Limit         any
		}
		Revert string
	}
	in := readOwn(doc, &spec)
	r := &Rollout{Position: doc.Position(), Name: doc.Name, OnFailure: OnFailure(spec.OnFailure), FastRevert: spec.Revert == "fast"}
	switch r.OnFailure {
	case "":
		r.OnFailure = Rollback
	case Rollback, Hold:
	default:
		in.at("spec", "onFailure").problem(document.CodeType, "want rollback or hold, got %q", spec.OnFailure)
	}
	if spec.Revert != "" && spec.Revert != "waves" && spec.Revert != "fast" {
		in.at("spec", "revert").problem(document.CodeType, "want waves or fast, got %q", spec.Revert)
	}
	r.Unreachable.read(in, spec.Unreachable.Policy, spec.Unreachable.After, spec.Unreachable.Limit)
	switch {
	case len(spec.Waves) == 0:
		in.at("spec", "waves").problem(document.CodeFleet, "want at least one wave")
	case len(spec.Waves) > maxWaves:
		in.at("spec", "waves").problem(document.CodeFleet, "want at most %d waves, got %d", maxWaves, len(spec.Waves))
		spec.Waves = nil
	}
	seen := map[string]bool{}
	for i, w := range spec.Waves {
		r.Waves = append(r.Waves, in.wave(i, &w, seen))
		if i > 0 && r.Waves[i-1].takesAll() && !in.incomplete("spec", "waves", i-1) {
			in.at("spec", "waves", i, "match").problem(document.CodeFleet, "never reached: wave %q before it takes every target that is left", spec.Waves[i-1].Name)
		}
	}
	l.problem(in.problems()...)
	l.repository.Rollouts[r.Name] = r
	l.repository.rollouts = append(l.repository.rollouts, doc)
}

// maxWaves bounds what a unit's state has to hold of a rollout.
const maxWaves = 100

func (u *Unreachable) read(in *reading, policy, after string, limit any) {
	u.Policy, u.Limit, u.After = UnreachablePolicy(orText(policy, string(WaitForUnreachable))), defaultExcused, defaultExcusedAfter
	if !slices.Contains([]UnreachablePolicy{WaitForUnreachable, ExcuseUnreachable, HoldForUnreachable}, u.Policy) {
		in.at("spec", "unreachable", "policy").problem(document.CodeType, "want wait, excuse or hold, got %q", policy)
	}
	if after != "" {
		u.After = duration(after)
	}
	if u.After < 0 {
		in.at("spec", "unreachable", "after").problem(document.CodeType, "want a duration from 0, got %s", u.After)
	}
	if limit == nil {
		return
	}
	if u.Policy != ExcuseUnreachable {
		in.at("spec", "unreachable", "limit").problem(document.CodeFleet, "only with policy: excuse")
	}
	var err error
	if u.Limit, err = amount(limit, 1); err != nil {
		in.at("spec", "unreachable", "limit").problem(document.CodeFleet, "%s", err)
	}
}

// wave reads one wave; seen are the names of those before it.
func (r *reading) wave(i int, w *waveSpec, seen map[string]bool) Wave {
	wave := Wave{Name: w.Name, Soak: duration(w.Soak), Timeout: duration(w.Timeout), MaxObjects: w.MaxObjects, Match: r.match(w.Match, "spec", "waves", i, "match")}
	at := func(field, format string, args ...any) {
		r.at("spec", "waves", i, field).problem(document.CodeFleet, format, args...)
	}
	switch {
	case w.Name == "":
		at("name", "missing")
	case !document.IsPrintable(w.Name) || strings.TrimSpace(w.Name) != w.Name:
		at("name", "want a name whose characters all show, without a space around it, got %+q", document.Shorten(w.Name))
	case seen[w.Name]:
		at("name", "%q is declared twice in this rollout", w.Name)
	}
	seen[w.Name] = true
	for _, name := range w.Targets {
		wave.Targets = append(wave.Targets, TargetName(name))
	}
	var err error
	if wave.Share, err = share(w.Share); err != nil {
		at("share", "%s", err)
		wave.Share = 1 // not all
	}
	if wave.MaxConcurrent, err = amount(w.MaxConcurrent, 1); err != nil {
		at("maxConcurrent", "%s", err)
	}
	if wave.MaxFailures, err = amount(w.MaxFailures, 0); err != nil {
		at("maxFailures", "%s", err)
	}
	if wave.MaxObjects < 0 {
		at("maxObjects", "want a number from 1, got %d", wave.MaxObjects)
	}
	if wave.Soak < 0 {
		at("soak", "want a duration from 0, got %s", wave.Soak)
	}
	switch {
	case w.Timeout == "":
		wave.Timeout = DefaultHealthTimeout
	case wave.Timeout <= 0:
		at("timeout", "want a duration above 0, got %s", wave.Timeout)
	}
	for n := range w.Gates {
		wave.Gates = append(wave.Gates, r.gate(&w.Gates[n], &wave, "spec", "waves", i, "gates", n))
	}
	return wave
}

// share reads a percentage from 1% to 100%; empty is 0.
func share(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	a, err := amount(text, 1)
	if err != nil {
		return 0, fmt.Errorf("want a percentage from 1%% to 100%%, got %q", text)
	}
	return a.Percent, nil
}

// checkWaves finds waves that pick no target: mostly a mistyped label, which
// would silently switch the wave off. A value that no target has is no
// problem beside others that pick some: it would hold the whole fleet when the
// last cluster of a region goes. docs are those of the fleet.
func (l *loader) checkWaves(docs []*document.Document) {
	for _, doc := range docs {
		rollout := l.repository.Rollouts[doc.Name]
		if doc.Kind != "Rollout" || rollout == nil {
			continue
		}
		rollout.Vacant = rollout.vacantIn(l.repository.Clusters)
		listed := map[TargetName]int{}
		for i := range rollout.Waves {
			wave := &rollout.Waves[i]
			l.checkWaveTargets(doc, rollout, i, listed)
			if _, label := l.repository.unknownIn(wave.Match); !label && l.repository.picks(wave.Match) {
				continue
			}
			if why := l.repository.WhyNoTarget(wave.Match); why != "" {
				l.idleInFleet(IdleAt(doc, document.CodeFleet, "", fmt.Sprintf("wave %q%s: %s", wave.Name, rollout.standIn(i), why), "spec", "waves", i, "match"))
			}
		}
	}
}

// standIn says of a wave without targets who takes its part; empty where nobody does.
func (r *Rollout) standIn(wave int) string {
	if wave != 0 || r.Vacant == 0 {
		return ""
	}
	return ", in which the first target of each unit stands in"
}

// checkWaveTargets finds names of no target, and those that an earlier wave has.
func (l *loader) checkWaveTargets(doc *document.Document, rollout *Rollout, i int, listed map[TargetName]int) {
	wave := &rollout.Waves[i]
	for n, name := range wave.Targets {
		at := []any{"spec", "waves", i, "targets", n}
		first, twice := listed[name]
		if !twice {
			first, twice = listed[TargetName(name.Cluster())]
		}
		whole := len(wave.Match.Labels) == 0 && wave.Share == 0
		switch why, hint := l.repository.whyNoName(name); {
		case why != "":
			l.idleInFleet(IdleAt(doc, document.CodeFleet, hint, fmt.Sprintf("wave %q%s: %s", wave.Name, rollout.standIn(i), why), at...))
		case twice:
			l.problem(doc.Problem(doc.Deepest(at...), document.CodeFleet, "%s: never reached: %s is in %s already", document.PathOf(at...), name, document.PathOf("spec", "waves", first, "targets")))
		case whole:
			listed[name] = i
		}
	}
}

// whyNoName says that no target and no cluster of the fleet has the name; empty when one
// has. hint is the end of a message for whoever wrote it.
func (r *Repository) whyNoName(name TargetName) (why, hint string) {
	known := map[string]bool{}
	for _, c := range r.Clusters {
		for _, target := range c.everyTarget() {
			known[string(target.Name)] = true
		}
	}
	if known[string(name)] {
		return "", ""
	}
	return "the fleet has no target or cluster " + document.Shorten(string(name)), document.DidYouMean(string(name), slices.Collect(maps.Keys(known)))
}
