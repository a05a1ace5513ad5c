// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/swell-sh/swell/config/document"
)

// Fleet is what the documents of the fleet say. Nobody changes it once it is read.
type Fleet struct {
	// Clusters are sorted by name.
	Clusters []*Cluster
	Rollouts map[string]*Rollout
	// Tenants by name. Where there are none at all, the tenants of units are
	// plain names.
	Tenants map[string]*Tenant
	// Owners are those of CODEOWNERS, where a Tenant asks for owners.
	Owners Owners
	// Masks and Windows in the order in which they are written.
	Masks   []*Mask
	Windows []*Window
	// HealthRules in the order in which they are written; one for each kind.
	HealthRules []*HealthRule
	// Checkers in the order in which they are written.
	Checkers []*Checker
	// FleetHash changes when any document of the fleet changes.
	FleetHash string

	idle     []IdleReference      // that the fleet alone shows, see [Repository.Idle]
	folders  map[string]*Tenant   // by their folders
	rollouts []*document.Document // those of Rollouts, in the order in which they are written
	source   string               // the hashes of all that it was read from; empty after a problem
}

// loadFleet reads all documents in and below the fleet's folder, unless they are those
// of the previous fleet.
func (l *loader) loadFleet(dir string, previous *Fleet) {
	if source := l.fleetSource(dir, previous.Checkers); source != "" && source == previous.source {
		l.repository.Fleet = *previous
		return
	}
	l.repository.Rollouts, l.repository.Tenants = map[string]*Rollout{}, map[string]*Tenant{}
	l.readFleet(dir)
	if len(l.repository.Problems) == 0 {
		l.repository.source = l.fleetSource(dir, l.repository.Checkers)
	}
}

// fleetSource are the hashes of all that a fleet with these Checkers is read from; empty
// when one of them cannot be read.
func (l *loader) fleetSource(dir string, checkers []*Checker) string {
	var source strings.Builder
	files := append([]string{SettingsFile, dir}, ownersFiles...)
	for _, c := range checkers {
		if c.Schema != "" {
			files = append(files, c.Schema)
		}
	}
	for _, name := range files {
		hash, err := l.tree.Hash(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return ""
		}
		fmt.Fprintf(&source, "%s %s\n", name, hash)
	}
	return source.String()
}

func (l *loader) readFleet(dir string) {
	hash, err := l.tree.Hash(dir)
	if err != nil {
		l.problem(l.folderProblem(dir, err, "folder of the fleet (spec.fleet of "+SettingsFile+", default fleet)", "spec", "fleet"))
		return
	}
	l.repository.FleetHash = hash
	first := map[string]document.Position{} // of every "Kind name"
	var all []*document.Document
	for _, file := range l.yamlFiles(dir) {
		docs, _ := l.read(file)
		all = append(all, docs...)
		for _, doc := range docs {
			l.loadFleetDocument(doc, first)
		}
	}
	slices.SortFunc(l.repository.Clusters, func(a, b *Cluster) int { return strings.Compare(a.Name, b.Name) })
	if len(l.repository.Problems) > 0 {
		return
	}
	if len(l.repository.Clusters) == 0 {
		l.problem(document.Problem{Position: document.Position{File: dir}, Code: document.CodeFleet, Message: "no Cluster in the fleet"})
	}
	l.checkWaves(all)
	l.checkWheres()
	l.checkTenants()
	l.loadOwners()
}

// picks says whether a match picks any target, as a cell or as a whole cluster.
func (r *Repository) picks(m Match) bool {
	for _, cluster := range r.Clusters {
		for _, target := range cluster.everyTarget() {
			if m.Matches(target.Labels) {
				return true
			}
		}
	}
	return false
}

// WhyNoTarget says what of a match no target of the fleet has: labels and values,
// with those that there are; or all labels together. It is empty when there is no
// such thing.
func (r *Repository) WhyNoTarget(m Match) string {
	unknown, _ := r.unknownIn(m)
	switch {
	case len(unknown) > 0:
		return "no target of the fleet has " + strings.Join(unknown, "; ")
	case !r.picks(m):
		return "picks no target of the fleet: none has all of these labels"
	}
	return ""
}

// unknownIn are the labels and values of a match that no target has, for
// messages; label says that there is a label among them.
func (r *Repository) unknownIn(m Match) (unknown []string, label bool) {
	known := r.labels()
	for _, name := range slices.Sorted(maps.Keys(m.Labels)) {
		values, there := known[name]
		if !there {
			label = true
			unknown = append(unknown, document.Shorten(name)+document.DidYouMean(name, slices.Collect(maps.Keys(known))))
			continue
		}
		for _, value := range m.Labels[name] {
			if !slices.Contains(values, value) {
				unknown = append(unknown, fmt.Sprintf("%s: %s%s", document.Shorten(name), document.Shorten(value), document.DidYouMean(value, values)))
			}
		}
	}
	return unknown, label
}

// labels are the values of each label that targets have.
func (r *Repository) labels() map[string][]string {
	known := map[string][]string{}
	for _, cluster := range r.Clusters {
		for _, target := range cluster.everyTarget() {
			for label, value := range target.Labels {
				if !slices.Contains(known[label], value) {
					known[label] = append(known[label], value)
				}
			}
		}
	}
	return known
}

func (l *loader) yamlFiles(dir string) []string {
	entries, err := l.tree.ReadDir(dir)
	if err != nil {
		l.problem(document.FileProblem(dir, err))
	}
	var files []string
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case e.IsDir():
			files = append(files, l.yamlFiles(name)...)
		case !IsYAML(strings.ToLower(name)):
		case !IsYAML(name):
			l.problem(misnamed(name))
		case !e.Type().IsRegular():
			l.problem(document.Problem{Position: document.Position{File: name}, Code: document.CodeFile, Message: "a " + irregular(e.Type()) + ": want a plain file"})
		default:
			files = append(files, name)
		}
	}
	return files
}

func (l *loader) loadFleetDocument(doc *document.Document, first map[string]document.Position) {
	loads := map[string]func(*document.Document){"Checker": l.loadChecker, "Cluster": l.loadCluster, "HealthRule": l.loadHealthRule, "Mask": l.loadMask,
		"Rollout": l.loadRollout, "Tenant": l.loadTenant, "Window": l.loadWindow}
	load := loads[doc.Kind]
	if doc.APIVersion != APIVersion || load == nil {
		l.problem(doc.Problem(doc.Node, document.CodeDocument, "%s %s: no document of the fleet, want Checker, Cluster, HealthRule, Mask, Rollout, Tenant or Window (%s)", document.Shorten(doc.APIVersion), document.Shorten(doc.Kind), APIVersion))
		return
	}
	load(doc)
	if doc.Name == "" {
		return
	}
	key := doc.Kind + " " + doc.Name
	if at, ok := first[key]; ok {
		l.problem(doc.Problem(doc.Node, document.CodeFleet, "%s %q: declared twice, first at %s", doc.Kind, doc.Name, at))
		return
	}
	first[key] = doc.Position()
}

func (l *loader) loadCluster(doc *document.Document) {
	var spec struct {
		Kubernetes string
		Tenants    []string
		Variables  map[string]string
		Cells      []Cell
	}
	in := readOwn(doc, &spec)
	in.name("")
	c := &Cluster{
		Position: doc.Position(), Name: doc.Name, Labels: stringMap(document.Lookup(document.Lookup(doc.Node, "metadata"), "labels")),
		Kubernetes: spec.Kubernetes, KubernetesAt: doc.PositionOf("spec", "kubernetes"), Tenants: spec.Tenants, Variables: spec.Variables, Cells: spec.Cells,
	}
	seen := map[string]bool{}
	for i, cell := range spec.Cells {
		switch {
		case !document.IsLabel(cell.Name):
			in.at("spec", "cells", i, "name").problem(document.CodeType, "want a DNS label, got %q", document.Shorten(cell.Name))
		case seen[cell.Name]:
			in.at("spec", "cells", i, "name").problem(document.CodeFleet, "%q is declared twice in this cluster", cell.Name)
		}
		seen[cell.Name] = true
	}
	for i, tenant := range c.Tenants {
		if tenant != "*" && !document.IsLabel(tenant) {
			in.at("spec", "tenants", i).problem(document.CodeType, "want the name of a tenant, or \"*\" for all, got %+q", document.Shorten(tenant))
		}
		c.tenantsAt = append(c.tenantsAt, doc.PositionOf("spec", "tenants", i))
	}
	l.problem(in.problems()...)
	l.repository.Clusters = append(l.repository.Clusters, c)
}

// stringMap reads a mapping of texts that was checked before; nil is empty.
func stringMap(n *yaml.Node) map[string]string {
	if n == nil {
		return nil
	}
	m := make(map[string]string, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		m[n.Content[i].Value] = n.Content[i+1].Value
	}
	return m
}
