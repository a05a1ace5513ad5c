// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"path"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

// messageOf is a [config.KindMessage] of the world's kinds.
func (w *world) messageOf(apiVersion, kind string) (message protoreflect.MessageDescriptor, known bool) {
	if strings.HasPrefix(apiVersion, config.Group+"/") || strings.HasPrefix(apiVersion, "kustomize.config.k8s.io/") {
		return nil, true
	}
	if w == nil || w.kinds == nil || w.hard == nil {
		return nil, false
	}
	if easy := w.kinds.ByName(apiVersion, kind); easy != nil {
		return easy.SecretMessage(), true
	}
	return nil, w.hard.all().Kind(apiVersion, kind) != nil
}

// KindMessage is a [config.KindMessage] of the kinds of the snapshot. While it
// is held, only swell's own are known.
func (s *Snapshot) KindMessage(apiVersion, kind string) (message protoreflect.MessageDescriptor, known bool) {
	return s.world.messageOf(apiVersion, kind)
}

// maxRedacted bounds the bytes of files that secrets are looked for in, for the
// problems of one unit.
const maxRedacted = 64 << 20

// secretsIn gathers what may be a secret in files of the tree. What their documents name, and names
// of fields of their kinds, are none.
func (w *world) secretsIn(files []string) *config.Redactor {
	var r config.Redactor
	slices.Sort(files)
	size := 0
	for _, file := range slices.Compact(files) {
		if ext := path.Ext(file); ext != ".yaml" && ext != ".yml" && path.Base(file) != "Kustomization" {
			continue
		}
		content, err := w.repository.Tree.ReadFile(file)
		if size += len(content); err != nil || size > maxRedacted {
			continue
		}
		r.AddText(string(content))
		roots, _ := config.DecodeAll(content) // what stands before a mistake
		for _, root := range roots {
			places := config.SecretPlaces(root, w.messageOf)
			r.AddPlaces(places)
			r.KnowNames(root, places)
			r.Know(w.fieldNames(root)...)
		}
	}
	return &r
}

// fieldNames are the names of the fields of a document of an easy or a custom kind. Those of Kubernetes'
// own kinds are common words.
func (w *world) fieldNames(root *yaml.Node) []string {
	apiVersion, kind := document.Lookup(root, "apiVersion"), document.Lookup(root, "kind")
	if w.kinds == nil || w.hard == nil || apiVersion == nil || kind == nil {
		return nil
	}
	if easy := w.kinds.ByName(apiVersion.Value, kind.Value); easy != nil {
		return document.FieldNames(easy.Message())
	}
	if hard := w.hard.all().Kind(apiVersion.Value, kind.Value); hard.Definition() != "" {
		return hard.Type().FieldNames()
	}
	return nil
}

// redact hides secrets in the problems and notes of the unit: what stands in
// its files, in those that it read, and in the Defaults above it.
func (u *unitRenderer) redact() {
	if len(u.problems)+len(u.notes)+len(u.blames) == 0 {
		return
	}
	files := placesOf(u.problems, u.notes, u.blames)
	for _, read := range u.reads.reads() {
		if read.what == readFile {
			files = append(files, read.name)
		}
	}
	if entries, err := u.repository.Tree.ReadDir(string(u.unit.Path)); err == nil {
		for _, e := range entries {
			files = append(files, path.Join(string(u.unit.Path), e.Name()))
		}
	}
	for dir := string(u.unit.Path); dir != "."; dir = path.Dir(dir) {
		files = append(files, path.Join(path.Dir(dir), "swell.yaml"))
	}
	// What is written in a template of a chart is not what an object has.
	files = slices.DeleteFunc(files, func(file string) bool {
		return strings.Contains(file, "/templates/") && slices.ContainsFunc(u.charted, func(chart string) bool { return config.Within(file, chart) })
	})
	r := u.secretsIn(files)
	for _, src := range u.sources {
		if src.spec != nil {
			for _, text := range src.spec.Secrets() {
				r.Add(text)
			}
		}
	}
	for _, text := range u.secrets {
		r.Add(text)
	}
	config.RedactProblems(r, u.problems, u.notes, u.blames)
}

// placesOf are the files that problems are at.
func placesOf(lists ...document.Problems) (files []string) {
	for _, problems := range lists {
		for _, p := range problems {
			files = append(files, p.File)
			for _, via := range p.Via {
				files = append(files, via.File)
			}
		}
	}
	return files
}

// redactShared hides secrets in the problems that are of no unit, and in those of a swell.yaml, which are found
// before its units are looked at.
func (s *Snapshot) redactShared() {
	var shared document.Problems
	for _, p := range s.Problems {
		if p.Unit == "" || path.Base(p.File) == config.SettingsFile {
			shared = append(shared, p)
		}
	}
	if len(shared) == 0 {
		return
	}
	w := s.world
	if w == nil {
		w = &world{repository: s.Repository}
	}
	config.RedactProblems(w.secretsIn(placesOf(shared)), s.Problems)
}
