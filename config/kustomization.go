// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/swell-sh/swell/config/document"
)

// KustomizationFiles are the names that kustomize looks for in a folder, in
// its order. Two of them in one folder are an error to it.
var KustomizationFiles = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// kustomization is what the rule of units needs to know of a file of kustomize.
//
// The rule: a folder with such a file is one unit, and the folders below it are
// its material. It is no unit when it is a Component, or a base: when a
// kustomization elsewhere in the commit names it. So of
//
//	apps/base/shop  apps/staging  apps/production
//
// the last two are units, as they name ../base/shop. In a fleet with Tenants only a
// kustomization of the same tenant makes a folder a base, so that nobody can take another
// team's unit out of the fleet by naming it. The folder's own swell.yaml has the last
// word, see [Defaults.Unit]. A folder that leads to itself by what it names is a unit,
// for whatever else is one cannot be told; rendering it says where the cycle is.
// A folder below a unit that the unit does not name, and that would be a unit
// elsewhere, is held with a problem: what was a unit must not be removed because
// a file of kustomize was put above it. For the same reason what was a unit and
// is a base, a Component or material now is not gone: see [Repository.Kept].
type kustomization struct {
	file      string
	tenant    string
	component bool
	folders   map[string]int    // paths from the root that it takes as a base or a component, and the line
	names     map[string]int    // all paths from the root that it takes
	unread    *document.Problem // why it is not known what it names; nil when it is
}

func (k *kustomization) folder() string { return path.Dir(k.file) }

// readKustomization looks at what a file names. One that is no valid YAML is
// taken word by word: its base is still none of the units.
func readKustomization(file string, content []byte) *kustomization {
	k := &kustomization{file: file, folders: map[string]int{}, names: map[string]int{}}
	docs, problems := document.ReadKustomization(file, content)
	if len(problems) == 0 {
		for _, doc := range docs {
			k.component = len(docs) == 1 && doc.Kind == "Component"
			k.addFields(doc.Node)
		}
		return k
	}
	number := 0
	for line := range strings.Lines(string(content)) {
		number++
		line, _, _ = strings.Cut(line, "#")
		k.component = k.component || brokenComponent.MatchString(line)
		for _, word := range strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\r\n\"'[]{},", r) }) {
			k.addName(k.folders, word, number)
			k.addName(k.names, word, number)
		}
	}
	return k
}

var brokenComponent = regexp.MustCompile(`^kind:\s*["']?Component\b`)

// Where a kustomization names folders, and where files. Both take any depth:
// what they hold below besides paths leads nowhere.
var (
	folderFields = []string{"resources", "bases", "components"}
	fileFields   = []string{"configurations", "crds", "openapi", "patchesStrategicMerge", "patches", "patchesJson6902", "replacements",
		"configMapGenerator", "secretGenerator", "generators", "transformers", "validators", "helmCharts", "helmGlobals", "helmChartInflationGenerator"}
)

func (k *kustomization) addFields(n *yaml.Node) {
	for _, field := range folderFields {
		k.addNames(k.folders, document.Lookup(n, field))
		k.addNames(k.names, document.Lookup(n, field))
	}
	for _, field := range fileFields {
		k.addNames(k.names, document.Lookup(n, field))
	}
}

func (k *kustomization) addNames(to map[string]int, n *yaml.Node) {
	if n == nil {
		return
	}
	if n.Kind == yaml.ScalarNode {
		k.addName(to, n.Value, n.Line)
	}
	for _, child := range n.Content {
		k.addNames(to, child)
	}
}

// addName notes a value that may be a path: `../../base`, or the right side of
// a generator's `key=path`.
func (k *kustomization) addName(to map[string]int, value string, line int) {
	if _, file, ok := strings.Cut(value, "="); ok {
		value = file
	}
	if value == "" || len(value) > maxPath || path.IsAbs(value) {
		return
	}
	if name := path.Join(k.folder(), value); to[name] == 0 {
		to[name] = line
	}
}

// maxPath is the longest path that is looked at, in bytes: Linux' PATH_MAX.
const maxPath = 4096

// uses are kustomizations and what they name, for look-ups.
type uses struct {
	all   []*kustomization
	in    map[string][]*kustomization // by their folder
	named map[string][]*kustomization // by the folders that they name
}

func usesOf(all []*kustomization) *uses {
	u := &uses{all: all, in: map[string][]*kustomization{}, named: map[string][]*kustomization{}}
	for _, k := range all {
		u.in[k.folder()] = append(u.in[k.folder()], k)
		for folder := range k.folders {
			u.named[folder] = append(u.named[folder], k)
		}
	}
	return u
}

// materialFor is a kustomization that takes the folder, or something in it where
// inside is set. Nil when there is none, or when the folder leads to itself.
func (u *uses) materialFor(folder string, inside bool) *kustomization {
	for _, k := range u.all {
		if k.folder() == folder {
			continue
		}
		if k.names[folder] > 0 && !u.leadToItself(folder) {
			return k
		}
		for name := range k.names {
			if inside && strings.HasPrefix(name, folder+"/") {
				return k
			}
		}
	}
	return nil
}

// leadToItself says whether the kustomization of a folder names it, or names
// one that does, and so on.
func (u *uses) leadToItself(folder string) bool {
	seen := map[string]bool{}
	var leads func(from string) bool
	leads = func(from string) bool {
		for _, k := range u.in[from] {
			for to := range k.folders {
				if to == folder {
					return true
				}
				if !seen[to] {
					seen[to] = true
					if leads(to) {
						return true
					}
				}
			}
		}
		return false
	}
	return leads(folder)
}

// readOwn reads the folder's own file of kustomize, if it has one. Where there
// are several, which is a problem of the unit, all that they name counts.
func (l *loader) readOwn(unit *Unit, current *folder) *kustomization {
	var own *kustomization
	for _, file := range unit.Files {
		if !slices.Contains(KustomizationFiles, path.Base(file)) {
			continue
		}
		content, err := l.tree.ReadFile(file)
		own = readKustomization(file, content)
		own.tenant = unit.Defaults.Tenant
		if err != nil {
			problem := document.FileProblem(file, err)
			unit.Problems = append(unit.Problems, problem)
			current.retry = current.retry || problem.Retry
			own.unread = &problem
		}
		current.kustomizations = append(current.kustomizations, own)
	}
	if len(current.kustomizations) > 1 {
		own.component = false // which one holds is not known
	}
	return own
}

// settle says which folders and units there are but for bases, once those below are
// loaded.
func (f *folder) settle(own *kustomization) {
	f.folders = f.loaded
	if own == nil {
		return
	}
	for _, below := range f.loaded { // all that is below is material of the one unit
		below.each(func(u *Unit) bool {
			f.units = append(f.units, u)
			return true
		})
	}
	f.folders, f.units = nil, f.withoutMaterial(own, usesOf(f.kustomizations))
}

// withoutMaterial are the units of a folder with a kustomization, and of those below it,
// but for its material, and for the folder itself where it is a Component.
func (f *folder) withoutMaterial(own *kustomization, all *uses) []*Unit {
	kept := f.units[:0:0]
	for _, u := range f.units {
		at := string(u.Path)
		switch {
		case at == f.path && own.component:
		case at == f.path || u.stray || all.leadToItself(at):
			kept = append(kept, u)
		case all.materialFor(at, u.Kustomization == "") == nil:
			kept = append(kept, strayUnit(u, own))
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
	return &Unit{Path: u.Path, Hash: u.Hash, Defaults: u.Defaults, stray: true, Problems: document.Problems{{Position: document.Position{File: at}, Code: document.CodeDocument,
		Message: fmt.Sprintf("stands below %s, which does not name it: a folder below a kustomization is no unit of its own; name it there or move it out", above.file)}}}
}
