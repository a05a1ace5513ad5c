// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/sync/store"
)

// pageSize is how many objects one LIST brings.
const pageSize = 500

// Swept is what a look at live objects found.
type Swept struct {
	// Drifts are the objects that differ, in the order of the entries.
	Drifts []Drift
	// Looked says by entry whether it is known now how the object is. The
	// others are unknown, and never reported as missing.
	Looked []bool
	// Lists are the resourceVersions of the kinds that were listed to the end:
	// where a [Cluster.Watch] can begin.
	Lists map[schema.GroupVersionKind]string
	// Lost says that the cluster itself did not answer, and not only what is
	// behind one of its kinds.
	Lost bool
}

// Sweep compares the live objects with what the entries say. It costs one
// metadata LIST per 500 objects of each kind with our label, and one metadata
// GET per entry that is not among them.
//
// Entries without a digest, a fingerprint or a UID are not judged: what the
// server should hold is not known. The error names the kinds, and the entries,
// that could not be read.
func (c *Cluster) Sweep(ctx context.Context, entries []store.Entry) (Swept, error) {
	return c.look(ctx, entries, (*sweeping).kind)
}

// Look is a Sweep of a few objects: it costs one metadata GET per entry, and no
// LIST.
func (c *Cluster) Look(ctx context.Context, entries []store.Entry) (Swept, error) {
	return c.look(ctx, entries, (*sweeping).single)
}

// look goes through the entries kind by kind.
func (c *Cluster) look(ctx context.Context, entries []store.Entry, kind func(*sweeping, context.Context, []int) error) (Swept, error) {
	s := &sweeping{
		call: c.begin(), entries: entries, drifts: make([]*Drift, len(entries)), looked: make([]bool, len(entries)),
		lists: map[schema.GroupVersionKind]string{},
	}
	byKind := map[schema.GroupKind][]int{}
	var kinds []schema.GroupKind
	for i, e := range entries {
		if !Judged(e) {
			continue
		}
		gk := schema.GroupKind{Group: e.ID.Group, Kind: e.ID.Kind}
		if byKind[gk] == nil {
			kinds = append(kinds, gk)
		}
		byKind[gk] = append(byKind[gk], i)
	}
	errs := make([]error, len(kinds))
	numbers := make([]int, len(kinds))
	for i := range numbers {
		numbers[i] = i
	}
	s.each(numbers, func(i int) { errs[i] = kind(s, ctx, byKind[kinds[i]]) })

	found := Swept{Looked: s.looked, Lists: s.lists}
	found.Lost = s.dead.Load() || slices.ContainsFunc(errs, IsLost)
	for _, d := range s.drifts {
		if d != nil {
			found.Drifts = append(found.Drifts, *d)
		}
	}
	return found, errors.Join(errs...)
}

// Judged says whether it is known what the server should hold, so that a live
// object can be held against the entry.
func Judged(e store.Entry) bool { return e.Digest != "" && e.Fingerprint != "" && e.UID != "" }

// sweeping is one Sweep or Look under way. Each entry is written by the one
// that goes through its kind.
type sweeping struct {
	*call
	entries []store.Entry
	drifts  []*Drift // by entry; nil for those that are as they should be
	looked  []bool   // by entry

	mu    sync.Mutex // guards lists
	lists map[schema.GroupVersionKind]string
}

// name is what tells objects of one kind apart.
type name struct{ namespace, name string }

// kind judges the entries with the given numbers, all of one kind, by a list.
func (s *sweeping) kind(ctx context.Context, numbers []int) error {
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
		version, err = s.list(ctx, gvk.GroupKind(), found, func(live *metav1.PartialObjectMetadata) {
			for _, i := range wanted[name{live.Namespace, live.Name}] {
				s.drifts[i], s.looked[i] = compare(s.entries[i], live), true
			}
		})
		return err
	})
	if err != nil {
		for _, i := range numbers { // half a list proves nothing
			s.drifts[i], s.looked[i] = nil, false
		}
		return fmt.Errorf("sweep: %w", err)
	}
	s.mu.Lock()
	s.lists[found.WithKind(gvk.Kind)] = version
	s.mu.Unlock()
	missing := slices.DeleteFunc(slices.Clone(numbers), func(i int) bool { return s.looked[i] })
	return s.confirm(ctx, found, missing)
}

// single judges the entries with the given numbers, all of one kind, one by one.
func (s *sweeping) single(ctx context.Context, numbers []int) error {
	first := s.entries[numbers[0]]
	return s.addressed(ctx, s.anyResource, kindOf(first.ID, first.Version), func(found resource) error {
		return s.confirm(ctx, found, numbers)
	})
}

// confirm looks at single entries. Those that no list showed are gone, or they
// lost our label.
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
			s.drifts[i], s.looked[i] = &Drift{Entry: entry, Missing: true}, true
		case err != nil:
			errs[i] = err
		default:
			s.drifts[i], s.looked[i] = compare(entry, live), true
		}
	})
	return errors.Join(errs...)
}

// list reads the metadata of all objects of a kind that carry our label, page
// by page, and returns the resourceVersion of the whole. A list that took so
// long that the server forgot its beginning is started again once; an object may
// then be seen twice.
func (s *sweeping) list(ctx context.Context, kind schema.GroupKind, found resource, see func(*metav1.PartialObjectMetadata)) (version string, err error) {
	query := url.Values{
		"labelSelector": {render.LabelManagedBy + "=" + render.ManagedBy},
		"limit":         {strconv.Itoa(pageSize)},
	}
	req := &request{op: "list", object: kind.String(), method: http.MethodGet, path: found.collection(), accept: acceptMetaList}
	for restarted := false; ; {
		req.query = query.Encode()
		answer, err := s.do(ctx, req)
		var e *Error
		if errors.As(err, &e) && e.Code == http.StatusGone && !restarted {
			restarted = true
			query.Del("continue")
			continue
		}
		if err != nil {
			return "", err
		}
		var page metav1.PartialObjectMetadataList
		if err := answer.decode("PartialObjectMetadataList", &page); err != nil {
			return "", undecodable(req, answer, err)
		}
		for i := range page.Items {
			see(&page.Items[i])
		}
		if page.Continue == "" {
			return page.ResourceVersion, nil
		}
		query.Set("continue", page.Continue)
	}
}
