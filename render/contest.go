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
	asked    bool   // evidence matters
	evidence evidence
	refused  refusals
	objects  map[config.UnitPath]document.Problems
	problems map[config.UnitPath]document.Problems // all
}

// refusals are objects that a unit may not have, because another tenant's had them before.
type refusals map[config.UnitPath]map[clusterObject]bool

func (r refusals) add(path config.UnitPath, key clusterObject) {
	if r[path] == nil {
		r[path] = map[clusterObject]bool{}
	}
	r[path][key] = true
}

// contest finds what more than one unit wants. It is never nil.
func (p *pass) contest() contests {
	found := p.contestObjects()
	found.problems = p.collisions()
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
func (p *pass) contestObjects() contests {
	var among strings.Builder
	units := p.claims.rivals()
	for _, path := range units {
		fmt.Fprintf(&among, "%q %q %x\n", path, p.entries[path].unit.Tenant, p.entries[path].unit.body)
	}
	found, known := contests{among: among.String()}, p.contested
	if found.among == known.among && !known.asked {
		return known
	}
	if found.evidence = p.evidence(units); found.among == known.among && found.evidence == known.evidence {
		return known
	}
	found.objects, found.refused = map[config.UnitPath]document.Problems{}, refusals{}
	before := earlier{pass: p}
	for key, rivals := range p.rivalsOf(units, &found) {
		keeper, ok := before.keeper(pathsOf(rivals), func(h *holdings) bool { return h.objects[key] })
		for i, r := range rivals {
			if ok && r.Unit == keeper {
				continue
			}
			found.objects[r.Unit] = append(found.objects[r.Unit], contestProblem(key, rivals, i, keeper))
			if ok {
				found.refused.add(r.Unit, key)
			}
		}
	}
	if found.asked = before.asked; before.unknown {
		found.among = "?" // look again
	}
	before.markLate(found.objects)
	return found
}

// rivalsOf finds which bundles of some units want an object that another one of them wants.
func (p *pass) rivalsOf(units []config.UnitPath, found *contests) map[clusterObject][]rival {
	wanted := map[clusterObject][]rival{}
	for _, path := range units {
		e := p.entries[path]
		claimed := mustUnpack(e.claimed)
		bundles, err := p.world.bundles(e.unit)
		if err != nil {
			found.among = "?" // look again
			found.objects[path] = document.Problems{{Position: document.Position{File: string(path)}, Code: document.CodeInternal, Message: err.Error(), Retry: true}}
		}
		for _, b := range bundles {
			cluster := b.Target.Cluster()
			place := slices.IndexFunc(e.unit.Placements, func(on Placement) bool { return on.Target.Name == b.Target })
			for i, o := range b.Objects {
				if p.claims.isContested(cluster, claimed.heads[place].ids[i]) {
					key := clusterObject{cluster, o.ID}
					wanted[key] = append(wanted[key], rival{object.UnitTarget{Unit: path, Target: b.Target}, o.Spec, o.Template})
				}
			}
		}
	}
	for key, rivals := range wanted {
		if len(rivals) < 2 { // of another object of the same hash
			delete(wanted, key)
			continue
		}
		slices.SortFunc(rivals, func(a, b rival) int { return a.UnitTarget.Compare(b.UnitTarget) })
	}
	return wanted
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

// pathsOf are the units of rivals, each as often as it wants the object.
func pathsOf(rivals []rival) (paths []config.UnitPath) {
	for _, r := range rivals {
		paths = append(paths, r.Unit)
	}
	return paths
}

// contestProblem is that of one of the rivals. keeper may have the object; empty where none may.
func contestProblem(contested clusterObject, rivals []rival, i int, keeper config.UnitPath) document.Problem {
	mine, other := rivals[i], rivals[0]
	if i == 0 {
		other = rivals[1]
	}
	suffix := ""
	if k := slices.IndexFunc(rivals, func(r rival) bool { return r.Unit == keeper }); k >= 0 {
		other, suffix = rivals[k], ", which had it before"
	}
	message := fmt.Sprintf("%s in cluster %s: wanted by unit %s too, at %s%s",
		contested.id, contested.cluster, other.Unit, other.spec, suffix)
	if other.Unit == mine.Unit {
		message = fmt.Sprintf("%s in cluster %s: wanted by both %s and %s; put target.cell into its name or namespace, or place the unit with topology cluster",
			contested.id, contested.cluster, rivals[0].Target, rivals[1].Target)
	}
	return document.Problem{Position: mine.spec, Code: document.CodeDuplicate, Message: message, Unit: string(mine.Unit), Via: via(mine.template)}
}
