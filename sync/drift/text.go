// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/store"
)

// Text says in one line what was changed on an object, and by whom.
func Text(drift apply.Drift) string {
	var parts []string
	if drift.Missing {
		parts = append(parts, "deleted")
	}
	for _, change := range drift.Changes {
		parts = append(parts, change.String())
	}
	return fmt.Sprintf("%s: %s", drift.Entry.ID, strings.Join(parts, "; "))
}

// NotedText says in one line what the state has of a drift, see [Text].
func NotedText(d store.Drift) string {
	drift := apply.Drift{Missing: d.Missing}
	drift.Entry.ID = d.ID
	for _, c := range d.Changes {
		drift.Changes = append(drift.Changes, apply.Change(c))
	}
	switch {
	case d.Mode == ModeFight && len(d.Changes) > 0:
		return fmt.Sprintf("%s: %s", d.ID, FightText(d.Changes[0].Field, d.Changes[0].Manager))
	case d.Mode == ModeFight:
		return fmt.Sprintf("%s: %s", d.ID, FightText("", apply.UnknownManager))
	}
	return Text(drift)
}

// FightText says in a few words what a fight is about:
//
//	fight with kube-controller-manager over .spec.replicas
func FightText(field, manager string) string {
	return fmt.Sprintf("fight with %s over %s", manager, cmp.Or(field, "the object"))
}
