// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/swell-sh/swell/config/document"
)

// Repository is a monorepo as it was read: what there is and where, with the
// documents of the fleet decoded. Units are only listed; their documents are
// read when they are rendered.
type Repository struct {
	Tree Tree
	// Name is a DNS label that tells monorepos apart which share clusters: all
	// that is applied carries it. Empty when swell.yaml could not be read.
	Name string
	Fleet
	// Release is how commits that change many units are released.
	Release Release
	// Checks is what becomes of what the checks of units find.
	Checks Checks
	// AllowedChanges are breaking changes of kinds and definitions that are meant.
	AllowedChanges []AllowedChange
	// StrictYAML refuses values in documents of Kubernetes that YAML readers read in
	// different ways. Else they mean what they mean to kubectl and kustomize.
	StrictYAML bool
	// Kinds are the folders of easy kinds, sorted by path.
	Kinds []Folder
	// KindsHash changes when any file of any kind changes, or one that kinds may
	// import.
	KindsHash string
	// ProtoPath are the folders where imports of kinds are looked up.
	ProtoPath []string
	// Data is the folder of facts that kinds read; it need not be there.
	// DataHash changes when any of them does.
	Data, DataHash string
	// Schemas is the folder of definitions that are not applied; it need not be
	// there. SchemasHash changes when any of them does.
	Schemas, SchemasHash string
	// Policies is the folder of admission policies; it need not be there.
	// PoliciesHash changes when any of them does.
	Policies, PoliciesHash string
	// Facts are what clusters have, by name. FactsHash changes when any of them does.
	Facts     map[string]*Facts
	FactsHash string
	// Problems concern the whole commit: nothing may be written from it when
	// there is one. Problems of single units are in [Unit.Problems].
	Problems document.Problems

	idle    []IdleReference // that match no unit, see [Repository.Idle]
	orphans sync.Map        // what [Repository.Orphans] found, by unit
	// roots are the folders of units, in the order of swell.yaml.
	roots []*folder
	bases *bases
	// layout is empty when swell.yaml could not be read.
	layout layout
}

// Folders are the folders of the fleet, of kinds and of units, in this order,
// whether they exist or not; none when swell.yaml could not be read.
func (r *Repository) Folders() []string {
	if r.layout.fleet == "" {
		return nil
	}
	return append([]string{r.layout.fleet, r.layout.kinds}, r.layout.units...)
}

// FactsFolder is the folder of facts, whether it exists or not.
func (r *Repository) FactsFolder() string { return cmp.Or(r.layout.facts, "facts") }

// UnitFolders are the folders that hold units, whether they exist or not.
func (r *Repository) UnitFolders() []string { return r.layout.units }

// Folder is a folder of the tree and the address of its content.
type Folder struct {
	Path string
	Hash string
}

// Unit is a folder of documents that is released as one thing.
type Unit struct {
	Path UnitPath
	// Hash is the address of the names and contents of Files.
	Hash string
	// Files are the YAML files directly in the folder, without swell.yaml, and those of
	// JSON that are objects of Kubernetes, as paths from the root, sorted.
	Files []string
	// Data are the other files of JSON.
	Data []string
	// Defaults are merged from all swell.yaml from the root down to the unit.
	Defaults *Defaults
	// Kustomization is the file of kustomize in the folder, as a path from the
	// root: the unit is what it builds. Empty where there is none.
	Kustomization string
	// Declared is what a swell.yaml in the folder itself says of whether it is a unit; nil
	// when it says nothing.
	Declared *bool
	// Problems of the unit's own Defaults and of files that cannot be read.
	Problems document.Problems
	// Link is set when the path is that of a symbolic link or a submodule, as a
	// unit's folder may have been there. Its problem is one of the folder too,
	// where that is a unit.
	Link bool
	// LeftOut are the YAML files in the folder that are none of Files, because somebody says so.
	LeftOut []LeftOut

	stray bool // held because it stands below a kustomization
}

// Name is the last element of the path.
func (u *Unit) Name() string { return path.Base(string(u.Path)) }

// Defaults is what the swell.yaml files above a unit say.
type Defaults struct {
	Tenant  string
	Rollout string // a Rollout's name; "default" where none is written
	// Placement is nil where none is written.
	Placement *Placement
	Labels    map[string]string
	// Overrides in the order in which they are applied: from the root down.
	Overrides []*Override
	// Policy is never nil.
	Policy *Policy
	// Together are where the folders say that all of their units are released or none,
	// from the root down.
	Together []document.Position
	// References are what the documents name that has to be there, from the root
	// down. That of the placement is not among them.
	References []Reference
	// Unit says whether the folder of the nearest swell.yaml is a unit; nil leaves that
	// to its files.
	Unit *bool
	// Hash is the address of everything that was merged, OverridesHash that
	// of the files with overrides among it.
	Hash, OverridesHash string
	// Problems freeze every unit below.
	Problems document.Problems
	// Namespace is that of objects that live in one and name none, as text that may have
	// expressions over the unit and the target. Empty where none is written.
	Namespace string
	// Keeps: objects of the units stay in the cluster when Git no longer has them.
	Keeps bool
	// TenantAt, RolloutAt, PlacementAt and NamespaceAt are where those were written.
	TenantAt, RolloutAt, PlacementAt, NamespaceAt document.Position
}

// Reference is something that Defaults name and that must exist: a rule that picks
// nothing would silently have no effect.
type Reference struct {
	At    document.Position
	Place string // "spec.drift[0].match", for messages
	// Match must pick a target of the fleet.
	Match Match
	// Kind is of hard objects; empty for a match. An unknown kind may
	// exist in a cluster only.
	Kind string
	// Object is the name of an object of the kind, which a unit below should have.
	Object string
	// Field is a JSON pointer to a field that objects of the kind should be able to have.
	Field string
}

// Override is one item of spec.overrides of Defaults: changes to the objects
// of one kind. The operations in it are read by the package override.
type Override struct {
	Doc   *document.Document
	Node  *yaml.Node // the item
	Place string     // "spec.overrides[0]", for messages
	Match Match      // targets; the zero Match is all of them
	// Kind of the documents: an easy kind, or one of Kubernetes for objects
	// that are written out in a unit. Never empty.
	Kind string
	// Object is the id of an object in an easy kind, or the name of a
	// Kubernetes object; empty is every one of the kind.
	Object string
}

// Placement picks the targets of a unit.
type Placement struct {
	// WholeClusters places the unit once per cluster, whatever its cells.
	WholeClusters bool
	Match         Match
}

// SettingsFile holds Repository at the root and Defaults below it.
const SettingsFile = "swell.yaml"

// layout is the Repository document with its defaults filled in.
type layout struct {
	name                        string
	fleet, kinds, data, schemas string
	policies, facts             string
	units                       []string // the folders to begin at
	patterns                    []string // spec.units as written
	protoPath                   []string
	release                     Release
	checks                      Checks
	allowed                     []AllowedChange
	strictYAML                  bool
	selection                   selection
	doc                         *document.Document
}

// singleFolders are the fields of a Repository that each name one folder.
var singleFolders = []string{"fleet", "kinds", "data", "schemas", "policies", "facts"}

// folders are those of singleFolders, in their order, and those of units.
func (l *layout) folders() []string {
	return append([]string{l.fleet, l.kinds, l.data, l.schemas, l.policies, l.facts}, l.units...)
}

// Load reads a monorepo. Folders that are unchanged since previous, which may
// be nil, are not read again; the result is the same as without it.
func Load(tree Tree, previous *Repository) *Repository {
	l := loader{tree: tree, repository: &Repository{Tree: tree, Facts: map[string]*Facts{}}}
	if previous == nil {
		previous = &Repository{}
	}
	l.load(previous)
	r := l.repository
	r.Problems = r.Problems.Sorted()
	return r
}

type loader struct {
	tree        Tree
	repository  *Repository
	entries     int // seen in folders of units
	selection   selection
	tenantsRead []*document.Document
}

// maxEntries is how many files and folders may stand in the folders of units
// that were not read before. Equal folders are stored once in Git, so a small
// repository can hold a tree without end.
const maxEntries = 2_000_000

func (l *loader) problem(p ...document.Problem) {
	l.repository.Problems = append(l.repository.Problems, p...)
}

func (l *loader) load(previous *Repository) {
	layout, ok := l.layout()
	if !ok {
		return
	}
	l.repository.layout, l.repository.Name, l.repository.Release = layout, layout.name, layout.release
	l.repository.Checks, l.repository.AllowedChanges = layout.checks, layout.allowed
	l.repository.StrictYAML = layout.strictYAML
	l.loadFleet(layout.fleet, &previous.Fleet)
	l.listKinds(layout.kinds)
	l.listProtos(layout.protoPath)
	l.repository.Data, l.repository.DataHash = layout.data, l.folderHash(layout.data)
	l.repository.Schemas, l.repository.SchemasHash = layout.schemas, l.folderHash(layout.schemas)
	l.repository.Policies, l.repository.PoliciesHash = layout.policies, l.folderHash(layout.policies)
	l.repository.FactsHash = l.folderHash(layout.facts)
	l.loadFacts(layout.facts, previous.Facts)
	l.selection = layout.selection
	l.tree = following(l.tree, layout.units, slices.Concat(layout.selection.reserved, layout.protoPath))
	l.repository.Tree = l.tree
	if !slices.Equal(layout.patterns, previous.layout.patterns) || !slices.Equal(layout.selection.reserved, previous.layout.selection.reserved) {
		previous = &Repository{} // other folders may be units
	}
	for _, root := range layout.units {
		hash, err := l.tree.Hash(root)
		if err != nil && !document.IsOddName(err) {
			l.problem(l.unitsProblem(root, err))
			continue
		}
		l.repository.roots = append(l.repository.roots, l.loadFolder(root, hash, l.around(root), previous.root(root).asLoaded()))
	}
	l.repository.settle(previous)
	l.checkAfter()
	l.checkWhereUnits()
}

func (l *loader) layout() (layout, bool) {
	docs, ok := l.read(SettingsFile)
	if !ok {
		return layout{}, false
	}
	if p := WantOne(SettingsFile, docs, "Repository", ", at the root of the monorepo"); p != nil {
		l.problem(*p)
		return layout{}, false
	}
	var spec struct {
		Fleet, Kinds, Data, Schemas, Policies, Facts string
		Units, ProtoPath                             []string
		YAML                                         string
		Release                                      releaseSpec
		Checks                                       checksSpec
	}
	in := readOwn(docs[0], &spec)
	in.name(", which all that is applied is marked with")
	found := layout{doc: docs[0], name: docs[0].Name, fleet: cmp.Or(spec.Fleet, "fleet"), kinds: cmp.Or(spec.Kinds, "kinds"), data: cmp.Or(spec.Data, "data"),
		schemas: cmp.Or(spec.Schemas, "schemas"), policies: cmp.Or(spec.Policies, "policies"), facts: cmp.Or(spec.Facts, "facts"), units: spec.Units, protoPath: spec.ProtoPath}
	found.release, found.checks, found.allowed = in.release(spec.Release), in.checks(spec.Checks), in.allowedChanges(spec.Checks)
	if found.strictYAML = spec.YAML == "strict"; !found.strictYAML && spec.YAML != "" && spec.YAML != "kubernetes" {
		in.at("spec", "yaml").problem(document.CodeType, "want kubernetes or strict, got %q", document.Shorten(spec.YAML))
	}
	if len(found.units) == 0 {
		found.units = []string{"services"}
	}
	found.patterns = found.units
	found.selection, found.units = in.selectionOf(found.patterns)
	missing := false
	for i, name := range found.folders()[:len(singleFolders)] {
		if !fs.ValidPath(name) || name == "." {
			in.at(found.folderPath(i)...).problem(document.CodeType, "%q: want a folder relative to the root, like %q", document.Shorten(name), "services")
		}
	}
	for i, name := range found.protoPath {
		if !fs.ValidPath(name) || name == "." {
			in.at("spec", "protoPath", i).problem(document.CodeType, "%q: want a folder relative to the root, like %q", document.Shorten(name), "third_party/proto")
		}
	}
	if problems := in.problems(); len(problems) > 0 {
		l.problem(problems...)
		return layout{}, false
	}
	for _, named := range [][2]string{{"kinds", spec.Kinds}, {"data", spec.Data}, {"schemas", spec.Schemas}, {"policies", spec.Policies}, {"facts", spec.Facts}} {
		field, name := named[0], named[1]
		if name == "" || name == field { // the defaults, named as the fields are, need not be there
			continue
		}
		if _, err := l.tree.Hash(name); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		hint := l.folderHint(name, found)
		if field != "kinds" && hint == "" { // Git keeps no empty folder
			continue
		}
		l.problem(found.missing(name, hint, "spec", field))
		missing = true
	}
	if missing { // what is in it would be missed everywhere
		return layout{}, false
	}
	found.selection.reserved = found.folders()[:len(singleFolders)]
	if slices.ContainsFunc(found.selection.take, isPattern) {
		found.units = outermost(found.units)
	}
	for i, a := range found.folders() {
		for _, b := range found.folders()[:i] {
			if (Within(a, b) || Within(b, a)) && !found.opens(a, b) {
				l.problem(docs[0].Problem(docs[0].Deepest(found.folderPath(i)...), document.CodeFleet, "spec: folders %q and %q overlap: want the fleet, the kinds, the data, the schemas, the policies, the facts and each folder of units beside each other", b, a))
				return layout{}, false
			}
		}
	}
	return found, true
}

// missing is the problem of a folder that is named on the path and is not there.
func (y *layout) missing(name, hint string, path ...any) document.Problem {
	return y.doc.Problem(y.doc.Deepest(path...), document.CodeReference, "%s: %q: no such folder%s", document.PathOf(path...), document.Shorten(name), hint)
}

// folderProblem is the problem of a folder that the layout names on the path, or has
// by default. It is at the name; of a default, or of what is below the folder, at what
// cannot be read. what says which folder a default is.
func (l *loader) folderProblem(name string, err error, what string, path ...any) document.Problem {
	y := &l.repository.layout
	p := document.FileProblem(name, err)
	switch at := y.doc.Deepest(path...); {
	case p.File != name:
	case at.Value != name:
		p.Message = what + ": " + p.Message
	case errors.Is(err, fs.ErrNotExist):
		return y.missing(name, l.folderHint(name, *y), path...)
	default:
		p.Position = y.doc.At(at)
		p.Message = fmt.Sprintf("%s: %q: %s", document.PathOf(path...), document.Shorten(name), p.Message)
	}
	return p
}

// unitsProblem is the problem of a folder of units, or of one below it.
func (l *loader) unitsProblem(name string, err error) document.Problem {
	i := slices.Index(l.repository.layout.patterns, name)
	if i < 0 {
		return document.FileProblem(name, err)
	}
	return l.folderProblem(name, err, "folder of units (spec.units of "+SettingsFile+", default services)", "spec", "units", i)
}

// folderHint is the end of a message about a folder that is not there: the one beside
// it with a near name. It is empty when there is none.
func (l *loader) folderHint(name string, in layout) string {
	meant := document.Misspelt(path.Base(name), l.unnamedBeside(name, in))
	if meant == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %q?", path.Join(path.Dir(name), meant))
}

// unnamedBeside are the names of the folders beside a path that the layout does not
// have.
func (l *loader) unnamedBeside(name string, in layout) (names []string) {
	entries, _ := l.tree.ReadDir(path.Dir(name))
	for _, e := range entries {
		if e.IsDir() && !slices.Contains(in.folders(), path.Join(path.Dir(name), e.Name())) {
			names = append(names, e.Name())
		}
	}
	return names
}

// opens says whether a is a folder that patterns of units begin at, with b in it: what
// b holds is left out there.
func (y *layout) opens(a, b string) bool {
	return slices.Contains(y.units, a) && !slices.Contains(y.patterns, a) && a != b && Within(b, a) || a == "."
}

// folderPath is where the folder of that index in [layout.folders] is written.
func (y *layout) folderPath(i int) []any {
	if i < len(singleFolders) {
		return []any{"spec", singleFolders[i]}
	}
	if at := slices.Index(y.patterns, y.units[i-len(singleFolders)]); at >= 0 {
		return []any{"spec", "units", at}
	}
	return []any{"spec", "units"}
}

// Within says whether a path is dir or below it. All is within "." and "", the root.
func Within(name, dir string) bool {
	return dir == "" || dir == "." || name == dir || strings.HasPrefix(name, dir+"/")
}

// read reads the documents of one file of the fleet; a problem is recorded.
func (l *loader) read(file string) ([]*document.Document, bool) {
	content, err := l.tree.ReadFile(file)
	if err != nil {
		l.problem(document.FileProblem(file, err))
		return nil, false
	}
	docs, problems := document.ReadDocuments(file, content)
	l.problem(problems...)
	return docs, len(problems) == 0
}

// folderHash is the hash of a folder that need not be there; then it is empty.
func (l *loader) folderHash(folder string) string {
	hash, err := l.tree.Hash(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.problem(document.FileProblem(folder, err))
	}
	return hash
}

func (l *loader) listKinds(root string) {
	hash, err := l.tree.Hash(root)
	if errors.Is(err, fs.ErrNotExist) {
		return // a monorepo of plain Kubernetes YAML has no kinds
	}
	entries, readErr := l.tree.ReadDir(root)
	if err = errors.Join(err, readErr); err != nil {
		l.problem(document.FileProblem(root, err))
		return
	}
	l.repository.KindsHash = hash
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		dir := path.Join(root, e.Name())
		hash, err := l.tree.Hash(dir)
		if err != nil {
			l.problem(document.FileProblem(dir, err))
			continue
		}
		if !l.onlyProtos(dir) {
			l.repository.Kinds = append(l.repository.Kinds, Folder{Path: dir, Hash: hash})
		}
	}
}

// onlyProtos says whether a folder has .proto files, at any depth, and no
// others: what kinds import, and no kind.
func (l *loader) onlyProtos(dir string) bool {
	found := false
	err := fs.WalkDir(l.tree, dir, func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil || e.IsDir():
			return err
		case !e.Type().IsRegular() || path.Ext(name) != ".proto":
			return errOther
		}
		found = true
		return nil
	})
	return found && err == nil
}

var errOther = errors.New("a file of another sort")

// listProtos makes the content of the folders a part of what kinds are made of.
func (l *loader) listProtos(folders []string) {
	l.repository.ProtoPath = folders
	for i, folder := range folders {
		hash, err := l.tree.Hash(folder)
		if err != nil {
			l.problem(l.folderProblem(folder, err, "folder of protos", "spec", "protoPath", i))
			continue
		}
		l.repository.KindsHash += " " + folder + " " + hash
	}
}

func irregular(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "folder"
	case mode&fs.ModeSymlink != 0:
		return "symbolic link"
	case mode&fs.ModeIrregular != 0:
		return "submodule"
	}
	return "special file"
}
