// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package impact

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render"
)

// Broken are places that have the same problem under the new kinds.
type Broken struct {
	Code    document.Code `json:"code"`
	Message string        `json:"message"` // indexes of lists are *
	// Places in the documents, sorted.
	Places []document.Position `json:"places"`
	// Units that the documents are in, sorted.
	Units []config.UnitPath `json:"units"`
}

// Text says how many documents have the problem, and which.
func (b Broken) Text() string {
	return fmt.Sprintf("%s in %s: %s %s", document.Count(len(b.Places), "place"), document.Count(len(b.Units), "unit"), b.Code, b.Message)
}

var listIndex = regexp.MustCompile(`\[[0-9]+\]`)

// groups gathers the same problems.
type groups map[string]*Broken

func (g groups) add(unit config.UnitPath, p document.Problem) {
	message := listIndex.ReplaceAllString(p.Message, "[*]")
	key := string(p.Code) + " " + message
	if g[key] == nil {
		g[key] = &Broken{Code: p.Code, Message: message}
	}
	g[key].Places = append(g[key].Places, p.Position)
	g[key].Units = append(g[key].Units, unit)
}

// sorted are the groups, the largest first.
func (g groups) sorted() []Broken {
	var all []Broken
	for _, b := range g {
		slices.SortFunc(b.Places, func(x, y document.Position) int {
			return cmp.Or(cmp.Compare(x.File, y.File), cmp.Compare(x.Line, y.Line), cmp.Compare(x.Column, y.Column))
		})
		b.Places = slices.Compact(b.Places)
		slices.Sort(b.Units)
		b.Units = slices.Compact(b.Units)
		all = append(all, *b)
	}
	slices.SortFunc(all, func(x, y Broken) int {
		return cmp.Or(cmp.Compare(len(y.Places), len(x.Places)), cmp.Compare(x.Code, y.Code), cmp.Compare(x.Message, y.Message))
	})
	return all
}

// broken finds what had no problem in base. What has one in head, in the same file, is
// broken by the kinds or definitions too where mixed does not show it, as by definitions
// that stand in units. mixed is nil where those alone changed.
func (r *Report) broken(base, mixed, head *render.Snapshot) {
	broken, mended := groups{}, groups{}
	for path, was := range base.Units.All() {
		if len(was.Problems) > 0 {
			continue
		}
		now := head.Units.Get(path)
		stays := now != nil && len(now.Problems) > 0
		var m *render.Unit
		if mixed != nil {
			m = mixed.Units.Get(path)
		}
		if m != nil {
			for _, p := range ofDocuments(m.Problems) {
				if stays {
					broken.add(path, p)
				} else {
					mended.add(path, p)
				}
			}
		}
		if !stays {
			continue
		}
		for _, p := range ofDocuments(now.Problems) {
			if now.SameSource(was) || sameFile(base, head, p.File) {
				broken.add(path, p)
			}
		}
	}
	r.Broken, r.Mended = broken.sorted(), mended.sorted()
}

// ofDocuments are the problems but for those of kinds that do not load: what becomes of
// their documents is not known.
func ofDocuments(problems document.Problems) document.Problems {
	return slices.DeleteFunc(slices.Clone(problems), func(p document.Problem) bool { return p.Code == document.CodeKind })
}

func sameFile(base, head *render.Snapshot, name string) bool {
	was, err := base.Repository.Tree.Hash(name)
	is, err2 := head.Repository.Tree.Hash(name)
	return err == nil && err2 == nil && was == is
}
