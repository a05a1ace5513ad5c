// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package config reads what people write: the documents of a monorepo (its layout,
// clusters, rollouts, defaults, units) and the daemon's own configuration. It takes a [Tree] and returns values and [document.Problems].
//
// It never touches a network, a cluster, the clock or the environment, and it
// never returns early at the first problem: the reader gets all of them, with
// positions, sorted.
package config

import (
	"errors"
	"strings"
)

// Group is the API group of swell's own documents.
const Group = "swell.sh"

// APIVersion is the only version of swell's own documents. There is no v2:
// fields are only ever added.
const APIVersion = Group + "/v1"

// Commit is the full hexadecimal hash of a Git commit. The zero value means
// that there is none, for example when a plain folder is rendered.
type Commit string

// Short is the abbreviated form for people, 8 digits at most.
func (c Commit) Short() string { return string(c[:min(len(c), 8)]) }

// ErrNoCommit says that the repository does not have a commit any more: the history of its
// branch was rewritten.
var ErrNoCommit = errors.New("the repository does not have it any more, so what it released cannot be made again; commit what you want")

// UnitPath names a unit by its folder, relative to the root of the monorepo,
// with forward slashes and no leading or trailing one: "services/shop/cart".
type UnitPath string

// TargetName names a target: "cluster/cell", or "cluster" when the cluster
// declares no cells or the unit is placed with topology cluster.
type TargetName string

// Cluster is the name of the target's cluster.
func (t TargetName) Cluster() string {
	cluster, _, _ := strings.Cut(string(t), "/")
	return cluster
}
