// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/object"
)

// contests are the problems of objects that more than one bundle wants, and of values
// that more than one unit has.
type contests struct {
	among    string // the units that want the same objects, as they are
	objects  map[config.UnitPath]document.Problems
	problems map[config.UnitPath]document.Problems // all
}

// contest finds what more than one unit wants. It is never nil.
func (c *Compiler) contest(w *world) contests {
	found := c.contestObjects(w)
	found.problems = c.collisions()
	for path, problems := range found.objects {
		found.problems[path] = append(found.problems[path], problems...)
	}
	for path, problems := range found.problems {
		found.problems[path] = problems.Sorted()
	}
	return found
}

// contestObjects finds the objects that more than one bundle wants in a cluster. It
// costs as much as the units hold that want them, and next to nothing when
// those are as they were.
func (c *Compiler) contestObjects(w *world) contests {
	var among strings.Builder
	units := c.claims.rivals()
	for _, path := range units {
		fmt.Fprintf(&among, "%q %x\n", path, c.entries[path].unit.body)
	}
	if among.String() == c.contested.among {
		return c.contested
	}
	found := contests{among: among.String(), objects: map[config.UnitPath]document.Problems{}}
	wanted := map[clusterObject][]rival{}
	for _, path := range units {
		e := c.entries[path]
		claimed := mustUnpack(e.claimed)
		bundles, err := w.bundles(e.unit)
		if err != nil {
			found.among = "?" // look again
			found.objects[path] = document.Problems{{Position: document.Position{File: string(path)}, Code: document.CodeInternal, Message: err.Error(), Retry: true}}
		}
		for _, b := range bundles {
			cluster := b.Target.Cluster()
			place := slices.IndexFunc(e.unit.Placements, func(on Placement) bool { return on.Target.Name == b.Target })
			for i, o := range b.Objects {
				if c.claims.isContested(cluster, claimed.heads[place].ids[i]) {
					key := clusterObject{cluster, o.ID}
					wanted[key] = append(wanted[key], rival{object.UnitTarget{Unit: path, Target: b.Target}, o.Spec, o.Template})
				}
			}
		}
	}
	for key, rivals := range wanted {
		if len(rivals) < 2 { // of another object of the same hash
			continue
		}
		slices.SortFunc(rivals, func(a, b rival) int { return a.UnitTarget.Compare(b.UnitTarget) })
		for i := range rivals {
			p := contestProblem(key, rivals, i)
			found.objects[rivals[i].Unit] = append(found.objects[rivals[i].Unit], p)
		}
	}
	return found
}

// clusterObject is an object in a cluster.
type clusterObject struct {
	cluster string
	id      object.ID
}

// rival is one of several bundles that want an object.
type rival struct {
	object.UnitTarget
	spec, template document.Position
}

func contestProblem(contested clusterObject, rivals []rival, i int) document.Problem {
	mine, other := rivals[i], rivals[0]
	if i == 0 {
		other = rivals[1]
	}
	message := fmt.Sprintf("%s in cluster %s: wanted by unit %s too, at %s", contested.id, contested.cluster, other.Unit, other.spec)
	if other.Unit == mine.Unit {
		message = fmt.Sprintf("%s in cluster %s: wanted by both %s and %s; put target.cell into its name or namespace, or place the unit with topology cluster",
			contested.id, contested.cluster, rivals[0].Target, rivals[1].Target)
	}
	return document.Problem{Position: mine.spec, Code: document.CodeDuplicate, Message: message, Unit: string(mine.Unit), Via: via(mine.template)}
}
