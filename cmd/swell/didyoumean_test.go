// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/swell-sh/swell/config"
)

// TestUnitByItsEnd: who names the last folder of a unit alone is told the whole path.
func TestUnitByItsEnd(t *testing.T) {
	units := []config.UnitPath{"services/shop/space", "services/pay/space", "services/shop/cart"}
	for got, want := range map[string]string{
		"cart":             ", want services/shop/cart",
		"shop/cart":        ", want services/shop/cart",
		"space":            ", want services/pay/space, services/shop/space",
		"services/shop/cr": `, did you mean "services/shop/cart"?`,
	} {
		if found := didYouMean(got, units); found != want {
			t.Errorf("%s: %q, want %q", got, found, want)
		}
	}
}
