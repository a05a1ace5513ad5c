// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package kustomize builds folders with a kustomization.yaml in process, with
// kustomize's own code, on nothing but the files of one commit.
//
// It never opens a connection, starts a process or reads the disk or the
// environment. Kustomize could do all of these. So before it runs, this package
// follows every reference that kustomize would follow, and refuses at its line
// each one that is not a file of the monorepo. Kustomize then gets a file system
// in memory that holds the found files and nothing else.
package kustomize

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

// Result is what a folder builds to.
type Result struct {
	// Documents are in the order of kustomize's output. Their positions are
	// those of the document that a resource began as, or of its generator's
	// entry; where that cannot be told, those of the kustomization.
	Documents []*document.Document
	// Ambiguous are the documents and patches of files with values that kustomize reads
	// in another way than others do, see [document.Document.Ambiguous].
	Ambiguous []*document.Document
	// Reads are the files and folders that the result depends on, sorted,
	// also those that were looked for in vain: the result is the same while
	// [config.Tree.Hash] of each is. They are complete after problems, too.
	Reads []string
	// Kinds are those whose schemas the result depends on, "apiVersion kind",
	// sorted. They are complete after problems, too.
	Kinds []string
}

// Limits of one build. Kustomizations may share bases, so that a few files
// can stand for a tree without end; these count every use.
const (
	maxFolders   = 1_000    // kustomizations
	maxDocuments = 5_000    // documents of resources, and objects that come out
	maxBytes     = 64 << 20 // of all files
)

// building lets one build run at a time: kustomize looks objects up in a schema
// that is global to the process, sets it at each start, and does neither in a
// way that two goroutines may. A kustomization cannot change the schema; what
// [install] adds for one build is known to the next one.
var building sync.Mutex

// Build builds the folder. It is safe for concurrent use; the same files and
// schemas give the same documents. schemas may be nil: then lists in patches of
// easy documents replace those of the documents, as for every kind that
// kustomize does not know.
func Build(tree config.Tree, folder string, schemas Schemas) (Result, document.Problems) {
	c := &closure{tree: tree, disk: filesys.MakeFsInMemory(), reads: map[string]bool{}, folders: map[string]*kustomization{}}
	documents := c.build(folder, schemas)
	result := Result{Ambiguous: c.ambiguous, Reads: slices.Sorted(maps.Keys(c.reads)), Kinds: slices.Sorted(maps.Keys(c.easyKinds(nil)))}
	problems := c.problems.Sorted()
	if len(problems) == 0 {
		result.Documents = documents
	}
	return result, problems
}

func (c *closure) build(folder string, schemas Schemas) []*document.Document {
	defer document.Recover(folder, &c.problems)
	c.reads[folder] = true
	c.visit(folder, nil)
	if len(c.problems) == 0 {
		c.writeKustomizations()
	}
	if len(c.problems) > 0 {
		return nil
	}
	root := c.folders[folder]
	built, err := run(c.disk, folder, document.Lookup(root.doc.Node, "sortOptions") != nil, c.easyKinds(schemas), c.checkMergePatches)
	if len(c.problems) > 0 {
		return nil
	}
	if err != nil {
		c.problems = append(c.problems, c.explain(root, err))
		return nil
	}
	if built.Size() > maxDocuments {
		c.problem(root.doc.Position(), document.CodeDocument, "builds to %d objects, want at most %d", built.Size(), maxDocuments)
		return nil
	}
	documents := make([]*document.Document, 0, built.Size())
	for _, resource := range built.Resources() {
		text, err := resource.MarshalJSON()
		if err == nil {
			var doc *document.Document
			doc, err = c.document(root, text)
			documents = append(documents, doc)
		}
		if err != nil {
			c.problems = append(c.problems, c.explain(root, fmt.Errorf("%s %s: %w", resource.GetKind(), resource.GetName(), err)))
		}
	}
	return documents
}

// run is the only place where kustomize's code runs. The order is that of the
// files, unless the kustomization sorts: then kustomize must not be told one.
// check is called when kustomize's schema has the kinds.
func run(disk filesys.FileSystem, folder string, sorts bool, kinds map[string][]byte, check func()) (resmap.ResMap, error) {
	building.Lock()
	defer building.Unlock()
	if err := install(kinds); err != nil {
		return nil, err
	}
	check()
	order := krusty.ReorderOptionNone
	if sorts {
		order = krusty.ReorderOptionUnspecified
	}
	return krusty.MakeKustomizer(&krusty.Options{
		Reorder:          order,
		LoadRestrictions: types.LoadRestrictionsRootOnly,
		PluginConfig:     types.DisabledPluginConfig(),
	}).Run(disk, "/"+folder)
}

// document is a resource of the output. It goes through JSON, since kustomize
// means other things by some plain YAML words than config does.
func (c *closure) document(root *kustomization, text []byte) (*document.Document, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value map[string]any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	doc := &document.Document{Node: node(value)}
	doc.APIVersion, _ = value["apiVersion"].(string)
	doc.Kind, _ = value["kind"].(string)
	metadata, _ := value["metadata"].(map[string]any)
	doc.Name, _ = metadata["name"].(string)
	if doc.APIVersion == "" || doc.Kind == "" {
		return nil, fmt.Errorf("an object without apiVersion or kind")
	}
	origin := c.origin(doc, root)
	doc.File = origin.File
	place(doc.Node, origin.Node)
	return doc, nil
}
