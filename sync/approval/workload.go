// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"fmt"
	"slices"

	"github.com/swell-sh/swell/render/object"
)

// IsWorkload says whether objects of the kind run something: those of Kubernetes'
// own. A Job that is a hook is no workload; the ID does not tell, so the caller checks.
func IsWorkload(id object.ID) bool {
	switch id.Group + "/" + id.Kind {
	case "apps/Deployment", "apps/StatefulSet", "apps/DaemonSet", "apps/ReplicaSet", "/ReplicationController", "/Pod", "batch/Job", "batch/CronJob":
		return true
	}
	return false
}

// Remaining are the objects of a bundle, which may be nil, without its hooks.
func Remaining(b *object.Bundle) []object.ID {
	if b == nil {
		return nil
	}
	ids := make([]object.ID, 0, len(b.Objects))
	for _, o := range b.Objects {
		if o.Hook() == "" {
			ids = append(ids, o.ID)
		}
	}
	return ids
}

// Work is what objects run: the most that one of them does. It is part of the
// stored state.
type Work string

const (
	NoWork     Work = ""
	CustomWork Work = "custom resources"
	OwnWork    Work = "workloads" // of Kubernetes' own kinds
)

// WorkOf is the work of objects, hooks not among them.
func WorkOf(ids []object.ID) Work {
	switch {
	case slices.ContainsFunc(ids, IsWorkload):
		return OwnWork
	case slices.ContainsFunc(ids, object.ID.IsCustom):
		return CustomWork
	}
	return NoWork
}

// Covers says whether work is at least of the same sort.
func (w Work) Covers(other Work) bool { return w == other || w == OwnWork || other == NoWork }

// Ends says which work of the unit ends on the target although the unit stays;
// empty when none does. A unit that has no workload of Kubernetes' own there works
// by its custom resources: then none of their kinds goes altogether.
func (l *Loss) Ends() string { return l.ends(l.named()) }

// named names the target in a text.
func (l *Loss) named() string { return "on target " + string(l.Target) }

func (l *Loss) ends(where string) string {
	if !l.Stays {
		return ""
	}
	works := slices.ContainsFunc(l.Gone, Object.isWorkload) || slices.ContainsFunc(l.Remains, IsWorkload)
	for _, o := range l.Gone {
		switch {
		case works && o.isWorkload():
			if !slices.ContainsFunc(l.Remains, func(id object.ID) bool { return IsWorkload(id) && id.Namespace == o.Namespace }) {
				return fmt.Sprintf("the unit stays, and loses all workloads that it has %s%s", where, within(o.ID))
			}
		case !works && o.IsCustom():
			if !slices.ContainsFunc(l.Remains, func(id object.ID) bool { return SortOf(id) == SortOf(o.ID) }) {
				return fmt.Sprintf("the unit stays, and loses every %s that it has %s%s", o.Kind, where, within(o.ID))
			}
		}
	}
	return ""
}

func (o Object) isWorkload() bool { return !o.Hook && IsWorkload(o.ID) }

func within(id object.ID) string {
	if id.Namespace == "" {
		return ""
	}
	return " in namespace " + id.Namespace
}
