// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

// noDocuments says why a file is dropped.
const noDocuments = "holds no documents any more"

// foreignText says why a file that is for other programs is left out.
const foreignText = "no document of Kubernetes: it has neither apiVersion nor kind"

// LeftOut are the files and folders that are no part of any unit although they stand where
// units do, sorted by path.
func (s *Snapshot) LeftOut() []config.LeftOut {
	if s.Held {
		return nil
	}
	all := s.Repository.LeftOut()
	for _, unit := range s.Units.All() {
		all = append(all, unit.foreign()...)
	}
	slices.SortFunc(all, func(a, b config.LeftOut) int { return strings.Compare(a.Path, b.Path) })
	return all
}

// LeftOutAnew are those of [Snapshot.LeftOut] that were not left out in base, and the files
// among them that have another content there: nothing comes of the change.
func (s *Snapshot) LeftOutAnew(base *Snapshot) (anew []config.LeftOut) {
	before := map[config.LeftOut]bool{}
	for _, left := range base.LeftOut() {
		before[left] = true
	}
	for _, left := range s.LeftOut() {
		if !before[left] || config.IsYAML(left.Path) && !sameFile(base.Repository.Tree, s.Repository.Tree, left.Path) {
			anew = append(anew, left)
		}
	}
	return anew
}

// sameFile says whether a file is known to be the same in two trees.
func sameFile(a, b config.Tree, file string) bool {
	hash, err := a.Hash(file)
	other, failed := b.Hash(file)
	return err == nil && failed == nil && hash == other
}

// LeftOut are the files in the folder of the unit that are left out.
func (u *Unit) LeftOut() []config.LeftOut {
	if u.source == nil {
		return u.foreign()
	}
	return append(u.foreign(), u.source.LeftOut...)
}

// foreign are the files of the unit that are for other programs.
func (u *Unit) foreign() (files []config.LeftOut) {
	for _, file := range u.Foreign {
		files = append(files, config.LeftOut{Path: file, Why: foreignText})
	}
	return files
}

// MayDrop says whether [Snapshot.Dropped] may find files of the unit.
func (u *Unit) MayDrop() bool {
	return len(u.Foreign) > 0 || u.source != nil && (len(u.source.LeftOut)+len(u.source.Data) > 0 || u.source.Kustomization != "")
}

// Dropped are the files of a unit that gave it documents in an earlier tree, are still
// there, and give it none now, although no other file of the unit has these documents.
// That is more often a mistake than a wish: a file was not fetched, or a kustomization came
// into the folder that does not name it. Only one that is gone means that its objects go.
//
// Of a unit that kustomize built in that tree there are none: its kustomization says which
// files are meant. A file that cannot be read there for good is none of them; one that may
// be readable later is.
func (s *Snapshot) Dropped(unit *Unit, before config.Tree) []config.LeftOut {
	if !unit.MayDrop() || wasBuilt(unit, before) {
		return nil
	}
	var now map[easyID]bool
	var dropped []config.LeftOut
	for _, file := range s.unread(unit) {
		had, retry := documentsBefore(file.Path, before)
		if len(had) > 0 && now == nil {
			now = s.world.identities(unit.source)
		}
		if lost := slices.ContainsFunc(had, func(id easyID) bool { return !now[id] }); lost || retry {
			dropped = append(dropped, file)
		}
	}
	return dropped
}

// DroppedOf is [Snapshot.Dropped] for a unit that is not in the snapshot: the files of JSON in
// its folder that were objects.
func (s *Snapshot) DroppedOf(unit config.UnitPath, before config.Tree) (dropped []config.LeftOut) {
	entries, err := s.Repository.Tree.ReadDir(string(unit))
	if err != nil {
		return nil
	}
	for _, e := range entries {
		file := path.Join(string(unit), e.Name())
		if path.Ext(file) != ".json" {
			continue
		}
		if content, err := before.ReadFile(file); err == nil && document.IsObjectJSON(content) {
			dropped = append(dropped, config.LeftOut{Path: file, Why: noDocuments})
		}
	}
	return dropped
}

// Lost are the problems that units of base have in s although nobody removed them: what gave
// them objects is still there and gives none, or makes them no units. A daemon that has base
// deletes nothing of them.
func (s *Snapshot) Lost(base *config.Repository) (problems document.Problems) {
	for before := range base.Units() {
		file, text := string(before.Path), ""
		switch unit := s.Units.Get(before.Path); {
		case unit == nil:
			text = s.Repository.Kept(before.Path)
			if dropped := s.DroppedOf(before.Path, base.Tree); text == "" && len(dropped) > 0 {
				file, text, _ = strings.Cut(DroppedText(dropped), ": ")
			}
		case unit.Void:
			file, text, _ = strings.Cut(VoidText(unit), ": ")
		default:
			if dropped := s.Dropped(unit, base.Tree); len(unit.Problems) == 0 && len(dropped) > 0 {
				file, text, _ = strings.Cut(DroppedText(dropped), ": ")
			}
		}
		if text != "" {
			problems = append(problems, document.Problem{Position: document.Position{File: file}, Code: document.CodeDocument,
				Message: text, Unit: string(before.Path)})
		}
	}
	return problems
}

// VoidText says why a folder that was a unit keeps its objects although it is none.
func VoidText(unit *Unit) string {
	return unit.Foreign[0] + ": no file of the folder holds documents any more: " +
		"nothing is deleted; remove the folder to remove the unit"
}

// DroppedText says why nothing of a unit with such files is released; there is at least one.
func DroppedText(dropped []config.LeftOut) string {
	more := ""
	if n := len(dropped) - 1; n > 0 {
		more = fmt.Sprintf(" (and from %s)", document.Count(n, "more file"))
	}
	return fmt.Sprintf("%s: %s, but objects came from it before%s: "+
		"nothing is deleted; put it right, or remove the file to remove its objects", dropped[0].Path, dropped[0].Why, more)
}

// unread are the YAML files in the folder of a unit that give it no documents, and why.
func (s *Snapshot) unread(unit *Unit) (files []config.LeftOut) {
	for _, file := range slices.Concat(unit.Foreign, unit.source.Data) {
		files = append(files, config.LeftOut{Path: file, Why: noDocuments})
	}
	if build := unit.source.Kustomization; build != "" {
		reads := s.world.build(unit.source).result.Reads
		for _, file := range unit.source.Files {
			if file != build && !slices.Contains(reads, file) {
				files = append(files, config.LeftOut{Path: file, Why: build + " does not name it"})
			}
		}
	}
	return append(files, unit.source.LeftOut...)
}

// wasBuilt says whether the folder of the unit had a kustomization in an earlier tree.
func wasBuilt(unit *Unit, before config.Tree) bool {
	return slices.ContainsFunc(config.KustomizationFiles, func(name string) bool {
		_, err := before.Hash(path.Join(string(unit.Path), name))
		return err == nil
	})
}

// documentsBefore are the documents that a file had in an earlier tree. retry says that it
// cannot be read for the moment.
func documentsBefore(file string, before config.Tree) (had []easyID, retry bool) {
	content, err := before.ReadFile(file)
	if err != nil {
		return nil, document.MayPass(err)
	}
	docs, _ := document.ReadDialect(file, content, document.Kubectl)
	return identitiesOf(docs), false
}

// identities are those of all documents that a unit has now.
func (w *world) identities(unit *config.Unit) map[easyID]bool {
	docs, _, _ := w.documents(unit, &recorder{world: w})
	now := map[easyID]bool{}
	for _, id := range identitiesOf(docs) {
		now[id] = true
	}
	return now
}

func identitiesOf(docs []*document.Document) []easyID {
	ids := make([]easyID, len(docs))
	for i, doc := range docs {
		ids[i] = easyID{doc.APIVersion, doc.Kind, document.TextAt(document.Lookup(doc.Node, "metadata"), "namespace"), doc.Name}
	}
	return ids
}
