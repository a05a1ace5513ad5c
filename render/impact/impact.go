// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package impact judges a change of easy kinds and of definitions of custom resources:
// by the rules of render/schema/compat, and by the documents that there are. It works
// on snapshots, and reads nothing but the trees that it is given.
package impact

import (
	"slices"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/kind"
	"github.com/swell-sh/swell/render/schema/compat"
)

// Report is what a change of kinds and definitions does.
type Report struct {
	// Findings are all changes that a rule is about, in reading order.
	Findings []compat.Finding
	// Broken are documents that had no problem in base and have one under the kinds of
	// head, and Mended those among them that have none as they stand in head.
	Broken, Mended []Broken
	// Unjudged says why something could not be judged.
	Unjudged document.Problems
	// Notes are about changes that are allowed and that there are not.
	Notes document.Problems
	// Units of base that were judged.
	Units int
}

// Refused are the findings that are not let through.
func (r *Report) Refused() []compat.Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f compat.Finding) bool { return !f.Refused() })
}

// Problems are the findings that are not let through, as problems of the tree.
func (r *Report) Problems() document.Problems {
	var problems document.Problems
	for _, f := range r.Refused() {
		problems = append(problems, document.Problem{Position: f.Position, Code: document.CodeCompat, Message: f.Text()})
	}
	return problems
}

// Touched says whether what kinds and definitions are made from differs between two
// trees, apart from definitions in units.
func Touched(base, head *config.Repository) bool {
	was, is := sources(base), sources(head)
	return !slices.Equal(was, is) || slices.ContainsFunc(is, func(folder string) bool { return !config.SameFiles(base.Tree, head.Tree, folder) })
}

// sources are the folders that kinds and definitions are made from.
func sources(r *config.Repository) []string {
	folders := r.Folders()
	if len(folders) == 0 {
		return nil
	}
	return append([]string{folders[1], r.Schemas}, r.ProtoPath...)
}

// Tree is base with the kinds and the definitions of head, and with the data that they
// read.
func Tree(base, head *config.Repository) config.Tree {
	top := append(sources(head), head.Data)
	if !slices.Equal(append(sources(base), base.Data), top) {
		top = append(top, "swell.yaml") // which names them
	}
	return config.Overlay(base.Tree, head.Tree, top...)
}

// Judge compares base with mixed, which is a snapshot of [Tree], and with head. mixed
// is nil where [Touched] says no. The versions of custom resources that clusters have
// objects of are those that the facts of head name.
func Judge(base, mixed, head *render.Snapshot) (*Report, error) {
	r := &Report{Units: base.Units.Len()}
	redefined, err := r.definitions(base, head)
	if err != nil {
		return nil, err
	}
	if mixed != nil {
		r.kinds(base.Kinds(), head.Kinds())
	}
	if mixed != nil || redefined {
		r.broken(base, mixed, head)
	}
	r.Findings = compat.Sorted(r.Findings)
	r.allow(head.Repository.AllowedChanges)
	return r, nil
}

// kinds applies the rules to each kind.
func (r *Report) kinds(was, is *kind.Kinds) {
	for _, before := range was.Declared() {
		if before.Folder == "" || was.ByName(before.APIVersion(), before.Name) != before {
			continue
		}
		after := declared(is, before.APIVersion(), before.Name)
		if after != nil && (after.Hash() == "" || after.Hash() != before.Hash()) {
			r.Findings = append(r.Findings, compat.Kinds(before.State(), after.State())...)
		}
		folder := is.Broken(before.APIVersion(), before.Name)
		if folder == "" && slices.Contains(is.Unnamed(), before.Folder) {
			folder = before.Folder
		}
		switch {
		case folder != "":
			r.unloaded(folder, is)
		case after == nil:
			r.Findings = append(r.Findings, removed(before, was, is))
		}
	}
}

// declared is the kind of that name, also where it does not load; nil where its message
// is not known.
func declared(kinds *kind.Kinds, apiVersion, name string) *kind.Kind {
	if k := kinds.ByName(apiVersion, name); k != nil {
		return k
	}
	for _, k := range kinds.Declared() {
		if k.APIVersion() == apiVersion && k.Name == name {
			return k
		}
	}
	return nil
}

// removed is the finding for a kind of which there is none of that name any more.
func removed(before *kind.Kind, was, is *kind.Kinds) compat.Finding {
	for _, other := range is.All() {
		if other.Folder == before.Folder && was.ByName(other.APIVersion(), other.Name) == nil {
			state := other.State()
			return compat.Removed(before.State(), &state)
		}
	}
	return compat.Removed(before.State(), nil)
}

// unloaded says why a kind of head does not load: its documents cannot be judged.
func (r *Report) unloaded(folder string, is *kind.Kinds) {
	before := len(r.Unjudged)
	for _, p := range is.Problems {
		if config.Within(p.File, folder) {
			r.Unjudged = append(r.Unjudged, p)
		}
	}
	if len(r.Unjudged) == before { // it stands in an import
		r.Unjudged = append(r.Unjudged, document.Problem{Position: document.Position{File: folder}, Code: document.CodeKind, Message: "the kind does not load"})
	}
}
