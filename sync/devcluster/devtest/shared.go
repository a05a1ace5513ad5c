// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package devtest

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/swell-sh/swell/sync/devcluster"
)

// variable names the folder of clusters that the test runner started for all packages: its
// kubeconfig, and the audit logs. Without it, a package starts its own.
const variable = "SWELL_TEST_CLUSTERS"

// auditPolicy is what shared clusters write to their audit logs.
//
//go:embed audit-policy.yaml
var auditPolicy []byte

// Shared are API servers that all tests of a package share, and with the test runner all
// packages. A test on them keeps apart from others by the name of its monorepo, which the
// label and the Lease have, by its namespaces or its tenant, and by the names of its
// cluster-scoped objects. What restarts, breaks or upgrades a server starts its own, by [Start].
//
// The tests of package sync are on dev-1 to dev-3, and break the discovery of dev-1 and dev-2
// for a while; those of sync/apply are on dev-4, and break it too. Others that need a server
// that is always whole take dev-3.
type Shared struct {
	Names []string // of the clusters; without a runner, only these are started

	once     sync.Once
	clusters *devcluster.Clusters
	own      string // folder of clusters that this process started
	err      error
}

// Clusters are the running clusters. Where there is no binary to start them, the test is
// skipped; in CI it fails.
func (s *Shared) Clusters(t testing.TB) *devcluster.Clusters {
	t.Helper()
	binary := Binary(t)
	s.once.Do(func() { s.clusters, s.err = s.find(binary) })
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.clusters
}

func (s *Shared) find(binary string) (*devcluster.Clusters, error) {
	if dir := os.Getenv(variable); dir != "" {
		return s.running(dir)
	}
	dir, err := os.MkdirTemp("", "swell-clusters-")
	if err != nil {
		return nil, err
	}
	s.own = dir
	policy := filepath.Join(dir, "audit-policy.yaml")
	if err := os.WriteFile(policy, auditPolicy, 0o600); err != nil {
		return nil, err
	}
	return devcluster.Start(context.Background(), binary, filepath.Join(dir, "clusters"), s.Names,
		"--audit", "--apiserver-arg", "audit-policy-file="+policy)
}

// running are the clusters that the runner started.
func (s *Shared) running(dir string) (*devcluster.Clusters, error) {
	clusters := devcluster.Running(filepath.Join(dir, "kubeconfig"))
	clusters.Dir = dir
	all, err := clientcmd.LoadFromFile(clusters.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", variable, err)
	}
	for _, name := range s.Names {
		if all.Contexts[name] == nil {
			return nil, fmt.Errorf("%s: %s has no cluster %s", variable, clusters.Kubeconfig, name)
		}
	}
	return clusters, nil
}

// tally names a file to which a line is added for each thing that a test run starts: the test
// runner counts them. devcluster adds one for each control plane.
const tally = "SWELL_TEST_TALLY"

// Count counts something that this process is or has started.
func Count(name string) {
	file, err := os.OpenFile(os.Getenv(tally), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return // nobody counts
	}
	defer file.Close()
	fmt.Fprintln(file, name)
}

// Main runs the tests of a package, and stops the servers that it started for all of them.
func Main(m *testing.M, shared ...interface{ Stop() }) int {
	code := m.Run()
	for _, s := range slices.Backward(shared) {
		s.Stop()
	}
	return code
}

// Stop ends the clusters that this process started, if it did.
func (s *Shared) Stop() {
	if s.own == "" {
		return
	}
	if s.clusters != nil {
		s.clusters.Stop()
	}
	_ = os.RemoveAll(s.own) // of a temporary folder
}
