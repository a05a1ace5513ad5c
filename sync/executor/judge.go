// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/fleet"
	"github.com/swell-sh/swell/sync/rollout"
)

// toldErrors is how many objects' errors an outcome has in full: who fixes one wants
// to see the next, and nobody reads a thousand.
const toldErrors = 5

// judge makes one outcome of the results: the worst, with the reasons of the
// objects that it is owed to. Those that were skipped for the sake of another
// have none of their own. A bundle of which nothing went wrong may still have to
// wait.
func (j *Job) judge(ctx context.Context, results []apply.Result, good rollout.Result) {
	if ctx.Err() != nil {
		return
	}
	worst := good
	var reasons, skipped []string
	for _, res := range results {
		if res.Err == nil {
			continue
		}
		j.Lost = j.Lost || lost(res.Err)
		result := j.classify(res.Err)
		if rank[result] > rank[worst] {
			worst, reasons, skipped = result, nil, nil
		}
		switch {
		case rank[result] < rank[worst]:
		case res.Action == apply.Skipped:
			skipped = append(skipped, textOf(res.Err))
		default:
			reasons = append(reasons, textOf(res.Err))
		}
	}
	if len(reasons) == 0 {
		reasons = skipped
	}
	told := 1 // the objects are not to blame, and would all say the same
	if worst == rollout.Failed || worst == rollout.Refused {
		told = toldErrors
	}
	j.Ended(worst, document.SomeTexts(reasons, told))
	if worst != good {
		return
	}
	for _, res := range results {
		if res.Waits != "" {
			j.Ended(rollout.Waiting, res.Reason)
			j.Outcome.Step, j.Outcome.Outside = res.Waits, res.IsOutside()
			j.Outcome.Overwrote = slices.ContainsFunc(results, func(r apply.Result) bool { return len(r.Taken) > 0 })
			return
		}
	}
}

var rank = map[rollout.Result]int{rollout.Deferred: 1, rollout.Unavailable: 2, rollout.Unreachable: 3, rollout.Failed: 4, rollout.Refused: 4}

// classify says what an error means for the release. Only [rollout.Failed] and
// [rollout.Refused] count against the bundle, and [rollout.Deferred] when it lasts: a
// missing thing, and a webhook that does not answer, may be the bundle's own fault.
// Every other error is the target's trouble.
func (j *Job) classify(err error) rollout.Result {
	var objects []*object.Object
	if j.Bundle != nil {
		objects = j.Bundle.Objects
	}
	switch {
	case errors.Is(err, apply.ErrUnreachable):
		return rollout.Unreachable
	case errors.Is(err, apply.ErrFailed):
		return rollout.Failed
	case errors.Is(err, apply.ErrMissing), apply.IsOwnWebhook(err, objects):
		return rollout.Deferred
	case errors.Is(err, apply.ErrRefused):
		return rollout.Refused
	}
	return rollout.Unavailable
}

// Unreached says what it means for an action that the cluster could not be made
// contact with.
func Unreached(err error) rollout.Result {
	if errors.As(err, new(fleet.NotWriter)) {
		return rollout.Unavailable
	}
	for _, answered := range []error{apply.ErrThrottled, apply.ErrDistress, apply.ErrRights} {
		if errors.Is(err, answered) {
			return rollout.Unavailable
		}
	}
	return rollout.Unreachable
}

// textOf is an error with what to do about it.
func textOf(err error) string {
	var e *apply.Error
	if errors.Is(err, apply.ErrRights) && errors.As(err, &e) && e.Code == http.StatusForbidden {
		return err.Error() + "; swell rbac prints the rights that swell needs"
	}
	return err.Error()
}

// lost says whether the connection is of no use any more: nobody answers on it,
// or its credentials are not taken. What is behind one of the cluster's kinds
// may be away all the same.
func lost(err error) bool {
	var e *apply.Error
	return apply.IsLost(err) || errors.As(err, &e) && e.Code == http.StatusUnauthorized
}
