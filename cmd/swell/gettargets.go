// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// targetCount is how the units on one target stand.
type targetCount struct {
	Target  config.TargetName `json:"target"`
	Units   int               `json:"units"`
	Ready   int               `json:"ready"`   // applied as wanted, and healthy
	Failed  int               `json:"failed"`  // refused, or ill
	Waiting int               `json:"waiting"` // unreachable, or put off
	Drifted int               `json:"drifted"`
	SweptAt time.Time         `json:"sweptAt,omitzero"` // its cluster
	// Reason is that of the first unit, by path, that cannot be reached or failed.
	Reason string `json:"reason,omitempty"`
}

func (c *targetCount) count(u *rollout.Unit, t *rollout.Target) {
	c.Units++
	if ready(t) {
		c.Ready++
	}
	if t.Drifted {
		c.Drifted++
	}
	switch t.Trouble {
	case rollout.NoTrouble:
		return
	case rollout.TroubleFailed:
		c.Failed++
	default:
		c.Waiting++
	}
	if c.Reason == "" {
		c.Reason = t.Reason
		if t.Trouble != rollout.TroubleUnreachable {
			c.Reason = string(u.Path) + ": " + t.Reason
		}
	}
}

func getTargets(s *store.Store, below string) (*listing, error) {
	units, err := unitsBelow(s, below)
	if err != nil {
		return nil, err
	}
	swept, err := s.SweptAt()
	if err != nil {
		return nil, err
	}
	counts := map[config.TargetName]*targetCount{}
	for _, u := range units {
		for _, name := range slices.Sorted(maps.Keys(u.Targets)) {
			if counts[name] == nil {
				counts[name] = &targetCount{Target: name, SweptAt: swept[name.Cluster()]}
			}
			counts[name].count(u, u.Targets[name])
		}
	}
	l := &listing{kind: "TargetList", head: []string{"TARGET", "UNITS", "READY", "FAILED", "WAITING", "DRIFTED", "SWEPT", "REASON"}}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		c := counts[name]
		at := "-"
		if !c.SweptAt.IsZero() {
			at = c.SweptAt.Local().Format(time.DateTime)
		}
		l.add(c, string(name), strconv.Itoa(c.Units), fmt.Sprintf("%d/%d", c.Ready, c.Units), strconv.Itoa(c.Failed), strconv.Itoa(c.Waiting),
			strconv.Itoa(c.Drifted), at, c.Reason)
	}
	return l, nil
}
