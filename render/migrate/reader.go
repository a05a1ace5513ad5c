// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

// reader is the files of a repository, and what was found in them.
type reader struct {
	tool    string
	tree    config.Tree
	options Options

	files          []string            // all files of YAML, sorted
	below          map[string][]string // names in a folder, sorted: those of folders end with a slash
	kustomizations map[string]string   // the file of a folder
	named          map[string][]string // the folders that the kustomizations of others name, and their files
	components     map[string]bool     // folders of kind Component
	charts         map[string]bool     // folders with a Chart.yaml

	texts    map[string]*fileContent
	contents map[string]*content

	releases    []*release
	notes, left []Note
	blocked     bool    // a folder that a tool begins at cannot be read
	wanted      []Chart // to be brought into the tree
	clusters    []string
	spaces      map[string]map[string]*object // namespaces that the tool makes, by cluster and name
}

// fileContent are the documents of a file.
type fileContent struct {
	objects []*object
	foreign bool // for other programs
	problem *document.Problem
}

func newReader(tree config.Tree, options Options) (*reader, error) {
	r := &reader{tree: tree, options: options, below: map[string][]string{}, kustomizations: map[string]string{}, named: map[string][]string{},
		components: map[string]bool{}, charts: map[string]bool{}, texts: map[string]*fileContent{}, contents: map[string]*content{}, spaces: map[string]map[string]*object{}, clusters: slices.Clone(options.Clusters)}
	err := fs.WalkDir(tree, ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case document.IsOddName(err):
			return nil
		case err != nil:
			return err
		case name != "." && strings.HasPrefix(e.Name(), "."):
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		case e.IsDir():
			if name != "." {
				r.below[path.Dir(name)] = append(r.below[path.Dir(name)], e.Name()+"/")
			}
			return nil
		case !e.Type().IsRegular():
			return nil
		}
		r.addFile(name)
		return nil
	})
	slices.Sort(r.files)
	for _, folder := range sortedKeys(r.kustomizations) {
		r.readNames(folder)
	}
	return r, err
}

func (r *reader) addFile(name string) {
	folder, base := path.Dir(name), path.Base(name)
	r.below[folder] = append(r.below[folder], base)
	switch {
	case slices.Contains(config.KustomizationFiles, base):
		r.kustomizations[folder] = name
	case base == "Chart.yaml":
		r.charts[folder] = true
	case config.IsYAML(base):
		r.files = append(r.files, name)
	}
}

// readNames notes which folders a kustomization names.
func (r *reader) readNames(folder string) {
	file := r.kustomizations[folder]
	content, err := r.tree.ReadFile(file)
	if err != nil {
		return // building it says so
	}
	docs, _ := document.ReadKustomization(file, content)
	for _, doc := range docs {
		r.components[folder] = r.components[folder] || doc.Kind == "Component"
		for _, field := range []string{"resources", "bases", "components"} {
			list := document.Lookup(doc.Node, field)
			if list == nil || list.Kind != yaml.SequenceNode {
				continue
			}
			for _, item := range list.Content {
				if to := path.Join(folder, item.Value); item.Kind == yaml.ScalarNode && !path.IsAbs(item.Value) && to != folder {
					r.named[to] = append(r.named[to], file)
				}
			}
		}
	}
}

// inChart says whether a file or folder is of a chart.
func (r *reader) inChart(name string) bool {
	for dir := name; ; dir = path.Dir(dir) {
		if r.charts[dir] {
			return true
		}
		if dir == "." {
			return false
		}
	}
}

// file is what a file holds.
func (r *reader) file(name string) *fileContent {
	if known := r.texts[name]; known != nil {
		return known
	}
	f := &fileContent{}
	r.texts[name] = f
	text, err := r.tree.ReadFile(name)
	if err != nil {
		problem := document.FileProblem(name, err)
		f.problem = &problem
		return f
	}
	if f.foreign = document.IsForeign(text); f.foreign {
		return f
	}
	docs, problems := document.ReadDialect(name, text, document.Kubectl)
	if len(problems) > 0 {
		f.problem = &problems[0]
	}
	for _, doc := range docs {
		if o, ok := asObject(doc); ok {
			f.objects = append(f.objects, o)
		}
	}
	return f
}

// documents are the objects of all files that have one of the texts in them, outside of
// charts. A file with one that cannot be read is noted.
func (r *reader) documents(marks ...string) (all []*object) {
	for _, name := range r.files {
		if r.inChart(name) {
			continue
		}
		text, err := r.tree.ReadFile(name)
		if err == nil && !slices.ContainsFunc(marks, func(mark string) bool { return bytes.Contains(text, []byte(mark)) }) {
			continue
		}
		f := r.file(name)
		if f.problem != nil {
			r.leaveFile(*f.problem)
		}
		all = append(all, f.objects...)
	}
	return all
}

func (r *reader) leaveFile(p document.Problem) {
	at := p.Position
	at.Column = 0
	r.left = append(r.left, Note{At: at, What: "file", Why: "cannot be read: " + p.Message, Do: "mend it, and run this again"})
}

// isFolder says whether a folder with files is there.
func (r *reader) isFolder(name string) bool { return len(r.below[name]) > 0 }

// cleanPath is a path that a document gives from the root, as one of the tree; ok is false
// when it leads out.
func cleanPath(text string) (name string, ok bool) {
	name = path.Clean(strings.TrimLeft(path.Clean("./"+text), "/"))
	return name, name != ".." && !strings.HasPrefix(name, "../") && fs.ValidPath(name)
}

// asLabel is a text as a DNS label.
func asLabel(text string) string {
	label := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(text))
	label = strings.Join(strings.FieldsFunc(label, func(r rune) bool { return r == '-' }), "-")
	if len(label) > 63 {
		label = strings.Trim(label[:63], "-")
	}
	return label
}

// addCluster makes sure that the fleet has a cluster.
func (r *reader) addCluster(name string) {
	if !slices.Contains(r.clusters, name) {
		r.clusters = append(r.clusters, name)
	}
}

func quoted(text string) string { return fmt.Sprintf("%q", document.Shorten(text)) }
