// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/swell-sh/swell/sync/store"
)

// Text says in one line what was changed on an object, and by whom.
func Text(f Finding) string {
	var parts []string
	if f.Missing {
		parts = append(parts, "deleted")
	}
	for _, change := range f.Changes {
		parts = append(parts, change.String())
	}
	return fmt.Sprintf("%s: %s", f.Entry.ID, strings.Join(parts, "; "))
}

// NotedText says in one line what the state has of a drift, see [Text].
func NotedText(d store.Drift) string {
	until := ""
	if !d.Until.IsZero() {
		until = ", left alone until " + d.Until.UTC().Format(time.RFC3339)
	}
	switch {
	case d.Mode == ModeFight && len(d.Changes) > 0:
		return fmt.Sprintf("%s: %s%s", d.ID, FightText(d.Changes[0].Field, d.Changes[0].Manager), until)
	case d.Mode == ModeFight:
		return fmt.Sprintf("%s: %s%s", d.ID, FightText("", store.UnknownManager), until)
	}
	return Text(Finding{Entry: store.Entry{ID: d.ID}, Missing: d.Missing, Changes: d.Changes})
}

// FightText says in a few words what a fight is about:
//
//	fight with kube-controller-manager over .spec.replicas
func FightText(field, manager string) string {
	return fmt.Sprintf("fight with %s over %s", manager, cmp.Or(field, "the object"))
}
