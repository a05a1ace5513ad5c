// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/rollout"
)

// TestAForbiddenRequestNamesTheRights: whoever reads that an account may not do something reads what
// prints the rights that it needs. An account that nobody knows has no lack of rights.
func TestAForbiddenRequestNamesTheRights(t *testing.T) {
	const hint = "; swell rbac prints the rights that swell needs"
	answer := func(code int, class error) error {
		return fmt.Errorf("%w: %w", class, &apply.Error{Op: "apply", Object: "ConfigMap/shop/cart", Code: code, Message: "no"})
	}
	for _, c := range []struct {
		err    error
		result rollout.Result
		hint   string
	}{
		{answer(http.StatusForbidden, apply.ErrRights), rollout.Unavailable, hint},
		{answer(http.StatusUnauthorized, apply.ErrRights), rollout.Unavailable, ""},
		{answer(http.StatusForbidden, apply.ErrRefused), rollout.Refused, ""},
		{errors.Join(apply.ErrRights), rollout.Unavailable, ""},
	} {
		j := &Job{}
		j.judge(t.Context(), []apply.Result{{Err: c.err}}, rollout.Applied)
		if want := c.err.Error() + c.hint; j.Outcome.Reason != want || j.Outcome.Result != c.result {
			t.Errorf("%s: %q, want %s: %q", j.Outcome.Result, j.Outcome.Reason, c.result, want)
		}
	}
}
