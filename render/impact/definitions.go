// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package impact

import (
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/schema"
	"github.com/swell-sh/swell/render/schema/compat"
)

// definitions applies the rules to each definition of base. redefined says that one
// differs, or is new.
func (r *Report) definitions(base, head *render.Snapshot) (redefined bool, err error) {
	stored := storedVersions(head.Repository)
	was, is := base.Definitions(), map[string]*render.Definition{}
	for _, d := range head.Definitions() {
		is[state(d).Name()] = d
	}
	versions := sync.OnceValue(func() (uses map[[3]string]bool) {
		uses, err = versionsInUse(base)
		return uses
	})
	redefined = len(was) != len(is)
	for _, before := range was {
		name := state(before).Name()
		after := is[name]
		if after == nil {
			redefined = true
			r.Findings = append(r.Findings, compat.RemovedDefinition(state(before)))
			continue
		}
		if reflect.DeepEqual(before.Object, after.Object) {
			continue
		}
		redefined = true
		group, kind := namesOf(before)
		r.Findings = append(r.Findings, compat.Definitions(state(before), state(after), compat.Use{
			Documents: func(version string) bool { return versions()[[3]string{group, version, kind}] },
			Stored:    stored[name],
		})...)
	}
	return redefined, err
}

// Redefined says whether the definitions of a tree are others than those of a snapshot.
func Redefined(base config.Tree, head *render.Snapshot) bool {
	var now []string
	for _, d := range head.Definitions() {
		now = append(now, string(schema.AppendJSON(nil, d.Object)))
	}
	was := render.Definitions(base)
	slices.Sort(was)
	slices.Sort(now)
	return !slices.Equal(was, now)
}

func state(d *render.Definition) compat.Definition {
	return compat.Definition{Object: d.Object, At: d.At}
}

func namesOf(d *render.Definition) (group, kind string) {
	spec, _ := d.Object["spec"].(map[string]any)
	names, _ := spec["names"].(map[string]any)
	group, _ = spec["group"].(string)
	kind, _ = names["kind"].(string)
	return group, kind
}

// storedVersions are the versions that clusters have objects of, by the names of the
// definitions.
func storedVersions(r *config.Repository) map[string][]string {
	stored := map[string][]string{}
	for _, facts := range r.Facts {
		for _, object := range facts.Definitions {
			status, _ := object["status"].(map[string]any)
			versions, _ := status["storedVersions"].([]any)
			name := compat.Definition{Object: object}.Name()
			for _, version := range versions {
				stored[name] = append(stored[name], fmt.Sprint(version))
			}
		}
	}
	return stored
}

// versionsInUse are the group, version and kind of all objects of a snapshot.
func versionsInUse(s *render.Snapshot) (map[[3]string]bool, error) {
	uses := map[[3]string]bool{}
	for _, unit := range s.Units.Sorted() {
		bundles, err := s.Bundles(unit)
		if err != nil {
			return nil, err
		}
		for _, b := range bundles {
			for _, o := range b.Objects {
				uses[[3]string{o.ID.Group, o.Version, o.ID.Kind}] = true
			}
		}
	}
	return uses, nil
}
