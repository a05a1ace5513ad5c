// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"testing"
	"time"

	"github.com/swell-sh/swell/sync/order"
)

// TestWhoMayApprove: a person is known by all of his names, as an author and as one whom the
// gate names.
func TestWhoMayApprove(t *testing.T) {
	ann := Who{Name: "ann", Also: []string{"ann@example.com"}}
	for _, c := range []struct {
		authors, by []string
		as          string // empty: refused
	}{
		{nil, nil, "ann"},
		{[]string{"bob"}, []string{"ann", "bob"}, "ann"},
		{[]string{"bob"}, []string{"ann@example.com"}, "ann@example.com"},
		{nil, []string{"bob"}, ""},
		{[]string{"ann"}, nil, ""},
		{[]string{"ann@example.com"}, nil, ""},
		{[]string{"ann@example.com"}, []string{"ann"}, ""},
	} {
		ask := order.Ask{Unit: "shop/cart", Wave: "canary", Authors: c.authors, By: c.by, Expires: "1h"}
		o, err := approvalOf(ask, Judge{Digest: "d"}, ann, noon)
		if err == nil != (c.as != "") || err == nil && (o.By != c.as || !o.Until.Equal(noon.Add(time.Hour))) {
			t.Errorf("authors %q, by %q: %+v, %v", c.authors, c.by, o, err)
		}
	}
}
