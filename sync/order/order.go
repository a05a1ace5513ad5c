// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package order has the words of what operators say to the daemon: who said what, about
// what, when and why. It carries nothing out: that is the planner's and the daemon's.
package order

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
)

// Verb is what is to be done.
type Verb string

// Orders that are in force until another one ends them, or until their time is over. See
// [Verb.Stands].
const (
	// Pause: releases and their rollbacks write nothing more. What is written goes on to
	// be looked at, drift is corrected. [Resume] ends it.
	Pause Verb = "pause"
	// Freeze: no release starts on a target, as outside of a window. What has started
	// goes on, also back; drift is corrected. [Thaw] ends it.
	Freeze Verb = "freeze"
	// Mask: nothing is written of any sort. [Unmask] ends it.
	Mask Verb = "mask"
	// Retire: a target is emptied, whatever the commit wants there. [Restore] ends it.
	Retire Verb = "retire"
	// Exempt: freezes and Windows do not hold releases, until its time is over. [Unexempt]
	// ends it before.
	Exempt Verb = "exempt"
	// Approve says yes to what waits, or will wait, under a digest: the start of a wave.
	// It is in force until its time is over.
	Approve Verb = "approve"
)

// Orders that are carried out once.
const (
	Resume  Verb = "resume"
	Thaw    Verb = "thaw"
	Unmask  Verb = "unmask"
	Restore Verb = "restore"
	// Unexempt ends exceptions.
	Unexempt Verb = "unexempt"
	// Retry starts again what failed or waits.
	Retry Verb = "retry"
	// Promote ends the soak and the gates of the wave under way, and the gates at the
	// start of the next one. What is not applied and healthy is waited for all the same.
	Promote Verb = "promote"
	// Rollback puts back what ran before, and quarantines what runs.
	Rollback Verb = "rollback"
	// Reconcile looks at Git, at the clusters and for drift now.
	Reconcile Verb = "reconcile"
	// Clear ends the quarantine of bundles.
	Clear Verb = "clear"
	// Accept takes a cluster that was made anew under its name for a new one: what the one
	// before had is forgotten.
	Accept Verb = "accept"
)

// Verbs are all verbs.
var Verbs = []Verb{
	Pause, Freeze, Mask, Retire, Exempt, Resume, Thaw, Unmask, Restore, Unexempt, Retry, Promote, Rollback, Reconcile, Clear, Accept, Approve,
}

// ends are the verbs that end a standing order.
var ends = map[Verb]Verb{Resume: Pause, Thaw: Freeze, Unmask: Mask, Restore: Retire, Unexempt: Exempt}

// Stands says whether an order of the verb is in force until it is ended.
func (v Verb) Stands() bool {
	return v == Pause || v == Freeze || v == Mask || v == Retire || v == Exempt || v == Approve
}

// KeepsWrites says whether a standing order of the verb keeps writes from the places that it is
// about.
func (v Verb) KeepsWrites() bool { return v == Mask || v == Pause || v == Freeze }

// Ends is the verb whose standing orders this one ends; empty where it ends none.
func (v Verb) Ends() Verb { return ends[v] }

// OfUnits says that orders of the verb are about units as a whole: they name no target.
func (v Verb) OfUnits() bool { return v == Promote || v == Rollback || v == Clear }

// Order is an operator's order.
type Order struct {
	Seq    int64     `json:"seq"` // the oldest is the smallest; 0 before it is stored
	At     time.Time `json:"at"`  // when it was given
	By     string    `json:"by"`
	Verb   Verb      `json:"verb"`
	Scope  Scope     `json:"scope"`
	Reason string    `json:"reason,omitempty"` // as the operator gave it, one line
	// Until is when a standing order ends by itself; zero is never.
	Until time.Time `json:"until,omitzero"`
	// Relative says that Until was given as an amount of time: it moves along when the clock
	// is set.
	Relative bool `json:"relative,omitempty"`
	// Digest is what an Approve is about.
	Digest object.Digest `json:"digest,omitempty"`
	// To is what a Rollback goes to: a commit, or the beginning of its hash, or the number of
	// a unit's rollout; empty is what ran before. Of an Accept it is the UID that the namespace
	// kube-system of the cluster has by now.
	To string `json:"to,omitempty"`
}

// Text is the order in one line, for the history.
func (o *Order) Text() string {
	text := "by " + o.By
	if o.Reason != "" {
		text += ": " + o.Reason
	}
	return text
}

// EndAfter has a standing order end when it was in force for so long.
func (o *Order) EndAfter(amount time.Duration) {
	o.Until, o.Relative = o.At.Add(amount).Round(time.Second), true
}

// ParseAmount reads how long an order is in force: a duration of Go, or a number of days as
// in "7d"; from a second to ten years.
func ParseAmount(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n int
		n, err = strconv.Atoi(days)
		d = time.Duration(min(max(n, 0), maxDays+1)) * 24 * time.Hour
	}
	if err != nil || d < time.Second || d > maxDays*24*time.Hour {
		return 0, fmt.Errorf("want a duration like 90m, 2h30m or 7d, from 1s to %dd", maxDays)
	}
	return d, nil
}

// maxDays is the longest time that an order is in force, where it has an end as an amount.
const maxDays = 3650

// Over says that the time of a standing order is over.
func (o *Order) Over(now time.Time) bool { return !o.Until.IsZero() && !now.Before(o.Until) }

// Scope is what an order is about: all that has each of what is set. The zero value is
// everything.
type Scope struct {
	// Unit is a unit, or a folder of units.
	Unit config.UnitPath `json:"unit,omitempty"`
	// Target is a target, or a cluster with all its targets.
	Target config.TargetName `json:"target,omitempty"`
	Tenant string            `json:"tenant,omitempty"`
	// Wave is the name of a wave of the units' rollouts.
	Wave string `json:"wave,omitempty"`
}

// Has says whether the scope has the place.
func (s Scope) Has(at config.Place) bool {
	return s.HasUnit(at.Unit, at.Tenant) && s.HasTarget(at.Target) && (s.Wave == "" || s.Wave == at.Wave)
}

// HasUnit says whether the scope has something of the unit.
func (s Scope) HasUnit(unit config.UnitPath, tenant string) bool {
	return config.Within(string(unit), string(s.Unit)) && (s.Tenant == "" || s.Tenant == tenant)
}

// HasTarget says whether the scope has something of the target.
func (s Scope) HasTarget(name config.TargetName) bool {
	return s.Target == "" || s.Target == name || string(s.Target) == name.Cluster()
}

// HasCluster says whether the scope has all of the cluster, whatever the unit.
func (s Scope) HasCluster(name string) bool {
	return s.Unit == "" && s.Tenant == "" && s.Wave == "" && (s.Target == "" || string(s.Target) == name)
}

// Text names the scope: "services/shop on sas-1", "everything".
func (s Scope) Text() string {
	var parts []string
	if s.Unit != "" {
		parts = append(parts, string(s.Unit))
	}
	for _, part := range []struct{ of, name string }{{"tenant ", s.Tenant}, {"wave ", s.Wave}, {"on ", string(s.Target)}} {
		if part.name != "" {
			parts = append(parts, part.of+part.name)
		}
	}
	return cmp.Or(strings.TrimPrefix(strings.Join(parts, " "), "on "), "everything")
}

// maxReason is the longest reason, in bytes.
const maxReason = 1000

// Check says what is wrong with an order, whatever is known of the fleet.
func (o *Order) Check(now time.Time) error {
	switch {
	case !slices.Contains(Verbs, o.Verb):
		return fmt.Errorf("verb %q: want one of %s", o.Verb, names(Verbs))
	case !utf8.ValidString(o.Reason):
		return errors.New("reason: want UTF-8")
	case strings.ContainsFunc(o.Reason, func(r rune) bool { return !unicode.IsPrint(r) }):
		return errors.New("reason: want one line without control characters")
	case len(o.Reason) > maxReason:
		return fmt.Errorf("reason: want at most %d bytes, got %d", maxReason, len(o.Reason))
	case !o.Until.IsZero() && !o.Verb.Stands():
		return fmt.Errorf("%s: it is carried out once, so it has no end", o.Verb)
	case o.Over(now):
		return fmt.Errorf("until %s: that is over", o.Until.Format(time.RFC3339))
	case o.Verb == Approve && o.Digest == "":
		return errors.New("approve: want a digest")
	case o.Verb != Approve && o.Digest != "":
		return fmt.Errorf("%s: it has no digest", o.Verb)
	case o.Verb == Accept && (o.To == "" || o.Scope.Target == "" || o.Scope != Scope{Target: config.TargetName(o.Scope.Target.Cluster())}):
		return errors.New("accept: want a cluster, and the UID of its namespace kube-system by now, and nothing else")
	case o.To != "" && o.Verb != Rollback && o.Verb != Accept:
		return fmt.Errorf("%s: it goes to no commit", o.Verb)
	case o.To != "" && o.Verb == Rollback && !isAbbreviated(o.To) && !isNumber(o.To):
		return fmt.Errorf("to %q: want a commit, or at least %d digits of its hash, or the number of a rollout", o.To, fewestDigits)
	case o.Verb == Exempt && (o.Until.IsZero() || o.Scope.Unit == ""):
		return errors.New("exempt: want a unit or a folder, and an end")
	case o.Verb == Retire && (o.Scope.Target == "" || o.Scope != Scope{Target: o.Scope.Target}):
		return errors.New("retire: want a target or a cluster, and nothing else")
	case o.Verb.OfUnits() && (o.Scope.Target != "" || o.Scope.Wave != "" && o.Verb != Promote):
		return fmt.Errorf("%s: it is about units as a whole: want units, a folder or a tenant, and no target or wave", o.Verb)
	}
	return nil
}

// fewestDigits is how much of the hash of a commit names it.
const fewestDigits = 7

// isAbbreviated says whether a text can be the beginning of the hash of a commit.
func isAbbreviated(text string) bool {
	return len(text) >= fewestDigits && strings.Trim(text, "0123456789abcdef") == ""
}

// isNumber says whether a text is the number of a rollout: it has fewer digits than a commit.
func isNumber(text string) bool {
	return text != "" && len(text) < fewestDigits && strings.Trim(text, "0123456789") == ""
}

// ToRollout is the number of the rollout that a rollback goes to; not ok when it names a
// commit, or nothing.
func (o *Order) ToRollout() (number int, ok bool) {
	if !isNumber(o.To) {
		return 0, false
	}
	number, err := strconv.Atoi(o.To)
	return number, err == nil
}

// Standing are orders in force, by number.
type Standing []Order

// Holds is the first order of the verb in force that has the place; nil where there is
// none.
func (s Standing) Holds(verb Verb, at config.Place, now time.Time) *Order {
	for i := range s {
		if o := &s[i]; o.Verb == verb && !o.Over(now) && o.Scope.Has(at) {
			return o
		}
	}
	return nil
}

// names are verbs as people write them.
func names(verbs []Verb) string {
	var list []string
	for _, v := range verbs {
		list = append(list, string(v))
	}
	return strings.Join(list, ", ")
}
