// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"flag"
	"os"
	"runtime/debug"
	"testing"
)

// TestMain lets the heap grow further between collections, which are a third of
// what these tests take. Benchmarks measure the program as it is, and so does a
// process that a test starts.
func TestMain(m *testing.M) {
	flag.Parse()
	measured := flag.Lookup("test.bench").Value.String() != "" || os.Getenv("SWELL_HOSTILE_DIR") != ""
	if os.Getenv("GOGC") == "" && !measured {
		debug.SetGCPercent(400)
	}
	os.Exit(m.Run())
}
