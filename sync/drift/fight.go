// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"cmp"
	"time"

	"github.com/swell-sh/swell/sync/store"
)

// What makes a fight: the same field of an object lost more often than fightLosses within
// fightWindow, the object corrected more often than fightCorrections, whatever its fields, or
// the objects of a target more often again than fightRepeats, whichever they are.
const (
	fightLosses      = 5
	fightCorrections = 12
	fightRepeats     = 30
	fightWindow      = time.Minute
	// MinBackoff is how long a fight rests when it was given up the first time;
	// it doubles with each time, up to MaxBackoff.
	MinBackoff = time.Minute
	MaxBackoff = time.Hour
)

// lossesOf are the fields that a finding lost.
func lossesOf(f Finding, now time.Time) []store.Loss {
	if len(f.Changes) == 0 {
		return []store.Loss{{Manager: store.UnknownManager, At: now}}
	}
	losses := make([]store.Loss, len(f.Changes))
	for i, c := range f.Changes {
		losses[i] = store.Loss{Field: c.Field, Manager: cmp.Or(c.Manager, store.UnknownManager), At: now}
	}
	return losses
}

// countLosses adds lost fields of an object to its fight, and says whether to correct
// them. repeats is how often objects of its target were corrected again within the last
// fightWindow. It is pure.
func countLosses(f store.Fight, lost []store.Loss, repeats int, now time.Time) (after store.Fight, correct bool) {
	before := corrections(f, now)
	f.Losses = append(recent(f.Losses, now), lost...)
	switch {
	case f.Rounds > 0 && now.Before(f.Until):
		return f, false
	case f.Rounds > 0 && f.Tried.IsZero():
		f.Tried = now
		return f, true
	case f.Rounds > 0 && now.Sub(f.Tried) <= fightWindow:
		return giveUp(f, lost[0], now), false
	case f.Rounds > 0: // the last correction held for a while: this is something new
		return store.Fight{Object: f.Object, Digest: f.Digest, Losses: lost}, true
	}
	times := map[string]int{}
	for _, loss := range f.Losses {
		if times[loss.Field]++; times[loss.Field] > fightLosses {
			return giveUp(f, loss, now), false
		}
	}
	if before >= fightCorrections || before > 0 && repeats >= fightRepeats {
		return giveUp(f, store.Loss{Manager: lost[0].Manager}, now), false
	}
	return f, true
}

// corrections is how often an object was corrected within the last fightWindow: what was lost
// at one time was corrected at once.
func corrections(f store.Fight, now time.Time) (n int) {
	var last time.Time
	for _, loss := range recent(f.Losses, now) {
		if !loss.At.Equal(last) {
			n, last = n+1, loss.At
		}
	}
	return n
}

// giveUp rests the fight, longer each time.
func giveUp(f store.Fight, over store.Loss, now time.Time) store.Fight {
	pause := MaxBackoff
	if f.Rounds < 6 { // 1 min · 2⁶ is over an hour
		pause = MinBackoff << f.Rounds
	}
	f.Field, f.Manager = over.Field, over.Manager
	f.Rounds++
	f.Until, f.Tried, f.Losses = now.Add(pause), time.Time{}, nil
	return f
}

// recent are the losses of the last minute.
func recent(losses []store.Loss, now time.Time) []store.Loss {
	var kept []store.Loss
	for _, loss := range losses {
		if now.Sub(loss.At) < fightWindow {
			kept = append(kept, loss)
		}
	}
	return kept
}

// over says that a fight needs not be remembered: the last correction held, or
// it never was one.
func over(f store.Fight, now time.Time) bool {
	if f.Rounds == 0 {
		return len(recent(f.Losses, now)) == 0
	}
	return !f.Tried.IsZero() && now.Sub(f.Tried) > fightWindow
}

// paused says that the object is not corrected at the moment.
func paused(f store.Fight, now time.Time) bool { return f.Rounds > 0 && now.Before(f.Until) }
