// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"path"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config/document"
)

// naming is a kustomization that names a folder as its base or component.
type naming struct {
	folder string // that is named
	file   string // of the kustomization
	line   int
	tenant string // of the kustomization
	cyclic bool   // the named folder leads to itself
}

// bases is what is named in a commit, and by whom.
type bases struct {
	all    []*kustomization // of the commit
	named  []naming         // sorted by folder, then by file
	unread []*kustomization
	// tenanted: the fleet has Tenants, and only the same tenant's kustomizations make a
	// base.
	tenanted bool
}

// settle leaves the bases out of the units. It looks at folders that changed since the
// previous repository, and at those that others began or ended to name.
func (r *Repository) settle(previous *Repository) {
	var all []*kustomization
	for _, root := range r.roots {
		all = append(all, root.kustomizations...)
	}
	r.bases = previous.bases
	if tenanted := len(r.Tenants) > 0; r.bases == nil || r.bases.tenanted != tenanted || !slices.Equal(r.bases.all, all) {
		r.bases = basesOf(all, tenanted)
	}
	for i, root := range r.roots {
		r.roots[i] = r.bases.settle(root, previous.root(root.path))
	}
}

func basesOf(all []*kustomization, tenanted bool) *bases {
	b := &bases{all: all, tenanted: tenanted}
	uses := usesOf(all)
	for folder, users := range uses.named {
		cyclic := len(uses.in[folder]) > 0 && uses.leadToItself(folder)
		for _, k := range users {
			b.named = append(b.named, naming{folder: folder, file: k.file, line: k.folders[folder], tenant: k.tenant, cyclic: cyclic})
		}
	}
	slices.SortFunc(b.named, func(x, y naming) int {
		return strings.Compare(x.folder+"\x00"+x.file, y.folder+"\x00"+y.file)
	})
	for _, k := range all {
		if k.unread != nil {
			b.unread = append(b.unread, k)
		}
	}
	return b
}

// of are those who name a folder.
func (b *bases) of(folder string) []naming { return b.between(folder+"\x00", folder+"\x01") }

// below are those who name something in a folder, or the folder.
func (b *bases) below(folder string) []naming {
	if folder == "." {
		return b.named
	}
	return slices.Concat(b.of(folder), b.between(folder+"/", folder+"0")) // 0 follows the slash
}

// between are those who name a folder from one text, with a NUL at the end of its path,
// up to another one.
func (b *bases) between(from, to string) []naming {
	find := func(text string) int {
		at, _ := slices.BinarySearchFunc(b.named, text, func(n naming, text string) int { return strings.Compare(n.folder+"\x00", text) })
		return at
	}
	return b.named[find(from):find(to)]
}

// settle is a folder without the bases, and what says unit: false, among its units. previous is what that was in an
// earlier commit, or nil: it is returned where nothing in it is named in another way.
func (b *bases) settle(f, previous *folder) *folder {
	if len(f.kustomizations) == 0 && !f.off {
		return f
	}
	named := b.below(f.path)
	if previous != nil && previous.with == f && previous.tenanted == b.tenanted && slices.Equal(previous.named, named) && len(b.unread) == 0 && !previous.retry {
		return previous
	}
	settled := *f
	settled.with, settled.named, settled.tenanted = f, named, b.tenanted
	settled.units, settled.folders = nil, nil
	for _, u := range f.units {
		if b.isUnit(u) {
			settled.units = append(settled.units, b.undecided(u))
		}
	}
	for _, below := range f.folders {
		var was *folder
		if previous != nil {
			was = folderOf(previous.folders, below.path)
		}
		settled.folders = append(settled.folders, b.settle(below, was))
	}
	return &settled
}

// asLoaded is the folder with the bases among its units; it may be nil.
func (f *folder) asLoaded() *folder {
	if f == nil || f.with == nil {
		return f
	}
	return f.with
}

// isUnit says whether a folder is a unit, and no base. One that stands below a
// kustomization is for that one to judge.
func (b *bases) isUnit(u *Unit) bool {
	if u.Declared != nil {
		return *u.Declared
	}
	return u.Kustomization == "" || u.stray || b.baseFor(string(u.Path), u.Defaults.Tenant) == nil
}

// baseFor is a kustomization that makes the folder a base: one elsewhere that
// names it, of the same tenant. Nil when there is none, or when the folder leads to
// itself. A folder is no base of what is in it: kustomize takes that for a cycle too.
func (b *bases) baseFor(folder, tenant string) *naming {
	for _, n := range b.of(folder) {
		if !n.cyclic && !Within(path.Dir(n.file), folder) && (!b.tenanted || n.tenant == tenant) {
			return &n
		}
	}
	return nil
}

// undecided holds a unit that may be the base of a neighbour's file that cannot be read.
func (b *bases) undecided(u *Unit) *Unit {
	for _, k := range b.unread {
		if u.Kustomization != "" && k.file != u.Kustomization && Within(k.folder(), path.Dir(string(u.Path))) {
			held := *u
			held.Problems = append(slices.Clip(u.Problems), *k.unread)
			u = &held
		}
	}
	return u
}

// kept says why a folder that was a unit is a base now; empty when it is none.
func (b *bases) kept(u *Unit) string {
	switch n := b.baseFor(string(u.Path), u.Defaults.Tenant); {
	case u.Declared != nil && !*u.Declared:
		return document.Position{File: path.Join(string(u.Path), SettingsFile)}.String() + ": says unit: false: " + keptAdvice
	case n != nil && u.Declared == nil:
		return document.Position{File: n.file, Line: n.line}.String() + ": names the folder, which makes it a base and no unit: " + keptAdvice
	}
	return ""
}
