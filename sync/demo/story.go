// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	gosync "sync"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync"
	"github.com/swell-sh/swell/sync/devcluster"
	"github.com/swell-sh/swell/sync/drift"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/source"
	"github.com/swell-sh/swell/sync/store"
)

// story is the demonstration under way.
type story struct {
	*narrator
	repo     *Repository
	clusters map[string]*Live
	claims   int
	patience time.Duration // how long it waits for anything

	start func() // sets the daemon going
	state *store.Store
	wake  func()           // begins a pass, for an order
	dark  *devcluster.Line // to darkSite
	site  *site

	mu      gosync.Mutex
	waiting *waiting      // what the story waits for; nil between
	failed  error         // of the daemon
	ended   chan struct{} // closed when the daemon has ended
}

// waiting is a condition on what the daemon shows after each pass.
type waiting struct {
	met  func(sync.Record, *rollout.State) bool
	done chan struct{}
}

// patience is how long the story waits for anything, in timeouts of waves.
const patience = 8

// more passes show that nothing happens.
const more = 10

// sweepEvery stands in for a cron schedule, whose finest step is a minute.
const sweepEvery = 5 * time.Second

// startDaemon runs the daemon as swell run does, and lets the story watch it.
func (s *story) startDaemon(ctx context.Context, dir string, access map[string]config.ClusterAccess) (stop func() error, err error) {
	state, err := store.Open(filepath.Join(dir, "state"))
	if err != nil {
		return nil, err
	}
	src, err := source.Open(source.Config{URL: s.repo.Bare, Branch: "main", Dir: filepath.Join(dir, "state", "git")})
	if err != nil {
		return nil, errors.Join(err, state.Close())
	}
	daemon, err := sync.Open(sync.Options{
		Source: src, Store: state, Clusters: access, Poll: 300 * time.Millisecond,
		Drift:     config.Drift{Schedule: cron.Every(sweepEvery)},
		Log:       slog.New(slog.NewTextHandler(io.Discard, nil)),
		Endpoints: map[string]config.Endpoint{"site": {URL: s.site.URL}},
		Observe:   s.observe,
	})
	if err != nil {
		return nil, errors.Join(err, src.Close(), state.Close())
	}
	s.state, s.wake = state, daemon.Wake
	ctx, cancel := context.WithCancel(ctx)
	var running gosync.WaitGroup
	s.ended = make(chan struct{})
	s.start = func() {
		running.Go(func() {
			defer close(s.ended)
			err := daemon.Run(ctx)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.failed = err
		})
	}
	return func() error {
		cancel()
		running.Wait()
		return errors.Join(s.failed, src.Close(), state.Close())
	}, nil
}

// observe is called by the daemon after each pass.
func (s *story) observe(r sync.Record, state *rollout.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.narrate(r, state)
	if s.waiting != nil && s.waiting.met(r, state) {
		close(s.waiting.done)
		s.waiting = nil
	}
}

// until waits until the daemon shows that met holds.
func (s *story) until(ctx context.Context, what string, met func(sync.Record, *rollout.State) bool) error {
	w := &waiting{met, make(chan struct{})}
	s.mu.Lock()
	s.waiting = w
	s.mu.Unlock()
	timer := time.NewTimer(s.patience)
	defer timer.Stop()
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.ended:
		return fmt.Errorf("the daemon ended before %s", what)
	case <-timer.C:
		return fmt.Errorf("the demonstration failed: %s did not happen within %s; the last word was: %s", what, s.patience, s.lastWord())
	}
}

func (s *story) untilDone(ctx context.Context, what string) error {
	return s.until(ctx, what, func(_ sync.Record, state *rollout.State) bool { return allDone(state) })
}

// allDone says whether every unit's rollout is done, with no debts.
func allDone(state *rollout.State) bool {
	for _, unit := range state.Units {
		if unit.Rollout.Status != rollout.Done || unit.Rollout.Reason != "" || unit.Blocked != "" {
			return false
		}
	}
	return len(state.Units) > 0
}

// unitIs says whether a unit's rollout of that number, or a later one, has the
// status.
func unitIs(path config.UnitPath, id int, status rollout.Status) func(sync.Record, *rollout.State) bool {
	return func(_ sync.Record, state *rollout.State) bool {
		unit := state.Units[path]
		return unit != nil && unit.Rollout.ID >= id && unit.Rollout.Status == status
	}
}

// scene is a part of the story.
type scene func(*story, context.Context) error

var scenes = []scene{(*story).firstSync, (*story).goodChange, (*story).badChange, (*story).somebodysEdit, (*story).typingMistake,
	(*story).nothingLeft, (*story).siteIsDark, (*story).badKind}

func (s *story) tell(ctx context.Context, scenes []scene) error {
	for _, scene := range scenes {
		if err := scene(s, ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *story) firstSync(ctx context.Context) error {
	s.title("1. The first sync: 23 units of 5 teams, 5 cells")
	if err := s.repo.Push(ctx, "The example monorepo"); err != nil {
		return err
	}
	s.setQuiet(true) // 87 bundles would be 400 lines
	s.start()
	if err := s.untilDone(ctx, "the first sync"); err != nil {
		return err
	}
	s.setQuiet(false)
	total := 0
	for _, name := range Clusters {
		n, err := s.clusters[name].Managed(ctx)
		if err != nil {
			return err
		}
		total += n
	}
	if err := s.claim(total == 378, "378 objects with field manager swell are in the three clusters (counted: %d)", total); err != nil {
		return err
	}
	for _, name := range Clusters {
		unready, all, err := s.untilReady(ctx, name)
		if err != nil {
			return err
		}
		if err := s.claim(unready == 0, "all %d Deployments of %s are ready", all, name); err != nil {
			return err
		}
	}
	return nil
}

// untilReady counts the Deployments of a cluster, and those that are still not ready when
// the patience is over: on a busy machine a node that misses a heartbeat makes its Pods
// unready for a moment, whoever looked at them before.
func (s *story) untilReady(ctx context.Context, name string) (unready, all int, err error) {
	for ends := time.Now().Add(s.patience); ; {
		unready, all, err = s.clusters[name].UnreadyDeployments(ctx)
		if err != nil || unready == 0 || time.Now().After(ends) {
			return unready, all, err
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
			return unready, all, ctx.Err()
		}
	}
}

// CartTargets are where services/shop/cart goes, canary first.
var CartTargets = []struct{ Cluster, Namespace string }{
	{"sas-1", "shop-rz00a"}, {"sas-1", "shop-rz01a"}, {"vla-1", "shop-rz10a"}, {"vla-1", "shop-rz11a"},
}

const (
	cart      = config.UnitPath("services/shop/cart")
	CartFile  = "services/shop/cart/runtime.yaml"
	CartImage = "registry.example.com/shop/cart:"
)

// carts reads the live Deployments of cart, in the order of cartTargets.
func (s *story) carts(ctx context.Context) ([]Deployment, error) {
	all := make([]Deployment, len(CartTargets))
	for i, t := range CartTargets {
		var err error
		if all[i], err = s.clusters[t.Cluster].Deployment(ctx, t.Namespace, "cart"); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func images(all []Deployment) []string {
	tags := make([]string, len(all))
	for i, d := range all {
		tags[i] = strings.TrimPrefix(d.Image, CartImage)
	}
	return tags
}

func (s *story) goodChange(ctx context.Context) error {
	s.title("2. A good change: cart 1.4.2 becomes 1.4.3, wave by wave")
	if err := s.repo.Replace(CartFile, "cart:1.4.2", "cart:1.4.3"); err != nil {
		return err
	}
	if err := s.repo.Push(ctx, "cart 1.4.3"); err != nil {
		return err
	}
	err := s.until(ctx, "the soak of the canary", func(_ sync.Record, state *rollout.State) bool {
		unit := state.Units[cart]
		t := unit.Targets["sas-1/rz00a"]
		return unit.Rollout.ID == 2 && unit.Rollout.Wave == 0 && t.Applied == t.Wanted && t.Health == rollout.HealthGood
	})
	if err != nil {
		return err
	}
	all, err := s.carts(ctx)
	if err != nil {
		return err
	}
	if err := s.claim(slices.Equal(images(all), []string{"1.4.3", "1.4.2", "1.4.2", "1.4.2"}),
		"while the canary soaks, it alone runs 1.4.3 (read: %s)", strings.Join(images(all), ", ")); err != nil {
		return err
	}
	if err := s.until(ctx, "the rollout of cart 1.4.3", unitIs(cart, 2, rollout.Done)); err != nil {
		return err
	}
	if all, err = s.carts(ctx); err != nil {
		return err
	}
	return s.claim(slices.Equal(images(all), []string{"1.4.3", "1.4.3", "1.4.3", "1.4.3"}), "all four cells run 1.4.3")
}

func (s *story) badChange(ctx context.Context) error {
	s.title("3. A bad change: an image that never starts")
	before, err := s.carts(ctx)
	if err != nil {
		return err
	}
	if err := s.repo.Replace(CartFile, "cart:1.4.3", "cart:broken"); err != nil {
		return err
	}
	if err := s.repo.Push(ctx, "cart, but better"); err != nil {
		return err
	}
	if err := s.until(ctx, "the failure of the canary", unitIs(cart, 3, rollout.RollingBack)); err != nil {
		return err
	}
	var why string
	if err := s.until(ctx, "the rollback", func(r sync.Record, state *rollout.State) bool {
		why = state.Units[cart].Rollout.Failure
		return unitIs(cart, 3, rollout.RolledBack)(r, state)
	}); err != nil {
		return err
	}
	s.line("  reason: %s", why)
	after, err := s.carts(ctx)
	if err != nil {
		return err
	}
	if err := s.claim(after[0].Image == before[0].Image && after[0].Ready == after[0].Replicas, "the canary runs 1.4.3 again, %d of %d pods ready", after[0].Ready, after[0].Replicas); err != nil {
		return err
	}
	untouched := true
	for i := range before[1:] {
		untouched = untouched && before[i+1].Writes == after[i+1].Writes
	}
	if err := s.claim(untouched && after[0].Writes == before[0].Writes+2,
		"the canary was written twice, the other three cells not once (generations %d, %d, %d, %d)",
		after[0].Writes, after[1].Writes, after[2].Writes, after[3].Writes); err != nil {
		return err
	}
	if err := s.repo.Replace(CartFile, "cart:broken", "cart:1.4.3"); err != nil {
		return err
	}
	if err := s.repo.Push(ctx, "Revert: cart, but better"); err != nil {
		return err
	}
	return s.until(ctx, "the revert", unitIs(cart, 4, rollout.Done))
}

func (s *story) somebodysEdit(ctx context.Context) error {
	s.title("4. Somebody edits a Deployment by hand")
	vla := s.clusters["vla-1"]
	s.line("kubectl --context vla-1 -n shop-rz10a edit deployment web    # image: web:hotfix")
	patch := map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
		"containers": []any{map[string]any{"name": "main", "image": "registry.example.com/shop/web:hotfix"}}}}}}
	if err := vla.Edit(ctx, "shop-rz10a", "web", patch); err != nil {
		return err
	}
	var found string
	if err := s.until(ctx, "the sweep", func(r sync.Record, _ *rollout.State) bool {
		for _, d := range r.Drifts {
			if d.Entry.Unit == "services/shop/web" {
				found = drift.Text(d)
			}
		}
		return found != ""
	}); err != nil {
		return err
	}
	if err := s.claim(strings.Contains(found, "kubectl-edit") && strings.Contains(found, ".image"), "the sweep found it: %s", found); err != nil {
		return err
	}
	if err := s.until(ctx, "the correction", func(_ sync.Record, state *rollout.State) bool {
		t := state.Units["services/shop/web"].Targets["vla-1/rz10a"]
		return !t.Drifted && !t.Dirty && t.Health == rollout.HealthGood
	}); err != nil {
		return err
	}
	d, err := vla.Deployment(ctx, "shop-rz10a", "web")
	if err != nil {
		return err
	}
	return s.claim(d.Image == "registry.example.com/shop/web:20.4.0", "the Deployment runs web:20.4.0 again")
}

func (s *story) typingMistake(ctx context.Context) error {
	s.title("5. A typing mistake, beside a good change")
	fraud := s.clusters["sas-1"]
	before, err := fraud.Deployment(ctx, "pay-rz00a", "fraud")
	if err != nil {
		return err
	}
	if err := errors.Join(
		s.repo.Replace("services/pay/fraud/runtime.yaml", "replicas:", "replicsa:"),
		s.repo.Replace("services/pay/ledger/runtime.yaml", "ledger:5.2.0", "ledger:5.3.0"),
		s.repo.Push(ctx, "fraud: scale; ledger 5.3.0"),
	); err != nil {
		return err
	}
	var problem string
	if err := s.until(ctx, "the release of ledger", func(r sync.Record, state *rollout.State) bool {
		for _, p := range r.Problems {
			problem = p.String()
		}
		return unitIs("services/pay/ledger", 2, rollout.Done)(r, state)
	}); err != nil {
		return err
	}
	if err := s.claim(problem == `services/pay/fraud/runtime.yaml:6:3: spec.replicsa: unknown field, did you mean "replicas"?`, "refused, with its line: %s", problem); err != nil {
		return err
	}
	after, err := fraud.Deployment(ctx, "pay-rz00a", "fraud")
	if err != nil {
		return err
	}
	if err := s.claim(after.Writes == before.Writes && after.Image == before.Image, "fraud is as it was"); err != nil {
		return err
	}
	for _, t := range []struct{ cluster, namespace string }{{"sas-1", "pay-rz00a"}, {"sas-1", "pay-rz01a"}, {"vla-1", "pay-rz10a"}, {"vla-1", "pay-rz11a"}, {"myt-1", "pay-rz20a"}} {
		d, err := s.clusters[t.cluster].Deployment(ctx, t.namespace, "ledger")
		if err != nil {
			return err
		}
		if d.Image != "registry.example.com/pay/ledger:5.3.0" {
			return s.claim(false, "ledger runs 5.3.0 in %s (read: %s)", t.namespace, d.Image)
		}
	}
	if err := s.claim(true, "its neighbour ledger went out to all five cells"); err != nil {
		return err
	}
	if err := errors.Join(s.repo.Replace("services/pay/fraud/runtime.yaml", "replicsa:", "replicas:"), s.repo.Push(ctx, "fraud: mended")); err != nil {
		return err
	}
	return s.untilDone(ctx, "the end of the mistake")
}

// nothingLeft shows that a daemon with nothing to do writes nothing.
func (s *story) nothingLeft(ctx context.Context) error {
	s.title("6. Nothing left to do")
	before, err := s.patches(ctx)
	if err != nil {
		return err
	}
	if err := s.give(ctx, order.Order{Verb: order.Reconcile}); err != nil {
		return err
	}
	passes, swept := 0, 0
	if err := s.until(ctx, "ten more passes and a sweep", func(r sync.Record, _ *rollout.State) bool {
		passes++
		swept += len(r.Swept)
		return passes >= more && swept >= len(Clusters)
	}); err != nil {
		return err
	}
	after, err := s.patches(ctx)
	if err != nil {
		return err
	}
	return s.claim(after == before, "%d more passes and a sweep of every cluster: the API servers took %d server-side applies before and %d after", passes, before, after)
}

// patches counts the server-side applies that the clusters have taken so far.
func (s *story) patches(ctx context.Context) (int, error) {
	total := 0
	for _, name := range Clusters {
		n, err := s.clusters[name].Applies(ctx)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}
