// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package order

import "testing"

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
