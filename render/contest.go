// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"slices"

	"github.com/swell-sh/swell/config"
)

// contest finds the objects that more than one bundle wants in a cluster, and
// returns the problems that this is, by unit.
func (c *Compiler) contest(w *world, units func(config.UnitPath) *Unit) map[config.UnitPath]config.Problems {
	problems := map[config.UnitPath]config.Problems{}
	for _, bundles := range c.claims.contested() {
		wanted := map[ObjectID][]rival{}
		for _, by := range bundles {
			loaded, err := w.bundles(units(by.Unit))
			if err != nil {
				problems[by.Unit] = append(problems[by.Unit], config.Problem{Position: config.Position{File: string(by.Unit)},
					Code: config.CodeInternal, Message: err.Error(), Retry: true})
			}
			for _, b := range loaded {
				if b.Target != by.Target {
					continue
				}
				for _, o := range b.Objects {
					wanted[o.ID] = append(wanted[o.ID], rival{by, o})
				}
			}
		}
		for id, rivals := range wanted {
			if len(rivals) < 2 || rivals[0].Target.Cluster() != rivals[1].Target.Cluster() {
				continue
			}
			for i := range rivals {
				p := contestProblem(id, rivals, i)
				if !slices.ContainsFunc(problems[p.Unit], func(q config.Problem) bool { return q.String() == p.String() }) {
					problems[p.Unit] = append(problems[p.Unit], p)
				}
			}
		}
	}
	return problems
}

// rival is one of several bundles that want an object.
type rival struct {
	Placed
	object *Object
}

func contestProblem(id ObjectID, rivals []rival, i int) config.Problem {
	mine, other := rivals[i], rivals[0]
	if i == 0 {
		other = rivals[1]
	}
	message := fmt.Sprintf("%s in cluster %s: wanted by unit %s too, at %s", id, mine.Target.Cluster(), other.Unit, other.object.Spec)
	if other.Unit == mine.Unit {
		message = fmt.Sprintf("%s in cluster %s: wanted by both %s and %s; put target.cell into its name or namespace, or place the unit with topology cluster",
			id, mine.Target.Cluster(), rivals[0].Target, rivals[1].Target)
	}
	return config.Problem{Position: mine.object.Spec, Code: config.CodeDuplicate, Message: message, Unit: mine.Unit, Via: via(mine.object.Template)}
}
