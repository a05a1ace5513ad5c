// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime/debug"
	_ "unsafe" // for go:linkname

	"k8s.io/component-base/version"
)

// These are what "-ldflags -X" sets in a release build of Kubernetes: the
// server's version, and the client's in user agents. Left as they are, /version
// says v0.0.0-master+$Format:%H$, which clients fail to parse, and
// version.SetDynamicVersion refuses any version but a v0.0.0. Setting them here
// gives every build, "go test" included, the right version without flags that
// someone can forget.

//go:linkname gitVersion k8s.io/component-base/version.gitVersion
var gitVersion string

//go:linkname gitCommit k8s.io/component-base/version.gitCommit
var gitCommit string

//go:linkname clientVersion k8s.io/client-go/pkg/version.gitVersion
var clientVersion string

//go:linkname clientCommit k8s.io/client-go/pkg/version.gitCommit
var clientCommit string

// stampVersion makes all that runs in this process report kubernetesVersion.
// Call it first. Without a version to report it changes nothing.
func stampVersion() {
	v := kubernetesVersion()
	if v == "" {
		return
	}
	gitVersion, clientVersion = v, v
	gitCommit, clientCommit = "", ""
	// gitVersion was copied when its package was initialised; v is accepted
	// because it is equal, and replaces the copy.
	if err := version.SetDynamicVersion(v); err != nil {
		panic("devcluster: version " + v + ": " + err.Error())
	}
}

// kubernetesVersion is the version of k8s.io/kubernetes that go.mod asks for,
// such as "v1.36.3". It is empty in a build without module information.
func kubernetesVersion() string {
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return ""
	}
	for _, m := range info.Deps {
		if m.Path == "k8s.io/kubernetes" {
			return m.Version
		}
	}
	return ""
}
