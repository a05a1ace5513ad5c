// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/kustomize"
)

// content is what the files of a folder come to.
type content struct {
	objects []*object
	// resources are the files of a folder without a kustomization, and those folders below
	// it that have one, from the folder.
	resources []string
	problems  document.Problems
}

// content is what a folder without changes comes to: what kustomize builds, or else the
// documents of its files. With deep, also those of the folders below.
func (r *reader) content(folder string, deep bool) *content {
	key := fmt.Sprintf("%v %s", deep, folder)
	c := r.contents[key]
	if c == nil {
		c = &content{}
		r.contents[key] = c
		if r.kustomizations[folder] != "" {
			c.objects, c.problems = r.build(r.tree, folder)
		} else {
			r.gather(c, folder, "", deep)
		}
	}
	return c
}

// gather adds what is in a folder without a kustomization, below the folder of c.
func (r *reader) gather(c *content, folder, from string, deep bool) {
	for _, name := range r.below[folder] {
		at, shown := path.Join(folder, name), path.Join(from, name)
		below, isFolder := strings.CutSuffix(name, "/")
		switch {
		case isFolder && (!deep || r.charts[path.Join(folder, below)]):
		case isFolder && r.kustomizations[at] != "":
			built := r.content(at, deep)
			c.add(shown, built.objects, built.problems)
		case isFolder:
			r.gather(c, at, shown, deep)
		case config.IsYAML(name) && name != config.SettingsFile:
			f := r.file(at)
			if f.problem != nil {
				c.problems = append(c.problems, *f.problem)
			}
			if !f.foreign {
				c.add(shown, f.objects, nil)
			}
		}
	}
}

func (c *content) add(resource string, objects []*object, problems document.Problems) {
	c.resources = append(c.resources, resource)
	c.objects, c.problems = append(c.objects, objects...), append(c.problems, problems...)
}

// build has kustomize build a folder of a tree.
func (r *reader) build(tree config.Tree, folder string) (objects []*object, problems document.Problems) {
	result, problems := kustomize.Build(tree, folder, nil)
	for _, doc := range result.Documents {
		if o, ok := asObject(doc); ok {
			objects = append(objects, o)
		}
	}
	return objects, problems
}

// change is a kustomization over a folder, less what it is named: fields of kustomize, and
// the paths from the root of components.
type change struct {
	Fields     map[string]any
	Components []string
}

func (c *change) isEmpty() bool { return len(c.Fields)+len(c.Components) == 0 }

func (c *change) set(field string, value any) {
	if c.Fields == nil {
		c.Fields = map[string]any{}
	}
	c.Fields[field] = value
}

// add adds an item to a list of kustomize.
func (c *change) add(field string, item any) {
	c.set(field, append(listAt(c.Fields, field), item))
}

// file is the kustomization in a folder that lays the change over others.
func (c *change) file(at string, over ...string) []byte {
	fields := map[string]any{"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
	maps.Copy(fields, c.Fields)
	fields["resources"] = over
	var components []string
	for _, component := range c.Components {
		components = append(components, relative(at, component))
	}
	if len(components) > 0 {
		fields["components"] = components
	}
	text, _ := yaml.Marshal(fields) // plain values: no error
	return text
}

// relative is the path of a folder from another one, both from the root.
func relative(from, to string) string {
	a, b := strings.Split(from, "/"), strings.Split(to, "/")
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	return path.Join(strings.Repeat("../", len(a)), path.Join(b...))
}

// scratch is a folder that no repository has.
const scratch = "swell-init-from.tmp"

// built is what a folder comes to with changes, one over the other.
func (r *reader) built(folder string, deep bool, changes ...change) ([]*object, document.Problems) {
	plain := r.content(folder, deep)
	changes = slices.DeleteFunc(slices.Clone(changes), func(c change) bool { return c.isEmpty() })
	if len(changes) == 0 || len(plain.problems) > 0 {
		return plain.objects, plain.problems
	}
	replaced := []string{scratch}
	var files []txtar.File
	if r.kustomizations[folder] == "" {
		file := path.Join(folder, config.KustomizationFiles[0])
		files, replaced = append(files, txtar.File{Name: file, Data: (&change{}).file(folder, plain.resources...)}), append(replaced, file)
	}
	at, over := "", folder
	for i, c := range changes {
		at = path.Join(scratch, fmt.Sprint(i))
		files = append(files, txtar.File{Name: path.Join(at, config.KustomizationFiles[0]), Data: c.file(at, relative(at, over))})
		over = at
	}
	top, err := txtar.FS(&txtar.Archive{Files: files})
	if err != nil {
		return nil, document.Problems{document.FileProblem(folder, err)}
	}
	return r.build(config.Overlay(r.tree, config.Files(top), replaced...), at)
}

// remove adds patches that delete objects.
func (c *change) remove(objects []*object) {
	for _, o := range objects {
		patch, _ := yaml.Marshal(map[string]any{"$patch": "delete", "apiVersion": o.apiVersion(), "kind": o.kind(), "metadata": map[string]any{"name": o.name()}})
		c.add("patches", map[string]any{"target": o.target(), "patch": string(patch)})
	}
}

// target selects an object for a patch of kustomize.
func (o *object) target() map[string]any {
	group, version, grouped := strings.Cut(o.apiVersion(), "/")
	if !grouped {
		group, version = "", group
	}
	target := map[string]any{"version": regexp.QuoteMeta(version), "kind": regexp.QuoteMeta(o.kind()), "name": regexp.QuoteMeta(o.name())}
	for key, text := range map[string]string{"group": group, "namespace": o.namespace()} {
		if text != "" {
			target[key] = regexp.QuoteMeta(text)
		}
	}
	return target
}

// inline is a list of patches of kustomize with the files among them written out, as a
// kustomization in another folder cannot name them.
func (r *reader) inline(folder string, patches []any) ([]any, error) {
	out := make([]any, 0, len(patches))
	for _, item := range patches {
		patch, _ := item.(map[string]any)
		file := textAt(patch, "path")
		if file == "" {
			out = append(out, item)
			continue
		}
		name := path.Join(folder, file)
		text, err := r.tree.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", cmp.Or(file, name), document.Cause(err))
		}
		patch = maps.Clone(patch)
		delete(patch, "path")
		patch["patch"] = string(text)
		out = append(out, patch)
	}
	return out, nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
