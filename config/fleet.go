// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"maps"
	"slices"
	"time"

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

// Tenant is a team that units belong to.
type Tenant struct {
	Position document.Position
	Name     string
	// Account is the user that the tenant's units are applied as,
	// "system:serviceaccount:NAMESPACE:NAME". Empty: swell's own.
	Account string
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

// Rollout says in which waves a change reaches the targets of a unit.
type Rollout struct {
	Position document.Position
	Name     string
	// Waves in order; never empty. A target belongs to the first one that
	// matches it.
	Waves     []Wave
	OnFailure OnFailure
}

// OnFailure is what happens to a unit whose wave failed.
type OnFailure string

const (
	// Rollback puts the last good bundles back on the targets that this
	// rollout touched. It is the default.
	Rollback OnFailure = "rollback"
	// Hold stops and leaves everything as it is.
	Hold OnFailure = "hold"
)

// Wave is one step of a rollout.
type Wave struct {
	Name string
	// Match picks the targets. The zero Match picks every target that no
	// earlier wave has.
	Match Match
	// Soak is how long every target of the wave must have been healthy
	// without a break before the next wave starts. Zero is no wait.
	Soak time.Duration
	// MaxConcurrent is how many targets are changed and not yet healthy at
	// any time. The zero Amount is all of them.
	MaxConcurrent Amount
	// MaxFailures is how many targets may fail before the wave has failed.
	// The zero Amount is none.
	MaxFailures Amount
	// Timeout is how long a target may take from applied to healthy before it
	// counts as failed. [DefaultHealthTimeout] where none is written.
	Timeout time.Duration
}

// DefaultHealthTimeout is the time a target gets to become healthy: half of
// the progressDeadlineSeconds that Kubernetes gives a Deployment by default,
// so that a wave notices before the Deployment controller gives up.
const DefaultHealthTimeout = 5 * time.Minute

// Amount is a number of targets, or a share of the wave's targets.
type Amount struct {
	Count   int // used when Percent is zero
	Percent int // 0-100
}

// Of is the amount out of n targets, at most n. A share is rounded down, but
// is at least one target when it is not zero per cent.
func (a Amount) Of(n int) int {
	if a.Percent > 0 {
		return min(n, max(1, n*a.Percent/100))
	}
	return min(n, a.Count)
}

// Match picks targets by their labels: every key must be there with one of its
// values. An empty Match picks everything.
type Match struct {
	Labels map[string][]string
}

// Matches says whether a target with these labels is picked.
func (m Match) Matches(labels map[string]string) bool {
	for key, values := range m.Labels {
		got, ok := labels[key]
		if !ok || !slices.Contains(values, got) {
			return false
		}
	}
	return true
}

// WaveOf is the index of the wave that the target belongs to, or -1 when no
// wave picks it.
func (r *Rollout) WaveOf(t *Target) int {
	for i := range r.Waves {
		if r.Waves[i].Match.Matches(t.Labels) {
			return i
		}
	}
	return -1
}
