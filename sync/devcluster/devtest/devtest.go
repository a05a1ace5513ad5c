// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package devtest gives tests real API servers.
package devtest

import (
	"path/filepath"
	"testing"

	"github.com/swell-sh/swell/sync/devcluster"
	"github.com/swell-sh/swell/testdata/built"
)

// Binary is the devcluster binary. Where it is missing, the test is skipped; in CI it fails.
// With -short it is skipped in any case: these tests are those that the race detector makes
// slow, and what runs goroutines is tested in simulated clusters too.
func Binary(t testing.TB) string {
	t.Helper()
	if testing.Short() {
		t.Skip("needs real API servers")
	}
	return built.Program(t, "devcluster")
}

// Start starts clusters of its own for one test.
func Start(t testing.TB, names ...string) *devcluster.Clusters {
	t.Helper()
	clusters, err := devcluster.Start(t.Context(), Binary(t), filepath.Join(t.TempDir(), "clusters"), names)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(clusters.Stop)
	return clusters
}
