// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"
)

// mainVerb, as the first argument, makes the test binary run a devcluster
// command line: the rest of the arguments.
const mainVerb = "devcluster"

// TestMain lets the test binary play devcluster, also as the children of a run.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == mainVerb {
		os.Exit(run(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == childVerb {
		os.Exit(run(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// self is the path of the test binary.
func self(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}
