// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// TestBuildOf: what Go writes down of a build is shown; what a release sets wins, so that
// a release from a tarball says the same as one from a checkout.
func TestBuildOf(t *testing.T) {
	settings := func(modified string) []debug.BuildSetting {
		return []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "0123abcd"}, {Key: "vcs.modified", Value: modified}}
	}
	const pseudo = "v0.0.0-20261124001416-0123abcd0123"
	for _, c := range []struct {
		name            string
		version, commit string // of a release
		info            *debug.BuildInfo
		want            string
	}{
		{"a test, or go run", "", "", &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "swell devel ("},
		{"nothing was written down", "", "", nil, "swell devel ("},
		{"a checkout", "", "", &debug.BuildInfo{Main: debug.Module{Version: pseudo}, Settings: settings("false")}, "swell " + pseudo + " (commit 0123abcd, "},
		{"a checkout with changes", "", "", &debug.BuildInfo{Main: debug.Module{Version: pseudo + "+dirty"}, Settings: settings("true")}, "swell " + pseudo + "+dirty (commit 0123abcd+dirty, "},
		{"go install at a version", "", "", &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}, "swell v1.2.3 ("},
		{"a release", "v1.2.3", "4567", &debug.BuildInfo{Main: debug.Module{Version: pseudo}, Settings: settings("true")}, "swell v1.2.3 (commit 4567, "},
	} {
		version, commit = c.version, c.commit
		if got, want := buildOf(c.info).line(), c.want+runtime.Version()+", "+runtime.GOOS+"/"+runtime.GOARCH+")"; got != want {
			t.Errorf("%s: got %q, want %q", c.name, got, want)
		}
	}
	version, commit = "", ""
}
