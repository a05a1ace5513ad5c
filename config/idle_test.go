// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"testing"

	"github.com/swell-sh/swell/config"
)

func TestCleanUnitPath(t *testing.T) {
	for written, want := range map[string]config.UnitPath{
		"services/shop/cart": "services/shop/cart", "services/shop/": "services/shop", "./services": "services",
		"/services/shop":     "services/shop",
		"//services//shop//": "services/shop", "services/./shop": "services/shop", "services/zed/../shop": "services/shop",
		"": "", ".": "", "./": "", "/": "", "..": "", "../services": "", "services/../..": "",
	} {
		if got := config.CleanUnitPath(written); got != want {
			t.Errorf("%q is %q, want %q", written, got, want)
		}
	}
}
