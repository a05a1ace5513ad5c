// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"math"
	"testing"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// TestPlainRefuses: numbers that JSON cannot hold became invalid JSON, or
// vanished.
func TestPlainRefuses(t *testing.T) {
	for _, v := range []ref.Val{
		types.Double(math.NaN()), types.Double(math.Inf(1)), types.Uint(1 << 63),
		types.NewDynamicList(types.DefaultTypeAdapter, []float64{math.NaN()}),
	} {
		if value, present, err := plain(v); err == nil {
			t.Errorf("%v: got %v, present %t, want an error", v, value, present)
		}
		if h := hash(v); !types.IsError(h) {
			t.Errorf("hash(%v): got %v, want an error", v, h)
		}
	}
}
