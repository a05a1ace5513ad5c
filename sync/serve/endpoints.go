// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/status"
	"github.com/swell-sh/swell/sync/store"
)

// List is how items are answered.
type List[T any] struct {
	Items []T `json:"items"`
}

func listOf[T any](items []T) List[T] { return List[T]{append([]T{}, items...)} }

// answer is the body of an answer.
type answer[T any] struct{ Body T }

// Caller is who asks.
type Caller struct {
	address  string
	OnBehalf string `header:"Swell-Sudo-User" doc:"Who became root by sudo; only root may say it" maxLength:"64"`
}

// Resolve implements [huma.Resolver].
func (c *Caller) Resolve(ctx huma.Context) []error {
	c.address = ctx.RemoteAddr()
	_ = ctx.SetReadDeadline(time.Time{}) // of the body; the request would end with it
	return nil
}

// Below is which units are asked about.
type Below struct {
	Unit string `query:"unit" doc:"Only this unit, or the units of this folder"`
}

type pathInput struct {
	Path string `path:"path" doc:"Path of a unit or of a folder of units"`
}

type rolloutsInput struct {
	Place string `query:"place" doc:"Only this unit, the units of this folder, or those on this target or in this cluster"`
	All   bool   `query:"all" doc:"Those that are done, too"`
}

type inventoryInput struct {
	Below
	Target string `query:"target" doc:"Only this target, or this cluster"`
}

type historyInput struct {
	Below
	Since int64 `query:"since" default:"-1" doc:"Number of an event: those after it, the oldest first. Without it, the newest ones"`
	Limit int   `query:"limit" default:"100" doc:"How many at most"`
}

type orderInput struct {
	Caller
	Body Request
}

type judgeInput struct {
	Caller
	Digest string `path:"digest" doc:"Digest of a plan or of a gate"`
	Body   struct {
		Reason string `json:"reason,omitempty"`
	}
}

// get registers an endpoint that reads.
func get[In, Out any](s *Server, api huma.API, path, summary string, read func(context.Context, *In) (Out, error)) {
	id := "get" + strings.NewReplacer("/v1", "", "/", "-", "{", "", "}", "", ".", "").Replace(path)
	huma.Register(api, huma.Operation{OperationID: id, Method: http.MethodGet, Path: path, Summary: summary, Errors: []int{http.StatusForbidden, http.StatusNotFound}},
		func(ctx context.Context, in *In) (*answer[Out], error) {
			out, err := reading(ctx, s, func() (Out, error) { return read(ctx, in) })
			if err != nil {
				return nil, err
			}
			return &answer[Out]{out}, nil
		})
}

// post registers an endpoint that stores what an operator says.
func post[In, Out any](api huma.API, path, id, summary string, do func(context.Context, *In) (Out, error)) {
	huma.Register(api, huma.Operation{OperationID: id, Method: http.MethodPost, Path: path, Summary: summary, DefaultStatus: http.StatusAccepted, MaxBodyBytes: maxBody,
		Errors: []int{http.StatusForbidden, http.StatusNotFound, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity}},
		func(ctx context.Context, in *In) (*answer[Out], error) {
			out, err := do(ctx, in)
			if err != nil {
				return nil, problemOf(err)
			}
			return &answer[Out]{out}, nil
		})
}

func (s *Server) register(api huma.API) {
	v := s.view
	get(s, api, "/v1/status", "How the units are, and the fleet", func(ctx context.Context, in *Below) (Status, error) { return v.Status(ctx, in.Unit) })
	get(s, api, "/v1/units", "How the units are", func(ctx context.Context, in *Below) (List[status.Unit], error) {
		units, err := v.Units(ctx, in.Unit)
		return listOf(units), err
	})
	get(s, api, "/v1/units/{path...}", "How a unit is, or the units of a folder", func(ctx context.Context, in *pathInput) (List[status.Unit], error) {
		units, err := v.Units(ctx, strings.Trim(in.Path, "/"))
		return listOf(units), err
	})
	get(s, api, "/v1/rollouts", "Rollouts that are under way, or not done", func(ctx context.Context, in *rolloutsInput) (List[status.UnderWay], error) {
		lines, err := v.Rollouts(ctx, in.Place, in.All)
		return listOf(lines), err
	})
	get(s, api, "/v1/rollouts/{path...}", "The rollout of a unit: its waves, and what each waits for", func(ctx context.Context, in *pathInput) (status.Description, error) {
		return v.Describe(ctx, strings.Trim(in.Path, "/"))
	})
	get(s, api, "/v1/targets", "How the units stand on each target", func(ctx context.Context, in *Below) (List[TargetCount], error) {
		targets, err := v.Targets(ctx, in.Unit)
		return listOf(targets), err
	})
	get(s, api, "/v1/objects", "Objects that were applied, or may have been", func(ctx context.Context, in *Below) (List[Object], error) {
		objects, err := v.Objects(ctx, in.Unit)
		return listOf(objects), err
	})
	get(s, api, "/v1/inventory", "Objects, and as whom they are read", func(ctx context.Context, in *inventoryInput) (Inventory, error) {
		return v.Inventory(ctx, in.Unit, in.Target)
	})
	get(s, api, "/v1/drift", "Objects that are not as they were applied", func(ctx context.Context, in *Below) (List[Drifted], error) {
		drifted, err := v.Drift(ctx, in.Unit)
		return listOf(drifted), err
	})
	get(s, api, "/v1/history", "Events", func(ctx context.Context, in *historyInput) (List[store.Recorded], error) {
		events, err := v.History(ctx, Query{Below: config.UnitPath(in.Unit), Since: in.Since, Limit: in.Limit})
		return listOf(events), err
	})
	get(s, api, "/v1/plans", "What waits for approval", func(ctx context.Context, _ *struct{}) (Approvals, error) { return v.Approvals(ctx) })
	get(s, api, "/v1/retriable", "What could be tried again", func(ctx context.Context, _ *struct{}) (List[rollout.Retriable], error) {
		all, err := v.Retriable(ctx)
		return listOf(all), err
	})
	get(s, api, "/v1/orders", "Orders in force, and those that wait to be carried out", func(ctx context.Context, _ *struct{}) (Orders, error) { return v.Orders(ctx) })
	post(api, "/v1/orders", "give-order", "Give an order", s.give)
	post(api, "/v1/plans/{digest}/approve", "approve", "Approve deletions, or a gate", func(ctx context.Context, in *judgeInput) (Judgement, error) { return s.judge(ctx, in, false) })
	post(api, "/v1/plans/{digest}/reject", "reject", "Reject deletions", func(ctx context.Context, in *judgeInput) (Judgement, error) { return s.judge(ctx, in, true) })
	s.registerPlan(api)
	s.registerWatch(api)
}

func (s *Server) give(ctx context.Context, in *orderInput) (given Given, err error) {
	who, err := s.who(in.address, in.OnBehalf)
	if err != nil {
		return given, err
	}
	resolved, err := reading(ctx, s, func() (Given, error) { return s.view.Prepare(in.Body, who, s.Now()) })
	var refused *Error
	if in.Body.IdempotencyKey != "" && !in.Body.DryRun && errors.As(err, &refused) && refused.Status == http.StatusConflict {
		return s.givenBefore(ctx, resolved, in.Body.IdempotencyKey, err)
	}
	if err != nil || in.Body.DryRun {
		return resolved, err
	}
	err = s.update(ctx, func(tx *store.Tx) (err error) {
		given, err = Give(tx, resolved, in.Body.IdempotencyKey)
		return err
	})
	return given, err
}

// givenBefore is an order that was stored under the key: what it was to do is done by now, so
// that it is refused. refusal is what to answer where there is none.
func (s *Server) givenBefore(ctx context.Context, resolved Given, key string, refusal error) (Given, error) {
	err := s.update(ctx, func(tx *store.Tx) (err error) {
		resolved.Order.Seq, err = tx.GivenAs(resolved.Order, key)
		return err
	})
	if err != nil || resolved.Order.Seq == 0 {
		return Given{}, refusal
	}
	return resolved, nil
}

func (s *Server) judge(ctx context.Context, in *judgeInput, reject bool) (Judgement, error) {
	who, err := s.who(in.address, in.OnBehalf)
	if err != nil {
		return Judgement{}, err
	}
	return s.view.Judge(ctx, Judge{Digest: object.Digest(in.Digest), Reject: reject, Reason: in.Body.Reason}, who, s.Now(), s.update)
}

// documented corrects what the patterns of routes cannot say in OpenAPI.
func documented(api *huma.OpenAPI) {
	for path, item := range api.Paths {
		if plain := strings.ReplaceAll(path, "...}", "}"); plain != path {
			delete(api.Paths, path)
			api.Paths[plain] = item
		}
	}
}
