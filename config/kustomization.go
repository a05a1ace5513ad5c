// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// KustomizationFiles are the names that kustomize looks for in a folder, in
// its order. Two of them in one folder are an error to it.
var KustomizationFiles = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// kustomization is what the rule of units needs to know of a file of kustomize.
//
// The rule: a folder with such a file is one unit, and the folders below it are
// its material. It is no unit when it is a Component, or a base: when a
// kustomization elsewhere below the same parent folder names it. So of
//
//	app/base  app/overlays/test  app/overlays/prod
//
// the two overlays are units, as they name ../../base. Only those near it make
// a folder a base, so that nobody can take another team's unit out of the
// fleet by naming it. A folder below a unit that the unit does not name, and
// that would be a unit elsewhere, is held with a problem: what was a unit must
// not be removed because a file of kustomize was put above it.
type kustomization struct {
	file      string
	component bool
	names     map[string]bool // paths from the root that its values may mean
	unread    *Problem        // why it is not known what it names; nil when it is
}

func (k *kustomization) folder() string { return path.Dir(k.file) }

// readKustomization looks at what a file names. One that is no valid YAML is
// taken word by word: its base is still none of the units.
func readKustomization(file string, content []byte) *kustomization {
	k := &kustomization{file: file, names: map[string]bool{}}
	docs, problems := ReadValues(file, content)
	for _, doc := range docs {
		k.component = k.component || doc.Kind == "Component"
		k.addNames(doc.Node)
	}
	if len(problems) == 0 {
		return k
	}
	for line := range strings.Lines(string(content)) {
		line, _, _ = strings.Cut(line, "#")
		for _, word := range strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\r\n\"'[]{},", r) }) {
			k.component = k.component || word == "Component"
			k.addName(word)
		}
	}
	return k
}

func (k *kustomization) addNames(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		k.addName(n.Value)
	}
	for _, child := range n.Content {
		k.addNames(child)
	}
}

// addName notes a value that may be a path: `../../base`, or the right side of
// a generator's `key=path`.
func (k *kustomization) addName(value string) {
	if _, file, ok := strings.Cut(value, "="); ok {
		value = file
	}
	if value == "" || len(value) > maxPath || path.IsAbs(value) {
		return
	}
	k.names[path.Join(k.folder(), value)] = true
}

// maxPath is the longest path that is looked at, in bytes: Linux' PATH_MAX.
const maxPath = 4096

// uses says whether one of the kustomizations names the folder or, where below
// is set, something in it. A folder does not name itself.
func uses(all []*kustomization, folder string, below bool) bool {
	return slices.ContainsFunc(all, func(k *kustomization) bool {
		if k.folder() == folder {
			return false
		}
		if k.names[folder] {
			return true
		}
		for name := range k.names {
			if below && strings.HasPrefix(name, folder+"/") {
				return true
			}
		}
		return false
	})
}

// readOwn reads the folder's own file of kustomize, if it has one.
func (l *loader) readOwn(unit *Unit, current *folder) *kustomization {
	if unit.Kustomization == "" {
		return nil
	}
	content, err := l.tree.ReadFile(unit.Kustomization)
	own := readKustomization(unit.Kustomization, content)
	if err != nil {
		problem := FileProblem(unit.Kustomization, err)
		unit.Problems = append(unit.Problems, problem)
		current.retry = current.retry || problem.Retry
		own.unread = &problem
	}
	current.kustomizations = append(current.kustomizations, own)
	return own
}

// settle says which folders and units there are, once those below are loaded.
func (f *folder) settle(own *kustomization) {
	f.folders = f.loaded
	if own != nil { // all that is below is material of the one unit
		for _, below := range f.loaded {
			below.each(func(u *Unit) bool {
				f.units = append(f.units, u)
				return true
			})
		}
		f.folders, f.units = nil, applyKustomizations(f.path, own, f.units, f.kustomizations)
	} else if len(f.kustomizations) > 0 {
		f.folders = slices.Clone(f.loaded)
		for i, below := range f.loaded {
			if len(below.kustomizations) == 0 {
				continue
			}
			settled := *below
			settled.units = applyKustomizations(f.path, nil, below.units, f.kustomizations)
			if !slices.Equal(settled.units, below.units) {
				f.folders[i] = &settled
			}
		}
	}
}

// applyKustomizations takes those of a folder's units, and of units below it,
// out that are bases, components or material of a kustomization.
func applyKustomizations(dir string, own *kustomization, units []*Unit, all []*kustomization) []*Unit {
	kept := units[:0:0]
	for _, u := range units {
		at := string(u.Path)
		switch {
		case at == dir && own != nil && own.component:
		case at == dir || u.stray:
			kept = append(kept, u)
		case own != nil:
			if !uses(all, at, u.Kustomization == "") {
				kept = append(kept, strayUnit(u, own))
			}
		case u.Kustomization == "" || path.Dir(at) != dir:
			kept = append(kept, u)
		case !uses(all, at, false):
			kept = append(kept, undecided(u, all))
		}
	}
	return kept
}

// strayUnit holds a folder that would be a unit, were it not below another one.
func strayUnit(u *Unit, above *kustomization) *Unit {
	if u.Link {
		return u // is held already
	}
	at := string(u.Path)
	if u.Kustomization != "" {
		at = u.Kustomization
	} else if len(u.Files) > 0 {
		at = u.Files[0]
	}
	return &Unit{Path: u.Path, Hash: u.Hash, Defaults: u.Defaults, stray: true, Problems: Problems{{Position: Position{File: at}, Code: CodeDocument,
		Message: fmt.Sprintf("stands below %s, which does not name it: a folder below a kustomization is no unit of its own; name it there or move it out", above.file)}}}
}

// undecided holds a unit that may be the base of a file that cannot be read.
func undecided(u *Unit, all []*kustomization) *Unit {
	for _, k := range all {
		if k.unread != nil && k.file != u.Kustomization {
			held := *u
			held.Problems = append(slices.Clip(u.Problems), *k.unread)
			u = &held
		}
	}
	return u
}
