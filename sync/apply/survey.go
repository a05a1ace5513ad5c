// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/store"
)

// Survey lists what swell has in the cluster, by our label, of all kinds that
// the cluster serves: an entry for each object that also has fields applied by
// us and names its unit. Entries have no Target and no Digest; Keep says that the
// object is marked to stay when nobody wants it. They are sorted
// by kind, namespace and name.
//
// unknown names, sorted, the groups and kinds that could not be listed, because
// the server of their API is down or does not let us: what they hold is not
// known. err is set when the cluster does not answer; then nothing is known.
//
// It costs a discovery request for each group and version, and one metadata
// LIST per 500 labelled objects of each kind, and another look at the identity.
func (c *Cluster) Survey(ctx context.Context) (entries []store.Entry, unknown []string, err error) {
	return c.survey(ctx, c.ours())
}

// SurveyAll does what [Cluster.Survey] does for the objects of all monorepos.
func (c *Cluster) SurveyAll(ctx context.Context) (entries []store.Entry, unknown []string, err error) {
	return c.survey(ctx, config.AppliedSelector)
}

func (c *Cluster) survey(ctx context.Context, selector string) (entries []store.Entry, unknown []string, err error) {
	return eachKind(ctx, c, func(s *surveying, gvk schema.GroupVersionKind) ([]store.Entry, error) {
		return s.kind(ctx, gvk, selector)
	}, func(a, b store.Entry) int { return a.ID.Compare(b.ID) })
}

// eachKind lists all kinds that the cluster serves, and sorts what was found.
func eachKind[T any](ctx context.Context, c *Cluster, list func(*surveying, schema.GroupVersionKind) ([]T, error), compare func(a, b T) int) (all []T, unknown []string, err error) {
	s := &surveying{call: c.begin()}
	kinds, err := s.kinds(ctx)
	if err != nil {
		return nil, nil, err
	}
	found := make([][]T, len(kinds))
	errs := make([]error, len(kinds))
	s.all(len(kinds), func(i int) { found[i], errs[i] = list(s, kinds[i]) })
	for i, gvk := range kinds {
		switch err := errs[i]; {
		case err == nil:
			all = append(all, found[i]...)
		case ctx.Err() != nil || s.breaker.open.Load():
			return nil, nil, err
		default:
			s.unknown = append(s.unknown, gvk.GroupKind().String())
		}
	}
	if err := s.stayed(ctx); err != nil {
		return nil, nil, err
	}
	slices.SortStableFunc(all, compare)
	slices.Sort(s.unknown)
	all = slices.CompactFunc(all, func(a, b T) bool { return compare(a, b) == 0 }) // a list that was started again shows some twice
	return all, slices.Compact(s.unknown), nil
}

// surveying is one Survey under way.
type surveying struct {
	*call
	unknown []string
}

// kinds are all kinds that can be listed, each in the preferred version that
// has it, sorted.
func (s *surveying) kinds(ctx context.Context) ([]schema.GroupVersionKind, error) {
	var groups metav1.APIGroupList
	if err := s.getJSON(ctx, "APIGroupList", &request{op: "discover", object: "all groups", path: "/apis"}, &groups); err != nil {
		return nil, err
	}
	served := []schema.GroupVersion{{Version: "v1"}}
	for _, g := range groups.Groups {
		preferred := schema.GroupVersion{Group: g.Name, Version: g.PreferredVersion.Version}
		served = append(served, preferred)
		for _, v := range g.Versions {
			if v.Version != preferred.Version {
				served = append(served, schema.GroupVersion{Group: g.Name, Version: v.Version})
			}
		}
	}
	has := make([]map[string]resource, len(served))
	errs := make([]error, len(served))
	s.all(len(served), func(i int) { has[i], errs[i] = s.discover(ctx, served[i]) })
	seen := map[schema.GroupKind]bool{}
	var kinds []schema.GroupVersionKind
	for i, gv := range served {
		if errs[i] != nil {
			if ctx.Err() != nil || s.breaker.open.Load() {
				return nil, errs[i]
			}
			s.unknown = append(s.unknown, gv.String())
		}
		for kind := range has[i] {
			if gk := (schema.GroupKind{Group: gv.Group, Kind: kind}); !seen[gk] {
				seen[gk] = true
				kinds = append(kinds, gv.WithKind(kind))
			}
		}
	}
	slices.SortFunc(kinds, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	return kinds, nil
}

// kind finds what is ours of one kind.
func (s *surveying) kind(ctx context.Context, gvk schema.GroupVersionKind, selector string) (entries []store.Entry, err error) {
	err = s.each(ctx, gvk, "", selector, func(live *metav1.PartialObjectMetadata) {
		if entry, ok := foundEntry(gvk, live); ok {
			entries = append(entries, entry)
		}
	})
	return entries, err
}

// each lists one kind, in all namespaces or in one. One that cannot be listed at all has no
// objects.
func (s *surveying) each(
	ctx context.Context, gvk schema.GroupVersionKind, namespace, selector string, see func(*metav1.PartialObjectMetadata),
) error {
	err := s.addressed(ctx, s.resource, gvk, func(r resource) error {
		if namespace != "" && !r.namespaced {
			return nil
		}
		_, err := s.list(ctx, gvk.GroupKind(), r.within(namespace), selector, see)
		return err
	})
	var e *Error
	if errors.As(err, &e) && e.Code == http.StatusMethodNotAllowed || errors.Is(err, ErrNoKind) {
		return nil
	}
	return err
}

// foundEntry makes an entry of a live object with our labels, if it is ours.
func foundEntry(gvk schema.GroupVersionKind, live *metav1.PartialObjectMetadata) (store.Entry, bool) {
	own, unit := ownEntry(live), live.Annotations[config.AnnotationUnit]
	if !isMarked(live) || unit == "" {
		return store.Entry{}, false
	}
	fields := rawFields(own)
	phase, _ := strconv.Atoi(live.Annotations[config.AnnotationPhase]) // what is no number says nothing
	return store.Entry{
		Unit:    config.UnitPath(unit),
		ID:      object.ID{Group: gvk.Group, Kind: gvk.Kind, Namespace: live.Namespace, Name: live.Name},
		Version: gvk.Version, UID: string(live.UID),
		Fingerprint: fingerprint(fields, entryTime(own)), Fields: fields, Written: store.Written(entryTime(own)),
		Keep: isKept(live.Annotations) || isDetached(live.Annotations), Found: true, Phase: phase,
	}, true
}
