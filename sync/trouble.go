// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/swell-sh/swell/sync/store"
)

// troubled is what keeps the daemon from its work at the moment, by what it is
// about; see [store.Trouble].
func (d *Daemon) troubled() map[string]string {
	now := map[string]string{}
	if d.gitTrouble != "" {
		now["git"] = d.gitTrouble
	}
	if refused := d.wanted.Refused(); refused != "" && d.snapshot != nil {
		short := "commit " + d.snapshot.Commit.Short()
		now[short] = "not taken: " + strings.TrimPrefix(refused, short+": ")
	}
	for name, c := range d.clusters {
		if err := c.trouble(); err != nil {
			now["cluster "+name] = err.Error()
		}
	}
	return now
}

// tellTroubles stores what keeps the daemon from its work, where that changed.
func (d *Daemon) tellTroubles(ctx context.Context, r *Record) {
	now := d.troubled()
	if r.Err != nil || ctx.Err() != nil || maps.EqualFunc(now, d.troubles, func(text string, known store.Trouble) bool { return text == known.Text }) {
		return
	}
	troubles := make(map[string]store.Trouble, len(now))
	for about, text := range now {
		since := r.At
		if known, ok := d.troubles[about]; ok {
			since = known.Since
		}
		troubles[about] = store.Trouble{About: about, Since: since.UTC().Round(time.Second), Text: text}
	}
	r.Err = d.Store.Update(ctx, func(tx *store.Tx) error { return tx.SetTroubles(slices.Collect(maps.Values(troubles))) })
	d.troubles = troubles
}

// openTroubles are those that an earlier daemon left.
func openTroubles(s *store.Store) (map[string]store.Trouble, error) {
	known, err := s.Troubles()
	troubles := map[string]store.Trouble{}
	for _, t := range known {
		troubles[t.About] = t
	}
	return troubles, err
}
