// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/object"
)

// release starts a rollout of the unit when the commit wants other bundles of
// it than the last rollout set out to bring, and nothing forbids it.
func (p *pass) release(path config.UnitPath) {
	u, w := p.state.Units[path], p.want.Units[path]
	switch {
	case p.held != "":
	case u == nil && (w == nil || w.frozen() != ""):
	case w == nil:
		u.Pending = nil
		if u.Rollout.Release != gone {
			p.start(u, u.Rollout.Spec, nil)
		}
		p.block(u, "", "")
	case w.frozen() != "":
		p.block(u, w.frozen(), w.obstacle())
	default:
		if u.Rollout.Release != w.Release() {
			if why := u.quarantined(w); why != "" {
				p.block(u, why, ObstacleQuarantine)
				return
			}
			if why := p.want.Withheld[path]; why != "" {
				p.block(u, why, "")
				return
			}
			if why := p.delayed(u, w); why != "" && !u.isRestoredTo(w) {
				p.block(u, why, ObstacleTurn)
				return
			}
			p.start(u, *w.Rollout, w)
		}
		p.block(u, u.unpicked(w), "")
	}
}

// isRestoredTo says that the unit was rolled back and that every target is well with what
// the commit wants of it: its release writes nothing, and ends at once.
func (u *Unit) isRestoredTo(w *WantedUnit) bool {
	if u.Rollout.Status != RolledBack {
		return false
	}
	for name, wanted := range w.Targets {
		if wanted.Digest != "" && u.Targets[name] == nil {
			return false
		}
	}
	for name, t := range u.Targets {
		if !t.done() || t.Applied == "" || t.Applied != w.Targets[name].Digest {
			return false
		}
	}
	return true
}

// newUnit makes a unit that was never released.
func (p *pass) newUnit(path config.UnitPath, w *WantedUnit) *Unit {
	u := &Unit{Path: path, Rollout: &Rollout{Status: Done, Spec: *w.Rollout}, Targets: map[config.TargetName]*Target{}}
	if p.state.Units == nil {
		p.state.Units = map[config.UnitPath]*Unit{}
	}
	p.state.Units[path] = u
	p.state.touch(path)
	return u
}

// forgetLeft drops the targets whose cluster left the fleet, also of units of which
// nothing else is released: nobody comes there any more, and nothing waits for it.
func (p *pass) forgetLeft() {
	fleet := p.want.Clusters
	if p.held != "" || fleet == nil || p.state.fleet != nil && maps.Equal(fleet, p.state.fleet) {
		return
	}
	p.state.fleet = fleet
	for _, path := range slices.Sorted(maps.Keys(p.state.Units)) {
		u := p.state.Units[path]
		left := false
		for _, at := range u.list() {
			name, t := at.name, at.Target
			if fleet[name.Cluster()] {
				continue
			}
			if !t.nothing() {
				p.note(u, name, "departed", ForgottenText)
			}
			if t.Wanted != "" { // should the cluster come back with the same bundle, that is a release
				u.Rollout.Release = ""
			}
			u.drop(name)
			left = true
		}
		if left {
			u.keepCommits()
			p.state.touch(path)
		}
	}
}

// block notes why the commit is not, or not wholly, released.
func (p *pass) block(u *Unit, why string, by Obstacle) {
	if by != u.BlockedBy { // also of a row from before there was such a field
		u.BlockedBy = by
		p.state.touch(u.Path)
	}
	if why == u.Blocked {
		return
	}
	kind := "blocked"
	if why == "" {
		kind = "unblocked"
	}
	u.Blocked = why
	p.state.touch(u.Path)
	p.note(u, "", kind, why)
}

// quarantined says which bundle of a release has failed before. A bundle that
// is the good one of its target does not count: nothing would be written.
func (u *Unit) quarantined(w *WantedUnit) string {
	if len(u.Quarantine) == 0 {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(w.Targets)) {
		digest := w.Targets[name].Digest
		q, ok := u.Quarantine[digest]
		if t := u.Targets[name]; !ok || t != nil && t.Good == digest {
			continue
		}
		return fmt.Sprintf("%sfor target %s is quarantined: %s; %s", quarantinedText(digest), name, q.Why(), u.retryText())
	}
	return ""
}

// InQuarantine returns the quarantined bundles that still keep something of the unit from being
// released, sorted: those of its release that failed, where no other has begun since, and those
// of the newest commit. An older one matters again when a commit brings it again.
func (u *Unit) InQuarantine() (digests []object.Digest) {
	for _, digest := range slices.Sorted(maps.Keys(u.Quarantine)) {
		q := u.Quarantine[digest]
		ofRelease := u.failed() && !q.At.Before(u.Rollout.StartedAt)
		if ofRelease || u.BlockedBy == ObstacleQuarantine && u.blocks(q.Commit) {
			digests = append(digests, digest)
		}
	}
	return digests
}

// blocks says that the newest commit brings a bundle that a commit brought before and that is
// in quarantine since.
func (u *Unit) blocks(commit config.Commit) bool {
	for digest, q := range u.Quarantine {
		if q.Commit == commit && strings.HasPrefix(u.Blocked, quarantinedText(digest)) {
			return true
		}
	}
	return false
}

// quarantinedText begins the text of a unit that is blocked by a bundle.
func quarantinedText(digest object.Digest) string { return "bundle " + digest.Short() + " " }

// unpicked says which targets the release does not reach.
func (u *Unit) unpicked(w *WantedUnit) string {
	var names []config.TargetName
	for name, wt := range w.Targets {
		if wt.Digest != "" && w.waveOf(&u.Rollout.Spec, name) < 0 {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return fmt.Sprintf("no wave of rollout %s picks %s", u.Rollout.Spec.Name, list(names))
}

// missedOf are the authors of what the target did not get of a release that another one takes the place
// of, and of those before it. Those of a release that is not done are among those of the next one.
func (t *Target) missedOf(r *Rollout) []string {
	switch {
	case r == nil, t.Wanted == "" && t.nothing() && r.Status == Done:
		return nil
	case t.Wanted != "" && t.Applied == t.Wanted && r.Status != RollingBack && r.Status != RolledBack:
		return nil
	case r.Status == Done:
		return Union(t.Authors, r.Authors)
	}
	return t.Authors
}

// authorsOf are the authors of what a wave brings: of the release and, for targets that did not get
// earlier ones, of those.
func (u *Unit) authorsOf(wave int) []string {
	all := u.Rollout.Authors
	for _, t := range u.list() {
		if t.Wave == wave && t.Masked == "" && t.Applied != t.Wanted && len(t.Authors) > 0 {
			all = Union(all, t.Authors)
		}
	}
	return all
}

// Authors are all who wrote what the release brings to some target.
func (u *Unit) Authors() []string {
	all := u.Rollout.Authors
	for _, t := range u.Targets {
		all = Union(all, t.Authors)
	}
	return all
}

// start makes a new rollout of the unit; w is nil when the unit is gone. The applied
// and the good bundles stay as they are, so a rollback of the new rollout goes back to
// before the rollout that it supersedes.
func (p *pass) start(u *Unit, spec config.Rollout, w *WantedUnit) {
	if w == nil {
		w = &WantedUnit{}
	}
	next := &Rollout{
		ID: 1, Commit: p.want.Commit, Release: w.Release(), Status: Progressing, Adopt: w.Adopt, Spec: spec, StartedAt: p.now,
	}
	next.Approved = p.want.Approved[u.Path]
	if u.Pending != nil {
		next.Promoted, next.Authors, u.Pending = u.Pending.Promoted, u.Pending.Authors, nil
	}
	old := u.Rollout
	if old != nil {
		next.ID = old.ID + 1
		if old.Status != Done { // what that one brought has not arrived
			next.Authors = Union(next.Authors, old.Authors)
		}
		if old.Status == Progressing || old.Status == RollingBack {
			next.Approved = next.Approved || old.Approved // the good bundle has what that one ended
			p.note(u, "", "superseded", fmt.Sprintf("by commit %s", next.Commit.Short()))
		}
	}
	u.Rollout = next
	if u.Targets == nil { // an empty map is not stored
		u.Targets = map[config.TargetName]*Target{}
	}
	if u.Commits == nil {
		u.Commits = make(map[object.Digest]config.Commit, len(w.Targets))
	}
	numbers := p.numbersOf(u, w)
	for _, name := range slices.Sorted(maps.Keys(w.Targets)) {
		wt := w.Targets[name]
		if wt.Digest == "" {
			continue
		}
		if u.Targets[name] == nil {
			u.put(name, p.inherited(u, name, numbers))
		}
		u.Commits[wt.Digest] = next.Commit // of all that render it, the least likely to be lost
	}
	fateOf := p.want.fates(u)
	for _, at := range u.list() {
		name, t := at.name, at.Target
		wt := w.Targets[name]
		fate, wave := fateOf(name)
		t.Authors = t.missedOf(old)
		switch {
		case fate == Forgotten, fate == Cleaned && t.nothing():
			u.drop(name)
			continue
		case fate == Cleaned:
			t.Wanted = ""
			t.Wave = spec.WaveOf(name, t.Labels)
			if t.Wave < 0 { // whatever picked it before, it is cleaned last
				t.Wave = len(spec.Waves) - 1
			}
		default:
			t.Labels, t.Wanted, t.Objects = wt.Labels, wt.Digest, wt.Objects
			t.Wave = wave
			if fate == Stays {
				t.Wanted = t.Applied
			}
			if fate == Stays && t.nothing() {
				u.drop(name)
				continue
			}
		}
		t.forgive(p.now)
		t.Owes = false
		t.Fast = spec.FastRevert && t.Wanted != t.Applied && t.ran(t.Wanted)
	}
	u.keepCommits()
	p.state.touch(u.Path)
	p.note(u, "", "started", u.shape())
}

// shape says in words what a rollout will do.
func (u *Unit) shape() string {
	write, remove := 0, 0
	for _, t := range u.list() {
		switch {
		case t.done():
		case t.Wanted == "":
			remove++
		default:
			write++
		}
	}
	text := fmt.Sprintf("%d of %d targets to change", write, len(u.Targets)-remove)
	if remove > 0 {
		text += fmt.Sprintf(", %d to clean", remove)
	}
	return text
}

// keepCommits forgets which commit renders a digest that nothing refers to any
// more.
func (u *Unit) keepCommits() {
	kept := make(map[object.Digest]config.Commit, len(u.Commits))
	keep := func(digest object.Digest) {
		if commit, ok := u.Commits[digest]; ok {
			kept[digest] = commit
		}
	}
	for _, t := range u.list() {
		keep(t.Wanted)
		if t.Applied != t.Wanted {
			keep(t.Applied)
		}
		if t.Good != t.Applied {
			keep(t.Good)
		}
		for _, p := range t.Ran {
			if p.Digest != t.Good {
				keep(p.Digest)
			}
		}
	}
	u.Commits = kept
	maps.DeleteFunc(u.Origins, func(digest object.Digest, _ config.UnitPath) bool { return kept[digest] == "" })
}

// list names targets, three at most.
func list(names []config.TargetName) string {
	const most = 3
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = "target " + string(name)
	}
	return document.Some(texts, most)
}

// HasFailed says that the release which a commit wants of the unit was taken back, or would
// bring what was.
func (u *Unit) HasFailed(w *WantedUnit) bool {
	if u.Rollout.Release == w.Release() && (u.Rollout.Status == RollingBack || u.Rollout.Status == RolledBack) {
		return true
	}
	return u.quarantined(w) != ""
}
