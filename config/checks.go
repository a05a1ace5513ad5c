// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"slices"
	"time"

	"github.com/swell-sh/swell/config/document"
)

// Treatment is what becomes of what a check finds.
type Treatment string

const (
	Refuse Treatment = "refuse" // it is a problem
	Warn   Treatment = "warn"   // it is a note
	Pass   Treatment = "pass"   // nothing is said
)

// Checks is what becomes of what the checks of units find.
type Checks struct {
	// UnknownKinds are custom resources whose definition is nowhere. Empty is [Refuse].
	UnknownKinds Treatment
	// PlainSecrets are values of Secrets that stand in the repository as they are.
	// Empty is [Refuse].
	PlainSecrets Treatment
	// StaleFacts is after how long facts are said to be stale.
	StaleFacts time.Duration
	// SkipMissing has texts pass, with a note, that no program can judge because it is
	// missing; else they are refused.
	SkipMissing bool
}

// Stricter is what holds where both hold.
func (c Checks) Stricter(other Checks) Checks {
	c.UnknownKinds = stricter(c.UnknownKinds, other.UnknownKinds)
	c.PlainSecrets = stricter(c.PlainSecrets, other.PlainSecrets)
	c.SkipMissing = c.SkipMissing && other.SkipMissing
	return c
}

// stricter is the one of two treatments that lets less pass.
func stricter(a, b Treatment) Treatment {
	order := []Treatment{Refuse, Warn, Pass}
	return order[max(0, min(slices.Index(order, a), slices.Index(order, b)))]
}

type checksSpec struct {
	UnknownKinds, PlainSecrets, StaleFacts, MissingCheckers string
	AllowedChanges                                          []struct{ Rule, At, Reason string }
}

func (r *reading) checks(spec checksSpec) Checks {
	c := Checks{UnknownKinds: r.treatment("unknownKinds", spec.UnknownKinds, Refuse),
		PlainSecrets: r.treatment("plainSecrets", spec.PlainSecrets, Refuse), StaleFacts: DefaultStaleFacts, SkipMissing: spec.MissingCheckers == "skip"}
	switch spec.MissingCheckers {
	case "", "refuse", "skip":
	default:
		r.at("spec", "checks", "missingCheckers").problem(document.CodeType, "want refuse or skip, got %q", document.Shorten(spec.MissingCheckers))
	}
	if spec.StaleFacts != "" {
		if c.StaleFacts = duration(spec.StaleFacts); c.StaleFacts <= 0 {
			r.at("spec", "checks", "staleFacts").problem(document.CodeType, "want a duration over 0, like 168h, got %q", document.Shorten(spec.StaleFacts))
		}
	}
	return c
}

// treatment reads one of the fields of checks.
func (r *reading) treatment(field, text string, otherwise Treatment) Treatment {
	t := Treatment(cmp.Or(text, string(otherwise)))
	if !slices.Contains([]Treatment{Refuse, Warn, Pass}, t) {
		r.at("spec", "checks", field).problem(document.CodeType, "want refuse, warn or pass, got %q", document.Shorten(text))
	}
	return t
}
