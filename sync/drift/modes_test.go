// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"testing"

	"github.com/swell-sh/swell/config"
)

// TestModes: what is not known is only reported; a unit that the newest commit
// does not have is corrected until it is gone.
func TestModes(t *testing.T) {
	known := Modes{
		"shop/cart":   {On: map[config.TargetName]config.DriftMode{"sas-1/a": config.DriftReport, "sas-1/b": config.DriftOff}},
		"shop/broken": {Unknown: true},
	}
	for _, c := range []struct {
		modes  Modes
		unit   config.UnitPath
		target config.TargetName
		want   config.DriftMode
	}{
		{nil, "shop/cart", "sas-1/b", config.DriftReport},
		{known, "shop/cart", "sas-1/a", config.DriftReport},
		{known, "shop/cart", "sas-1/b", config.DriftOff},
		{known, "shop/cart", "sas-1/c", config.DriftCorrect},
		{known, "shop/broken", "sas-1/a", config.DriftReport},
		{known, "shop/gone", "sas-1/a", config.DriftCorrect},
		{Modes{}, "shop/cart", "sas-1/a", config.DriftCorrect},
	} {
		if got := c.modes.Of(c.unit, c.target); got != c.want {
			t.Errorf("%s on %s: got %s, want %s", c.unit, c.target, got, c.want)
		}
	}
}
