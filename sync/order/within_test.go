// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package order

import (
	"strings"
	"testing"
	"time"
)

func TestMeets(t *testing.T) {
	for _, c := range []struct {
		a, b Scope
		want bool
	}{
		{Scope{}, Scope{Unit: "services/cart", Target: "sas-1/a"}, true},
		{Scope{Unit: "services"}, Scope{Unit: "services/cart"}, true},
		{Scope{Unit: "services/cart"}, Scope{Unit: "services/carts"}, false},
		{Scope{Unit: "services/cart"}, Scope{Target: "sas-1"}, true},
		{Scope{Unit: "services/cart", Target: "sas-1/a"}, Scope{Unit: "services", Target: "sas-1"}, true},
		{Scope{Unit: "services/cart", Target: "sas-1/a"}, Scope{Unit: "services", Target: "sas-1/b"}, false},
		{Scope{Target: "sas-1"}, Scope{Target: "vla-1"}, false},
		{Scope{Tenant: "shop"}, Scope{Unit: "services/cart"}, true},
		{Scope{Tenant: "shop"}, Scope{Tenant: "pay"}, false},
		{Scope{Wave: "canary"}, Scope{Wave: "rest"}, false},
	} {
		if c.a.Meets(c.b) != c.want || c.b.Meets(c.a) != c.want {
			t.Errorf("%q and %q: got %t and %t, want %t", c.a.Text(), c.b.Text(), c.a.Meets(c.b), c.b.Meets(c.a), c.want)
		}
	}
}

// TestEndedBy: an order ends those wholly in its scope, and of its own verb alone.
func TestEndedBy(t *testing.T) {
	all := Scope{}
	for _, c := range []struct {
		mask, unmask Scope
		want         bool
	}{
		{all, all, true},
		{all, Scope{Wave: "canary"}, false},
		{all, Scope{Tenant: "shop"}, false},
		{all, Scope{Target: "sas-1"}, false},
		{all, Scope{Unit: "services"}, false},
		{Scope{Wave: "canary"}, all, true},
		{Scope{Wave: "canary"}, Scope{Wave: "canary"}, true},
		{Scope{Wave: "canary"}, Scope{Wave: "rest"}, false},
		{Scope{Wave: "canary", Target: "sas-1"}, Scope{Target: "sas-1"}, true},
		{Scope{Target: "sas-1"}, Scope{Wave: "canary", Target: "sas-1"}, false},
		{Scope{Tenant: "shop"}, Scope{Tenant: "pay"}, false},
		{Scope{Unit: "services/cart"}, Scope{Unit: "services"}, true},
		{Scope{Unit: "services"}, Scope{Unit: "services/cart"}, false},
		{Scope{Target: "sas-1/a"}, Scope{Target: "sas-1"}, true},
		{Scope{Target: "sas-1"}, Scope{Target: "sas-1/a"}, false},
	} {
		in := Standing{{Seq: 1, Verb: Mask, Scope: c.mask}, {Seq: 2, Verb: Pause, Scope: c.mask}}
		left, ended := in.EndedBy(&Order{Verb: Unmask, Scope: c.unmask})
		if len(ended) == 1 != c.want || len(left)+len(ended) != 2 || len(ended) == 1 && ended[0].Seq != 1 {
			t.Errorf("unmask of %q ends a mask of %q: got %v, want %t", c.unmask.Text(), c.mask.Text(), ended, c.want)
		}
	}
}

// TestCommandInAShell: what commits name is a word of a shell, and no command of it.
func TestCommandInAShell(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Command("promote", "services/shop_2/cart-1.x"), "swell promote services/shop_2/cart-1.x"},
		{Command("retry", "services/käse"), "swell retry services/käse"},
		{Command("promote", "services/a $(reboot); b"), "swell promote 'services/a $(reboot); b'"},
		{Command("promote", "services/it's"), `swell promote 'services/it'\''s'`},
		{(&Order{Verb: Pause, Scope: Scope{Wave: "a; reboot", Target: "sas-1/a"}}).EndCommand(), "swell resume sas-1/a --wave 'a; reboot'"},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
}

// TestHasCluster: a scope has all of a cluster when nothing but the cluster narrows it.
func TestHasCluster(t *testing.T) {
	for _, c := range []struct {
		scope Scope
		want  bool
	}{
		{Scope{}, true},
		{Scope{Target: "sas-1"}, true},
		{Scope{Target: "sas-1/a"}, false},
		{Scope{Target: "vla-1"}, false},
		{Scope{Unit: "services"}, false},
		{Scope{Tenant: "shop"}, false},
		{Scope{Wave: "canary"}, false},
		{Scope{Target: "sas-1", Wave: "canary"}, false},
	} {
		if got := c.scope.HasCluster("sas-1"); got != c.want {
			t.Errorf("%q: got %t, want %t", c.scope.Text(), got, c.want)
		}
	}
}

// TestUnknownVerb: the verbs that there are stood in the message as Go prints a list.
func TestUnknownVerb(t *testing.T) {
	err := (&Order{Verb: "pouse"}).Check(time.Now())
	if err == nil || !strings.HasPrefix(err.Error(), `verb "pouse": want one of pause, `) {
		t.Errorf("got %v", err)
	}
}

// TestParseAmount: from a second to ten years, also in days.
func TestParseAmount(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"1s": time.Second, "2h30m": 150 * time.Minute, "7d": 7 * 24 * time.Hour, "3650d": maxDays * 24 * time.Hour,
		"999ms": 0, "0d": 0, "-1d": 0, "3651d": 0, "87601h": 0, "1w": 0, "d": 0, "1.5d": 0, "": 0, "99999999999999999999d": 0,
	} {
		if got, err := ParseAmount(text); got != want || (err != nil) != (want == 0) {
			t.Errorf("%q: got %s, %v; want %s", text, got, err, want)
		}
	}
}
