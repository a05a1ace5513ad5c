// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"testing"
)

// TestRepeatedDocument: an easy document that stood twice in a unit was
// collected twice, so that the collector's configuration had a key twice.
func TestRepeatedDocument(t *testing.T) {
	again := easySpec("Pipe", "cart", "{source: again}")
	var c Compiler
	s := snapshot(&c, with(richFiles(), map[string]string{"services/shop/cart/zz.yaml": again}))
	const want = "services/shop/cart/zz.yaml:1:1: Pipe cart: stands twice in this unit, first at services/shop/cart/pipe.yaml:1:1: give one of them another name"
	if cart := s.Units.Get("services/shop/cart"); cart.Problems.String() != want {
		t.Errorf("got %v, want %s", cart.Problems, want)
	}
	vector := s.Units.Get("services/platform/vector")
	if data := dataOf(t, s, vector.Path, "vector"); strings.Count(data, "services/shop/cart:cart=") != 1 || !strings.Contains(data, "cart:cart=cart") {
		t.Errorf("collected: %s, want the first one alone", data)
	}
	if len(vector.Notes) != 1 || !strings.Contains(vector.Notes[0].Message, "stands twice") {
		t.Errorf("notes: %v", vector.Notes)
	}
	if gather := s.Units.Get("services/shop/gather"); len(gather.Problems) != 1 {
		t.Errorf("what holds for an invalid document: %v, want one problem", gather.Problems)
	}
	moved := with(richFiles(), map[string]string{"services/pay/cart/zz.yaml": again})
	if s := snapshot(&c, moved); len(s.Problems) > 0 {
		t.Errorf("in another unit: %v", s.Problems)
	}
}
