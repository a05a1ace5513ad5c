// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package rollout decides the writes of a release, wave by wave. It is pure.
// [State.Decide] takes the wanted bundles of a commit and the time and gives a
// [Plan]; [State.Record] takes the outcome of an action. The package never
// talks to a cluster, a file or a clock, starts no goroutine, and gives the
// same plan for the same state, commit and time.
//
// How a caller uses it:
//
//	plan := state.Decide(want, now)
//	agenda.Take(plan)                        // with what earlier plans said of other units
//	store(state.Changed()); state.Stored()   // before the first action
//	for each action on the agenda, at most one at a time per target:
//		state.Record(outcome, now)
//	store(state.Changed()); state.Stored()
//	decide again; without actions, sleep until plan.Wake or a new commit
//
// The order matters. Decide marks a target as dirty before anything is written
// to it, so a process that is killed at any instruction finds on disk that the
// target may hold anything, and writes it again. Actions that are under way stay on the
// agenda, or are planned again; the caller leaves those.
//
// # Stored data
//
// State is one row per unit, the JSON of [Unit]. Everything that a decision
// depends on is in it, so a restart goes on with the same wave, the same soak
// and the same failures. Fields are only added, and a missing field means what
// it meant before it existed; a row with an unknown field comes from a newer
// swell, and its reader refuses it, see package store. The names of
// [config.Rollout] and what it holds are part of the format.
//
// # Rules
//
//   - A unit has one rollout at a time. A commit supersedes it when, and only
//     when, it wants other bundles of the unit; it starts again at the first wave.
//   - A wave is passed when each of its targets is applied, healthy and soaked,
//     except for as many as may fail. Only then is the next one written.
//   - Targets that the unit left are cleaned last, after every wave was passed,
//     in the order of the waves.
//   - Too many failures of targets that the rollout wrote put the last proven
//     bundles back on those targets alone, and quarantine the ones that failed.
//     A target that is unreachable or unavailable, or that was unhealthy before, only
//     makes the wave wait, and time in which its health cannot be known does not
//     count against its timeout.
//   - Where there are no proven bundles at all, the failed bundles stay, and the
//     rollout continues when they are healthy.
//   - A deletion that waits for approval fails nothing; a unit that leaves a target
//     stays on it as long.
//   - A unit with a problem, or a whole commit with one, brings nothing new and
//     deletes nothing. What is under way goes on with the bundles recorded here.
package rollout

import (
	"fmt"
	"strings"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
)

// State is all that decisions depend on from one pass to the next. The zero
// value knows nothing: every target is then brought in again through the waves.
// It is not safe for concurrent use.
type State struct {
	Units map[config.UnitPath]*Unit

	notices notices // no part of what decisions depend on, only of their time
	changed map[config.UnitPath]bool
	// found are the places with objects that no bundle was applied to since they were found.
	found map[object.UnitTarget]bool
	// fleet are the clusters of the fleet that targets were last compared with.
	fleet  map[string]bool
	common common // of the last Decide
}

// Unit is the state of one unit. It exists from the unit's first rollout until
// the last of its targets is cleaned.
type Unit struct {
	Path config.UnitPath `json:"path"`
	// Rollout is the one under way, or the last one. It is never nil.
	Rollout *Rollout `json:"rollout"`
	// Targets are those that the unit is on, is going to, or is leaving.
	Targets map[config.TargetName]*Target `json:"targets,omitempty"`
	// Commits says for each digest that a target wants, holds or may have to
	// go back to, which commit renders it. Bundles themselves are not kept.
	Commits map[object.Digest]config.Commit `json:"commits,omitempty"`
	// Releases are the commits of rollouts that passed their waves, by their number.
	Releases map[int]config.Commit `json:"releases,omitempty"`
	// Origins are the units that a commit has in place of this one, of bundles from before
	// it was renamed.
	Origins map[object.Digest]config.UnitPath `json:"origins,omitempty"`
	// Quarantine are bundles that failed. No rollout starts that would bring
	// one to a target where it is not the good one.
	Quarantine map[object.Digest]Quarantined `json:"quarantine,omitempty"`
	// Blocked says why the newest commit is not released: the unit has
	// problems, or a bundle is quarantined. It is about the commit; how the
	// rollout stands is in [Rollout.Reason].
	Blocked string `json:"blocked,omitempty"`
	// Waiting says which deletions of the unit wait for approval. They fail
	// nothing: the rollout goes on without them.
	Waiting string `json:"waiting,omitempty"`
	// BlockedBy is the kind of what Blocked tells of.
	BlockedBy Obstacle `json:"blockedBy,omitempty"`
	// Tenant whose unit it is, by the last commit that said so.
	Tenant string `json:"tenant,omitempty"`
	// Pending is the release that the commit wants and that waits for its turn; nil when
	// there is none.
	Pending *Pending `json:"pending,omitempty"`

	listed []named // see [Unit.list]
	// barred says what keeps the unit from writing, or its wave from ending, at the
	// Decide under way: the first reason.
	barred string
	// settled says that the unit need not be looked at before its wake, if nothing happens
	// to it; and over, that there is nothing to wait for either.
	settled, over bool
	wake          time.Time // zero: never
	// restless says that it has to be looked at in the next Decide in any case, and
	// crowded when other units are in change.
	restless, crowded bool
	wanted            *WantedUnit // what the commit wanted of it when it was last looked at
	changes           inChange    // since then, while a budget counts them
}

// Obstacle is a kind of reason why the newest commit is not released. The zero value
// is any that has no word of its own, a problem for one.
type Obstacle string

const (
	ObstacleQuarantine Obstacle = "quarantine" // a bundle of it failed before
	ObstacleEmpty      Obstacle = "empty"      // it renders to nothing
	ObstacleTurn       Obstacle = "turn"       // other units come first, or failed on the commit
)

// Quarantined says when and why a bundle was put away.
type Quarantined struct {
	Commit config.Commit     `json:"commit"`
	Target config.TargetName `json:"target"`
	Reason string            `json:"reason"`
	At     time.Time         `json:"at"`
}

// Why says why the bundle was put away.
func (q *Quarantined) Why() string {
	if strings.HasPrefix(q.Reason, byHand) {
		return q.Reason
	}
	return fmt.Sprintf("it failed on target %s: %s", q.Target, q.Reason)
}

// Rollout is one release of a unit on its way through the waves.
type Rollout struct {
	ID     int           `json:"id"` // counts the unit's rollouts, from 1
	Commit config.Commit `json:"commit"`
	// Release is what the rollout set out to bring, see [WantedUnit.Release].
	// It stays the same when the rollout is rolled back.
	Release object.Digest `json:"release"`
	Status  Status        `json:"status"`
	// Adopt is what the unit could do with objects of others when the rollout started. A
	// release that failed begins anew when a commit says something else.
	Adopt config.Adoption `json:"adopt,omitempty"`
	// Spec is the rollout's document as it was when this rollout started.
	Spec config.Rollout `json:"spec"`
	// Wave is the index of the wave under way; all before it are passed. When
	// Removing is set, they are passed a second time, to remove the unit from
	// targets that it left.
	Wave     int  `json:"wave,omitempty"`
	Removing bool `json:"removing,omitempty"`
	// Stalled says of a rollout that is held that it goes on by itself as soon as
	// its wave is well: there was nothing to go back to, so what failed is still
	// there, is looked at and is tried again.
	Stalled bool `json:"stalled,omitempty"`
	// Silence says of one that is stalled that only a target that does not answer holds
	// it.
	Silence bool `json:"silence,omitempty"`
	// Gates are the gates of the waves that were asked. The start of the waves before
	// StartsWaived is open, and the end of those before EndsWaived, whatever gates and
	// soaks say: an operator promoted them.
	Gates        []GateState `json:"gates,omitempty"`
	StartsWaived int         `json:"startsWaived,omitempty"`
	EndsWaived   int         `json:"endsWaived,omitempty"`
	// Promoted says that an operator let the rollout go on although other units failed
	// on its commit.
	Promoted bool `json:"promoted,omitempty"`
	// Authors are the operators who wrote what it brings.
	Authors []string `json:"authors,omitempty"`
	// Approved says that the release ends workloads of the unit, and that
	// somebody approved it. It holds on in a rollout that supersedes this one.
	Approved bool `json:"approved,omitempty"`
	// Failure says which targets made the rollout fail, and why.
	Failure string `json:"failure,omitempty"`
	// Reason says what the rollout waits for, or why it ended as it did. Empty
	// when it is done with no debts.
	Reason     string    `json:"reason,omitempty"`
	StartedAt  time.Time `json:"startedAt,omitzero"`
	FinishedAt time.Time `json:"finishedAt,omitzero"`
}

// Status of a rollout.
type Status string

const (
	// Progressing through the waves.
	Progressing Status = "progressing"
	// Done: every wave is passed. Targets that were tolerated as failed or
	// unreachable are still tried again.
	Done Status = "done"
	// RollingBack: a wave failed, and the good bundles are being put back.
	RollingBack Status = "rolling back"
	// RolledBack: they are back and healthy.
	RolledBack Status = "rolled back"
	// Held: a wave failed, and nothing new is written until the unit wants other
	// bundles, because the rollout says so or because there was nothing to go
	// back to. In the latter case drift is corrected and health looked at all the
	// same, and see [Rollout.Stalled].
	Held Status = "held"
)

// Target is the state of one unit on one target.
type Target struct {
	Labels map[string]string `json:"labels,omitempty"`
	// Wave is the index of the target's wave in [Rollout.Spec], or -1 when no
	// wave picks it; then Wanted is Applied and nothing new comes.
	Wave int `json:"wave"`

	// Needs are the units that must be applied here first.
	Needs []config.UnitPath `json:"needs,omitempty"`

	// Wanted is what the rollout, or its rollback, wants here. Empty: nothing,
	// the unit leaves the target.
	Wanted object.Digest `json:"wanted,omitempty"`
	// Applied is the last bundle that the server took as a whole.
	Applied object.Digest `json:"applied,omitempty"`
	// Good is the last bundle that was healthy here when a rollout was done,
	// or became healthy after: what a rollback puts back.
	Good object.Digest `json:"good,omitempty"`
	// Ran are the last bundles that were good here, the newest first; Good is among
	// them. At most maxRan.
	Ran []Past `json:"ran,omitempty"`
	// Installed says that a bundle of the unit was healthy here once, or that its objects
	// were found after the state was lost. In a row from before this field, Good and Ran say
	// so. Existed says that objects of the unit were here before swell wrote any, when it
	// last looked.
	Installed bool `json:"installed,omitempty"`
	Existed   bool `json:"existed,omitempty"`
	// Installing is the bundle that installs the unit here, until another one is written.
	// It is only set for a bundle whose hooks differ, see [object.Bundle.DiffersByEvent].
	Installing object.Digest `json:"installing,omitempty"`
	// Successor is the unit that has the objects here by now: this one was renamed. It is not
	// cleaned before that one is well here.
	Successor config.UnitPath `json:"successor,omitempty"`
	// Objects is how many objects Wanted has, as far as is known.
	Objects int `json:"objects,omitempty"`
	// Masked says why nothing may be written here; empty when it may.
	Masked string `json:"masked,omitempty"`
	// MaskedIll says that the release was here and not healthy when the mask came, and has not
	// become healthy since.
	MaskedIll bool `json:"maskedIll,omitempty"`
	// Excused says that the waves go on without the target, which does not answer.
	Excused bool `json:"excused,omitempty"`
	// Owes says that its wave was passed without the target. When it is written at last,
	// the wave is gone through again.
	Owes bool `json:"owes,omitempty"`
	// Fast says that the target goes back to a bundle that it had, without its wave's
	// turn, gates and soak.
	Fast bool `json:"fast,omitempty"`
	// Proved has, for each Job of a gate, the bundle that it last succeeded for.
	// GateFailed says why one failed for the bundle that is applied.
	Proved     map[string]object.Digest `json:"proved,omitempty"`
	GateFailed string                   `json:"gateFailed,omitempty"`
	// Dirty says that a write was started and is not known to be complete, so
	// the target may hold a mix.
	Dirty bool `json:"dirty,omitempty"`
	// Touched says that the rollout, or one that it superseded, started a
	// write here and was not done since: a rollback has something to undo.
	Touched bool `json:"touched,omitempty"`
	// Drifted says that live objects differ from what was applied.
	Drifted bool `json:"drifted,omitempty"`
	// Leftovers says that objects of earlier bundles may still be there.
	Leftovers bool `json:"leftovers,omitempty"`
	// Left says why they are, since they were last to be deleted; empty when none are, or
	// nobody has tried.
	Left string `json:"left,omitempty"`
	// Made counts, by sort, objects that were new here since there were no
	// leftovers: as many leftovers of the sort were replaced, see [State.Makes].
	Made map[string]int `json:"made,omitempty"`
	// Runs says what the bundle that was last healthy here runs, in the caller's
	// words; empty: nothing, or nobody knows.
	Runs string `json:"runs,omitempty"`

	Health Health `json:"health,omitempty"`
	// Since is when Health last changed between healthy and not healthy, or
	// when the target was last applied.
	Since time.Time `json:"since,omitzero"`
	// CheckedAt is when health was last seen. Zero: not since the last apply.
	CheckedAt time.Time `json:"checkedAt,omitzero"`
	// AppliedAt is when Applied was last written, or removed.
	AppliedAt time.Time `json:"appliedAt,omitzero"`

	// Trouble says that Wanted cannot be reached at the moment.
	Trouble Trouble `json:"trouble,omitempty"`
	// Reason is the cause of the trouble, or what health waits for.
	Reason string `json:"reason,omitempty"`
	// TriedAt is when the rollout first tried to write here.
	TriedAt time.Time `json:"triedAt,omitzero"`
	// Attempts that failed in a row; the next one is at RetryAt.
	Attempts int       `json:"attempts,omitempty"`
	RetryAt  time.Time `json:"retryAt,omitzero"`
	// Gone says that the last of several attempts found no commit that its bundle is rendered from:
	// nothing more is written before another commit.
	Gone bool `json:"gone,omitempty"`
	// Authors wrote what earlier releases brought that were done without this target.
	Authors []string `json:"authors,omitempty"`
	// Step is what the action under way waits for, a phase of the bundle or a
	// hook, and StepSince is since when. Empty: nothing, as far as is known.
	Step      string    `json:"step,omitempty"`
	StepSince time.Time `json:"stepSince,omitzero"`
	// OthersStep says that Step is nothing of the bundle, which does not fail for it.
	OthersStep bool `json:"othersStep,omitempty"`
	// BlindSince is since when it is not known how the objects are, because the
	// target is unreachable or unavailable; zero when it is known.
	BlindSince time.Time `json:"blindSince,omitzero"`
	// BackSince is when it was known again after it was not for minAway or longer; zero:
	// never.
	BackSince time.Time `json:"backSince,omitzero"`

	// Tenants are those as whose accounts the unit's objects here were written,
	// the last one first; more than one until what the earlier ones left is
	// gone. None: swell's own account wrote them all.
	Tenants []Tenant `json:"tenants,omitempty"`

	// compared is the bundle that was compared with what was found here, see [pass.compare],
	// and live says that it was the same.
	compared object.Digest
	live     bool
}

// Health of what is applied on a target, as last seen.
type Health string

const (
	HealthUnknown     Health = ""
	HealthProgressing Health = "progressing"
	HealthGood        Health = "healthy"
	HealthFailed      Health = "failed"
)

// Trouble is why a target does not get where it should.
type Trouble string

const (
	NoTrouble Trouble = ""
	// TroubleFailed: the server refused the bundle, or it is not healthy. It
	// lasts until the bundle is accepted, or healthy.
	TroubleFailed Trouble = "failed"
	// TroubleUnreachable: nobody knows. It never fails a rollout.
	TroubleUnreachable Trouble = "unreachable"
	// TroubleUnavailable: the target is in trouble that is not its bundle's, see
	// [Unavailable]. It never fails a rollout.
	TroubleUnavailable Trouble = "unavailable"
	// TroubleDeferred: something that the bundle needs is missing there. It becomes
	// TroubleFailed when it lasts longer than the wave's timeout.
	TroubleDeferred Trouble = "deferred"
)

// InForce are the bundles that hold for the unit on a target: the one that it is to
// have, and the one that it has until then unless that is being taken back. A unit
// that leaves the target, or that is not there, has none.
func (u *Unit) InForce(name config.TargetName) []object.Digest {
	t := u.Targets[name]
	switch {
	case t == nil || t.Wanted == "":
		return nil
	case t.Applied == "" || t.Applied == t.Wanted || u.Rollout.Status == RollingBack:
		return []object.Digest{t.Wanted}
	}
	return []object.Digest{t.Wanted, t.Applied}
}

// applied says that the target holds what it should, as far as is known.
func (t *Target) applied() bool { return t.Applied == t.Wanted && !t.Dirty }

// done says that there is nothing left to do but to soak.
func (t *Target) done() bool {
	if t.Wanted == "" {
		return t.applied()
	}
	return t.applied() && !t.Drifted && t.Health == HealthGood && t.Trouble == NoTrouble
}

// debt says that the target is not done, and that its wave may be passed
// without it if the wave tolerates it.
func (t *Target) debt() bool {
	return t.Trouble == TroubleFailed || t.Trouble == TroubleUnreachable || t.Trouble == TroubleUnavailable
}

// nothing says that the unit never left anything on the target.
func (t *Target) nothing() bool { return t.Applied == "" && t.Good == "" && !t.Dirty }

// IsEmpty says that no bundle is applied on the target, and that none is wanted there.
func (t *Target) IsEmpty() bool { return t.Applied == "" && t.Wanted == "" }

// forgive forgets what went wrong, and gives a target that is not healthy its
// whole time again.
func (t *Target) forgive(now time.Time) {
	t.Trouble, t.Reason, t.Attempts, t.Gone = NoTrouble, "", 0, false
	t.RetryAt, t.TriedAt = time.Time{}, time.Time{}
	t.Step, t.StepSince, t.BlindSince = "", time.Time{}, time.Time{}
	t.Excused, t.GateFailed = false, ""
	if t.Health != HealthGood {
		t.Since = now
	}
}

// instant is a time as it is stored, so that a state that was stored and read
// again decides the same.
func instant(t time.Time) time.Time { return t.UTC().Round(0) }
