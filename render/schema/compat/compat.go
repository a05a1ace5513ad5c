// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package compat compares two states of a schema, the message of an easy kind or a
// CustomResourceDefinition, and finds what a document that was good may not be any
// more, or may not mean any more. It knows schemas alone: it reads no document, no
// file and no cluster.
//
// Documents are YAML, so the measure is what a written document may hold, and not
// the bytes of protobuf: int32 may become int64, and a message may move to another
// file. Programs that are built from the same .proto are the reason for the rules
// on numbers.
package compat

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/swell-sh/swell/config/document"
)

// Severity is what a rule makes of a change.
type Severity string

const (
	// Breaking changes are refused: a document that was good may be refused, lose a
	// value or mean something else.
	Breaking Severity = "breaking"
	// Warning is for changes whose effect only the documents, or other programs, tell.
	Warning Severity = "warning"
)

// Rule is the stable name of a sort of change.
type Rule string

// Finding is a change that a rule is about.
type Finding struct {
	// Position is in the new state, or in the old one where what changed is not there
	// any more.
	document.Position
	Rule     Rule     `json:"rule"`
	Severity Severity `json:"severity"`
	// At is the kind and the path of the field: Runtime.spec.replicas. Items of lists and
	// values of maps have no step of their own.
	At      string `json:"at"`
	Message string `json:"message"`
	// Allowed is the reason why the change is let through; empty where it is not.
	Allowed string `json:"allowed,omitempty"`
}

// Refused says whether the change is not let through.
func (f Finding) Refused() bool { return f.Severity == Breaking && f.Allowed == "" }

// Text is the finding in one line, without its position.
func (f Finding) Text() string { return fmt.Sprintf("%s %s: %s", f.Rule, f.At, f.Message) }

// WithPlace is the finding with its place, and whether it is let through.
func (f Finding) WithPlace() string {
	how := ""
	switch {
	case f.Severity == Warning:
		how = "warning: "
	case f.Allowed != "":
		how = fmt.Sprintf("allowed (%s): ", f.Allowed)
	}
	return fmt.Sprintf("%s: %s%s", f.Position, how, f.Text())
}

// Sorted returns findings in reading order, each once.
func Sorted(findings []Finding) []Finding {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.At, b.At), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(findings)
}
