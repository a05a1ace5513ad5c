// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/sync"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/status"
	"github.com/swell-sh/swell/sync/store"
)

// View answers what operators ask, from what is stored. The commands and the API share it.
type View struct {
	Store *store.Store
	// Now is the clock. Nil is the real one.
	Now func() time.Time
	// Planner opens what makes forecasts; done gives it back.
	Planner func() (planner *sync.Planner, done func(), err error)
	// Silent says that a daemon is at work on the state and does not answer.
	Silent bool
}

// Status is how the units are, and the fleet.
type Status struct {
	Units []status.Unit `json:"units"`
	Fleet
}

// Fleet is what there is to say of the fleet as a whole.
type Fleet struct {
	Running    bool              `json:"running"` // a daemon is at work on the state
	Conditions []store.Condition `json:"conditions,omitempty"`
	Plans      []PlanSummary     `json:"plans,omitempty"`
	Asks       []order.Ask       `json:"asks,omitempty"`
	Clusters   []Cluster         `json:"clusters,omitempty"`
	Orders     order.Standing    `json:"orders,omitempty"` // in force
}

// PlanSummary is deletions that wait for approval.
type PlanSummary struct {
	Plan      string           `json:"plan"`
	Unit      config.UnitPath  `json:"unit,omitempty"`    // empty: the whole fleet
	Forgets   string           `json:"forgets,omitempty"` // the cluster that left the fleet; empty: the plan deletes
	Deletions int              `json:"deletions"`
	Since     time.Time        `json:"since"`
	Rejected  *store.Rejection `json:"rejected,omitempty"`
}

// Cluster is a cluster of which not everything is known.
type Cluster struct {
	Cluster string       `json:"cluster"`
	Survey  store.Survey `json:"survey,omitempty"`
	Unknown string       `json:"unknown,omitempty"` // kinds that could not be listed
}

// Object is one that was applied, or may have been.
type Object struct {
	Target    config.TargetName `json:"target"`
	Unit      config.UnitPath   `json:"unit"`
	Group     string            `json:"group,omitempty"`
	Version   string            `json:"version"`
	Kind      string            `json:"kind"`
	Namespace string            `json:"namespace,omitempty"`
	Name      string            `json:"name"`
	UID       string            `json:"uid,omitempty"`
	State     string            `json:"state"`
}

// State of an object as far as the inventory tells.
const (
	objectApplied  = "applied"
	objectDoubtful = "to be applied again" // what the cluster has is not known
	objectIntended = "intended"            // and perhaps never made
)

// Inventory is which objects there are, and as whom they are read.
type Inventory struct {
	Repository string  `json:"repository"`
	Objects    []Owned `json:"objects"`
}

// Owned is an object with the account that wrote it; empty is swell's own.
type Owned struct {
	Object
	Account string `json:"account,omitempty"`
}

// TargetCount is how the units on one target stand.
type TargetCount struct {
	Target  config.TargetName `json:"target"`
	Units   int               `json:"units"`
	Ready   int               `json:"ready"`            // applied as wanted, healthy and not drifted
	Failed  int               `json:"failed"`           // refused, or not healthy
	Waiting int               `json:"waiting"`          // unreachable, or postponed
	Drifted int               `json:"drifted"`          // units with objects that differ, fights included
	SweptAt time.Time         `json:"sweptAt,omitzero"` // its cluster
	// Reason is that of the first unit, by path, that is not ready.
	Reason string `json:"reason,omitempty"`
	// Orders are the verbs of the orders in force that have all of the target.
	Orders []order.Verb `json:"orders,omitempty"`
}

// Orders are those in force, and those that wait to be carried out.
type Orders struct {
	Standing []order.Order `json:"standing"`
	Waiting  []order.Order `json:"waiting"`
}

// Approvals are what waits for approval: deletions, and gates.
type Approvals struct {
	Plans []store.Plan `json:"plans"`
	Asks  []order.Ask  `json:"asks"`
	// Approved is what was approved already, as far as that is known.
	Approved []Approved `json:"approved,omitempty"`
}

// Query is a part of the history.
type Query struct {
	Below config.UnitPath
	// Since is the number of the last event that is known; the next ones are returned,
	// the oldest first. Negative: the newest ones.
	Since int64
	Limit int
}

// MaxEvents is the most events that are returned at a time.
const MaxEvents = 10_000

// Status is how the units below a folder are, and the fleet.
func (v View) Status(_ context.Context, below string) (is Status, err error) {
	if is.Running, err = v.Store.InUse(); err != nil {
		return is, err
	}
	conditions, err := v.Store.Conditions()
	if err != nil {
		return is, err
	}
	is.Conditions = slices.DeleteFunc(conditions, func(t store.Condition) bool {
		unit, isUnits := strings.CutPrefix(t.About, "unit ")
		return isUnits && !config.Within(unit, below)
	})
	if is.Conditions, err = v.addDaemon(is.Conditions); err != nil {
		return is, err
	}
	told := below == "" && len(is.Conditions) > 0 ||
		slices.ContainsFunc(is.Conditions, func(t store.Condition) bool { return strings.HasPrefix(t.About, "unit ") })
	is.Units, err = v.units(below)
	if err != nil && !told { // why nothing is there
		return is, err
	}
	return is, v.addFleet(&is.Fleet, below)
}

// addDaemon adds why nobody looks after the fleet at the moment.
func (v View) addDaemon(conditions []store.Condition) ([]store.Condition, error) {
	lastSeen, died, err := v.Store.Died()
	switch {
	case err != nil:
		return nil, err
	case died:
		const text = "it died, and nothing is looked at since: start swell run again"
		return append(conditions, store.Condition{About: store.AboutDaemon, Since: lastSeen, Text: text}), nil
	case v.Silent:
		return append(conditions, store.Condition{About: store.AboutDaemon, Since: v.now(), Text: "it runs and does not answer"}), nil
	}
	return conditions, nil
}

// addFleet adds what waits for approval, what is in force, and which clusters' objects are
// not all known.
func (v View) addFleet(f *Fleet, below string) error {
	approvals, err := v.approvals()
	if err != nil {
		return err
	}
	for _, p := range approvals.Plans {
		if p.Unit == "" || config.Within(string(p.Unit), below) {
			f.Plans = append(f.Plans, PlanSummary{p.Digest.Short(), p.Unit, p.Forgets(), len(p.Deletions), p.At.UTC(), p.Rejected})
		}
	}
	for _, ask := range approvals.Asks {
		if config.Within(string(ask.Unit), below) {
			f.Asks = append(f.Asks, ask)
		}
	}
	standing, err := v.Store.Standing()
	if err != nil {
		return err
	}
	for _, o := range standing {
		if o.Verb.EndVerb() != "" && (config.Within(string(o.Scope.Unit), below) || config.Within(below, string(o.Scope.Unit))) {
			f.Orders = append(f.Orders, o)
		}
	}
	clusters, err := v.Store.Clusters()
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(clusters)) {
		if c := clusters[name]; c.Survey == store.Rebuilding || c.Unknown != "" && c.Survey != store.Departed {
			f.Clusters = append(f.Clusters, Cluster{name, c.Survey, c.Unknown})
		}
	}
	return nil
}

// Units are how the units below a folder are, sorted by path; at least one.
func (v View) Units(_ context.Context, below string) ([]status.Unit, error) { return v.units(below) }

func (v View) units(below string) ([]status.Unit, error) {
	state, found, err := v.unitsBelow(below)
	if err != nil {
		return nil, err
	}
	return v.statuses(state, found)
}

// statuses returns how units of the state are now.
func (v View) statuses(state *rollout.State, units []*rollout.Unit) ([]status.Unit, error) {
	standing, err := v.Store.Standing()
	if err != nil {
		return nil, err
	}
	known, err := v.facts(state, standing, v.now())
	return status.OfAll(units, known), err
}

// facts returns the facts of the store that a status takes beside the state.
func (v View) facts(state *rollout.State, standing order.Standing, now time.Time) (known status.Known, err error) {
	bounds, err := v.bounds()
	if err != nil {
		return known, err
	}
	known.Look = state.Look(bounds, standing, now)
	if known.Drifts, err = v.Store.DriftsUntil(); err != nil {
		return known, err
	}
	known.Unreached, err = v.unreached()
	return known, err
}

// unreached returns why clusters cannot be looked at.
func (v View) unreached() (map[string]string, error) {
	clusters, err := v.Store.Unreached()
	if err != nil || len(clusters) == 0 {
		return nil, err
	}
	conditions, err := v.Store.Conditions()
	if err != nil {
		return nil, err
	}
	why := map[string]string{}
	for _, name := range clusters {
		why[name] = "it cannot be looked at"
		for _, c := range conditions {
			if c.About == store.AboutCluster(name) {
				why[name] = strings.TrimPrefix(c.Text, c.About+": ")
			}
		}
	}
	return why, nil
}

// unitsBelow returns the state, and from it the unit with that path and those below it,
// sorted by path; all when it is empty. There is at least one.
func (v View) unitsBelow(below string) (state *rollout.State, units []*rollout.Unit, err error) {
	if state, err = sync.LoadState(v.Store); err != nil {
		return nil, nil, err
	}
	for _, path := range slices.Sorted(maps.Keys(state.Units)) {
		if config.Within(string(path), below) {
			units = append(units, state.Units[path])
		}
	}
	if len(state.Units) == 0 {
		return nil, nil, refuse(http.StatusNotFound, "no unit has been released yet").hint("swell status says what that waits for")
	}
	if len(units) == 0 {
		return nil, nil, refuse(http.StatusNotFound, "%q: no such unit%s", below, didYouMean(below, slices.Collect(maps.Keys(state.Units))))
	}
	return state, units, nil
}

func didYouMean[S ~string](got string, known []S) string {
	names := make([]string, len(known))
	for i, name := range known {
		names[i] = string(name)
	}
	return document.DidYouMean(got, names)
}

// noUnits is why nothing was found below a path: nil when there are units, and nothing was
// to be found.
func (v View) noUnits(below string) error {
	_, _, err := v.unitsBelow(below)
	return err
}

func objectOf(e store.Entry) Object {
	state := objectApplied
	switch {
	case e.UID == "":
		state = objectIntended
	case e.Digest == "":
		state = objectDoubtful
	}
	return Object{e.Target, e.Unit, e.ID.Group, e.Version, e.ID.Kind, e.ID.Namespace, e.ID.Name, e.UID, state}
}

// Drifted is an object that is not as it was applied.
type Drifted struct {
	Unit config.UnitPath `json:"unit"`
	status.Drift
}

// Drift is that of the units below a folder.
func (v View) Drift(_ context.Context, below string) ([]Drifted, error) {
	units, err := v.units(below)
	var all []Drifted
	for _, u := range units {
		for _, d := range u.Drift {
			all = append(all, Drifted{u.Path, d})
		}
	}
	return all, err
}

// Objects are those of the units below a folder.
func (v View) Objects(_ context.Context, below string) ([]Object, error) {
	entries, err := v.Store.Inventories(config.UnitPath(below))
	if err != nil {
		return nil, err
	}
	if len(entries) == 0 {
		return nil, v.noUnits(below)
	}
	objects := make([]Object, len(entries))
	for i, e := range entries {
		objects[i] = objectOf(e)
	}
	return objects, nil
}

// Inventory is which objects of the units below a folder there are on a target, or in a
// cluster; everywhere where that is empty.
func (v View) Inventory(_ context.Context, below, target string) (is Inventory, err error) {
	entries, err := v.Store.Inventories(config.UnitPath(below))
	if err != nil {
		return is, err
	}
	entries = slices.DeleteFunc(entries, func(e store.Entry) bool { return !config.Within(string(e.Target), target) })
	if len(entries) == 0 {
		if err := v.noUnits(below); err != nil {
			return is, err
		}
		return is, refuse(http.StatusNotFound, "%s: nothing was applied%s", below, map[bool]string{true: " on " + target}[target != ""])
	}
	state, err := sync.LoadState(v.Store)
	if err != nil {
		return is, err
	}
	if is.Repository, err = v.Store.Repository(); err != nil {
		return is, err
	}
	for _, e := range entries {
		is.Objects = append(is.Objects, Owned{objectOf(e), state.Account(e.Unit, e.Target)})
	}
	return is, nil
}

// Targets are how the units below a folder stand on each target, sorted by name.
func (v View) Targets(_ context.Context, below string) ([]TargetCount, error) {
	units, err := v.units(below)
	if err != nil {
		return nil, err
	}
	swept, err := v.Store.SweptAt()
	if err != nil {
		return nil, err
	}
	standing, err := v.Store.Standing()
	if err != nil {
		return nil, err
	}
	counts := map[config.TargetName]*TargetCount{}
	for i := range units {
		for j := range units[i].Targets {
			t := &units[i].Targets[j]
			if counts[t.Target] == nil {
				counts[t.Target] = &TargetCount{Target: t.Target, SweptAt: swept[t.Target.Cluster()], Orders: ordersOn(standing, t.Target)}
			}
			counts[t.Target].count(&units[i], t)
		}
	}
	var targets []TargetCount
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		targets = append(targets, *counts[name])
	}
	return targets, nil
}

func ordersOn(standing order.Standing, target config.TargetName) (verbs []order.Verb) {
	for _, o := range standing {
		if o.Scope.Unit == "" && o.Scope.Tenant == "" && o.Scope.Wave == "" && o.Scope.HasTarget(target) && !slices.Contains(verbs, o.Verb) {
			verbs = append(verbs, o.Verb)
		}
	}
	return verbs
}

func (c *TargetCount) count(u *status.Unit, t *status.Target) {
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

// History is a part of the history.
func (v View) History(_ context.Context, q Query) (events []store.Recorded, err error) {
	if q.Limit < 1 || q.Limit > MaxEvents {
		return nil, refuse(http.StatusUnprocessableEntity, "limit %d: want from 1 to %d", q.Limit, MaxEvents)
	}
	if q.Since < 0 {
		events, err = v.Store.Newest(q.Below, q.Limit)
		slices.Reverse(events)
	} else {
		events, err = v.Store.After(q.Since, q.Below, q.Limit)
	}
	own := func(e store.Recorded) bool { return config.Within(string(e.Unit), string(q.Below)) }
	if err == nil && !slices.ContainsFunc(events, own) { // orders about everything are about any name
		err = v.noUnits(string(q.Below))
	}
	return events, err
}

// Approvals returns all that waits for approval, and what was approved.
func (v View) Approvals(context.Context) (Approvals, error) {
	p, err := v.approvals()
	if err != nil {
		return p, err
	}
	return p, v.addApproved(&p)
}

func (v View) approvals() (is Approvals, err error) {
	if is.Plans, err = v.Store.Plans(); err != nil {
		return is, err
	}
	is.Asks, err = v.Store.Asks()
	return is, err
}

// Retriable is what of the units could be retried.
func (v View) Retriable(context.Context) ([]rollout.Retriable, error) {
	state, err := sync.LoadState(v.Store)
	if err != nil {
		return nil, err
	}
	var all []rollout.Retriable
	for _, path := range slices.Sorted(maps.Keys(state.Units)) {
		all = append(all, state.Units[path].Retriable()...)
	}
	return all, nil
}

// Orders are those in force, and those that wait to be carried out.
func (v View) Orders(context.Context) (is Orders, err error) {
	if is.Standing, err = v.Store.Standing(); err != nil {
		return is, err
	}
	is.Waiting, err = v.Store.Orders()
	return is, err
}
