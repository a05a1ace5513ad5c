// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/swell-sh/swell/sync/drift"
	"github.com/swell-sh/swell/sync/store"
)

// Swept is what a look at live objects found.
type Swept struct {
	// Drifts are the objects that differ, in the order of the entries.
	Drifts []drift.Finding
	// Looked says by entry whether it is known now how the object is. The
	// others are unknown, and never reported as missing.
	Looked []bool
	// Marks tell by entry one state of its object from another; the zero value where the
	// object was not seen.
	Marks []Mark
	// Lists are the resourceVersions of the kinds that were listed to the end:
	// where a [Cluster.Watch] can begin. The view of a user has none.
	Lists map[schema.GroupVersionKind]string
	// Lost says that the cluster itself did not answer, and not only what is
	// behind one of its kinds.
	Lost bool
	// Unanswered says that a server was too busy for a request or failed at it, and that
	// another one may be answered.
	Unanswered bool
}

// Mark tells one state of a live object from another.
type Mark struct {
	Version string    // its resourceVersion; empty: nobody saw it
	Written time.Time // when somebody last wrote it, in whole seconds of the server's clock
}

func markOf(live *metav1.PartialObjectMetadata) Mark {
	m := Mark{Version: live.ResourceVersion}
	for i := range live.ManagedFields {
		if written := entryTime(&live.ManagedFields[i]); written.After(m.Written) {
			m.Written = written
		}
	}
	return m
}

// Add adds what another look found, at the entries behind those of this one.
func (s *Swept) Add(other Swept) {
	s.Drifts = append(s.Drifts, other.Drifts...)
	s.Looked = append(s.Looked, other.Looked...)
	s.Marks = append(s.Marks, other.Marks...)
	s.Lost, s.Unanswered = s.Lost || other.Lost, s.Unanswered || other.Unanswered
	if s.Lists == nil {
		s.Lists = map[schema.GroupVersionKind]string{}
	}
	maps.Copy(s.Lists, other.Lists)
}

// Sweep compares the live objects with what the entries say. It costs one
// metadata LIST per 500 objects of each kind with our label, and one metadata
// GET per entry that is not among them. The view of a user lists each namespace
// on its own, and gets single entries where the user may not list.
//
// Entries without a digest, a fingerprint or a UID are not judged: what the
// server should hold is not known. Nor are hooks that ran: nothing needs them any
// more, and they may be gone by their time to live. The error names the kinds, and
// the entries, that could not be read.
//
// What ignore names for an entry is not looked at.
func (c *Cluster) Sweep(ctx context.Context, entries []store.Entry, ignore Ignored) (Swept, error) {
	return c.sweepKinds(ctx, entries, ignore, (*sweeping).kind)
}

// SweepFew is a Sweep of a few objects: it costs one metadata GET per entry, and no
// LIST.
func (c *Cluster) SweepFew(ctx context.Context, entries []store.Entry, ignore Ignored) (Swept, error) {
	return c.sweepKinds(ctx, entries, ignore, (*sweeping).single)
}

// sweepKinds goes through the entries kind by kind.
func (c *Cluster) sweepKinds(ctx context.Context, entries []store.Entry, ignore Ignored, judge func(s *sweeping, ctx context.Context, namespace string, numbers []int) error) (Swept, error) {
	s := &sweeping{
		call: c.begin(), entries: entries, ignore: ignore,
		drifts: make([]*drift.Finding, len(entries)), looked: make([]bool, len(entries)), marks: make([]Mark, len(entries)),
		lists: map[schema.GroupVersionKind]string{},
	}
	byKind := map[listed][]int{}
	var kinds []listed
	for i, e := range entries {
		if !Judged(e) {
			continue
		}
		l := listed{GroupKind: schema.GroupKind{Group: e.ID.Group, Kind: e.ID.Kind}}
		if c.user != "" { // whose rights mostly end with the namespace
			l.namespace = e.ID.Namespace
		}
		if byKind[l] == nil {
			kinds = append(kinds, l)
		}
		byKind[l] = append(byKind[l], i)
	}
	errs := make([]error, len(kinds))
	s.all(len(kinds), func(i int) { errs[i] = judge(s, ctx, kinds[i].namespace, byKind[kinds[i]]) })

	found := Swept{Looked: s.looked, Marks: s.marks, Lists: s.lists}
	found.Lost = s.breaker.open.Load() || slices.ContainsFunc(errs, IsLost)
	found.Unanswered = slices.ContainsFunc(errs, isUnanswered)
	for _, d := range s.drifts {
		if d != nil {
			found.Drifts = append(found.Drifts, *d)
		}
	}
	return found, errors.Join(errs...)
}

// isUnanswered says that the server said nothing of an object that it was asked for, and may do so
// another time.
func isUnanswered(err error) bool {
	return anyIs(err, func(e *Error) bool {
		return e.Code == 0 || e.Code == http.StatusTooManyRequests || e.Code >= http.StatusInternalServerError
	})
}

// listed is what is listed at once: the objects of a kind, in one namespace or,
// where it is empty, in all.
type listed struct {
	schema.GroupKind
	namespace string
}

// Judged says whether it is known what the server should hold, so that a live
// object can be held against the entry. A hook that ran may hold anything.
func Judged(e store.Entry) bool {
	return e.Digest != "" && e.Fingerprint != "" && e.UID != "" && e.Ran == ""
}

// sweeping is one Sweep or SweepFew under way. Each entry is written by the one
// that goes through its kind.
type sweeping struct {
	*call
	entries []store.Entry
	ignore  Ignored
	drifts  []*drift.Finding // by entry; nil for those that are as they should be
	looked  []bool           // by entry
	marks   []Mark           // by entry

	mu    sync.Mutex // guards lists
	lists map[schema.GroupVersionKind]string
}

// name is what tells objects of one kind apart.
type name struct{ namespace, name string }

// kind judges the entries with the given numbers, all of one kind, by a list:
// of one namespace where it is not empty.
func (s *sweeping) kind(ctx context.Context, namespace string, numbers []int) error {
	first := s.entries[numbers[0]]
	gvk := kindOf(first.ID, first.Version)
	wanted := make(map[name][]int, len(numbers))
	for _, i := range numbers {
		id := s.entries[i].ID
		wanted[name{id.Namespace, id.Name}] = append(wanted[name{id.Namespace, id.Name}], i)
	}
	var found resource
	var version string
	err := s.addressed(ctx, s.anyResource, gvk, func(r resource) (err error) {
		found = r
		version, err = s.list(ctx, gvk.GroupKind(), found.within(namespace), s.ours(), func(live *metav1.PartialObjectMetadata) {
			for _, i := range wanted[name{live.Namespace, live.Name}] {
				s.drifts[i], s.looked[i], s.marks[i] = s.compare(s.entries[i], live, s.ignore.of(s.entries[i])...), true, markOf(live)
			}
		})
		return err
	})
	if err != nil {
		for _, i := range numbers { // half a list proves nothing
			s.drifts[i], s.looked[i], s.marks[i] = nil, false, Mark{}
		}
		if s.user == "" || !isForbidden(err) {
			return fmt.Errorf("sweep: %w", err)
		}
	}
	if s.user == "" {
		s.mu.Lock()
		s.lists[found.WithKind(gvk.Kind)] = version
		s.mu.Unlock()
	}
	missing := slices.DeleteFunc(slices.Clone(numbers), func(i int) bool { return s.looked[i] })
	return s.confirm(ctx, found, missing)
}

// single judges the entries with the given numbers, all of one kind, one by one.
func (s *sweeping) single(ctx context.Context, _ string, numbers []int) error {
	first := s.entries[numbers[0]]
	return s.addressed(ctx, s.anyResource, kindOf(first.ID, first.Version), func(found resource) error {
		return s.confirm(ctx, found, numbers)
	})
}

// confirm looks at single entries. Those that no list showed are gone, or they
// lost one of our labels.
func (s *sweeping) confirm(ctx context.Context, found resource, numbers []int) error {
	errs := make([]error, len(s.entries))
	s.each(numbers, func(i int) {
		entry := s.entries[i]
		path, err := found.path("get", entry.ID)
		if err != nil {
			errs[i] = err
			return
		}
		live, err := s.getMeta(ctx, entry.ID.String(), path)
		switch {
		case isGone(err, entry.ID.Name):
			s.drifts[i], s.looked[i] = &drift.Finding{Entry: entry, Missing: true}, true
		case err != nil:
			errs[i] = err
		default:
			s.drifts[i], s.looked[i], s.marks[i] = s.compare(entry, live, s.ignore.of(entry)...), true, markOf(live)
		}
	})
	return errors.Join(errs...)
}
