// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/store"
)

// Plan is what a revision would do if it were taken now; an empty one is the branch that
// the daemon follows.
func (v View) Plan(ctx context.Context, rev string) (*sync.Forecast, error) {
	if v.Planner == nil {
		return nil, refuse(http.StatusNotImplemented, "no plans are made here")
	}
	planner, done, err := v.Planner()
	if err != nil {
		return nil, err
	}
	defer done()
	f, err := planner.Forecast(ctx, v.Store, rev)
	if errors.Is(err, sync.ErrNoCommit) {
		return nil, refuse(http.StatusNotFound, "%s", err).hint("the repository that the daemon follows has to have it; swell diff shows the effect of a commit that is only in a clone")
	}
	return f, err
}

// PlanApproval is who approves all that a plan names.
type PlanApproval struct {
	Digest object.Digest `json:"digest"` // of the plan
	Commit config.Commit `json:"commit"`
	Reason string        `json:"reason,omitempty"`
}

// PlanApproved is what was approved.
type PlanApproved struct {
	Digest    object.Digest `json:"digest"`
	Gates     int           `json:"gates"`
	Deletions int           `json:"deletions"`
}

// ApprovePlan approves the gates and deletions that the plan of a commit names: all of
// them, or none.
func (v View) ApprovePlan(ctx context.Context, a PlanApproval, who Who, now time.Time, update func(context.Context, func(*store.Tx) error) error) (done PlanApproved, err error) {
	if err := (&order.Order{Verb: order.Retry, Reason: a.Reason}).Check(now); err != nil {
		return done, refuse(http.StatusUnprocessableEntity, "%s", err)
	}
	f, err := v.Plan(ctx, string(a.Commit))
	if err != nil {
		return done, err
	}
	switch {
	case f.Commit != a.Commit: // a branch goes on to commits that have the same bundles and other gates
		return done, refuse(http.StatusUnprocessableEntity, "commit %q: want the whole hash of the plan's commit", a.Commit)
	case f.Digest != a.Digest:
		return done, refuse(http.StatusConflict, "plan %s: the plan of commit %s is now %s", a.Digest.Short(), f.Commit.Short(), f.Digest.Short()).hint("swell plan " + f.Commit.Short() + " shows it")
	case f.Cut:
		return done, refuse(http.StatusConflict, "plan %s: not all of it could be worked out", a.Digest.Short()).hint("swell approve lists what waits now")
	case len(f.Deletions) > 0 && !f.Taken:
		return done, refuse(http.StatusConflict, "plan %s: it deletes, and the daemon is not at work on commit %s: deletions are approved when it is", a.Digest.Short(), f.Commit.Short())
	}
	var orders []order.Order
	for _, g := range f.Approvals() {
		o, err := approvalOf(g.Ask, Judge{Digest: g.Digest, Reason: a.Reason}, who, now)
		if err != nil {
			return done, err
		}
		orders = append(orders, o)
	}
	done = PlanApproved{Digest: a.Digest, Gates: len(orders)}
	for _, d := range f.Deletions {
		done.Deletions += len(d.Deletions)
	}
	if done.Gates+done.Deletions == 0 {
		return done, refuse(http.StatusConflict, "plan %s: nothing of it takes approval", a.Digest.Short())
	}
	return done, update(ctx, func(tx *store.Tx) error {
		for _, o := range orders {
			if _, err := tx.Give(o, ""); err != nil {
				return err
			}
		}
		for _, d := range f.Deletions {
			if err := tx.Approve(d.Digest, who.Name, now); err != nil {
				return err
			}
		}
		return nil
	})
}

// planner is the one of the options, which outlasts the server.
func (o *Options) planner() (*sync.Planner, func(), error) {
	if o.Planner == nil {
		return nil, nil, refuse(http.StatusNotImplemented, "no plans are made here")
	}
	return o.Planner, func() {}, nil
}

type planInput struct {
	Rev string `query:"rev" maxLength:"200" doc:"A branch, a tag or a commit of the repository that the daemon follows. Without it, the branch that it follows"`
}

type approvePlanInput struct {
	Caller
	Digest string `path:"digest" doc:"Digest of a plan of a commit"`
	Body   struct {
		Commit string `json:"commit" maxLength:"64"`
		Reason string `json:"reason,omitempty"`
	}
}

func (s *Server) registerPlan(api huma.API) {
	huma.Register(api, huma.Operation{OperationID: "get-plan", Method: http.MethodGet, Path: "/v1/plan", Summary: "What a commit would do if it were taken now, wave by wave",
		Errors: []int{http.StatusForbidden, http.StatusNotFound}}, func(ctx context.Context, in *planInput) (*answer[*sync.Forecast], error) {
		f, err := planning(ctx, s, func() (*sync.Forecast, error) { return s.view.Plan(ctx, in.Rev) })
		if err != nil {
			return nil, err
		}
		return &answer[*sync.Forecast]{f}, nil
	})
	post(api, "/v1/plan/{digest}/approve", "approve-plan", "Approve all that a plan names", func(ctx context.Context, in *approvePlanInput) (PlanApproved, error) {
		who, err := s.who(in.address, in.OnBehalf)
		if err != nil {
			return PlanApproved{}, err
		}
		return planning(ctx, s, func() (PlanApproved, error) {
			return s.view.ApprovePlan(ctx, PlanApproval{object.Digest(in.Digest), config.Commit(in.Body.Commit), in.Body.Reason}, who, s.Now(), s.update)
		})
	})
}

// planning makes one forecast at a time: each renders a commit.
func planning[T any](ctx context.Context, s *Server, do func() (T, error)) (value T, err error) {
	select {
	case s.plans <- struct{}{}:
	case <-ctx.Done():
		return value, ctx.Err()
	}
	defer func() { <-s.plans }()
	return reading(ctx, s, do)
}
