// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"maps"
	"slices"

	"github.com/swell-sh/swell/config/document"
)

// Cluster is one Kubernetes API server of the fleet. How to reach it is not in
// the monorepo: the daemon's own configuration maps Name to a kubeconfig.
type Cluster struct {
	Position document.Position
	Name     string
	Labels   map[string]string
	// Kubernetes is the minor version whose schemas hard objects are checked
	// against, "1.36". Empty means the newest one that swell knows.
	Kubernetes string
	// KubernetesAt is where that is written; of the document when it is not.
	KubernetesAt document.Position
	// Tenants that may be placed here; "*" is every tenant. Empty is every
	// tenant too.
	Tenants   []string
	tenantsAt []document.Position
	// Variables are handed to templates as target.variables.
	Variables map[string]string
	// Cells in the order written. A cluster with none is one target itself.
	Cells []Cell
}

// Cell is a part of a cluster that is released on its own. Its labels and
// variables win over the cluster's.
type Cell struct {
	Name      string
	Labels    map[string]string
	Variables map[string]string
}

// Target is where one bundle goes.
type Target struct {
	Name    TargetName
	Cluster string
	Cell    string // empty when the target is a whole cluster
	// Labels and Variables are the cluster's with the cell's laid over them.
	Labels     map[string]string
	Variables  map[string]string
	Kubernetes string // the cluster's
}

// everyTarget is each target that a unit may be placed on: the cells, and the cluster itself.
func (c *Cluster) everyTarget() []Target { return slices.Concat(c.Targets(false), c.Targets(true)) }

// Targets are the cluster's cells, or the cluster itself when wholeClusters is
// set or when it has no cells, in the order written.
func (c *Cluster) Targets(wholeClusters bool) []Target {
	whole := Target{Name: TargetName(c.Name), Cluster: c.Name, Labels: c.Labels, Variables: c.Variables, Kubernetes: c.Kubernetes}
	if wholeClusters || len(c.Cells) == 0 {
		return []Target{whole}
	}
	targets := make([]Target, len(c.Cells))
	for i, cell := range c.Cells {
		targets[i] = Target{
			Name:       TargetName(c.Name + "/" + cell.Name),
			Cluster:    c.Name,
			Cell:       cell.Name,
			Labels:     overlay(c.Labels, cell.Labels),
			Variables:  overlay(c.Variables, cell.Variables),
			Kubernetes: c.Kubernetes,
		}
	}
	return targets
}

// Allows says whether a tenant's units may be placed on the cluster.
func (c *Cluster) Allows(tenant string) bool {
	return len(c.Tenants) == 0 || slices.Contains(c.Tenants, "*") || slices.Contains(c.Tenants, tenant)
}

func overlay(base, top map[string]string) map[string]string {
	if len(top) == 0 {
		return base
	}
	merged := maps.Clone(base)
	if merged == nil {
		merged = make(map[string]string, len(top))
	}
	maps.Copy(merged, top)
	return merged
}

// HealthRule says when live objects of a kind are healthy. Its expressions are
// CEL; the package render compiles them.
type HealthRule struct {
	Position document.Position
	Name     string
	// Group and Kind of the objects; the core group is empty.
	Group, Kind string
	KindAt      document.Position
	// Healthy is never empty; Failed and Reason are where there are none.
	Healthy, Failed, Reason Expression
}

// Expression is the text of a CEL expression and where it is written.
type Expression struct {
	Text string
	At   document.Position
}
