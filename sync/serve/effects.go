// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/rollout"
)

// foresee says what an order would do, as [Given] of a dry run.
func (v View) foresee(o order.Order, now time.Time) (given Given, err error) {
	given.Order = o
	if given.Effects, err = v.effects(o, now); err != nil {
		return given, err
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%q\n", []string{string(o.Verb), o.Scope.Text(), o.To})
	for _, e := range given.Effects {
		fmt.Fprintf(sum, "%d %s %s\n", len(e.Unit), e.Unit, e.Text)
	}
	given.Digest = object.Digest(hex.EncodeToString(sum.Sum(nil)))
	return given, nil
}

// expected refuses an order that would not do what a dry run said.
func (v View) expected(o order.Order, want object.Digest, now time.Time) error {
	if want == "" {
		return nil
	}
	given, err := v.foresee(o, now)
	if err != nil || given.Digest == want {
		return err
	}
	return refuse(http.StatusConflict, "%s of %s: it would do something else by now than what was listed (%s, and not %s)",
		o.Verb, o.Scope.Text(), given.Digest.Short(), want.Short()).hint("give the order again, and read the list")
}

// effects are what an order does to each unit, sorted by unit. The verbs that hold something
// have none: they can be ended at any time.
func (v View) effects(o order.Order, now time.Time) ([]rollout.Effect, error) {
	state, err := sync.LoadState(v.Store)
	if err != nil {
		return nil, err
	}
	standing, err := v.Store.Standing()
	if err != nil {
		return nil, err
	}
	switch o.Verb {
	case order.Retire:
		return effectsOn(state, "emptied", o.Scope.Has), nil
	case order.Accept:
		return effectsOn(state, "begun anew", o.Scope.Has), nil
	case order.Unmask:
		_, ended := standing.EndedBy(&o)
		return effectsOn(state, "written to again", func(place config.Place) bool {
			return slices.ContainsFunc(ended, func(mask order.Order) bool { return mask.Scope.Has(place) })
		}), nil
	case order.Promote, order.Rollback, order.Clear, order.Retry:
		bounds, err := v.bounds()
		if err != nil {
			return nil, err
		}
		return state.Effects(o, bounds, standing, now).Done, nil
	}
	return nil, nil
}

// effectsOn says of each unit on how many of its targets something happens.
func effectsOn(state *rollout.State, happens string, concerns func(config.Place) bool) (effects []rollout.Effect) {
	for _, path := range slices.Sorted(maps.Keys(state.Units)) {
		u, n := state.Units[path], 0
		for name := range u.Targets {
			if concerns(u.Place(name)) {
				n++
			}
		}
		if n > 0 {
			effects = append(effects, rollout.Effect{Unit: path, Text: document.Count(n, "target") + " " + happens})
		}
	}
	return effects
}
