// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"slices"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// UnderWay is a unit's rollout in one line.
type UnderWay struct {
	Unit   config.UnitPath `json:"unit"`
	Commit config.Commit   `json:"commit"`
	Status Standing        `json:"status"`
	// Wave counts from 1, of Waves; WaveName is its name, empty when the rollout is over.
	Wave     int    `json:"wave"`
	Waves    int    `json:"waves"`
	WaveName string `json:"waveName,omitempty"`
	// Done counts the targets that have what Commit brings and are healthy, of Targets: not
	// those that a rollback put back, nor those of a release that has not begun.
	Done    int `json:"done"`
	Targets int `json:"targets"`
	// Cells are the states of the targets, wave by wave.
	Cells []Cells `json:"cells"`
	// Since is when the rollout began, or came to its end, or when the release that does
	// not begin was first wanted.
	Since time.Time `json:"since,omitzero"`
	Waits string    `json:"waits,omitempty"` // what it waits for
}

// Cells are the states of the targets of a wave, sorted by the targets' names.
type Cells struct {
	Wave   string     `json:"wave"`
	States []Standing `json:"states"`
}

// UnderWayOf is the line of a unit, given its status.
func UnderWayOf(u *rollout.Unit, is *Unit) UnderWay {
	r := u.Rollout
	line := UnderWay{Unit: u.Path, Commit: r.Commit, Status: is.Status, Waves: len(r.Spec.Waves), Targets: len(is.Targets), Since: r.StartedAt, Waits: is.Reason, Cells: []Cells{}}
	line.Wave = min(r.Wave+1, line.Waves)
	if r.Wave < line.Waves && (r.Status != rollout.Done || u.Pending != nil) {
		line.WaveName = r.Spec.Waves[r.Wave].Name
	}
	switch {
	case u.Pending != nil:
		line.Commit, line.Since = u.Pending.Commit, u.Pending.Since
	case !r.FinishedAt.IsZero():
		line.Since = r.FinishedAt
	}
	for i := range r.Spec.Waves {
		line.Cells = append(line.Cells, Cells{Wave: r.Spec.Waves[i].Name, States: []Standing{}})
	}
	for _, t := range is.Targets {
		if wave := u.Targets[t.Target].Wave; wave >= 0 && wave < len(line.Cells) {
			line.Cells[wave].States = append(line.Cells[wave].States, t.Status)
		}
		if t.Status == Healthy && t.Commit == line.Commit {
			line.Done++
		}
	}
	return line
}

// Worst sorts lines so that those come first that somebody has to look at, then those that
// have taken the longest.
func Worst(lines []UnderWay) {
	slices.SortFunc(lines, func(a, b UnderWay) int {
		return cmp.Or(cmp.Compare(slices.Index(byBadness, a.Status), slices.Index(byBadness, b.Status)), a.Since.Compare(b.Since), cmp.Compare(a.Unit, b.Unit))
	})
}

// OfAll returns the statuses of units.
func OfAll(units []*rollout.Unit, known Known) []Unit {
	byUnit := map[config.UnitPath][]store.Drift{}
	for _, d := range known.Drifts {
		byUnit[d.Unit] = append(byUnit[d.Unit], d)
	}
	all := make([]Unit, len(units))
	for i, u := range units {
		known.Drifts = byUnit[u.Path]
		all[i] = Of(u, known)
	}
	return all
}
