// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/store"
)

// TestRetryVerb: what it lists, what it takes, and what it stores.
func TestRetryVerb(t *testing.T) {
	file := someState(t)
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"retry", 0, `
UNIT                TARGET  STATE        REASON
services/search     vla     failed       Pod/x: CrashLoopBackOff
services/shop/cart  sas/a   unreachable  cluster sas: no answer within 5s
swell: the daemon is not running; this is the last recorded state
`},
		{"retry -o name", 0, "\nservices/search\nservices/shop/cart\nswell: the daemon is not running; this is the last recorded state\n"},
		{"retry nowhere", 2, `
swell: error: "nowhere": no such unit, target or cluster, want one of services/search, services/shop/cart
swell: hint: swell get units and swell get targets list them
`},
		{"retry services/shop/crat", 2, `
swell: error: "services/shop/crat": no such unit, target or cluster, did you mean "services/shop/cart"?
swell: hint: swell get units and swell get targets list them
`},
		{"retry vla --all", 2, "\nswell: error: --all and a name: want one of them\n"},
		{"retry .", 2, "\nswell: error: \".\": want a unit, a target or a cluster\nswell: hint: --all is everything\n"},
		{"retry ./", 2, "\nswell: error: \"./\": want a unit, a target or a cluster\nswell: hint: --all is everything\n"},
		{"retry services/..", 2, "\nswell: error: \"services/..\": want a unit, a target or a cluster\nswell: hint: --all is everything\n"},
		{"retry EMPTY", 2, "\nswell: error: retry: want no empty argument, got \"\"\n"},
		{"retry services/shop/ --reason because", 0, "\nswell: retry of services/shop ordered: the daemon does not run: it takes it up when it starts\n"},
		{"retry sas/a", 0, "\nswell: retry of sas/a ordered: the daemon does not run: it takes it up when it starts\n"},
		{"retry vla", 0, "\nswell: retry of vla ordered: the daemon does not run: it takes it up when it starts\n"},
		{"retry --all --yes", 0, "\nswell: retry of everything ordered: the daemon does not run: it takes it up when it starts\n"},
	} {
		var out bytes.Buffer
		args := append(strings.Fields(c.args), "-c", file)
		for i, arg := range args {
			args[i] = strings.ReplaceAll(arg, "EMPTY", "")
		}
		code := execute(t.Context(), writingTo(&out, &out), args)
		if diff := cmp.Diff(c.want, "\n"+out.String()); diff != "" || code != c.code {
			t.Errorf("%s: exit code %d\n%s", c.args, code, diff)
		}
	}
	type about struct {
		Unit   config.UnitPath
		Target config.TargetName
		Reason string
	}
	var got []about
	for _, o := range storedOrders(t, file) {
		if o.Verb != order.Retry || o.By == "" || o.At.IsZero() {
			t.Errorf("%+v", o)
		}
		got = append(got, about{o.Scope.Unit, o.Scope.Target, o.Reason})
	}
	if diff := cmp.Diff([]about{{"services/shop", "", "because"}, {"", "sas/a", ""}, {"", "vla", ""}, {}}, got); diff != "" {
		t.Error(diff)
	}
}

// storedOrders are those that the state beside a daemon's configuration keeps for it.
func storedOrders(t *testing.T, configuration string) []order.Order {
	t.Helper()
	s, err := store.OpenReadOnly(filepath.Join(filepath.Dir(configuration), "state"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	orders, err := s.Orders()
	if err != nil {
		t.Fatal(err)
	}
	return orders
}
