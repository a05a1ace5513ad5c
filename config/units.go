// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config/document"
)

// folder remembers what was found in one folder of units. It is never changed
// after it was loaded: the next commit shares it where nothing changed.
type folder struct {
	path    string
	hash    string
	above   scope
	units   []*Unit   // in it, not below it
	folders []*folder // sorted by path
	retry   bool      // a swell.yaml or a kustomization in it or below it could not be read
	off     bool      // a swell.yaml in it or below it says unit: false

	unit           *Unit            // the one in it, also where it is none by the rule of [kustomization]
	loaded         []*folder        // those below it as they are without this one's kustomizations
	kustomizations []*kustomization // in it and below it
	left           []LeftOut        // of its files and folders, sorted by path
	chart          bool             // it is a Helm chart: nothing in it or below it is a unit

	// Of a folder without the bases among its units, see [uses.settle]: the folder with
	// them, who names what in it, and [bases.tenanted].
	with     *folder
	named    []naming
	tenanted bool
}

// scope is what the folders above say of one.
type scope struct {
	defaults *Defaults
	taken    bool // spec.units takes the folder
	inner    bool // it is below the folder of a unit
	rules    leaveRules
}

func (s scope) same(other scope) bool {
	return s.defaults.Hash == other.defaults.Hash && s.taken == other.taken && s.inner == other.inner && slices.Equal(s.rules, other.rules)
}

// LeftOut is a file or folder that is no part of a unit although it stands where units
// do, and why.
type LeftOut struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// LeftOut are the files and folders that are left out, sorted by path.
// What begins with a dot is not listed.
func (r *Repository) LeftOut() (all []LeftOut) {
	for _, root := range r.roots {
		all = root.leftOut(all)
	}
	slices.SortFunc(all, func(a, b LeftOut) int { return strings.Compare(a.Path, b.Path) })
	return all
}

func (f *folder) leftOut(all []LeftOut) []LeftOut {
	all = append(all, f.left...)
	for _, below := range f.loaded {
		all = below.leftOut(all)
	}
	return all
}

// Units are all units: a folder comes before those below it, and folders side
// by side in the order of their names.
func (r *Repository) Units() iter.Seq[*Unit] {
	return func(yield func(*Unit) bool) {
		for _, root := range r.roots {
			if !root.each(yield) {
				return
			}
		}
	}
}

func (f *folder) each(yield func(*Unit) bool) bool {
	for _, unit := range f.units {
		if !yield(unit) {
			return false
		}
	}
	for _, below := range f.folders {
		if !below.each(yield) {
			return false
		}
	}
	return true
}

// Unit is the unit of a path; nil where there is none.
func (r *Repository) Unit(unit UnitPath) *Unit {
	for _, root := range r.roots {
		for f := root; f != nil && Within(string(unit), f.path); {
			if i := slices.IndexFunc(f.units, func(known *Unit) bool { return known.Path == unit }); i >= 0 {
				return f.units[i]
			}
			rest := string(unit)
			if f.path != "." {
				rest = strings.TrimPrefix(strings.TrimPrefix(rest, f.path), "/")
			}
			name, _, _ := strings.Cut(rest, "/")
			f = folderOf(f.folders, path.Join(f.path, name))
		}
	}
	return nil
}

func (r *Repository) root(path string) *folder {
	for _, root := range r.roots {
		if root.path == path {
			return root
		}
	}
	return nil
}

// Changes tells what is different from an earlier repository, nil for none:
// the units that are new or may have changed, in the order of [Repository.Units],
// and those that are gone. It costs as much as the folders that differ hold.
func (r *Repository) Changes(previous *Repository) (changed []*Unit, gone []UnitPath) {
	was := map[UnitPath]*Unit{}
	is := map[UnitPath]bool{}
	if previous == nil {
		previous = &Repository{}
	}
	note := func(old, now *folder) {
		if old != nil {
			for _, unit := range old.units {
				was[unit.Path] = unit
			}
		}
		if now != nil {
			for _, unit := range now.units {
				is[unit.Path] = true
				changed = append(changed, unit)
			}
		}
	}
	for _, root := range r.roots {
		compareFolders(previous.root(root.path), root, note)
	}
	for _, root := range previous.roots {
		if r.root(root.path) == nil {
			compareFolders(root, nil, note)
		}
	}
	for path := range was {
		if !is[path] {
			gone = append(gone, path)
		}
	}
	slices.Sort(gone)
	return changed, gone
}

// compareFolders calls differ for a folder and those below it, but for those
// that are the same.
func compareFolders(was, is *folder, differ func(was, is *folder)) {
	if was == is {
		return
	}
	differ(was, is)
	var before, now []*folder
	if was != nil {
		before = was.folders
	}
	if is != nil {
		now = is.folders
	}
	for len(before)+len(now) > 0 {
		switch {
		case len(now) == 0 || len(before) > 0 && before[0].path < now[0].path:
			compareFolders(before[0], nil, differ)
			before = before[1:]
		case len(before) == 0 || now[0].path < before[0].path:
			compareFolders(nil, now[0], differ)
			now = now[1:]
		default:
			compareFolders(before[0], now[0], differ)
			before, now = before[1:], now[1:]
		}
	}
}

// below finds the folder of that path directly below f, which may be nil.
func (f *folder) below(path string) *folder {
	if f == nil {
		return nil
	}
	return folderOf(f.loaded, path)
}

// folderOf finds the folder of that path among some that are sorted by path.
func folderOf(folders []*folder, path string) *folder {
	i, found := slices.BinarySearchFunc(folders, path, func(f *folder, path string) int { return strings.Compare(f.path, path) })
	if !found {
		return nil
	}
	return folders[i]
}

// around is what the folders around a folder of units say of all that is in them, from the
// root of the monorepo on. What cannot be read holds the units.
func (l *loader) around(root string) scope {
	s := scope{defaults: &Defaults{Rollout: "default", Policy: &Policy{Adopt: AdoptIfSame}}}
	if root == "." {
		return s
	}
	parts := strings.Split(root, "/")
	for i := range parts {
		dir := path.Join(append([]string{"."}, parts[:i]...)...)
		entries, err := l.tree.ReadDir(dir)
		if err != nil && !document.IsOddName(err) {
			s.defaults = s.defaults.with(document.FileProblem(dir, err))
			continue
		}
		s = l.within(&folder{path: dir, above: s}, entries)
		for _, e := range entries {
			if file := path.Join(dir, e.Name()); e.Name() == SettingsFile && file != SettingsFile { // at the root it is the Repository
				s.defaults = l.loadDefaults(file, e.Type(), s.defaults)
			}
		}
	}
	return s
}

// loadFolder lists the units in and below a folder. previous is the same
// folder in an earlier commit, or nil.
func (l *loader) loadFolder(dir, hash string, above scope, previous *folder) *folder {
	if previous != nil && previous.hash == hash && previous.above.same(above) && !previous.retry {
		return previous
	}
	current := &folder{path: dir, hash: hash, above: above, retry: above.defaults.Problems.Retry()}
	entries, err := l.tree.ReadDir(dir)
	if err != nil && !document.IsOddName(err) {
		l.problem(l.unitsProblem(dir, err))
		return current
	}
	before := l.entries
	if l.entries += len(entries); l.entries > maxEntries {
		if before <= maxEntries {
			l.problem(document.Problem{Position: document.Position{File: dir}, Code: document.CodeFile, Message: fmt.Sprintf("more than %d files and folders up to here", maxEntries)})
		}
		return current
	}
	odd := checkNames(dir, entries)
	inside := l.within(current, entries)
	if entries = l.withoutLeft(current, inside.rules, entries); current.chart {
		return current
	}
	unit := &Unit{Path: UnitPath(dir), Defaults: inside.defaults}
	for _, left := range current.left {
		if IsYAML(left.Path) {
			unit.LeftOut = append(unit.LeftOut, left)
		}
	}
	var name document.OddName
	if errors.As(err, &name) && !name.Listed {
		unit.Problems = append(unit.Problems, document.FileProblem(dir, err))
	}
	var own *kustomization
	inside.defaults, own = current.load(l, unit, entries, odd, inside)
	inside.inner = inside.inner || current.unit != nil
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		sub := path.Join(dir, e.Name())
		subHash, err := l.hashOf(e, sub)
		if err != nil && !document.IsOddName(err) {
			l.problem(document.FileProblem(sub, err))
			continue
		}
		inherited := inside
		if p, found := odd[e.Name()]; found {
			inherited.defaults = inherited.defaults.with(p)
		}
		below := l.loadFolder(sub, subHash, inherited, previous.below(sub))
		if below.chart {
			current.left = append(current.left, LeftOut{sub, "a Helm chart: only a HelmChart brings it"})
			continue
		}
		if len(below.left) == 0 && below.unit == nil && len(below.units) == 0 && len(below.loaded) == 0 && !below.retry {
			continue // nothing but files for specs
		}
		current.loaded = append(current.loaded, below)
		current.retry, current.off = current.retry || below.retry, current.off || below.off
		current.kustomizations = append(current.kustomizations, below.kustomizations...)
	}
	slices.SortFunc(current.loaded, func(a, b *folder) int { return strings.Compare(a.path, b.path) })
	current.settle(own)
	return current
}

// within is what a folder says of what is in it, but for its own Defaults. A problem of
// its ignore file is one of the Defaults: it holds all that may be meant to be left out.
func (l *loader) within(f *folder, entries []fs.DirEntry) scope {
	inside := f.above
	inside.taken = inside.taken || l.selection.takes(f.path)
	if !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == IgnoreFile && e.Type().IsRegular() }) {
		return inside
	}
	file := path.Join(f.path, IgnoreFile)
	content, err := l.tree.ReadFile(file)
	if err != nil {
		f.retry = f.retry || document.MayPass(err)
		inside.defaults = inside.defaults.with(document.FileProblem(file, err))
		return inside
	}
	rules, problems := parseLeaveRules(file, content)
	inside.rules = slices.Concat(inside.rules, rules)
	for _, p := range problems {
		inside.defaults = inside.defaults.with(p)
	}
	return inside
}

// chartFile makes a folder a Helm chart.
const chartFile = "Chart.yaml"

// withoutLeft are the entries of a folder that units are made of. The others are noted,
// but for what swell.yaml names for something else, and what begins with a dot: that is of
// other tools, as everywhere.
func (l *loader) withoutLeft(f *folder, rules leaveRules, entries []fs.DirEntry) []fs.DirEntry {
	kept := make([]fs.DirEntry, 0, len(entries))
	for _, e := range entries {
		name := path.Join(f.path, e.Name())
		why := l.selection.leaves(name)
		if why == "" {
			why = rules.leaves(name, e.IsDir())
		}
		switch {
		case strings.HasPrefix(e.Name(), "."), name == SettingsFile, slices.Contains(l.selection.reserved, name): // at the root it is the Repository
		case why != "" && e.Name() != SettingsFile:
			f.left = append(f.left, LeftOut{name, why})
		default:
			f.chart = f.chart || e.Name() == chartFile && e.Type().IsRegular()
			kept = append(kept, e)
		}
	}
	return kept
}

// hashOf is the hash of an entry of that path. A tree may give it with the
// entry, where it is at hand; a folder of a thousand teams has as many.
func (l *loader) hashOf(e fs.DirEntry, name string) (string, error) {
	if known, ok := e.(interface{ Hash() string }); ok && e.Type() != fs.ModeSymlink {
		return known.Hash(), nil
	}
	return l.tree.Hash(name)
}

// load finds the unit in a folder, which has a problem already when the folder
// holds what is not listed. It returns the Defaults for what is in and
// below it, and its own kustomization, nil where there is none. odd
// are the problems of names. Of a folder that is not taken only the Defaults are read.
func (f *folder) load(l *loader, unit *Unit, entries []fs.DirEntry, odd map[string]document.Problem, inside scope) (*Defaults, *kustomization) {
	if !inside.taken {
		entries = slices.DeleteFunc(slices.Clone(entries), func(e fs.DirEntry) bool { return e.Name() != SettingsFile })
	}
	if n := countLinks(entries); n > MaxLinks {
		entries = slices.DeleteFunc(slices.Clone(entries), func(e fs.DirEntry) bool { return e.Type() == fs.ModeSymlink })
		unit.Problems = append(unit.Problems, document.FileProblem(f.path, &fs.PathError{Op: "links", Path: f.path, Err: ErrLinks}))
	}
	stands := inside.taken && len(unit.Problems) > 0 // without files: what cannot be read may have been the unit
	sum := sha256.New()
	var links []*Unit
	var jsons []string
	for _, e := range entries {
		name := path.Join(f.path, e.Name())
		if p, found := odd[e.Name()]; found && !e.IsDir() {
			unit.Problems = append(unit.Problems, p)
		}
		switch {
		case e.Name() == SettingsFile:
			unit.Defaults = l.loadDefaults(name, e.Type(), inside.defaults)
			unit.Declared = unit.Defaults.Unit
			f.off = unit.Declared != nil && !*unit.Declared
			f.retry = unit.Defaults.Problems.Retry()
		case e.IsDir():
		case !e.Type().IsRegular() && !LinksToFile(l.tree, name, e):
			problem := document.Problem{Position: document.Position{File: name}, Code: document.CodeFile,
				Message: "a " + irregular(e.Type()) + ": only plain files and folders may be in a unit"}
			if _, err := l.tree.Hash(name); e.Type() == fs.ModeSymlink && err != nil {
				problem = document.FileProblem(name, err)
				f.retry = f.retry || problem.Retry
			}
			unit.Problems = append(unit.Problems, problem)
			// A link may stand where a unit's folder was. A unit that is gone
			// would be removed; one with a problem stays as it is.
			links = append(links, &Unit{Path: UnitPath(name), Problems: document.Problems{problem}, Link: true})
		case slices.Contains(KustomizationFiles, e.Name()), IsYAML(e.Name()):
			if slices.Contains(KustomizationFiles, e.Name()) {
				unit.Kustomization = name
			}
			hash, err := l.hashOf(e, name)
			if err != nil {
				unit.Problems = append(unit.Problems, document.FileProblem(name, err))
				f.retry = f.retry || document.MayPass(err)
			}
			unit.Files = append(unit.Files, name)
			fmt.Fprintf(sum, "%q %s\n", e.Name(), hash)
		case path.Ext(e.Name()) == ".json":
			jsons = append(jsons, name)
		case IsYAML(strings.ToLower(e.Name())):
			// To leave it out would remove what it held before somebody renamed it.
			unit.Problems = append(unit.Problems, misnamed(name))
			fmt.Fprintf(sum, "%q\n", e.Name())
			stands = true
		}
	}
	for _, link := range links {
		link.Defaults = unit.Defaults // once they are known
		f.units = append(f.units, link)
	}
	material := inside.inner && len(unit.Files) == 0
	for _, name := range jsons {
		l.addJSON(f, unit, name, material, sum)
	}
	slices.Sort(unit.Files)
	own := l.readOwn(unit, f)
	if stands || len(unit.Files) > 0 {
		unit.Hash = hex.EncodeToString(sum.Sum(nil))
		f.unit, f.units = unit, append(f.units, unit)
	}
	return unit.Defaults, own
}

func countLinks(entries []fs.DirEntry) (n int) {
	for _, e := range entries {
		if e.Type() == fs.ModeSymlink {
			n++
		}
	}
	return n
}

// addJSON adds a file of JSON to a unit. It is read as YAML where it is an object of
// Kubernetes; all else is for other programs. material says that the folder holds nothing else
// and is below that of a unit: then it makes no unit, for mostly a spec or a generator there
// takes it.
func (l *loader) addJSON(f *folder, unit *Unit, name string, material bool, sum io.Writer) {
	content, err := l.tree.ReadFile(name)
	f.retry = f.retry || document.MayPass(err)
	switch {
	case err != nil:
		unit.Problems = append(unit.Problems, document.FileProblem(name, err))
	case !document.IsObjectJSON(content):
		unit.Data = append(unit.Data, name)
	case material:
		f.left = append(f.left, LeftOut{name, "JSON below a unit: only what names it reads it"})
	default:
		unit.Files = append(unit.Files, name)
		fmt.Fprintf(sum, "%q %x\n", path.Base(name), sha256.Sum256(content))
	}
}

// IsYAML says whether documents are read from a file of that name.
func IsYAML(name string) bool {
	ext := path.Ext(name)
	return ext == ".yaml" || ext == ".yml"
}

func misnamed(file string) document.Problem {
	return document.Problem{Position: document.Position{File: file}, Code: document.CodeFile, Message: "would not be read: want .yaml or .yml in small letters"}
}
