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
	"github.com/swell-sh/swell/sync/status"
	"github.com/swell-sh/swell/sync/store"
)

// targetCount is how the units on one target stand.
type targetCount struct {
	Target  config.TargetName `json:"target"`
	Units   int               `json:"units"`
	Ready   int               `json:"ready"`            // applied as wanted, healthy and not drifted
	Failed  int               `json:"failed"`           // refused, or not healthy
	Waiting int               `json:"waiting"`          // unreachable, or postponed
	Drifted int               `json:"drifted"`          // units with objects that differ, fights included
	SweptAt time.Time         `json:"sweptAt,omitzero"` // its cluster
	// Reason is that of the first unit, by path, that is not ready.
	Reason string `json:"reason,omitempty"`
}

func (c *targetCount) count(u *status.Unit, t *status.Target) {
	c.Units++
	switch t.Status {
	case status.Healthy:
		c.Ready++
	case status.Failed:
		c.Failed++
	case status.Unreachable, status.Unavailable, status.Waiting:
		c.Waiting++
	}
	if status.DriftText(u.Drift, t.Target) != "" || t.Status == status.Drifted {
		c.Drifted++
	}
	if c.Reason == "" && t.Reason != "" {
		c.Reason = string(u.Path) + ": " + t.Reason
		if t.Status == status.Unreachable {
			c.Reason = t.Reason // of the cluster
		}
	}
}

func getTargets(s *store.Store, below string) (*listing, error) {
	units, err := statusesBelow(s, below)
	if err != nil {
		return nil, err
	}
	swept, err := s.SweptAt()
	if err != nil {
		return nil, err
	}
	counts := map[config.TargetName]*targetCount{}
	for i := range units {
		for j := range units[i].Targets {
			t := &units[i].Targets[j]
			if counts[t.Target] == nil {
				counts[t.Target] = &targetCount{Target: t.Target, SweptAt: swept[t.Target.Cluster()]}
			}
			counts[t.Target].count(&units[i], t)
		}
	}
	l := &listing{kind: "TargetList", columns: heads("TARGET", "UNITS", "READY", "FAILED", "WAITING", "DRIFTED", "SWEPT", "REASON")}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		c := counts[name]
		at := "-"
		if !c.SweptAt.IsZero() {
			at = c.SweptAt.Local().Format(time.DateTime)
		}
		l.add(c, string(name), string(name), strconv.Itoa(c.Units), fmt.Sprintf("%d/%d", c.Ready, c.Units), strconv.Itoa(c.Failed), strconv.Itoa(c.Waiting),
			strconv.Itoa(c.Drifted), at, c.Reason)
	}
	return l, nil
}
