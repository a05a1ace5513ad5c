// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/sync"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/status"
)

// Rollouts are those under way or not done, or all, of the units at a place: a unit, a
// folder of units, a target or a cluster; everywhere where it is empty. Sorted by unit.
func (v View) Rollouts(_ context.Context, place string, all bool) ([]status.UnderWay, error) {
	var scope order.Scope
	if place != "" {
		state, err := sync.LoadState(v.Store)
		if err != nil {
			return nil, err
		}
		known, err := v.known("", state)
		if err != nil {
			return nil, err
		}
		if scope, err = known.find(place); err != nil {
			return nil, err
		}
	}
	state, found, err := v.unitsBelow(string(scope.Unit))
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(u *rollout.Unit) bool {
		return !all && !u.IsUnderWay() || !slices.ContainsFunc(slices.Collect(maps.Keys(u.Targets)), scope.HasTarget) && scope.Target != ""
	})
	units, err := v.statuses(state, found)
	if err != nil {
		return nil, err
	}
	lines := make([]status.UnderWay, len(found))
	for i, u := range found {
		lines[i] = status.UnderWayOf(u, &units[i])
	}
	return lines, nil
}

// Describe is all that there is to say of the rollout of a unit.
func (v View) Describe(_ context.Context, path string) (d status.Description, err error) {
	state, err := sync.LoadState(v.Store)
	if err != nil {
		return d, err
	}
	u := state.Units[config.UnitPath(path)]
	if u == nil {
		return d, v.noUnit(path)
	}
	standing, err := v.Store.Standing()
	if err != nil {
		return d, err
	}
	now := v.now()
	known, err := v.facts(state, standing, now)
	if err != nil {
		return d, err
	}
	return status.Describe(u, known, standing, now), nil
}

// noUnit is why a path is not that of a unit.
func (v View) noUnit(path string) error {
	_, below, err := v.unitsBelow(path)
	if err != nil {
		return err
	}
	names := make([]string, len(below))
	for i, u := range below {
		names[i] = string(u.Path)
	}
	return refuse(http.StatusNotFound, "%q: a folder of units, want one of %s", path, document.Some(names, 5))
}

func (v View) now() time.Time {
	if v.Now == nil {
		return time.Now()
	}
	return v.Now()
}

// bounds are what the last good fleet keeps releases from.
func (v View) bounds() (b rollout.Bounds, err error) {
	text, err := v.Store.Bounds()
	if err != nil || text == nil {
		return b, err
	}
	if err := json.Unmarshal(text, &b); err != nil {
		return b, fmt.Errorf("read state: bounds of the fleet: %w", err)
	}
	return b, nil
}
