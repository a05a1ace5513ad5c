// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"reflect"
	"slices"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

// closure is everything that the build of one folder reads.
type closure struct {
	tree     config.Tree
	disk     filesys.FileSystem // what kustomize is given
	reads    map[string]bool
	folders  map[string]*kustomization // by path
	problems document.Problems

	origins []*document.Document // what objects of the output may have begun as
	patches []*document.Document
	merges  []mergePatch
	// ambiguous are documents and patches with values that kustomize reads in another
	// way than others do.
	ambiguous []*document.Document
	secret    bool // something in it may hold the value of a Secret

	visits, documents, bytes int // with every use of a shared base
	full                     bool
}

// kustomization is one folder of the closure.
type kustomization struct {
	folder string
	doc    *document.Document // its Node is never nil
	uses   []use
	// documents and bytes are what its own files hold.
	documents, bytes int
}

// use is a folder named by a kustomization.
type use struct {
	folder    string
	component bool
	at        document.Position
}

func (c *closure) problem(at document.Position, code document.Code, format string, args ...any) {
	c.problems = append(c.problems, document.Problem{Position: at, Code: code, Message: fmt.Sprintf(format, args...)})
}

// visit follows a kustomization and those that it uses, once for every use, as
// kustomize does. chain are the folders that lead to it.
func (c *closure) visit(folder string, chain []string) *kustomization {
	k := c.folders[folder]
	if k == nil {
		k = c.read(folder)
	}
	c.visits++
	c.documents += k.documents
	c.bytes += k.bytes
	if c.visits > maxFolders || c.documents > maxDocuments || c.bytes > maxBytes {
		if !c.full {
			c.full = true
			c.problem(k.doc.Position(), document.CodeDocument, "too much for one build up to here: want at most %d kustomizations, %d documents and %d MiB, each counted as often as it is used", maxFolders, maxDocuments, maxBytes>>20)
		}
		return k
	}
	chain = append(slices.Clip(chain), folder)
	for _, use := range k.uses {
		if c.full {
			return k
		}
		if slices.ContainsFunc(chain, func(user string) bool { return config.Within(user, use.folder) }) {
			c.problem(use.at, document.CodeReference, "%q: a cycle: it leads here already, or holds what does", use.folder)
			continue
		}
		used := c.visit(use.folder, chain)
		if component := used.doc.Kind == types.ComponentKind; component != use.component {
			want, field := "resources", types.KustomizationKind
			if component {
				want, field = "components", types.ComponentKind
			}
			c.problem(use.at, document.CodeReference, "%q is a %s: name it in %s", use.folder, field, want)
		}
	}
	return k
}

// read reads a folder's kustomization and all files that it names. A problem
// is recorded; the result is never nil.
func (c *closure) read(folder string) *kustomization {
	k := &kustomization{folder: folder, doc: &document.Document{File: folder, Node: &yaml.Node{Kind: yaml.MappingNode}}}
	c.folders[folder] = k
	c.reads[folder] = true
	file, content, ok := c.kustomizationFile(folder)
	if !ok {
		return k
	}
	k.doc.File = file
	docs, problems := document.ReadKustomization(file, content)
	c.problems = append(c.problems, problems...)
	if len(problems) > 0 {
		return k
	}
	if len(docs) != 1 || docs[0].Node.Kind != yaml.MappingNode {
		c.problem(document.Position{File: file}, document.CodeDocument, "want exactly one document, of kind Kustomization or Component")
		return k
	}
	k.doc, k.bytes = docs[0], len(content)
	if !c.checkKustomization(k) {
		return k
	}
	c.follow(k)
	return k
}

// kustomizationFile finds and reads the folder's one file of kustomize.
func (c *closure) kustomizationFile(folder string) (file string, content []byte, ok bool) {
	var found []string
	for _, name := range config.KustomizationFiles {
		name = path.Join(folder, name)
		c.reads[name] = true
		text, err := c.tree.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			c.problems = append(c.problems, document.FileProblem(name, err))
			return "", nil, false
		}
		found = append(found, name)
		file, content = name, text
	}
	switch len(found) {
	case 0:
		c.problem(document.Position{File: folder}, document.CodeReference, "no %s in this folder", config.KustomizationFiles[0])
	case 1:
		return file, content, true
	default:
		c.problem(document.Position{File: found[1]}, document.CodeDuplicate, "there is %s as well: want one of them", path.Base(found[0]))
	}
	return "", nil, false
}

// refused are fields of a kustomization that a build here must do without, and
// why.
var refused = map[string]string{
	"helmCharts":                  "Helm is not run: write out the chart's objects with `helm template` and name the file in resources",
	"helmGlobals":                 "Helm is not run",
	"helmChartInflationGenerator": "Helm is not run: write out the chart's objects with `helm template` and name the file in resources",
	"openapi":                     "not taken: the schema would hold for all other units as well; say how lists merge in the patch itself ($patch), or use a JSON patch",
	"crds":                        "not taken: kustomize reads them in no fixed order; say which fields are names in configurations",
}

// checkKustomization checks the form of a kustomization, before anything that
// it names is read.
func (c *closure) checkKustomization(k *kustomization) bool {
	before := len(c.problems)
	n := k.doc.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		if why := refused[n.Content[i].Value]; why != "" {
			c.problems = append(c.problems, k.doc.Problem(n.Content[i], document.CodeUnknown, "%s: %s", n.Content[i].Value, why))
		}
	}
	c.problems = append(c.problems, k.checkFields(n, reflect.TypeFor[types.Kustomization](), "")...)
	version := types.KustomizationVersion
	switch k.doc.Kind {
	case types.ComponentKind:
		version = types.ComponentVersion
	case types.KustomizationKind, "":
	default:
		c.problems = append(c.problems, k.doc.Problem(document.Lookup(n, "kind"), document.CodeDocument, "kind: want %s or %s", types.KustomizationKind, types.ComponentKind))
	}
	if k.doc.APIVersion != "" && k.doc.APIVersion != version {
		c.problems = append(c.problems, k.doc.Problem(document.Lookup(n, "apiVersion"), document.CodeDocument, "apiVersion: %q: want %q", document.Shorten(k.doc.APIVersion), version))
	}
	for _, option := range items(n, "buildMetadata") {
		if option.Value == types.ManagedByLabelOption {
			c.problems = append(c.problems, k.doc.Problem(option, document.CodeUnknown, "buildMetadata: %s: swell sets that label itself", option.Value))
		}
	}
	return len(c.problems) == before
}

// items are the values of a list in a mapping.
func items(n *yaml.Node, key string) []*yaml.Node {
	if list := document.Lookup(n, key); list != nil && list.Kind == yaml.SequenceNode {
		return list.Content
	}
	return nil
}

func (c *closure) write(file string, content []byte) {
	if err := c.disk.WriteFile("/"+file, content); err != nil {
		c.problems = append(c.problems, document.FileProblem(file, err))
	}
}
