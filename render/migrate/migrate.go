// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package migrate reads a repository that was made for Flux, Argo CD, kustomize or Helm,
// and proposes the files that make it a monorepo of swell.
//
// It reads the files of the tree and nothing else: no network, clock, environment or
// cluster. It proposes new files only, and never one that is there. Whatever a proposal
// does not do as the other tool does is in [Proposal.NotCarried], at its line.
//
// What each tool says becomes releases, one for each cluster (model.go). Releases of the
// same content become one unit (units.go), and units become files (write.go).
package migrate

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

// tools are the readers, by the names that users give.
var tools = map[string]func(*reader) error{
	"flux":      (*reader).readFlux,
	"argocd":    (*reader).readArgo,
	"kustomize": (*reader).readKustomize,
	"helm":      (*reader).readHelm,
}

// Tools are the names of what can be read, sorted.
func Tools() []string { return []string{"argocd", "flux", "helm", "kustomize"} }

// Options is what the files of a repository do not say.
type Options struct {
	// Name of the monorepo, a DNS label.
	Name string
	// Clusters, the canary first. Those that the repository names are added behind them.
	Clusters []string
	// URL of the repository, to tell its own from others. May be empty.
	URL string
}

// Proposal is what makes a repository a monorepo.
type Proposal struct {
	// Files are new, by their paths from the root, sorted.
	Files []txtar.File
	// Clusters of the fleet, the canary first.
	Clusters []string
	// Units are sorted by path.
	Units []Unit
	// Notes are what is done in another way than by the other tool.
	Notes []Note
	// NotCarried is what is not done, sorted by position. Each has what to do by hand.
	NotCarried []Note
	// Charts are to be brought into the tree. A unit that waits for one is off.
	Charts []Chart
}

// Unit is a folder that swell releases from now on.
type Unit struct {
	Path     string
	Clusters []string
	// From is what the other tool calls it, like Kustomization apps, and where that is.
	From []string
	At   document.Position
	// Off says why the unit is off; empty when it is not.
	Off string
}

// Note is about a field of a document of the other tool.
type Note struct {
	At    document.Position
	What  string // the document: Kustomization apps
	Field string // spec.postBuild; empty for the document as a whole
	Why   string
	Do    string // by hand; empty when there is nothing to do
}

// Chart is a chart of a registry or of a repository of Helm.
type Chart struct {
	Path    string // where it is to stand in the tree
	Command string // that brings it there
}

// From reads a repository. An error says why there is nothing to propose.
func From(tool string, tree config.Tree, options Options) (*Proposal, error) {
	read := tools[tool]
	if read == nil {
		return nil, fmt.Errorf("--from %s: want one of %s%s", tool, strings.Join(Tools(), ", "), document.DidYouMean(tool, Tools()))
	}
	if _, err := tree.ReadFile(config.SettingsFile); !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: a monorepo of swell already", config.SettingsFile)
	}
	r, err := newReader(tree, options)
	if err != nil {
		return nil, err
	}
	r.tool = tool
	if err := read(r); err != nil {
		return nil, err
	}
	return r.propose()
}

// note says that something is done in another way.
func (r *reader) note(of *object, field, why, do string) {
	r.notes = append(r.notes, of.note(field, why, do))
}

// leave says that something is not carried over.
func (r *reader) leave(of *object, field, why, do string) {
	r.left = append(r.left, of.note(field, why, do))
}

func sortNotes(notes []Note) []Note {
	slices.SortStableFunc(notes, func(a, b Note) int {
		return cmp.Or(strings.Compare(a.At.File, b.At.File), cmp.Compare(a.At.Line, b.At.Line), strings.Compare(a.Field, b.Field), strings.Compare(a.Why, b.Why))
	})
	return slices.Compact(notes)
}
