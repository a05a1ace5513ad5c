// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/kind"
	"github.com/swell-sh/swell/render/schema"
)

// Loaded is the easy kinds of a tree, and what they are made from.
type Loaded struct {
	Repository *config.Repository
	Kinds      *kind.Kinds
	// Hard are the kinds of the newest Kubernetes and the tree's custom
	// resources, which the objects of the kinds are checked against.
	Hard *schema.Set
	// Problems of the data files, of the folder of schemas and of the kinds,
	// sorted. Problems of the fleet are among them only where custom resources
	// are left out for them.
	Problems document.Problems
}

// Kinds loads the kinds of a tree as [Compiler.Snapshot] does, without rendering
// anything. Where Snapshot would hold the commit, no custom resource is known.
func Kinds(tree config.Tree) *Loaded {
	r := config.Load(tree, nil)
	l := &Loaded{Repository: r}
	_, l.Problems = checkFleet(r)
	if len(l.Problems) > 0 {
		var data *kind.Data
		if len(r.Folders()) > 0 {
			var problems document.Problems
			data, problems = kind.LoadData(tree, r.Data)
			l.Problems = append(l.Problems, problems...)
		}
		hard, err := schema.Kubernetes("")
		if err != nil {
			panic(err) // it is embedded
		}
		l.Hard, l.Kinds = hard, kind.LoadAll(tree, r.Kinds, hard, data, r.ProtoPath...)
	} else {
		p := survey(r)
		p.world.defineKinds(p)
		l.Hard, l.Kinds = p.world.hard.all(), p.world.kinds
		l.Problems = append(l.Problems, p.world.problems...)
		l.Problems = append(l.Problems, p.world.hard.shared...)
		l.Problems = append(l.Problems, p.world.claims...)
	}
	l.Problems = append(l.Problems, l.Kinds.Problems...).Sorted()
	return l
}

// Definitions are the definitions of custom resources that the clusters of a tree have, as
// JSON, one of each kind: a list for each cluster that has others than those before it.
// What a cluster lacks is the first definition that the tree has. There are none where
// Snapshot would hold the commit.
func Definitions(tree config.Tree) (lists [][]string) {
	r := config.Load(tree, nil)
	if _, problems := checkFleet(r); len(problems) > 0 {
		return nil
	}
	p := survey(r)
	hard := p.world.defineHard(p)
	seen := map[string]bool{}
	for _, cluster := range r.Clusters {
		var list []string
		for _, n := range hard.usableIn(cluster) {
			list = append(list, string(n.text))
		}
		if key := strings.Join(list, "\n"); !seen[key] {
			seen[key] = true
			lists = append(lists, list)
		}
	}
	return lists
}

// usableIn are the definitions that hold in a cluster, less those of its facts that swell
// cannot use, and then those that hold elsewhere, of kinds that it lacks.
func (h *hardKinds) usableIn(cluster *config.Cluster) (list []crdText) {
	kubernetes, err := schema.Kubernetes(cluster.Kubernetes)
	if err != nil {
		panic(err) // a problem of the cluster
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	known := map[schema.Claim]bool{}
	for _, n := range h.inCluster(cluster.Name) {
		if !n.live || len(kubernetes.Define(n.name, n.text, true).Violations()) == 0 {
			known[groupKind(n.claim)] = true
			list = append(list, n)
		}
	}
	for _, d := range h.definitions {
		if of := groupKind(d.claim); !known[of] {
			known[of] = true
			list = append(list, d.named())
		}
	}
	return list
}

// Kinds are the easy kinds of the snapshot's commit; nil where it is held.
func (s *Snapshot) Kinds() *kind.Kinds {
	if s.world == nil {
		return nil
	}
	return s.world.kinds
}

// SameSource says whether a unit of another snapshot was made from the same files and
// Defaults, whatever else changed.
func (u *Unit) SameSource(other *Unit) bool {
	a, b := u.source, other.source
	return a != nil && b != nil && a.Hash == b.Hash && a.Kustomization == b.Kustomization && a.Defaults.Hash == b.Defaults.Hash
}

// survey looks at the units of a repository, as far as it takes to define a
// world.
func survey(r *config.Repository) *pass {
	var c Compiler
	p := c.begin(r, rules{treatments: r.Checks, checks: newChecks(r.Checks, nil, nil, false)}) // it judges nothing
	p.lookUp()
	return p
}
