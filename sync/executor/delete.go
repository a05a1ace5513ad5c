// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/store"
)

// delete deletes what the job may delete. Namespaces and definitions go last,
// when no hook is to run before and nothing went wrong, and only when nothing that
// swell applied is left in them but what is on its way out: the server would delete
// it along, approved or not, kept or not. lines say which of them stay, and for what.
func (j *Job) delete(ctx context.Context, conn *apply.Cluster, inventory Inventory) (results []apply.Result, lines []string) {
	var first, containers []store.Entry
	for _, e := range j.Prunable {
		if e.ID.IsContainer() {
			containers = append(containers, e)
		} else {
			first = append(first, e)
		}
	}
	results = j.pruneAs(ctx, conn, first)
	if len(containers) == 0 || ctx.Err() != nil {
		return results, nil
	}
	if slices.ContainsFunc(results, isInTheWay) {
		for _, c := range containers {
			results = append(results, apply.Result{ID: c.ID, Entry: c, Action: apply.Skipped, Reason: "goes after the others"})
		}
		return results, nil
	}
	left, err := j.remaining(ctx, conn, inventory, results)
	if err != nil {
		for _, c := range containers {
			lines = append(lines, fmt.Sprintf("%s stays: %s", c.ID, err))
		}
		return results, lines
	}
	var empty []store.Entry
	for _, c := range containers {
		if content := firstIn(ctx, conn, c.ID, left); content != "" {
			lines = append(lines, fmt.Sprintf("%s stays: %s", c.ID, content))
		} else {
			empty = append(empty, c)
		}
	}
	return append(results, j.pruneAs(ctx, conn, empty)...), lines
}

// isInTheWay says that namespaces and definitions stay for what became of an object: it is
// still there, and may need them.
func isInTheWay(r apply.Result) bool {
	return r.Waits != "" || r.Err != nil || r.After || r.ID.IsCustom() && r.Action == apply.Deleted && !r.Forget
}

// remaining are the entries of the job's cluster, and what is live there that swell
// applied, without what the results say is gone or going. What was orphaned,
// or another monorepo has there, is in no inventory, but it is to stay.
func (j *Job) remaining(ctx context.Context, conn *apply.Cluster, inventory Inventory, results []apply.Result) (left []store.Entry, err error) {
	known, err := inventory(j.Cluster)
	if err != nil {
		return nil, err
	}
	live, unknown, err := conn.SurveyAll(ctx)
	if err == nil && len(unknown) > 0 {
		err = fmt.Errorf("it is not known what is left in it: %s could not be listed", strings.Join(unknown, ", "))
	}
	if err != nil {
		return nil, err
	}
	gone, entries := map[string]bool{}, map[store.Object]bool{}
	for _, r := range results {
		if r.Err == nil && r.Action == apply.Deleted {
			gone[r.Entry.UID], entries[r.Entry.Of()] = r.Entry.UID != "", true
		}
	}
	return slices.DeleteFunc(append(known, live...), func(e store.Entry) bool { return gone[e.UID] || entries[e.Of()] }), nil
}

// firstIn names an entry that is in the namespace, or of the kind that is
// defined, with what is to be said of it; empty when there is none.
func firstIn(ctx context.Context, conn *apply.Cluster, container object.ID, left []store.Entry) string {
	for _, e := range left {
		if container.IsNamespace() {
			if e.ID.Namespace == container.Name {
				return fmt.Sprintf("%s of unit %s is in it", e.ID, e.Unit)
			}
			continue
		}
		if e.ID.Group == "" {
			continue
		}
		switch defined, err := conn.Definition(ctx, e.ID, e.Version); {
		case errors.Is(err, apply.ErrNoKind): // nothing is left of a kind's objects
		case err != nil:
			return err.Error()
		case defined == container.Name:
			return fmt.Sprintf("%s of unit %s is one of its objects", e.ID, e.Unit)
		}
	}
	return ""
}

// pruneAs deletes entries with the accounts that have the right to, see [Job.asWriters].
func (j *Job) pruneAs(ctx context.Context, conn *apply.Cluster, entries []store.Entry) []apply.Result {
	return j.asWriters(conn, entries, func(c *apply.Cluster, entries []store.Entry) []apply.Result { return c.Prune(ctx, entries) })
}

// asWriters calls do as the unit's account, and again as the accounts of Writers for
// the entries that were refused, and for those whose turn comes after them: an earlier
// tenant's objects may be where the present tenant has no rights. The results are by index.
func (j *Job) asWriters(conn *apply.Cluster, entries []store.Entry, do func(*apply.Cluster, []store.Entry) []apply.Result) []apply.Result {
	results := do(conn.As(j.Account), entries)
	last := j.Account
	for _, account := range append(slices.Clone(j.Writers), j.Account) {
		var again []int
		var refused []store.Entry
		isRefused := false
		for i, res := range results {
			var e *apply.Error
			isForbidden := errors.As(res.Err, &e) && e.Code == http.StatusForbidden
			if isForbidden || res.After {
				isRefused = isRefused || isForbidden
				again, refused = append(again, i), append(refused, entries[i])
			}
		}
		if account == last || !isRefused {
			continue
		}
		last = account
		for i, res := range do(conn.As(account), refused) {
			results[again[i]] = res
		}
	}
	return results
}
