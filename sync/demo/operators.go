// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync"
	"github.com/swell-sh/swell/sync/devcluster"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// darkSite is the cluster whose network is cut.
const darkSite = "vla-1"

// careful is the default Rollout for the time of an outage: the canary soaks for longer
// than anybody watches, and an endpoint says whether the last wave may start.
var careful = strings.NewReplacer("soak: 3s", "soak: 10m",
	"{name: rest,", "{name: rest, gates: [{http: {endpoint: site, at: start, every: 1s}}],").Replace(Rollout)

// site is an endpoint that says whether the site is ready for releases.
type site struct {
	*httptest.Server
	ready atomic.Bool
}

func newSite() *site {
	s := &site{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !s.ready.Load() {
			http.Error(w, "the site is being checked", http.StatusServiceUnavailable)
		}
	}))
	return s
}

// give gives the daemon an order, as swell's commands do.
func (s *story) give(ctx context.Context, o order.Order) error {
	words := []string{"$ swell", string(o.Verb), string(o.Scope.Unit), string(o.Scope.Target)}
	if (o.Scope == order.Scope{}) {
		words = append(words, "--all")
	}
	if o.Reason != "" {
		words = append(words, fmt.Sprintf("--reason %q", o.Reason))
	}
	s.line("%s", strings.Join(slices.DeleteFunc(words, func(word string) bool { return word == "" }), " "))
	o.At, o.By = time.Now(), "ada"
	beside := s.state.Beside()
	err := beside.Update(ctx, func(tx *store.Tx) error {
		_, err := tx.Give(o, "")
		return err
	})
	s.wake()
	return errors.Join(err, beside.Close())
}

// siteIsDark: a release goes on without a site that is cut off and masked; the site
// catches up when the mask is gone, through the gate of its wave.
func (s *story) siteIsDark(ctx context.Context) error {
	s.title("7. A site fails at night, and a fix has to get out")
	if err := s.beCareful(ctx); err != nil {
		return err
	}
	before, err := s.carts(ctx)
	if err != nil {
		return err
	}
	was := images(before)[0]
	s.line("the network to %s is cut", darkSite)
	s.dark.Cut()
	if err := errors.Join(
		s.give(ctx, order.Order{Verb: order.Mask, Scope: order.Scope{Target: darkSite}, Reason: "no power"}),
		s.repo.Replace(CartFile, "cart:"+was, "cart:1.4.4"), s.repo.Push(ctx, "cart 1.4.4"),
	); err != nil {
		return err
	}
	if err := s.until(ctx, "the canary of cart 1.4.4", func(_ sync.Record, state *rollout.State) bool {
		t := state.Units[cart].Targets["sas-1/rz00a"]
		return state.Units[cart].Rollout.Status == rollout.Progressing && t.Applied == t.Wanted && t.Health == rollout.HealthGood
	}); err != nil {
		return err
	}
	s.line("  the canary is healthy, and would soak for 10 minutes")
	if err := s.give(ctx, order.Order{Verb: order.Promote, Scope: order.Scope{Unit: cart}, Reason: "carts lose items"}); err != nil {
		return err
	}
	var debt string
	if err := s.until(ctx, "the release without the site", func(_ sync.Record, state *rollout.State) bool {
		debt = state.Units[cart].Rollout.Reason
		return state.Units[cart].Rollout.Status == rollout.Done
	}); err != nil {
		return err
	}
	after, err := s.carts(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(
		s.claim(slices.Equal(images(after), []string{"1.4.4", "1.4.4", was, was}), "the other site runs 1.4.4, promoted by hand (read: %s)", strings.Join(images(after), ", ")),
		s.claim(strings.Contains(debt, "2 of 4 targets owe it") && strings.Contains(debt, "no power"), "the debt is shown: %s", debt),
	); err != nil {
		return err
	}
	return s.siteIsBack(ctx, before)
}

// siteIsBack goes on with the site that can be reached again. It had before when it was
// cut off.
func (s *story) siteIsBack(ctx context.Context, before []Deployment) error {
	applies, err := s.clusters[darkSite].Applies(ctx)
	if err != nil {
		return err
	}
	s.line("the network to %s is back", darkSite)
	s.dark.Mend()
	passes := 0
	if err := s.until(ctx, "some more passes", func(sync.Record, *rollout.State) bool { passes++; return passes >= more }); err != nil {
		return err
	}
	after, err := s.carts(ctx)
	if err != nil {
		return err
	}
	now, err := s.clusters[darkSite].Applies(ctx)
	if err != nil {
		return err
	}
	if err := s.claim(now == applies && slices.Equal(after[2:], before[2:]), "%s answers, and is masked: %d passes sent it no server-side apply, and it runs %s", darkSite, passes, strings.Join(images(after)[2:], ", ")); err != nil {
		return err
	}
	if err := s.give(ctx, order.Order{Verb: order.Unmask, Scope: order.Scope{Target: darkSite}}); err != nil {
		return err
	}
	var why string
	if err := s.until(ctx, "the gate of the last wave", func(_ sync.Record, state *rollout.State) bool {
		why = state.Units[cart].Rollout.Reason
		return strings.Contains(why, "the site is being checked")
	}); err != nil {
		return err
	}
	if after, err = s.carts(ctx); err != nil {
		return err
	}
	if err := s.claim(slices.Equal(after[2:], before[2:]), "its wave's gate holds it: %s", why); err != nil {
		return err
	}
	s.line("the endpoint of the gate says yes")
	s.site.ready.Store(true)
	if err := s.until(ctx, "the end of the debt", func(_ sync.Record, state *rollout.State) bool {
		r := state.Units[cart].Rollout
		return r.Status == rollout.Done && r.Reason == ""
	}); err != nil {
		return err
	}
	if after, err = s.carts(ctx); err != nil {
		return err
	}
	return s.claim(slices.Equal(images(after), []string{"1.4.4", "1.4.4", "1.4.4", "1.4.4"}), "it has caught up: all four cells run 1.4.4")
}

// beCareful has what follows released carefully: the units of the tier canary first, and
// nothing more of a commit on which more than one of them failed.
func (s *story) beCareful(ctx context.Context) error {
	if err := errors.Join(
		s.repo.writeRollout(careful),
		s.repo.Replace("swell.yaml", "spec:\n", "spec:\n  release: {tiers: [canary], budget: {failedUnits: 1}}\n"),
	); err != nil {
		return err
	}
	for _, path := range canaryTier {
		name := filepath.Base(string(path))
		if err := s.repo.Write(string(path)+"/swell.yaml", "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: "+name+"}\nspec: {labels: {tier: canary}}\n"); err != nil {
			return err
		}
	}
	return s.repo.Push(ctx, "careful releases")
}

// canaryTier are the units that take a change of a kind first.
var canaryTier = []config.UnitPath{"services/search/indexer", "services/shop/recommend"}

// badKind changes many units by one kind. Those of the canary tier fail, and nothing of the
// commit reaches the others.
func (s *story) badKind(ctx context.Context) error {
	s.title("8. A change of a kind that no cluster takes")
	before, err := s.deployments(ctx)
	if err != nil {
		return err
	}
	s.line("kinds/runtime: the label app of pods and selectors becomes name; selectors of a Deployment are immutable")
	const kind = "kinds/runtime/kind.yaml"
	if err := errors.Join(s.repo.Replace(kind, `"{'app': name}"`, `"{'name': name}"`), s.repo.Push(ctx, "runtime: nicer labels")); err != nil {
		return err
	}
	held := 0
	var why string
	if err := s.until(ctx, "the commit breaker", func(_ sync.Record, state *rollout.State) bool {
		held = 0
		for _, u := range state.Units {
			if strings.Contains(u.Blocked, "more than budget.failedUnits 1") {
				held++
				why = u.Blocked
			}
		}
		return held > 0
	}); err != nil {
		return err
	}
	for _, path := range canaryTier {
		if err := s.until(ctx, "the way back of "+string(path), func(_ sync.Record, state *rollout.State) bool {
			return state.Units[path].Rollout.Status == rollout.RolledBack
		}); err != nil {
			return err
		}
	}
	after, err := s.deployments(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(
		s.claim(held >= 8, "%d other units are held: %s", held, why),
		s.claim(slices.Equal(before, after), "all %d Deployments of the three clusters are as they were", len(after)),
	); err != nil {
		return err
	}
	if err := errors.Join(s.repo.Replace(kind, `"{'name': name}"`, `"{'app': name}"`), s.repo.Push(ctx, "Revert: runtime: nicer labels")); err != nil {
		return err
	}
	return s.untilDone(ctx, "the revert")
}

// deployments are all Deployments of the clusters, with their generations.
func (s *story) deployments(ctx context.Context) ([]string, error) {
	var all []string
	for _, name := range Clusters {
		of, err := s.clusters[name].Generations(ctx)
		if err != nil {
			return nil, err
		}
		for _, text := range of {
			all = append(all, name+" "+text)
		}
	}
	slices.Sort(all)
	return all, nil
}

// through leads to the dark site by a network that can be cut.
func (s *story) through(access config.ClusterAccess, dir string) (config.ClusterAccess, error) {
	var err error
	file := filepath.Join(dir, access.Name+".yaml")
	if s.dark, err = devcluster.Connect(access.Kubeconfig, access.Context, file); err != nil {
		return access, err
	}
	access.Kubeconfig = file
	return access, nil
}
