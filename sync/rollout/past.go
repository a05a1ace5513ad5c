// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/order"
)

// Past is a bundle that was good on a target, and the number of the rollout that made it so.
// Rollout is 0 of one from before the numbers were kept.
type Past struct {
	Digest  object.Digest `json:"digest"`
	Rollout int           `json:"rollout,omitempty"`
}

// UnmarshalJSON takes a digest alone, too: that was the form up to schema 12. A field that
// it does not know is an error.
func (p *Past) UnmarshalJSON(text []byte) error {
	if bytes.HasPrefix(text, []byte(`"`)) {
		return json.Unmarshal(text, &p.Digest)
	}
	type asObject Past
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	return decoder.Decode((*asObject)(p))
}

// maxRan is how many bundles that were good on a target are remembered.
const maxRan = 5

// good notes that what the target has is good since a rollout of that number.
func (t *Target) good(rollout int) {
	t.Good, t.Fast = t.Applied, false
	if len(t.Ran) > 0 && t.Ran[0].Digest == t.Good {
		return
	}
	ran := append([]Past{{t.Good, rollout}}, t.Ran...)
	t.Ran = ran[:min(len(ran), maxRan)]
}

// ran says that a bundle was good on the target.
func (t *Target) ran(digest object.Digest) bool {
	return slices.ContainsFunc(t.Ran, func(p Past) bool { return p.Digest == digest })
}

// InPast is a rollout that a unit can be put back to.
type InPast struct {
	Rollout int           `json:"rollout"`
	Commit  config.Commit `json:"commit"`
}

func (r InPast) text() string { return fmt.Sprintf("%d (commit %s)", r.Rollout, r.Commit.Short()) }

// past are the rollouts that passed their waves, the newest first, as far back as every
// target remembers what it had. The first one is not always what runs: another one may be
// under way.
func (u *Unit) past() (all []InPast) {
	oldest, floor := math.MaxInt, 0
	for _, t := range u.Targets {
		if n := len(t.Ran); n > 0 {
			oldest = min(oldest, t.Ran[n-1].Rollout)
			if n == maxRan { // what it had before is forgotten
				floor = max(floor, t.Ran[n-1].Rollout)
			}
		}
	}
	for _, id := range slices.Backward(slices.Sorted(maps.Keys(u.Releases))) {
		if id >= max(oldest, floor) {
			all = append(all, InPast{id, u.Releases[id]})
		}
	}
	return all
}

// BackTo are the rollouts that an operator can put the unit back to, the newest first.
func (u *Unit) BackTo() []InPast {
	past := u.past()
	if s := u.Rollout.Status; len(past) > 0 && (s == Done || s == RolledBack) { // the first one runs
		past = past[1:]
	}
	if u.Rollout.Status == RollingBack {
		return nil
	}
	return past
}

// pastRollout is the rollout that an order goes back to; why says why there is none.
func (u *Unit) pastRollout(o *order.Order) (aim InPast, why string) {
	number, isNumber := o.ToRollout()
	past, found := u.past(), []InPast(nil)
	commits := map[config.Commit]bool{}
	for _, r := range past {
		if isNumber && r.Rollout == number || !isNumber && strings.HasPrefix(string(r.Commit), o.To) {
			found = append(found, r)
			commits[r.Commit] = true
		}
	}
	switch {
	case len(commits) > 1:
		return aim, fmt.Sprintf("%s is the beginning of several commits: %s", o.To, PastText(found))
	case len(found) > 0:
		return found[0], ""
	case isNumber:
		return aim, fmt.Sprintf("no rollout %d that passed its waves is known; there are %s", number, PastText(past))
	}
	return aim, fmt.Sprintf("no rollout of commit %s that passed its waves is known; there are %s", o.To, PastText(past))
}

// PastText names rollouts: "12 (commit 4f9a1c22), 11 (commit 0d3e5b71)".
func PastText(all []InPast) string {
	var texts []string
	for _, r := range all {
		texts = append(texts, r.text())
	}
	return cmp.Or(strings.Join(texts, ", "), "none")
}

// stepBackTo makes good, on every target, the bundle that it had when a rollout was done: of
// those that ran, the newest that is not newer than that. A target that has none keeps what
// it has, and is named in without. why says why it changed none.
func (u *Unit) stepBackTo(o *order.Order) (without, why string) {
	aim, why := u.pastRollout(o)
	if why != "" {
		return "", why
	}
	steps := map[config.TargetName]int{}
	var missing []config.TargetName
	for _, t := range u.list() {
		n := slices.IndexFunc(t.Ran, func(p Past) bool { return p.Rollout <= aim.Rollout })
		switch {
		case t.Wanted == "" && t.nothing():
		case n < 0 && t.Touched: // it goes back to what it had before this release, if anything
		case n < 0 || t.Wave < 0:
			missing = append(missing, t.name)
		case t.Dirty || t.Applied != t.Ran[n].Digest || t.Good != t.Applied:
			steps[t.name] = n
		}
	}
	if len(steps) == 0 && (u.Rollout.Status == Done || !u.CanGoBack()) {
		return "", joined("every target has what rollout "+aim.text()+" brought", withoutText(missing))
	}
	for name, n := range steps {
		t := u.Targets[name]
		t.Ran = t.Ran[n:]
		t.Good, t.Touched = t.Ran[0].Digest, true
	}
	maps.DeleteFunc(u.Releases, func(id int, _ config.Commit) bool { return id > aim.Rollout }) // taken back
	return withoutText(missing), ""
}

// stepBack makes what was good before the good bundle of each target that has one.
func (u *Unit) stepBack() bool {
	stepped := false
	for _, t := range u.list() {
		switch {
		case t.Wave < 0 || t.Wanted == "" || t.Good == "":
		case t.Wanted != t.Good && (t.Dirty || t.Applied != t.Good): // it failed, and the wave went on without it
			t.Touched, stepped = true, true
		case len(t.Ran) > 1 && t.Ran[0].Digest == t.Good && t.Wanted == t.Good:
			t.Ran = t.Ran[1:]
			t.Good, t.Touched, stepped = t.Ran[0].Digest, true, true
		}
	}
	if stepped {
		delete(u.Releases, u.Rollout.ID)
	}
	return stepped
}

// backText says which commits brought the bundles that targets go back to.
func (u *Unit) backText(written []config.TargetName) string {
	commits := map[string]bool{}
	for _, name := range written {
		if t := u.Targets[name]; t.Good != "" {
			commits[u.cameWith(t).Short()] = true
		}
	}
	names := strings.Join(slices.Sorted(maps.Keys(commits)), ", ")
	switch len(commits) {
	case 0:
		return "what ran before is put back"
	case 1:
		return "commit " + names + " is put back"
	}
	return "commits " + names + " are put back"
}

// cameWith is the commit whose rollout brought the good bundle of a target. Later ones may
// render it too, see [Unit.Commits].
func (u *Unit) cameWith(t *Target) config.Commit {
	for _, p := range t.Ran {
		if commit := u.Releases[p.Rollout]; p.Digest == t.Good && commit != "" {
			return commit
		}
	}
	return u.Commits[t.Good]
}

// withoutPast names targets that have nothing to go back to: a cluster that is new, or was
// forgotten meanwhile. They keep what they have; empty: there are none.
func (u *Unit) withoutPast() string {
	var names []config.TargetName
	for _, t := range u.list() {
		hasEarlier := t.Good != "" && t.Wanted != t.Good // it has not caught up
		if t.Wanted != "" && !t.Touched && !hasEarlier && (len(t.Ran) < 2 || t.Wave < 0) {
			names = append(names, t.name)
		}
	}
	return withoutText(names)
}

func withoutText(names []config.TargetName) string {
	if len(names) == 0 {
		return ""
	}
	return "no earlier bundle is known of " + list(names) + ", where all stays as it is"
}

// maxReleases is how many rollouts of a unit are remembered that passed their waves.
const maxReleases = 20

// passed remembers that the rollout passed its waves.
func (u *Unit) passed() {
	if u.Releases == nil {
		u.Releases = map[int]config.Commit{}
	}
	u.Releases[u.Rollout.ID] = u.Rollout.Commit
	past := u.past()
	past = past[:min(len(past), maxReleases)]
	if len(past) > 0 {
		oldest := past[len(past)-1].Rollout
		maps.DeleteFunc(u.Releases, func(id int, _ config.Commit) bool { return id < oldest })
	}
}
