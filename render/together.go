// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

// together are the units of folders whose Defaults ask for all or nothing.
type together struct {
	folders map[config.UnitPath][]document.Position // of a unit: where the folders above say so
	members map[document.Position]map[config.UnitPath]bool
	broken  map[config.UnitPath]bool // units with a problem of their own, of such folders
}

func newTogether() together {
	return together{map[config.UnitPath][]document.Position{}, map[document.Position]map[config.UnitPath]bool{}, map[config.UnitPath]bool{}}
}

func (t *together) remove(unit config.UnitPath) { t.note(unit, nil, false) }

// note enters what is known of a unit.
func (t *together) note(unit config.UnitPath, folders []document.Position, broken bool) {
	for _, at := range t.folders[unit] {
		delete(t.members[at], unit)
		if len(t.members[at]) == 0 {
			delete(t.members, at)
		}
	}
	delete(t.folders, unit)
	set(t.broken, unit, broken && len(folders) > 0)
	if len(folders) == 0 {
		return
	}
	t.folders[unit] = folders
	for _, at := range folders {
		if t.members[at] == nil {
			t.members[at] = map[config.UnitPath]bool{}
		}
		t.members[at][unit] = true
	}
}

// hold adds a problem to the units that stay as they are because another one of their
// folder has a problem, of its own or one of outside.
func (t *together) hold(outside map[config.UnitPath]document.Problems) {
	broken := maps.Clone(t.broken)
	for unit := range outside {
		set(broken, unit, true)
	}
	first := map[document.Position]config.UnitPath{}
	count := map[document.Position]int{}
	for unit := range broken {
		for _, at := range t.folders[unit] {
			count[at]++
			if known, ok := first[at]; !ok || unit < known {
				first[at] = unit
			}
		}
	}
	for at, bad := range first {
		text := fmt.Sprintf("unit %s has a problem", bad)
		if others := count[at] - 1; others > 0 {
			text = fmt.Sprintf("unit %s and %d more have problems", bad, others)
		}
		p := document.Problem{Position: at, Code: document.CodeTogether,
			Message: fmt.Sprintf("spec.allOrNothing: %s: nothing below %s is released", text, path.Dir(at.File))}
		for unit := range t.members[at] {
			if !broken[unit] {
				p.Unit = string(unit)
				outside[unit] = append(outside[unit], p)
			}
		}
	}
}

// noteBlames keeps what a unit found in what it collects of others.
func (c *Compiler) noteBlames(path config.UnitPath, blames document.Problems) {
	if len(blames) == 0 {
		delete(c.blames, path)
		return
	}
	c.blames[path] = blames
}

// causedByOthers are the problems of units that are not found in the units themselves:
// objects and host names that others want, too; service accounts that nobody of their tenant brings;
// texts that others collected; denials of their Tenants that deny
// nothing; and, where all or nothing is released, the problems of others.
func (p *pass) causedByOthers() map[config.UnitPath]document.Problems {
	all := map[config.UnitPath]document.Problems{}
	for path, problems := range p.contested.problems {
		all[path] = slices.Clone(problems)
	}
	overQuota, notes := p.quotaProblems()
	p.quotaNotes = notes
	for _, found := range []map[config.UnitPath]document.Problems{p.hostProblems(), p.accountProblems(), overQuota} {
		for path, problems := range found {
			all[path] = append(all[path], problems...)
		}
	}
	for _, by := range slices.Sorted(maps.Keys(p.blames)) {
		for _, problem := range p.blames[by] {
			if path := config.UnitPath(problem.Unit); p.entries[path] != nil {
				all[path] = append(all[path], problem)
			}
		}
	}
	p.holdUndenied(all)
	p.together.hold(all)
	return all
}
