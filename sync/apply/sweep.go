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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/sync/store"
)

// pageSize is how many objects one LIST brings.
const pageSize = 500

// Sweep compares the live objects with what the entries say, and returns those
// that differ, in the order of the entries. It costs one metadata LIST per 500
// objects of each kind with our label, and one metadata GET per entry that is
// not among them.
//
// Entries without a digest, a fingerprint or a UID are not judged: what the
// server should hold is not known. The error names the kinds, and the entries,
// that could not be read; those are unknown and never reported as missing.
//
// What ignore names for an entry is not looked at.
func (c *Cluster) Sweep(ctx context.Context, entries []store.Entry, ignore Ignored) ([]Drift, error) {
	s := &sweeping{call: c.begin(), entries: entries, ignore: ignore, drifts: make([]*Drift, len(entries))}
	byKind := map[schema.GroupKind][]int{}
	var kinds []schema.GroupKind
	for i, e := range entries {
		if !judged(e) {
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
	s.each(numbers, func(i int) { errs[i] = s.kind(ctx, byKind[kinds[i]]) })

	var found []Drift
	for _, d := range s.drifts {
		if d != nil {
			found = append(found, *d)
		}
	}
	return found, errors.Join(errs...)
}

// sweeping is one Sweep under way.
// judged says whether it is known what the server should hold.
func judged(e store.Entry) bool { return e.Digest != "" && e.Fingerprint != "" && e.UID != "" }

type sweeping struct {
	*call
	entries []store.Entry
	ignore  Ignored
	drifts  []*Drift // by entry; nil for those that are as they should be
}

// name is what tells objects of one kind apart.
type name struct{ namespace, name string }

// kind judges the entries with the given numbers, all of one kind.
func (s *sweeping) kind(ctx context.Context, numbers []int) error {
	first := s.entries[numbers[0]]
	gvk := kindOf(first.ID, first.Version)
	wanted := make(map[name][]int, len(numbers))
	for _, i := range numbers {
		id := s.entries[i].ID
		wanted[name{id.Namespace, id.Name}] = append(wanted[name{id.Namespace, id.Name}], i)
	}
	seen := make(map[name]bool, len(numbers))
	var found resource
	err := s.addressed(ctx, s.anyResource, gvk, func(r resource) error {
		found = r
		return s.list(ctx, gvk.GroupKind(), found, func(live *metav1.PartialObjectMetadata) {
			n := name{live.Namespace, live.Name}
			for _, i := range wanted[n] {
				seen[n] = true
				s.drifts[i] = compare(s.entries[i], live, s.ignore.of(s.entries[i])...)
			}
		})
	})
	if err != nil {
		for _, i := range numbers {
			s.drifts[i] = nil // half a list proves nothing
		}
		return fmt.Errorf("sweep: %w", err)
	}
	missing := slices.DeleteFunc(slices.Clone(numbers), func(i int) bool {
		id := s.entries[i].ID
		return seen[name{id.Namespace, id.Name}]
	})
	return s.confirm(ctx, found, missing)
}

// confirm looks at the entries that no list showed: they are gone, or they lost
// our label.
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
			s.drifts[i] = &Drift{Entry: entry, Missing: true}
		case err != nil:
			errs[i] = err
		default:
			s.drifts[i] = compare(entry, live, s.ignore.of(entry)...)
		}
	})
	return errors.Join(errs...)
}

// list reads the metadata of all objects of a kind that carry our label, page
// by page. A list that took so long that the server forgot its beginning is
// started again once; an object may then be seen twice.
func (s *sweeping) list(ctx context.Context, kind schema.GroupKind, found resource, see func(*metav1.PartialObjectMetadata)) error {
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
			return err
		}
		var page metav1.PartialObjectMetadataList
		if err := answer.decode("PartialObjectMetadataList", &page); err != nil {
			return undecodable(req, answer, err)
		}
		for i := range page.Items {
			see(&page.Items[i])
		}
		if page.Continue == "" {
			return nil
		}
		query.Set("continue", page.Continue)
	}
}
