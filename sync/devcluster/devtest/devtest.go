// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package devtest gives tests real API servers.
package devtest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/swell-sh/swell/sync/devcluster"
)

// Binary is the devcluster binary at the path. Where there is none, the test is skipped;
// in CI it fails. With -short it is skipped in any case: these tests are those that the
// race detector makes slow, and what runs goroutines is tested in simulated clusters too.
func Binary(t testing.TB, path string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("needs real API servers")
	}
	binary, err := devcluster.Find(path)
	switch {
	case err != nil && os.Getenv("CI") != "":
		t.Fatal(err)
	case err != nil:
		t.Skip(err)
	}
	return binary
}

// Start starts clusters that stop with the test, with the binary at the path.
func Start(t testing.TB, path string, names ...string) *devcluster.Clusters {
	t.Helper()
	clusters, err := devcluster.Start(t.Context(), Binary(t, path), filepath.Join(t.TempDir(), "clusters"), names)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(clusters.Stop)
	return clusters
}
