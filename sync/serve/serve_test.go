// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/exectest"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/fleet"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/status"
	"github.com/swell-sh/swell/sync/store"
)

// asks makes this test binary ask the socket that it names for the status.
const asks = "SWELL_SERVE_TEST_SOCKET"

func TestMain(m *testing.M) {
	if path := os.Getenv(asks); path != "" {
		c, err := Dial(context.Background(), path)
		if err == nil {
			_, err = c.Orders(context.Background())
		}
		fmt.Println(err)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// served is a server on a state with the unit shop/cart on dev/a.
type served struct {
	*testing.T
	store  *store.Store // the daemon's
	server *Server
	client *Client
	woken  atomic.Int32
	log    bytes.Buffer
}

func newServed(t *testing.T, api config.API) *served {
	t.Helper()
	s := &served{T: t}
	dir := filepath.Join(t.TempDir(), "state")
	s.store = must(store.Open(dir))(t)
	t.Cleanup(func() { must(0, s.store.Close())(t) })
	u := &rollout.Unit{Path: "shop/cart", Rollout: &rollout.Rollout{Spec: config.Rollout{Waves: []config.Wave{{Name: "canary"}}}},
		Targets: map[config.TargetName]*rollout.Target{"dev/a": {Tenants: []rollout.Tenant{{Name: "shop"}}}}}
	s.update(func(tx *store.Tx) error {
		return errors.Join(tx.PutUnit(u.Path, must(json.Marshal(u))(t)), tx.PutNames(store.Names{Clusters: []string{"dev", "prod"}, Targets: []config.TargetName{"dev/a", "prod"}, Tenants: []string{"shop"}, Waves: []string{"canary"}}))
	})
	if api.Socket == "" {
		api.Socket = filepath.Join(dir, "swell.sock")
	}
	s.listen(api)
	return s
}

func (s *served) listen(api config.API) {
	s.Helper()
	beside := s.store.Beside()
	s.server = must(Listen(Options{Store: beside, API: api, Wake: func() { s.woken.Add(1) }, Log: slog.New(slog.NewTextHandler(&s.log, nil)), Version: "test"}))(s.T)
	s.Cleanup(func() { must(0, errors.Join(s.server.Close(), beside.Close()))(s.T) })
	s.client = must(Dial(s.Context(), api.Socket))(s.T)
}

func (s *served) update(do func(tx *store.Tx) error) {
	s.Helper()
	must(0, s.store.Update(s.Context(), do))(s.T)
}

func must[V any](v V, err error) func(t *testing.T) V {
	return func(t *testing.T) V {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func me(t *testing.T) string {
	t.Helper()
	return must(user.Current())(t).Username
}

// TestOrderOverTheAPI: an order is stored with who gave it, and the daemon is woken. The
// same under the same key is one order, and what is in force already is told of.
func TestOrderOverTheAPI(t *testing.T) {
	s := newServed(t, config.API{})
	t.Setenv("SUDO_USER", "")
	r := Request{Verb: order.Pause, About: []string{"shop", "dev"}, Reason: "why", IdempotencyKey: "k"}
	first := must(s.client.Give(t.Context(), r))(t)
	again := must(s.client.Give(t.Context(), r))(t)
	waiting := must(s.store.Orders())(t)
	if len(waiting) != 1 || first.Order.Seq != 1 || again.Order.Seq != 1 || s.woken.Load() == 0 {
		t.Fatalf("orders %+v, first %+v, again %+v", waiting, first, again)
	}
	want := order.Order{Seq: 1, At: waiting[0].At, By: me(t), Verb: order.Pause, Scope: order.Scope{Unit: "shop", Target: "dev"}, Reason: "why"}
	if diff := cmp.Diff(want, waiting[0]); diff != "" {
		t.Error(diff)
	}
	r.IdempotencyKey = "another"
	if other := must(s.client.Give(t.Context(), r))(t); other.Already == nil || other.Already.Seq != 1 || other.Order.Seq != 0 {
		t.Errorf("of a second operator: %+v", other)
	}
	r.About = []string{"shop/cart"}
	if narrower := must(s.client.Give(t.Context(), r))(t); narrower.Already != nil || narrower.Order.Seq != 2 {
		t.Errorf("of another scope: %+v", narrower)
	}
	ended := must(s.client.Give(t.Context(), Request{Verb: order.Resume, All: true}))(t)
	if len(ended.Ends) != 2 {
		t.Errorf("ended %+v", ended)
	}
	if got := must(s.client.Orders(t.Context()))(t); len(got.Waiting) != 3 || len(got.Standing) != 0 {
		t.Errorf("orders %+v", got)
	}
}

// TestAnOrderForLonger: an order that is in force for longer than the one before is stored; one that
// ends no later is in force already.
func TestAnOrderForLonger(t *testing.T) {
	s := newServed(t, config.API{})
	for _, c := range []struct {
		amount  string
		already bool
	}{{"1h", false}, {"30m", true}, {"2h", false}, {"", false}, {"3h", true}, {"", true}} {
		given := must(s.client.Give(t.Context(), Request{Verb: order.Pause, About: []string{"shop"}, For: c.amount}))(t)
		if already := given.Already != nil; already != c.already || already != (given.Order.Seq == 0) {
			t.Errorf("for %q: already %t, want %t; number %d", c.amount, already, c.already, given.Order.Seq)
		}
	}
}

// TestAFreezeHoldsNoException: whoever retries an exempt unit is not told of a freeze; a pause holds it
// all the same.
func TestAFreezeHoldsNoException(t *testing.T) {
	s := newServed(t, config.API{})
	give := func(r Request) Given { return must(s.client.Give(t.Context(), r))(t) }
	give(Request{Verb: order.Freeze, All: true, Reason: "holidays"})
	if held := give(Request{Verb: order.Retry, About: []string{"shop/cart"}}).HeldBy; len(held) != 1 || held[0].Verb != order.Freeze {
		t.Errorf("held by %+v, want the freeze", held)
	}
	give(Request{Verb: order.Exempt, About: []string{"shop"}, Reason: "the fix", For: "1h"})
	give(Request{Verb: order.Pause, About: []string{"shop"}})
	if held := give(Request{Verb: order.Retry, About: []string{"shop/cart"}}).HeldBy; len(held) != 1 || held[0].Verb != order.Pause {
		t.Errorf("held by %+v, want the pause alone", held)
	}
	if held := give(Request{Verb: order.Retry, All: true}).HeldBy; len(held) != 2 {
		t.Errorf("held by %+v, want the freeze and the pause: not all is exempt", held)
	}
}

// TestAnOrderWhoseTimeIsOver: an order that the next pass ends is not in force already, and holds
// nothing; a rollback is held by a pause, and by no freeze.
func TestAnOrderWhoseTimeIsOver(t *testing.T) {
	s := newServed(t, config.API{})
	now := time.Now().UTC()
	freeze := order.Order{Verb: order.Freeze, At: now, By: "ann", Reason: "holidays"}
	expired := order.Order{Verb: order.Pause, At: now.Add(-time.Hour), By: "ann", Until: now.Add(-time.Minute)}
	rollback := Given{Order: order.Order{Verb: order.Rollback, Scope: order.Scope{Unit: "shop/cart"}, At: now, By: "ann", Reason: "x"}}
	holders := func() (verbs []order.Verb) {
		s.update(func(tx *store.Tx) error {
			given, err := Give(tx, rollback, "")
			for _, o := range given.HeldBy {
				verbs = append(verbs, o.Verb)
			}
			return err
		})
		return verbs
	}
	s.update(func(tx *store.Tx) error { return errors.Join(tx.Inherit(&freeze), tx.Inherit(&expired)) })
	if got := holders(); len(got) > 0 {
		t.Errorf("a rollback is held by %q", got)
	}
	if given := must(s.client.Give(t.Context(), Request{Verb: order.Pause, All: true}))(t); given.Already != nil || given.Order.Seq == 0 {
		t.Errorf("a pause after one that is over: %+v", given)
	}
	if got := holders(); !slices.Equal(got, []order.Verb{order.Pause}) {
		t.Errorf("a rollback is held by %q, want the pause", got)
	}
}

// TestAnOrderThatDoesNothingSaysSo: an order that no target has all the names of is taken, since
// one may come, and so is one about a cluster that another daemon writes to; both say so.
func TestAnOrderThatDoesNothingSaysSo(t *testing.T) {
	s := newServed(t, config.API{})
	const another = "on dev another swell writes there: give the order to that one; this one counts"
	const nowhere = "so far it matches no target: there is shop/cart on dev/a in wave canary"
	text := "cluster dev: " + fleet.AnotherWrites + ": lease kube-system/swell-shop is held by another"
	s.update(func(tx *store.Tx) error {
		return tx.SetConditions([]store.Condition{{About: store.AboutCluster("dev"), Text: text}})
	})
	for _, c := range []struct {
		request Request
		want    string
	}{
		{Request{Verb: order.Mask, About: []string{"shop/cart", "prod"}, Reason: "x"}, nowhere},
		{Request{Verb: order.Pause, About: []string{"shop/cart", "dev/a"}}, another},
		{Request{Verb: order.Resume, About: []string{"shop/cart", "dev/a"}}, another},
		{Request{Verb: order.Pause, About: []string{"prod"}}, "so far it matches no target"},
		{Request{Verb: order.Retry, About: []string{"shop/cart"}}, ""},
	} {
		given := must(s.client.Give(t.Context(), c.request))(t)
		if got := strings.Join(given.Notes, "; "); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s of %v: notes %q, want %q", c.request.Verb, c.request.About, got, c.want)
		}
	}
}

// TestAPromoteSaysWhichGatesStayShut: of the units of a folder it promotes those that the operator
// may promote, and names the others; and the freeze that holds what it begins.
func TestAPromoteSaysWhichGatesStayShut(t *testing.T) {
	s := newServed(t, config.API{})
	for path, by := range map[config.UnitPath]string{"shop/mail": "ann", "shop/pay": ""} {
		wave := config.Wave{Name: "canary", Soak: time.Hour}
		target := &rollout.Target{Tenants: []rollout.Tenant{{Name: "shop"}}, Wanted: "1"}
		if target.Applied, target.Touched, target.TriedAt = "1", true, noon; by != "" {
			target.Applied, target.Touched, target.TriedAt = "", false, time.Time{} // a gate at the start holds what was not written
			wave.Gates = []config.Gate{{Approval: &config.ApprovalGate{By: []string{by}}}}
		}
		release := &rollout.Rollout{Status: rollout.Progressing, Spec: config.Rollout{Waves: []config.Wave{wave}}}
		u := &rollout.Unit{Path: path, Rollout: release, Targets: map[config.TargetName]*rollout.Target{"dev/a": target}}
		s.update(func(tx *store.Tx) error { return tx.PutUnit(path, must(json.Marshal(u))(t)) })
	}
	must(s.client.Give(t.Context(), Request{Verb: order.Freeze, All: true, Reason: "holidays"}))(t)
	r := Request{Verb: order.Promote, About: []string{"shop"}, Reason: "x", DryRun: true}
	for _, r.DryRun = range []bool{true, false} {
		given := must(s.client.Give(t.Context(), r))(t)
		got := strings.Join(given.Notes, "; ")
		if !strings.HasPrefix(got, "it opens no gate of 1 unit that you may not pass: shop/mail (gate approval of wave canary: ") {
			t.Errorf("dry run %t: notes %q", r.DryRun, got)
		}
		if held := given.HeldBy; !r.DryRun && (len(held) != 1 || held[0].Verb != order.Freeze) {
			t.Errorf("held by %+v, want the freeze", held)
		}
	}
}

// TestTwoOperatorsAtOnce: orders that are given at the same time, while the daemon writes,
// are all stored, once each, in one order.
func TestTwoOperatorsAtOnce(t *testing.T) {
	s := newServed(t, config.API{})
	const each = 40
	var over sync.WaitGroup
	for who := range 2 {
		over.Go(func() {
			for n := range each {
				r := Request{Verb: order.Freeze, About: []string{"shop/cart"}, Reason: fmt.Sprintf("%d of %d", n, who), IdempotencyKey: fmt.Sprint(who, n)}
				if _, err := s.client.Give(t.Context(), r); err != nil {
					t.Errorf("operator %d: %v", who, err)
				}
				r = Request{Verb: order.Thaw, All: true, IdempotencyKey: fmt.Sprint("end", who, n)}
				var refused *Error
				if _, err := s.client.Give(t.Context(), r); err != nil && (!errors.As(err, &refused) || refused.Status != http.StatusConflict) {
					t.Errorf("operator %d: %v", who, err) // the other one ended it
				}
			}
		})
	}
	for range each {
		s.update(func(tx *store.Tx) error { return tx.PutNames(store.Names{Clusters: []string{"dev"}}) })
	}
	over.Wait()
	var seqs []int64
	in := 0
	for _, o := range must(s.store.Orders())(t) {
		seqs = append(seqs, o.Seq)
		switch {
		case o.Verb == order.Freeze && in == 0:
			in = 1
		case o.Verb == order.Thaw && in == 1:
			in = 0
		default:
			t.Fatalf("order %d is %s, with %d in force", o.Seq, o.Verb, in)
		}
	}
	if sorted := slices.Compact(slices.Sorted(slices.Values(seqs))); len(seqs) < 2 || !slices.Equal(seqs, sorted) {
		t.Errorf("numbers %d", seqs)
	}
}

// TestADryRun: it stores nothing, and says what an order would do. An order that would do
// something else by then is refused.
func TestADryRun(t *testing.T) {
	s := newServed(t, config.API{})
	r := Request{Verb: order.Retire, About: []string{"dev"}, Reason: "why", DryRun: true}
	given := must(s.client.Give(t.Context(), r))(t)
	want := []rollout.Effect{{Unit: "shop/cart", Text: "1 target emptied"}}
	if !slices.Equal(given.Effects, want) || given.Digest == "" || given.Order.Seq != 0 {
		t.Errorf("effects %v, digest %q, number %d", given.Effects, given.Digest, given.Order.Seq)
	}
	if waiting := must(s.store.Orders())(t); len(waiting) > 0 {
		t.Errorf("stored %+v", waiting)
	}
	u := &rollout.Unit{Path: "shop/till", Rollout: &rollout.Rollout{}, Targets: map[config.TargetName]*rollout.Target{"dev": {}}}
	s.update(func(tx *store.Tx) error { return tx.PutUnit(u.Path, must(json.Marshal(u))(t)) })
	r.DryRun, r.Expect = false, given.Digest
	var refused *Error
	if _, err := s.client.Give(t.Context(), r); !errors.As(err, &refused) || refused.Status != http.StatusConflict {
		t.Errorf("another unit came, and the order was not refused: %v", err)
	}
	r.DryRun = true
	r.Expect = must(s.client.Give(t.Context(), r))(t).Digest
	r.DryRun = false
	if given = must(s.client.Give(t.Context(), r))(t); given.Order.Seq == 0 {
		t.Error("the order was not stored")
	}
}

// TestADryRunOfAnUnmask: of an unmask of everything it names the places that a mask which ends has.
func TestADryRunOfAnUnmask(t *testing.T) {
	s := newServed(t, config.API{})
	targets := map[config.TargetName]*rollout.Target{"dev/a": {}, "prod": {}}
	u := &rollout.Unit{Path: "shop/till", Rollout: &rollout.Rollout{}, Targets: targets}
	scope := order.Scope{Unit: "shop/till", Target: "dev"}
	mask := order.Order{Verb: order.Mask, Scope: scope, At: time.Now().UTC(), By: "ann", Reason: "why"}
	s.update(func(tx *store.Tx) error {
		return errors.Join(tx.PutUnit(u.Path, must(json.Marshal(u))(t)), tx.Inherit(&mask))
	})
	want := []rollout.Effect{{Unit: "shop/till", Text: "1 target written to again"}}
	given := must(s.client.Give(t.Context(), Request{Verb: order.Unmask, All: true, DryRun: true}))(t)
	if got := given.Effects; !slices.Equal(got, want) {
		t.Errorf("effects %v, want %v", got, want)
	}
}

// TestRepeatedWhenDone: who repeats an order under its key, when it was carried out and there
// is nothing left to do, is told of the order, of everything too.
func TestRepeatedWhenDone(t *testing.T) {
	for _, r := range []Request{{Verb: order.Unmask, All: true}, {Verb: order.Unmask, About: []string{"dev"}}} {
		s := newServed(t, config.API{})
		mask := order.Order{Verb: order.Mask, Scope: order.Scope{Target: "dev"}, At: time.Now().UTC(), By: me(t), Reason: "why"}
		s.update(func(tx *store.Tx) (err error) {
			mask.Seq, err = tx.Give(mask, "")
			return errors.Join(err, tx.PutInForce(&mask))
		})
		r.DryRun = true
		r.Expect, r.DryRun, r.IdempotencyKey = must(s.client.Give(t.Context(), r))(t).Digest, false, "k"
		first := must(s.client.Give(t.Context(), r))(t)
		s.update(func(tx *store.Tx) error { return errors.Join(tx.DropOrder(&mask), tx.DropOrder(&first.Order)) })
		if again := must(s.client.Give(t.Context(), r))(t); first.Order.Seq == 0 || again.Order.Seq != first.Order.Seq {
			t.Errorf("about %q: first %d, again %d", r.About, first.Order.Seq, again.Order.Seq)
		}
		for _, other := range []Request{
			{Verb: order.Unmask, IdempotencyKey: "k"},
			{Verb: order.Unmask, All: true, Expect: r.Expect, IdempotencyKey: "other"},
		} {
			var refused *Error
			if _, err := s.client.Give(t.Context(), other); !errors.As(err, &refused) {
				t.Errorf("about %q: %+v: not refused: %v", r.About, other, err)
			}
		}
	}
}

// TestRefusedOrders: each mistake has one clear error, and nothing is stored.
func TestRefusedOrders(t *testing.T) {
	s := newServed(t, config.API{})
	for _, c := range []struct {
		r    Request
		code int
		want string
	}{
		{Request{Verb: "stop", All: true}, 422, `verb "stop": want one of pause, freeze, mask, retire, exempt, resume, thaw, unmask, restore, unexempt, retry, promote, rollback, reconcile, clear, accept, approve`},
		{Request{Verb: order.Pause}, 422, "pause: want a unit, a target, a cluster, a tenant or a wave"},
		{Request{Verb: order.Pause, All: true, About: []string{"dev"}}, 422, "--all and a name: want one of them"},
		{Request{Verb: order.Pause, About: []string{"shop/crt"}}, 404, `"shop/crt": no such unit, target or cluster, did you mean "shop/cart"?`},
		{Request{Verb: order.Pause, About: []string{"prd"}}, 404, `"prd": no such unit, target or cluster, did you mean "prod"?`},
		{Request{Verb: order.Pause, About: []string{"dev", "prod"}}, 422, `"dev" and "prod": want one unit or folder, and one target or cluster`},
		{Request{Verb: order.Pause, Tenant: "shup"}, 404, `"shup": no such tenant, did you mean "shop"?`},
		{Request{Verb: order.Promote, Wave: "canry"}, 404, `"canry": no such wave, did you mean "canary"?`},
		{Request{Verb: order.Mask, About: []string{"dev"}}, 422, "mask: want a reason"},
		{Request{Verb: order.Retire, About: []string{"shop/cart"}, Reason: "x"}, 422, "retire: want a target or a cluster, and nothing else"},
		{Request{Verb: order.Retire, All: true, Reason: "x"}, 422, "retire: want a target or a cluster, and nothing else"},
		{Request{Verb: order.Pause, All: true, Reason: "two\nlines"}, 422, "reason: want one line without control characters"},
		{Request{Verb: order.Pause, All: true, Reason: strings.Repeat("x", 2000)}, 422, "reason: want at most 1000 bytes, got 2000"},
		{Request{Verb: order.Pause, All: true, Until: noon.AddDate(-10, 0, 0)}, 422, "until 2016-03-01T12:00:00Z: that is over"},
		{Request{Verb: order.Pause, All: true, For: "1h", Until: noon.AddDate(1000, 0, 0)}, 422, "for and until: want one of them"},
		{Request{Verb: order.Retry, All: true, Until: noon.AddDate(1000, 0, 0)}, 422, "retry: it is carried out once, so it has no end"},
		{Request{Verb: order.Rollback, About: []string{"dev"}, Reason: "x"}, 422, "rollback: it is about units as a whole: want units, a folder or a tenant, and no target or wave"},
		{Request{Verb: order.Rollback, About: []string{"shop/cart"}, Wave: "canary", Reason: "x"}, 422, "rollback: it is about units as a whole: want units, a folder or a tenant, and no target or wave"},
		{Request{Verb: order.Promote, About: []string{"shop/cart", "dev"}}, 422, "promote: it is about units as a whole: want units, a folder or a tenant, and no target or wave"},
		{Request{Verb: order.Clear, About: []string{"dev"}}, 422, "clear: it is about units as a whole: want units, a folder or a tenant, and no target or wave"},
		{Request{Verb: order.Approve, Digest: "abc"}, 422, "approve: want POST /v1/plans/abc/approve"},
		{Request{Verb: order.Exempt, About: []string{"shop"}, Reason: "x"}, 422, "exempt: want a unit or a folder, and an end"},
		{Request{Verb: order.Exempt, About: []string{"dev"}, Reason: "x", Until: noon.AddDate(1000, 0, 0)}, 422,
			"exempt: want a unit or a folder, and an end"},
		{Request{Verb: order.Rollback, About: []string{"shop"}, Reason: "x", To: "main"}, 422,
			`to "main": want a commit, or at least 7 digits of its hash, or the number of a rollout`},
		{Request{Verb: order.Rollback, About: []string{"shop"}, Reason: "x", To: "12"}, 422,
			"rollback to 12: each unit numbers its own rollouts, so want one unit, or a commit"},
		{Request{Verb: order.Retry, About: []string{"shop"}, To: "1234567"}, 422, "retry: it goes to no commit"},
		{Request{Verb: order.Accept, About: []string{"dev"}, Reason: "x"}, 422,
			"accept: want a cluster, and the UID of its namespace kube-system by now, and nothing else"},
		{Request{Verb: order.Accept, About: []string{"shop"}, Reason: "x", To: "1-2"}, 422,
			"accept: want a cluster, and the UID of its namespace kube-system by now, and nothing else"},
		{Request{Verb: order.Accept, About: []string{"dev"}, To: "1-2"}, 422, "accept: want a reason"},
		{Request{Verb: order.Resume, About: []string{"dev"}}, 409, "resume: no pause is in force"},
	} {
		var refused *Error
		if _, err := s.client.Give(t.Context(), c.r); !errors.As(err, &refused) || refused.Status != c.code || err.Error() != c.want {
			t.Errorf("%+v: %v", c.r, err)
		}
	}
	if waiting := must(s.store.Orders())(t); len(waiting) > 0 || s.woken.Load() > 0 {
		t.Errorf("stored %+v", waiting)
	}
}

// ask sends a request as it is, and returns the status and what was answered.
func (s *served) ask(method, path, kind string, body io.Reader) (int, string) {
	s.Helper()
	r := must(http.NewRequestWithContext(s.Context(), method, "http://swell"+path, body))(s.T)
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	got := must(s.client.http.Do(r))(s.T)
	defer got.Body.Close()
	if got.StatusCode >= 400 && got.Header.Get("Content-Type") != "application/problem+json" {
		s.Errorf("%s %s: %q", method, path, got.Header.Get("Content-Type"))
	}
	return got.StatusCode, string(must(io.ReadAll(got.Body))(s.T))
}

// TestMalformedRequests: what is no order at all is refused with a problem that says why.
func TestMalformedRequests(t *testing.T) {
	s := newServed(t, config.API{})
	for _, c := range []struct {
		method, path, kind, body string
		code                     int
		want                     string
	}{
		{"POST", "/v1/orders", "application/json", `{"verb": "pause", "all": true, "reason": "` + strings.Repeat("x", 10<<20) + `"}`, 413, "request body is too large limit=65536 bytes"},
		{"POST", "/v1/orders", "text/plain", `{"verb": "pause", "all": true}`, 415, "unknown content type: text/plain"},
		{"POST", "/v1/orders", "application/json", `{"verb": "pause", "everything": true}`, 422, "unexpected property"},
		{"POST", "/v1/orders", "application/json", `{"all": true}`, 422, "expected required property verb to be present"},
		{"POST", "/v1/orders", "application/json", `pause`, 400, "invalid character"},
		{"POST", "/v1/orders", "application/json", "", 400, "request body is required"},
		{"GET", "/v1/nothing", "", "", 404, "GET /v1/nothing: no such endpoint"},
		{"DELETE", "/v1/orders", "", "", 404, "DELETE /v1/orders: no such endpoint"},
		{"GET", "/v1/history?limit=0", "", "", 422, "limit 0: want from 1 to 10000"},
		{"GET", "/v1/history?since=x", "", "", 422, "invalid integer"},
		{"GET", "/v1/units/shop/crt", "", "", 404, `no such unit, did you mean`},
		{"POST", "/v1/plans/abc/approve", "application/json", "{}", 404, "plan abc: no such plan"},
		{"POST", "/v1/plans/abc/reject", "application/json", `{"reason": "a\nb"}`, 422, "reason: want one line"},
	} {
		code, text := s.ask(c.method, c.path, c.kind, strings.NewReader(c.body))
		if code != c.code || !strings.Contains(text, c.want) {
			t.Errorf("%s %s %.60q: %d %.300s", c.method, c.path, c.body, code, text)
		}
	}
	if waiting := must(s.store.Orders())(t); len(waiting) > 0 {
		t.Errorf("stored %+v", waiting)
	}
}

// TestReadsDoNotWaitForAPass: while a pass writes, the API answers with what is committed,
// and an order waits for the pass's end.
func TestReadsDoNotWaitForAPass(t *testing.T) {
	s := newServed(t, config.API{})
	given := make(chan error, 1)
	s.update(func(tx *store.Tx) error {
		if units := must(s.client.Units(t.Context(), ""))(t); len(units) != 1 || units[0].Path != "shop/cart" {
			t.Errorf("units %+v", units)
		}
		go func() {
			_, err := s.client.Give(t.Context(), Request{Verb: order.Retry, All: true})
			given <- err
		}()
		select {
		case err := <-given:
			t.Errorf("given while a pass writes: %v", err)
		case <-time.After(300 * time.Millisecond):
		}
		return tx.AddHistory([]store.Event{{Time: noon, Kind: "done"}})
	})
	if err := <-given; err != nil {
		t.Error(err)
	}
	if changed := must(s.store.Orders())(t); len(changed) != 1 {
		t.Errorf("orders %+v", changed)
	}
}

// TestAnswersAreWhatTheStateHolds: the client's answers are those of the view itself, and
// nothing of an object's content is in any of them.
func TestAnswersAreWhatTheStateHolds(t *testing.T) {
	s := newServed(t, config.API{})
	e := store.Entry{Unit: "shop/cart", Target: "dev/a", ID: object.ID{Kind: "Secret", Namespace: "shop", Name: "key"}, Version: "v1", UID: "u-1",
		Digest: "d1ge57", Fingerprint: "f1ng3r", Fields: `{"f:data": {"f:passw0rd": {}}}`}
	s.update(func(tx *store.Tx) error {
		return errors.Join(tx.Intend([]store.Entry{e}), tx.Confirm([]store.Entry{e}), tx.SetRepository("shop"), tx.AddHistory([]store.Event{{Time: noon, Unit: "shop/cart", Kind: "started", Text: "x"}}),
			tx.PutPlans([]store.Plan{store.NewPlan("shop/cart", noon, []store.Deletion{{Target: "dev/a", Unit: "shop/cart", ID: e.ID, UID: "u-1", Why: "too many"}})}))
	})
	v := View{Store: s.store}
	same := func(what string, theirs, own any) {
		t.Helper()
		if diff := cmp.Diff(own, theirs); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	ctx := t.Context()
	same("status", must(s.client.Status(ctx, ""))(t), must(v.Status(ctx, ""))(t))
	same("units", must(s.client.Units(ctx, "shop"))(t), must(v.Units(ctx, "shop"))(t))
	same("rollouts", must(s.client.Rollouts(ctx, "dev", true))(t), must(v.Rollouts(ctx, "dev", true))(t))
	same("objects", must(s.client.Objects(ctx, "shop/cart"))(t), must(v.Objects(ctx, "shop/cart"))(t))
	same("inventory", must(s.client.Inventory(ctx, "shop", "dev"))(t), must(v.Inventory(ctx, "shop", "dev"))(t))
	same("targets", must(s.client.Targets(ctx, ""))(t), must(v.Targets(ctx, ""))(t))
	same("history", must(s.client.History(ctx, Query{Since: -1, Limit: 5}))(t), must(v.History(ctx, Query{Since: -1, Limit: 5}))(t))
	other := []store.Event{{Time: noon, Unit: "other", Kind: "x"}, {Time: noon, Kind: "y"}}
	s.update(func(tx *store.Tx) error { return tx.AddHistory(other) })
	for _, q := range []Query{{Below: "other", Since: -1, Limit: 5}, {Below: "shop", Since: 0, Limit: 1}, {Since: 1, Limit: 5}, {Below: "other", Since: 1, Limit: 5}} {
		same(fmt.Sprintf("history %+v", q), must(s.client.History(ctx, q))(t), must(v.History(ctx, q))(t))
	}
	if _, err := s.client.Inventory(ctx, "shop", "prod"); err == nil || err.Error() != "shop: nothing was applied on prod" {
		t.Errorf("the inventory on another target: %v", err)
	}
	same("approvals", must(s.client.Approvals(ctx))(t).Plans, must(v.Approvals(ctx))(t).Plans)
	for _, path := range []string{"/v1/status", "/v1/units", "/v1/units/shop/cart", "/v1/targets", "/v1/rollouts", "/v1/rollouts/shop/cart", "/v1/objects", "/v1/inventory", "/v1/drift", "/v1/history", "/v1/plans", "/v1/retriable", "/v1/orders"} {
		code, text := s.ask("GET", path, "", nil)
		if code != 200 {
			t.Errorf("%s: %d %s", path, code, text)
		}
		for _, content := range []string{"d1ge57", "f1ng3r", "passw0rd"} {
			if strings.Contains(text, content) {
				t.Errorf("%s tells %s: %s", path, content, text)
			}
		}
	}
}

// TestStoppedUnits: what the fleet's budget stops is shown as stopped wherever units are listed.
func TestStoppedUnits(t *testing.T) {
	s, zero := newServed(t, config.API{}), 0
	waves := config.Rollout{Waves: []config.Wave{{Name: "canary"}, {Name: "rest"}}}
	s.update(func(tx *store.Tx) error {
		unit := func(path config.UnitPath, end rollout.Status) error {
			r := &rollout.Rollout{Commit: "c1c1c1c1c1", Release: "r", Status: end, Spec: waves, Wave: 1}
			targets := map[config.TargetName]*rollout.Target{"prod": {Wave: 1, Wanted: "d"}}
			return tx.PutUnit(path, must(json.Marshal(&rollout.Unit{Path: path, Rollout: r, Targets: targets}))(t))
		}
		bounds := rollout.Bounds{Release: config.Release{Budget: config.Budget{FailedUnits: &zero}}}
		err := errors.Join(unit("shop/web", rollout.Held), unit("shop/cart", rollout.Progressing))
		return errors.Join(err, tx.SetBounds(must(json.Marshal(bounds))(t)))
	})
	v := View{Store: s.store}
	const why = "commit c1c1c1c1 broke 1 unit, more than budget.failedUnits 0: shop/web: nothing more of it is released"
	if u := must(v.Units(t.Context(), "shop/cart"))(t)[0]; u.Status != status.Stopped || u.Reason != why {
		t.Errorf("units: %s: %s", u.Status, u.Reason)
	}
	if line := must(v.Rollouts(t.Context(), "shop/cart", false))(t)[0]; line.Status != status.Stopped || line.Waits != why {
		t.Errorf("rollouts: %s: %s", line.Status, line.Waits)
	}
	if d := must(v.Describe(t.Context(), "shop/cart"))(t); d.Status != status.Stopped {
		t.Errorf("describe: %s", d.Status)
	}
}

// TestTargetsOfAClusterThatRefuses: targets of a cluster that cannot be looked at are not ready.
func TestTargetsOfAClusterThatRefuses(t *testing.T) {
	s := newServed(t, config.API{})
	s.update(func(tx *store.Tx) error {
		good := &rollout.Target{Wanted: "d", Applied: "d", Health: rollout.HealthGood}
		spec := config.Rollout{Waves: []config.Wave{{Name: "all"}}}
		u := &rollout.Unit{Path: "shop/cart", Rollout: &rollout.Rollout{Status: rollout.Done, Spec: spec},
			Targets: map[config.TargetName]*rollout.Target{"dev/a": good, "prod": good}}
		return errors.Join(tx.PutUnit(u.Path, must(json.Marshal(u))(t)), tx.PutUnreached([]string{"dev"}),
			tx.SetConditions([]store.Condition{{About: "cluster dev", Since: noon, Text: "cluster dev: Unauthorized"}}))
	})
	var lines []string
	for _, c := range must(s.client.Targets(t.Context(), ""))(t) {
		lines = append(lines, fmt.Sprintf("%s %d/%d %d waiting: %s", c.Target, c.Ready, c.Units, c.Waiting, c.Reason))
	}
	if diff := cmp.Diff([]string{"dev/a 0/1 1 waiting: cluster dev: Unauthorized", "prod 1/1 0 waiting: "}, lines); diff != "" {
		t.Error(diff)
	}
}

// TestApprovedGate: who approves a gate after somebody else is told so, while the approval waits
// for the daemon and when it was taken up; an approval that did not count is none.
func TestApprovedGate(t *testing.T) {
	const digest = object.Digest("9a7e00000000")
	s := newServed(t, config.API{})
	ask := order.Ask{Digest: digest, Unit: "shop/cart", Wave: "canary", Since: noon, Expires: "24h0m0s"}
	s.update(func(tx *store.Tx) error { return tx.PutAsks([]order.Ask{ask}) })
	if first := must(s.client.Judge(t.Context(), Judge{Digest: digest}))(t); first.Seq == 0 || first.Already != nil {
		t.Errorf("the first approval: %+v", first)
	}
	again := func(stage string, known bool) {
		t.Helper()
		p := must(s.client.Approvals(t.Context()))(t)
		a := p.Already(string(digest[:6]))
		if (a != nil) != known {
			t.Fatalf("%s: %+v", stage, a)
		}
		if known && (a.By != me(t) || a.Unit != "shop/cart" || a.Wave != "canary" || a.Word() != "gate") {
			t.Errorf("%s: %+v", stage, a)
		}
		if !known {
			return
		}
		second := must(s.client.Judge(t.Context(), Judge{Digest: digest}))(t)
		if second.Seq != 0 || second.Already == nil || second.Already.By != me(t) {
			t.Errorf("%s: the second approval: %+v", stage, second)
		}
	}
	again("it waits", true)
	orders := must(s.store.Orders())(t)
	if len(orders) != 1 {
		t.Fatalf("orders %v", orders)
	}
	s.update(func(tx *store.Tx) error { return tx.PutInForce(&orders[0]) })
	again("it is in force, and did not count", false)
	s.update(func(tx *store.Tx) error { return tx.PutAsks(nil) })
	again("it was taken up", true)

	s.update(func(tx *store.Tx) error {
		spec := config.Rollout{Waves: []config.Wave{{Name: "canary"}}}
		r := &rollout.Rollout{Spec: spec, Gates: []rollout.GateState{{Passed: true, By: me(t), Digest: digest}}}
		u := &rollout.Unit{Path: "shop/cart", Rollout: r}
		return errors.Join(tx.DropOrder(&orders[0]), tx.PutUnit(u.Path, must(json.Marshal(u))(t)))
	})
	again("its time is over, and the wave has begun", true)
}

// TestAnApprovalTakenBackInPart: a plan of which an approval covers a part only is approved anew,
// in full.
func TestAnApprovalTakenBackInPart(t *testing.T) {
	s := newServed(t, config.API{})
	var deletions []store.Deletion
	for _, name := range []string{"a", "b"} {
		id := object.ID{Kind: "ConfigMap", Namespace: "shop", Name: name}
		deletions = append(deletions, store.Deletion{Target: "dev/a", Unit: "shop/cart", ID: id, UID: "u-" + name})
	}
	plan := store.NewPlan("shop/cart", noon, deletions)
	s.update(func(tx *store.Tx) error { return tx.PutPlans([]store.Plan{plan}) })
	judge := func() Judgement { return must(s.client.Judge(t.Context(), Judge{Digest: plan.Digest}))(t) }
	if first := judge(); first.Already != nil || first.Deletions != 2 {
		t.Errorf("the first approval: %+v", first)
	}
	if again := judge(); again.Already == nil {
		t.Errorf("the same once more: %+v", again)
	}
	s.update(func(tx *store.Tx) error { return tx.KeepApproval(plan.Digest, plan.Deletions[:1]) })
	if anew := judge(); anew.Already != nil {
		t.Errorf("half of it was taken back: %+v", anew)
	}
	if got := must(s.store.Approvals())(t); len(got) != 1 || len(got[0].Deletions) != 2 {
		t.Errorf("approved %+v, want both deletions", got)
	}
}

// TestOpenAPI: the document has every endpoint, and says which version it is.
func TestOpenAPI(t *testing.T) {
	s := newServed(t, config.API{})
	code, text := s.ask("GET", "/openapi.json", "", nil)
	var document struct {
		OpenAPI string
		Paths   map[string]map[string]struct{ OperationID string }
	}
	must(0, json.Unmarshal([]byte(text), &document))(t)
	var paths []string
	for path, methods := range document.Paths {
		for method := range methods {
			paths = append(paths, method+" "+path)
		}
	}
	slices.Sort(paths)
	if diff := cmp.Diff([]string{"get /v1/drift", "get /v1/history", "get /v1/inventory", "get /v1/objects", "get /v1/orders", "get /v1/plan", "get /v1/plans", "get /v1/retriable",
		"get /v1/rollouts", "get /v1/rollouts/{path}", "get /v1/status", "get /v1/targets", "get /v1/units", "get /v1/units/{path}", "get /v1/watch", "post /v1/orders", "post /v1/plan/{digest}/approve", "post /v1/plans/{digest}/approve", "post /v1/plans/{digest}/reject"}, paths); diff != "" || code != 200 || document.OpenAPI != "3.1.0" {
		t.Error(code, document.OpenAPI, diff)
	}
}

// TestSocket: only its owner may reach it; one that a killed process left is replaced, one
// at which somebody answers is not, and neither is anything else.
func TestSocket(t *testing.T) {
	s := newServed(t, config.API{})
	path := s.server.API.Socket
	for file, want := range map[string]fs.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if info := must(os.Stat(file))(t); info.Mode().Perm() != want {
			t.Errorf("%s has the mode %s", file, info.Mode())
		}
	}
	var busy *Busy
	if _, err := makeSocket(path, false); !errors.As(err, &busy) || !strings.HasPrefix(err.Error(), "spec.api.socket: "+path+": another process answers there") {
		t.Errorf("a second one: %v", err)
	}
	must(0, s.server.Close())(t)
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is left: %v", err)
	}
	if _, err := Dial(t.Context(), path); !errors.Is(err, ErrNobody) {
		t.Errorf("without a server: %v", err)
	}
	stale := must(net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"}))(t)
	stale.SetUnlinkOnClose(false)
	must(0, stale.Close())(t)
	if _, err := Dial(t.Context(), path); !errors.Is(err, ErrNobody) {
		t.Errorf("at a stale socket: %v", err)
	}
	s.listen(config.API{Socket: path})
	must(s.client.Orders(t.Context()))(t)
	file := filepath.Join(t.TempDir(), "file")
	must(0, os.WriteFile(file, []byte("mine"), 0o600))(t)
	if _, err := makeSocket(file, false); err == nil || err.Error() != "spec.api.socket: "+file+": there is something that is no socket" {
		t.Errorf("in place of a file: %v", err)
	}
}

// TestLongSocketPath: a folder may be deeper than the path of a socket is long.
func TestLongSocketPath(t *testing.T) {
	path := filepath.Join(t.TempDir(), strings.Repeat("deep/", 40), "swell.sock")
	s := newServed(t, config.API{Socket: path})
	must(s.client.Orders(t.Context()))(t)
	if _, err := os.Lstat(path); err != nil {
		t.Error(err)
	}
	must(0, s.server.Close())(t)
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is left: %v", err)
	}
	long := filepath.Join(t.TempDir(), strings.Repeat("x", 120))
	if _, err := makeSocket(long, false); err == nil || !strings.HasPrefix(err.Error(), "spec.api.socket: "+long+": the path of a socket has at most ") {
		t.Errorf("a long name: %v", err)
	}
}

// TestPeers: who asks is the user of the process at the other end. Its own user, root and
// operators are let in, and nobody else.
func TestPeers(t *testing.T) {
	nobody := must(user.Lookup("nobody"))(t)
	s := newServed(t, config.API{Operators: []config.Operator{{User: "nobody", Emails: []string{"no@example.com"}}}})
	for _, c := range []struct {
		address, behalf, name, also, refused string
	}{
		{address: fmt.Sprint("uid ", os.Getuid()), name: me(t)},
		{address: "uid 0", behalf: "alice", name: "alice as root", also: "alice"},
		{address: "uid 0", behalf: "nobody", name: "nobody as root", also: "nobody no@example.com"},
		{address: "uid " + nobody.Uid, behalf: "alice", name: "nobody", also: "no@example.com"},
		{address: "uid 4242", behalf: "root", refused: "user 4242 may not: the daemon's own user, root and spec.api.operators may"},
		{address: "", refused: "it is not known who asks"},
		{address: "@", refused: "it is not known who asks"},
	} {
		who, err := s.server.who(c.address, c.behalf)
		if c.refused != "" {
			if err == nil || err.Error() != c.refused {
				t.Errorf("%q: %+v, %v", c.address, who, err)
			}
		} else if err != nil || who.Name != c.name || strings.Join(who.Also, " ") != c.also {
			t.Errorf("%q: %+v, %v", c.address, who, err)
		}
	}
	if os.Getuid() != 0 {
		return // only root becomes somebody else
	}
	dir := t.TempDir()
	for ; dir != "/"; dir = filepath.Dir(dir) { // down to the socket
		if info := must(os.Stat(dir))(t); info.Mode().Perm()&0o001 == 0 {
			must(0, os.Chmod(dir, info.Mode().Perm()|0o011))(t)
		}
	}
	as := func(socket string, id uint32) string {
		binary := filepath.Join(filepath.Dir(socket), "asks")
		must(0, exectest.WriteProgram(binary, must(os.ReadFile(os.Args[0]))(t)))(t)
		cmd := exec.Command(binary)
		cmd.Env, cmd.Dir = []string{asks + "=" + socket}, "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: id, Gid: id}}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	socket := filepath.Join(t.TempDir(), "swell.sock")
	must(0, os.Chmod(filepath.Dir(socket), 0o755))(t)
	s.listen(config.API{Socket: socket, Operators: s.server.API.Operators})
	if said := as(socket, 65534); said != "<nil>" {
		t.Errorf("an operator: %s", said)
	}
	if said := as(socket, 4242); said != "user 4242 may not: the daemon's own user, root and spec.api.operators may" {
		t.Errorf("somebody else: %s", said)
	}
	own := filepath.Join(t.TempDir(), "swell.sock")
	must(0, os.Chmod(filepath.Dir(own), 0o755))(t)
	s.listen(config.API{Socket: own})
	if said := as(own, 4242); said != own+": connect: permission denied: the daemon's own user, root and spec.api.operators may" {
		t.Errorf("without operators: %s", said)
	}
}

// Users who may order count each for itself, and all others as one, whatever numbers they have: none
// of them keeps an operator away.
func TestConnectionsOfUsers(t *testing.T) {
	s := newServed(t, config.API{Operators: []config.Operator{{User: "nobody"}}})
	nobody := must(user.Lookup("nobody"))(t)
	counts := map[string]int{}
	for _, uid := range []string{"4242", "4243", "100000", nobody.Uid, fmt.Sprint(os.Getuid())} {
		id := must(strconv.ParseUint(uid, 10, 32))(t)
		name, most := s.server.caller(peer{uint32(id)})
		counts[name] = most
	}
	want := map[string]int{"all users who may not order": 16, "user nobody": 128, "user " + me(t): 128}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Error(diff)
	}
	if strangersAtOnce+connectionsOfOne > connectionsAtOnce {
		t.Error("strangers and one operator take all connections")
	}
	var refusal *Error
	for refusal == nil { // those that say nothing are closed after a while
		for range connectionsOfOne {
			conn := must(dial(t.Context(), s.server.API.Socket))(t)
			defer conn.Close()
		}
		fresh := must(Dial(t.Context(), s.server.API.Socket))(t)
		_, err := fresh.Orders(t.Context())
		if must(0, fresh.Close())(t); err != nil && !errors.As(err, &refusal) {
			t.Fatal(err)
		}
	}
	if want := "user " + me(t) + " has 128 connections to the socket, and may have no more: close some"; refusal.Error() != want {
		t.Errorf("%v, want %q", refusal, want)
	}
}

// TestDialOfOneThatHangs: the system accepts connections for a process that is stopped.
func TestDialOfOneThatHangs(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "hangs")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	const text = "a daemon has it open, and is stopped or hangs"
	if _, err := Dial(t.Context(), socket); !errors.Is(err, ErrSilent) || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v", err)
	}
}
