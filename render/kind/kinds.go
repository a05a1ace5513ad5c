// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/schema"
)

// Kinds is the easy kinds of one commit and those that are part of swell. It
// is safe for concurrent use.
type Kinds struct {
	// Problems of all kinds, sorted. Those of a kind hold its specs and the
	// kinds that refer to it, and no others.
	Problems document.Problems

	byName  map[string]*Kind  // by "apiVersion kind"
	broken  map[string]string // folders of kinds that do not load, by the same
	all     []*Kind           // whose message is known
	claims  map[string]string // where an easy kind is declared, by [schema.Claim.Names]
	unnamed []string
}

// ByName finds a kind that loads; nil when there is none.
func (k *Kinds) ByName(apiVersion, kind string) *Kind { return k.byName[apiVersion+" "+kind] }

// Broken is the folder of a kind that is there but does not load; empty when
// there is none.
func (k *Kinds) Broken(apiVersion, kind string) string { return k.broken[apiVersion+" "+kind] }

// Unnamed are the folders of kinds that do not load and whose name is not
// known, sorted.
func (k *Kinds) Unnamed() []string { return k.unnamed }

// Names are the "apiVersion kind" of all kinds that load, sorted.
func (k *Kinds) Names() []string { return slices.Sorted(maps.Keys(k.byName)) }

// BrokenFolders are the folders of all kinds that do not load, sorted.
func (k *Kinds) BrokenFolders() []string {
	folders := slices.Concat(slices.Collect(maps.Values(k.broken)), k.unnamed)
	slices.Sort(folders)
	return slices.Compact(folders)
}

// BrokenNames are the kinds that do not load and whose name is known, without
// their groups, sorted.
func (k *Kinds) BrokenNames() []string {
	var names []string
	for name := range k.broken {
		_, bare, _ := strings.Cut(name, " ")
		names = append(names, bare)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// All are the kinds that load, by name.
func (k *Kinds) All() []*Kind {
	all := make([]*Kind, 0, len(k.byName))
	for _, name := range k.Names() {
		all = append(all, k.byName[name])
	}
	return all
}

// Declared are all kinds whose message is known, those with problems too, in
// the order of their folders; those of swell itself come first.
func (k *Kinds) Declared() []*Kind { return k.all }

// HashOf is [Kind.Hash] of the kind of that name, or says that it is broken;
// empty when there is none.
func (k *Kinds) HashOf(apiVersion, kind string) string {
	if known := k.ByName(apiVersion, kind); known != nil {
		return known.Hash()
	}
	if folder := k.Broken(apiVersion, kind); folder != "" {
		return "broken " + folder
	}
	return ""
}

// kindLoader loads the kinds of one commit.
type kindLoader struct {
	protoPath []string // folders where imports are looked up
	loaders   []*loader
	known     map[string]*loader // by "apiVersion kind"; the first of that name
}

// use is a reference from one kind to another.
type use struct {
	to          *loader
	at          *yaml.Node
	where       string
	nested      bool // by a template, else by collect
	conditional bool // the object may be left out
}

// LoadAll compiles the kinds in folders of the tree, which may refer to each
// other, and those that are part of swell. hard is what their objects are
// checked against; data is what their expressions read, nil for nothing.
// protoPath are folders of the tree where imports are looked up.
func LoadAll(tree config.Tree, folders []config.Folder, hard *schema.Set, data *Data, protoPath ...string) *Kinds {
	all := &kindLoader{protoPath: protoPath, known: map[string]*loader{}}
	for _, g := range goKinds() {
		l := &loader{all: all, kind: g.kind()}
		all.loaders = append(all.loaders, l)
		all.known[l.name()] = l
	}
	kinds := &Kinds{byName: map[string]*Kind{}, broken: map[string]string{}}
	for _, folder := range folders {
		l := &loader{all: all, tree: &recordingTree{Tree: tree, read: map[string]string{}}, hard: hard,
			kind: &Kind{Folder: folder.Path, data: data, declaration: &declaration{}}, templates: map[string]*textTemplate{}}
		l.guarded(l.declare)
		all.loaders = append(all.loaders, l)
		if l.kind.Name == "" {
			kinds.unnamed = append(kinds.unnamed, folder.Path)
		} else if first := all.known[l.name()]; first == nil {
			all.known[l.name()] = l
		} else { // nobody knows which one is meant; those of swell are in a group of their own
			first.twice, l.twice = true, true
			l.problems = append(l.problems, document.Problem{Position: document.Position{File: folder.Path}, Code: document.CodeDuplicate,
				Message: fmt.Sprintf("kind %s: defined twice, first in %s", l.name(), first.kind.Folder)})
		}
	}
	kinds.claims = all.claim(hard)
	for _, l := range all.loaders {
		if l.kind.native == nil {
			l.guarded(l.compile)
		}
	}
	all.findEmpty()
	all.findCycles()
	all.spread()
	for _, l := range all.loaders {
		l.relocate()
		kinds.add(all, l)
		if l.kind.message != nil {
			kinds.all = append(kinds.all, l.kind)
		}
	}
	kinds.Problems = kinds.Problems.Sorted()
	return kinds
}

// claim finds kinds that take the names of another one, or of one of Kubernetes'
// own, and returns where each name is taken. A definition in the tree that has one
// is the problem of its unit.
func (a *kindLoader) claim(hard *schema.Set) map[string]string {
	builtIn, claims, first := hard.BuiltInNames(), map[string]string{}, map[string]*loader{}
	for _, l := range a.loaders {
		if l.kind.Name == "" || l.kind.native != nil {
			continue
		}
		at := l.kind.easy.Position()
		for _, name := range l.kind.easy.Claim().Names() {
			if builtIn[name] {
				l.taken(name, "Kubernetes itself")
			}
			switch other := first[name]; {
			case other == nil:
				first[name], claims[name] = l, at.String()
			case other.name() != l.name(): // the same one is a problem already
				l.taken(name, other.kind.easy.Position().String())
				other.taken(name, at.String())
			}
		}
	}
	return claims
}

// taken is the problem that somebody else has a name of the kind.
func (l *loader) taken(name, by string) {
	l.problems = append(l.problems, document.Problem{Position: l.kind.easy.Position(), Code: document.CodeDuplicate,
		Message: fmt.Sprintf("kind %s: %s is taken by %s: choose another group, kind or plural", l.kind.Name, strings.TrimSpace(name), by)})
}

// Claimed is where an easy kind is declared that has one of the names; empty
// when there is none.
func (k *Kinds) Claimed(names schema.Claim) string {
	for _, name := range names.Names() {
		if at := k.claims[name]; at != "" {
			return at
		}
	}
	return ""
}

// guarded makes a mistake of swell a problem of the kind.
func (l *loader) guarded(step func()) {
	defer document.Recover(l.kind.Folder, &l.problems)
	step()
}

func (l *loader) name() string { return l.kind.APIVersion() + " " + l.kind.Name }

func (a *kindLoader) named(apiVersion, kind string) *loader { return a.known[apiVersion+" "+kind] }

func (a *kindLoader) names() []string { return slices.Sorted(maps.Keys(a.known)) }

// hint is the end of a message about an unknown kind.
func (a *kindLoader) hint(got string, known []string) string {
	var folders []string
	for _, l := range a.loaders {
		if l.kind.Name == "" {
			folders = append(folders, l.kind.Folder)
		}
	}
	if len(folders) == 0 {
		return document.DidYouMean(got, known)
	}
	return fmt.Sprintf("; %s does not load, it may be that one", strings.Join(folders, ", "))
}

// findEmpty finds kinds that stand for nothing. One that another kind collects
// needs no objects of its own.
func (a *kindLoader) findEmpty() {
	collected := map[*loader]bool{}
	for _, l := range a.loaders {
		for _, use := range l.used {
			collected[use.to] = collected[use.to] || !use.nested
		}
	}
	for _, l := range a.loaders {
		if l.kind.envelope != nil && l.kind.native == nil && len(l.def.Objects) == 0 && !collected[l] {
			l.problem(l.spec("objects"), "spec.objects: want at least one object, or another kind that collects this one")
		}
	}
}

// findCycles finds kinds that would be nested in each other without end:
// cycles of templates none of which can be left out. Others end at the depth
// that specs may be expanded to.
func (a *kindLoader) findCycles() {
	state := map[*loader]int{} // 1: on the way, 2: done
	var chain []*loader
	var visit func(l *loader)
	visit = func(l *loader) {
		state[l] = 1
		chain = append(chain, l)
		for _, use := range l.used {
			if !use.nested || use.conditional {
				continue
			}
			switch state[use.to] {
			case 0:
				visit(use.to)
			case 1:
				names := []string{}
				for _, on := range chain[slices.Index(chain, use.to):] {
					names = append(names, on.kind.Name)
				}
				l.problem(use.at, "%s: a cycle of kinds without an end: %s -> %s", use.where, strings.Join(names, " -> "), use.to.kind.Name)
			}
		}
		chain = chain[:len(chain)-1]
		state[l] = 2
	}
	for _, l := range a.loaders {
		if state[l] == 0 {
			visit(l)
		}
	}
}

// spread makes kinds that refer to one that does not load problems too, until
// nothing changes.
func (a *kindLoader) spread() {
	for again := true; again; {
		again = false
		for _, l := range a.loaders {
			if len(l.problems) > 0 {
				continue
			}
			for _, use := range l.used {
				switch {
				case use.to.twice:
					l.problem(use.at, "%s: kind %s is defined twice", use.where, use.to.kind.Name)
				case len(use.to.problems) > 0:
					l.problem(use.at, "%s: kind %s does not load, see %s", use.where, use.to.kind.Name, use.to.kind.Folder)
				default:
					continue
				}
				again = true
			}
		}
	}
}

// add enters a kind under its name.
func (k *Kinds) add(all *kindLoader, l *loader) {
	k.Problems = append(k.Problems, l.problems...)
	name := l.name()
	switch {
	case l.kind.Name == "":
	case l.twice || len(l.problems) > 0:
		k.broken[name] = l.kind.Folder
	default:
		l.kind.hash = all.hash(l)
		k.byName[name] = l.kind
	}
}

// hash is that of all kinds that can be reached from one, itself included.
func (a *kindLoader) hash(from *loader) string {
	reached := map[*loader]bool{}
	var visit func(l *loader)
	visit = func(l *loader) {
		if reached[l] {
			return
		}
		reached[l] = true
		for _, use := range l.used {
			visit(use.to)
		}
	}
	visit(from)
	var own []string
	for l := range reached {
		if l != from {
			own = append(own, l.ownHash())
		}
	}
	slices.Sort(own)
	sum := sha256.Sum256([]byte(from.ownHash() + strings.Join(own, "")))
	return hex.EncodeToString(sum[:])
}

// ownHash is the address of what was read for the kind alone.
func (l *loader) ownHash() string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q\n", l.name())
	if l.kind.native != nil {
		fmt.Fprintf(sum, "go %d\n", l.kind.native.Version)
		return hex.EncodeToString(sum.Sum(nil))
	}
	for _, file := range slices.Sorted(maps.Keys(l.tree.read)) {
		fmt.Fprintf(sum, "%q %s\n", file, l.tree.read[file])
	}
	if l.env != nil && l.reads.any() {
		fmt.Fprintf(sum, "data %q\n", l.env.files)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// recordingTree notes which files were read, by the address of their content.
type recordingTree struct {
	config.Tree
	read map[string]string
}

// ReadFile is that of the tree.
func (t *recordingTree) ReadFile(name string) ([]byte, error) {
	content, err := t.readWhole(name)
	if err != nil {
		t.read[name] = "error " + err.Error()
		return nil, err
	}
	sum := sha256.Sum256(content)
	t.read[name] = hex.EncodeToString(sum[:])
	return content, nil
}

// readWhole reads a file, but none from a folder with an odd name: a kind is
// all of its folder or nothing.
func (t *recordingTree) readWhole(name string) ([]byte, error) {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if _, err := t.Tree.ReadDir(dir); errors.As(err, new(document.OddName)) {
			return nil, err
		}
	}
	return t.Tree.ReadFile(name)
}
