// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"testing"
	"time"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/store"
)

// TestNotedText: of a fight, until when the object is left alone.
func TestNotedText(t *testing.T) {
	d := store.Drift{Object: store.Object{ID: object.ID{Kind: "ConfigMap", Namespace: "shop", Name: "cart"}}, Mode: ModeFight,
		Changes: []store.Change{{Field: ".data.a", Manager: "bob"}}}
	if got, want := NotedText(d), "ConfigMap/shop/cart: fight with bob over .data.a"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	d.Until = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	if got, want := NotedText(d), "ConfigMap/shop/cart: fight with bob over .data.a, left alone until 2026-03-01T12:00:00Z"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
