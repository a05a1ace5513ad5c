// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import "testing"

// TestTenantNamespaces: one of Kubernetes' own namespaces takes a pattern of its own.
func TestTenantNamespaces(t *testing.T) {
	for _, c := range []struct {
		patterns Names
		name     string
		want     bool
	}{
		{Names{"shop-*"}, "shop-a", true},
		{Names{"shop-*"}, "pay", false},
		{Names{"*"}, "shop-a", true},
		{Names{"*"}, "kube-system", false},
		{Names{"*", "kube-public"}, "kube-public", true},
		{Names{"*", "kube-public"}, "kube-system", false},
		{Names{"*", "kube-*"}, "kube-system", false},
		{Names{"*", "!kube-public", "kube-public"}, "kube-public", false},
		{Names{"*"}, "swell", false},
		{Names{"*"}, "swell-system", false},
		{Names{"*"}, "swell-shop", true},
		{Names{"swell"}, "swell", true},
		{Names{"k*"}, "kube-system", false},
		{Names{"kube-system"}, "kube-system", true},
	} {
		if got := (&Tenant{Namespaces: c.patterns}).Namespace(c.name); got != c.want {
			t.Errorf("%v and %s: got %t, want %t", c.patterns, c.name, got, c.want)
		}
	}
}
