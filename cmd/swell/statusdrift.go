// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/drift"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// objectDrift is one object that differs, for people and programs.
type objectDrift struct {
	Target config.TargetName `json:"target"`
	Object string            `json:"object"` // "ConfigMap/shop/cart"
	// Mode is what is done about it: "correct", "report", or "fight" when it
	// is left because somebody else always changes it back.
	Mode    string         `json:"mode"`
	Found   time.Time      `json:"found,omitzero"`
	Missing bool           `json:"missing,omitempty"`
	Changes []store.Change `json:"changes,omitempty"`

	text string
}

// driftOf is the drift of one unit.
func driftOf(u *rollout.Unit, drifts []store.Drift) []objectDrift {
	var found []objectDrift
	for _, d := range drifts {
		if d.Unit == u.Path {
			found = append(found, objectDrift{Target: d.Target, Object: d.ID.String(), Mode: d.Mode,
				Found: d.Found, Missing: d.Missing, Changes: d.Changes, text: drift.NotedText(d)})
		}
	}
	return found
}

// driftText is what differs on a target, or on all when it is empty: the first
// object, and how many more.
func driftText(drift []objectDrift, target config.TargetName) string {
	first, n := "", 0
	for _, d := range drift {
		if target != "" && d.Target != target {
			continue
		}
		if n++; n > 1 {
			continue
		}
		first = d.text
		if target == "" {
			first = fmt.Sprintf("target %s: %s", d.Target, d.text)
		}
	}
	if n > 1 {
		return fmt.Sprintf("%s (and %d more)", first, n-1)
	}
	return first
}
