// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/sync/drift"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// Drift is one object that differs, for people and programs.
type Drift struct {
	Target config.TargetName `json:"target"`
	Object string            `json:"object"` // "ConfigMap/shop/cart"
	// Mode is what is done about it: "correct", "report", or "fight" when it
	// is left because somebody else always changes it back.
	Mode    string         `json:"mode"`
	Found   time.Time      `json:"found,omitzero"`
	Missing bool           `json:"missing,omitempty"`
	Changes []store.Change `json:"changes,omitempty"`

	Text string `json:"text,omitempty"` // in one line
}

// driftOf is the drift of one unit.
func driftOf(u *rollout.Unit, drifts []store.Drift) []Drift {
	var found []Drift
	for _, d := range drifts {
		if d.Unit == u.Path {
			found = append(found, Drift{Target: d.Target, Object: d.ID.String(), Mode: d.Mode,
				Found: d.Found, Missing: d.Missing, Changes: d.Changes, Text: drift.NotedText(d)})
		}
	}
	return found
}

// DriftText is what differs on a target, or on all when it is empty: the first
// object, and how many more.
func DriftText(drift []Drift, target config.TargetName) string {
	var texts []string
	for _, d := range drift {
		switch target {
		case "":
			texts = append(texts, fmt.Sprintf("target %s: %s", d.Target, d.Text))
		case d.Target:
			texts = append(texts, d.Text)
		}
	}
	return document.SomeTexts(texts, 1)
}
