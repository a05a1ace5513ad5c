// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain lets the heap grow further between collections, which are a third of
// what these tests take. A process that a test starts says itself what it wants.
func TestMain(m *testing.M) {
	if os.Getenv("GOGC") == "" && os.Getenv("SWELL_HOSTILE_DIR") == "" {
		debug.SetGCPercent(400)
	}
	os.Exit(m.Run())
}
