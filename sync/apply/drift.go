// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/drift"
	"github.com/swell-sh/swell/sync/store"
)

// compare judges a live object. One that another monorepo took over is left to it.
func (c *connection) compare(entry store.Entry, live *metav1.PartialObjectMetadata, ignored ...pointer) *drift.Finding {
	if owner := c.othersRepository(live); owner != "" && string(live.UID) == entry.UID {
		own := ownEntry(live)
		return &drift.Finding{Entry: entry, Kept: true, Changes: []store.Change{{Note: drift.TakenOver, Manager: owner}}, Fingerprint: fingerprint(rawFields(own), entryTime(own))}
	}
	return compare(entry, live, ignored...)
}

// compare judges a live object, nil when it is as we applied it. The loss of a
// field that is ignored is no drift.
func compare(entry store.Entry, live *metav1.PartialObjectMetadata, ignored ...pointer) *drift.Finding {
	own := ownEntry(live)
	now := fingerprint(rawFields(own), entryTime(own))
	if string(live.UID) != entry.UID {
		change := store.Change{Note: "deleted and recreated by somebody", Manager: store.UnknownManager}
		if first := oldestManager(live); first != nil {
			setAuthor(&change, first)
		}
		return &drift.Finding{Entry: entry, Missing: true, Changes: []store.Change{change}, Fingerprint: now}
	}
	if live.DeletionTimestamp != nil {
		change := store.Change{Note: "deleted by somebody: " + terminating(live), Manager: store.UnknownManager}
		return &drift.Finding{Entry: entry, Leaving: true, Changes: []store.Change{change}, Fingerprint: now}
	}
	if now == entry.Fingerprint && live.Annotations[config.AnnotationOwned] == "" {
		return nil
	}
	changes, fields := changesOf(entry, live, own, ignored)
	if changes == nil {
		return nil
	}
	return &drift.Finding{Entry: entry, Changes: changes, Lost: fields, Fingerprint: now}
}

// changesOf says what is different, and which of our fields were lost; nil when nothing is,
// or when it is only written in another way. The loss of a field that somebody holds through the
// scale subresource is nothing.
func changesOf(entry store.Entry, live *metav1.PartialObjectMetadata, own *metav1.ManagedFieldsEntry, ignored []pointer) ([]store.Change, *fieldpath.Set) {
	recorded, err := parseFields(entry.Fields)
	if err != nil {
		return []store.Change{{Note: "not as applied, and the record of our fields cannot be read", Manager: store.UnknownManager}}, nil
	}
	current, err := parseFields(rawFields(own))
	if err != nil {
		return []store.Change{{Note: "not as applied, and its managed fields cannot be read", Manager: store.UnknownManager}}, nil
	}
	missing := recorded.Difference(current)
	excused := excuse(entry.ID, live, missing, ignored)
	missing = missing.Difference(excused)
	added := unappliedAnnotations(live, current.Union(recorded), ignored)
	changes := append(lost(live, missing, entryTime(own)), added...)
	switch {
	case len(added) > 0:
		return changes, nil
	case len(changes) > 0:
		return changes, missing
	case fingerprint(rawFields(own), entryTime(own)) == entry.Fingerprint:
		return nil, nil
	case current.Union(excused).Equals(recorded) && fingerprint(entry.Fields, entryTime(own)) == entry.Fingerprint:
		return nil, nil // the same time, and the same fields, maybe in another spelling
	}
	change := store.Change{Note: "none of its fields is ours any more", Manager: store.UnknownManager}
	if own != nil {
		change.Note = "applied by somebody else under our name"
		setAuthor(&change, own)
	}
	return []store.Change{change}, nil
}

// excuse are the paths whose loss is no drift.
func excuse(id object.ID, live *metav1.PartialObjectMetadata, missing *fieldpath.Set, ignored []pointer) *fieldpath.Set {
	scale := fieldpath.NewSet()
	for _, m := range otherManagers(live) {
		if m.Subresource == scaleSubresource {
			scale = scale.Union(m.fields)
		}
	}
	orphaned := isScalable(id) && isReplicasOrphaned(live)
	return subset(missing, func(path fieldpath.Path) bool {
		return scale.Has(path) || orphaned && path.Equals(replicasPath) || covers(ignored, path, nil)
	})
}

// setAuthor names a manager in the change.
func setAuthor(c *store.Change, e *metav1.ManagedFieldsEntry) {
	c.Manager, c.Operation, c.Subresource, c.Time = e.Manager, string(e.Operation), e.Subresource, entryTime(e)
}

// lost makes a change of each lost path that has no lost parent.
func lost(live *metav1.PartialObjectMetadata, paths *fieldpath.Set, applied time.Time) []store.Change {
	if paths.Empty() {
		return nil
	}
	others := otherManagers(live)
	var changes []store.Change
	paths.Iterate(func(path fieldpath.Path) {
		for n := 1; n < len(path); n++ {
			if paths.Has(path[:n]) {
				return
			}
		}
		change := store.Change{Field: fieldText(path), Manager: store.UnknownManager}
		if culprit := culpritOf(others, path, applied); culprit != nil {
			setAuthor(&change, culprit)
		}
		changes = append(changes, change)
	})
	slices.SortFunc(changes, func(a, b store.Change) int { return cmp.Compare(a.Field, b.Field) })
	return changes
}

// manager is somebody else's managedFields entry with its fields read.
type manager struct {
	*metav1.ManagedFieldsEntry
	fields *fieldpath.Set
}

// otherManagers are all but our own entry, the newest first.
func otherManagers(live *metav1.PartialObjectMetadata) []manager {
	var others []manager
	for i := range live.ManagedFields {
		e := &live.ManagedFields[i]
		if isOurs(e) {
			continue
		}
		fields, err := parseFields(rawFields(e))
		if err != nil {
			fields = fieldpath.NewSet()
		}
		others = append(others, manager{e, fields})
	}
	slices.SortStableFunc(others, func(a, b manager) int {
		return entryTime(b.ManagedFieldsEntry).Compare(entryTime(a.ManagedFieldsEntry))
	})
	return others
}

// culpritOf is the newest manager that owns the path, if there is one, or else the newest one
// that wrote to the object itself since our apply, or nil.
func culpritOf(others []manager, path fieldpath.Path, applied time.Time) *metav1.ManagedFieldsEntry {
	for _, m := range others {
		if len(path) > 0 && m.fields.Has(path) {
			return m.ManagedFieldsEntry
		}
	}
	for _, m := range others {
		// Times have whole seconds only, so the same one counts as after.
		if m.Subresource == "" && !applied.IsZero() && !entryTime(m.ManagedFieldsEntry).Before(applied) {
			return m.ManagedFieldsEntry
		}
	}
	return nil
}

// oldestManager is whose entry is the oldest: mostly who created the object. An
// entry for a subresource is of somebody who came later, and may have no time.
func oldestManager(live *metav1.PartialObjectMetadata) *metav1.ManagedFieldsEntry {
	var oldest *metav1.ManagedFieldsEntry
	for i := range live.ManagedFields {
		e := &live.ManagedFields[i]
		if e.Subresource == "" && (oldest == nil || entryTime(e).Before(entryTime(oldest))) {
			oldest = e
		}
	}
	return oldest
}

// parseFields reads FieldsV1; no text is no fields.
func parseFields(raw string) (*fieldpath.Set, error) {
	set := fieldpath.NewSet()
	if raw == "" {
		return set, nil
	}
	return set, set.FromJSON(strings.NewReader(raw))
}

var plainWord = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// fieldText is a path for people, see [store.Change.Field].
func fieldText(path fieldpath.Path) string {
	var b strings.Builder
	for _, element := range path {
		if element.FieldName != nil && !plainWord.MatchString(*element.FieldName) {
			b.WriteString("[" + strconv.Quote(*element.FieldName) + "]")
			continue
		}
		b.WriteString(element.String())
	}
	return b.String()
}
