// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package impact

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/schema/compat"
)

// change is what becomes of a definition, in some clusters.
type change struct {
	was, is *render.Definition // is is nil where it is not there any more
	in      []string           // the clusters; none for a definition that no cluster takes
}

// changes are those of all definitions of base, in the order of the fleet. redefined says
// that one differs, or is new. A definition is compared with the one that has its place
// in the same cluster; what is compared once is not compared again for another cluster.
func changes(base, head *render.Snapshot) (list []*change, clusters int, redefined bool) {
	known := map[[2]*render.Definition]*change{}
	compare := func(was, is map[string]*render.Definition, cluster ...string) {
		for name := range is {
			redefined = redefined || was[name] == nil
		}
		for _, name := range slices.Sorted(maps.Keys(was)) {
			before, after := was[name], is[name]
			if after == nil && len(cluster) == 0 && clusters > 0 || after != nil && before.Same(after) {
				continue // in a cluster, that was found already
			}
			redefined = true
			key := [2]*render.Definition{before, after}
			if known[key] == nil {
				known[key] = &change{was: before, is: after}
				list = append(list, known[key])
			}
			known[key].in = append(known[key].in, cluster...)
		}
	}
	for _, cluster := range base.Repository.Clusters {
		if !slices.ContainsFunc(head.Repository.Clusters, func(c *config.Cluster) bool { return c.Name == cluster.Name }) {
			continue
		}
		clusters++
		compare(base.DefinitionsIn(cluster.Name), head.DefinitionsIn(cluster.Name), cluster.Name)
	}
	compare(base.DefinitionsNowhere(), head.DefinitionsNowhere())
	return list, clusters, redefined
}

// definitions applies the rules to each definition of base. redefined says that one
// differs, or is new.
func (r *Report) definitions(base, head *render.Snapshot) (redefined bool, err error) {
	uses := sync.OnceValue(func() (found map[use]bool) {
		found, err = usesIn(base)
		return found
	})
	list, clusters, redefined := changes(base, head)
	for _, c := range list {
		var found []compat.Finding
		if c.is == nil {
			found = append(found, compat.RemovedDefinition(state(c.was)))
		} else {
			group, kind := namesOf(c.was)
			found = compat.Definitions(state(c.was), state(c.is), compat.Use{
				Documents: func(version string) bool { return c.used(uses(), use{group: group, version: version, kind: kind}) },
				Stored:    storedVersions(head.Repository, state(c.was).Name(), c.in),
			})
		}
		for i := range found {
			if n := len(c.in); n > 0 && n < clusters {
				found[i].Message += " (in " + document.Some(c.in, fewClusters) + ")"
			}
		}
		r.Findings = append(r.Findings, found...)
	}
	return redefined, err
}

// fewClusters are as many as a message names.
const fewClusters = 3

// use is a version of a kind that a cluster has objects of.
type use struct{ cluster, group, version, kind string }

// used says whether one of the clusters has objects of a version; with no clusters, any.
func (c *change) used(uses map[use]bool, u use) bool {
	if len(c.in) == 0 {
		return uses[u]
	}
	return slices.ContainsFunc(c.in, func(cluster string) bool {
		u.cluster = cluster
		return uses[u]
	})
}

// Redefined says whether the definitions of a tree are others than those of a snapshot.
func Redefined(base config.Tree, head *render.Snapshot) bool {
	return render.DefinitionsHash(base) != head.DefinitionsHash()
}

func state(d *render.Definition) compat.Definition {
	return compat.Definition{Object: d.Object(), At: d.At}
}

func namesOf(d *render.Definition) (group, kind string) {
	spec, _ := d.Object()["spec"].(map[string]any)
	names, _ := spec["names"].(map[string]any)
	group, _ = spec["group"].(string)
	kind, _ = names["kind"].(string)
	return group, kind
}

// storedVersions are the versions of a definition that clusters have objects of, of all
// clusters where none is named.
func storedVersions(r *config.Repository, name string, in []string) (stored []string) {
	for cluster, facts := range r.Facts {
		if len(in) > 0 && !slices.Contains(in, cluster) {
			continue
		}
		for _, object := range facts.Definitions {
			if (compat.Definition{Object: object}).Name() != name {
				continue
			}
			status, _ := object["status"].(map[string]any)
			versions, _ := status["storedVersions"].([]any)
			for _, version := range versions {
				stored = append(stored, fmt.Sprint(version))
			}
		}
	}
	return stored
}

// usesIn are the group, version and kind of all objects of a snapshot, by cluster and for
// all together.
func usesIn(s *render.Snapshot) (map[use]bool, error) {
	uses := map[use]bool{}
	for _, unit := range s.Units.Sorted() {
		bundles, err := s.Bundles(unit)
		if err != nil {
			return nil, err
		}
		for _, b := range bundles {
			for _, o := range b.Objects {
				uses[use{"", o.ID.Group, o.Version, o.ID.Kind}] = true
				uses[use{b.Target.Cluster(), o.ID.Group, o.Version, o.ID.Kind}] = true
			}
		}
	}
	return uses, nil
}
